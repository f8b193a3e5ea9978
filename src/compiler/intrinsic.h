/* Intrinsics in LLVM's terms: the one that a call calls, and its row in the table (src/abi/intrinsics.h). */
#ifndef SMELT_COMPILER_INTRINSIC_H
#define SMELT_COMPILER_INTRINSIC_H

#include "abi/intrinsics.h"
#include "abi/simdgroup.h"

#include <llvm-c/Core.h>
#include <stdbool.h>

struct intrinsic_traits {
    const char *name; /* whole; of a family, the common prefix */
    enum intrinsic_purity purity;
    enum intrinsic_convergence convergence;
    enum intrinsic_kind kind;
};

/* Of INTRINSIC_NONE and INTRINSIC_UNKNOWN too. */
const struct intrinsic_traits *intrinsic_traits(enum intrinsic intrinsic);

/* Which one is called directly; INTRINSIC_NONE of whatever else, including a value that is not a call. */
enum intrinsic intrinsic_of(LLVMValueRef value);
/* … by the function itself. */
enum intrinsic intrinsic_of_function(LLVMValueRef function);

bool intrinsic_called(LLVMValueRef value);                /* one of any kind, unknown ones included */
bool intrinsic_is_of_simdgroup(enum intrinsic intrinsic); /* of OF_SIMDGROUP, or the simdgroup's barrier */
bool intrinsic_in_block(LLVMBasicBlockRef block, enum intrinsic intrinsic);
bool intrinsic_in_function(LLVMValueRef function, enum intrinsic intrinsic);

/* The function, NULL: the module has none; … which is declared with this type if it has none. Of families
 * neither. */
LLVMValueRef intrinsic_function(LLVMModuleRef module, enum intrinsic intrinsic);
LLVMValueRef intrinsic_declare(LLVMModuleRef module, enum intrinsic intrinsic, LLVMTypeRef type);

#endif
