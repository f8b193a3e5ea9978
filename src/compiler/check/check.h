/* Shared by the passes that insert the checker's calls (abi/check.h). Independent of src/check, which
 * implements them. */
#ifndef SMELT_COMPILER_CHECK_CHECK_H
#define SMELT_COMPILER_CHECK_CHECK_H

#include "abi/check.h"
#include "compiler/pass.h"

/* conditions.c — on request, the entry reports to the checker which comparisons are true for no thread of any
 * grid. Requires: the module as clang wrote it. */
smelt_status pass_check_conditions(struct unit *unit);

/* arithmetic.c — operations whose result Metal may leave undefined are marked, …
 * Requires: the module as clang wrote it. */
smelt_status pass_check_marked(struct unit *unit);
/* … the compiler evaluates initialisers itself, without marks: only the entry keeps them. Requires: functions
 * inlined. */
smelt_status pass_check_unmarked(struct unit *unit);
/* … and the marks become tests that tell the checker. Requires: pass_hold. */
smelt_status pass_check_tested(struct unit *unit);

/* ---- mark.c, for arithmetic.c and not_finite.c */

enum { CHECK_MARK_OPERANDS = 4 };

/* A mark of an operation, which stands for its first operand; detail (optional): what its name ends in. */
LLVMValueRef check_mark(struct unit *unit, enum check_operation operation, LLVMValueRef *operands,
                        unsigned count, const char *detail);
bool check_is_mark(LLVMValueRef call, enum check_operation *operation);
/* The result of an instruction becomes the mark's. operands: those of the instruction, at most 3. */
void check_mark_result(struct unit *unit, LLVMValueRef instruction, enum check_operation kind,
                       LLVMValueRef *operands, unsigned count, const char *detail);
/* A value that no shadow follows: it only decides whether the checker is told. */
LLVMValueRef check_apart(struct unit *unit, LLVMValueRef value);
/* An operand as the checker gets it: 64 bits, of a float those of a double. */
LLVMValueRef check_told(struct unit *unit, LLVMValueRef value);
/* Before an instruction, `condition` is asked. The builder then stands where it is true. */
void check_branch(struct unit *unit, LLVMValueRef before, LLVMValueRef condition);

/* not_finite.c — the marks of floats, and their tests before a mark. */
smelt_status check_mark_reals(struct unit *unit);
void check_test_real(struct unit *unit, LLVMValueRef mark);

/* pointers.c — a variable that holds one function, as in `auto f = g<float>; f(x);`, is replaced by it, so
 * that the call can be inlined. Requires: the module as clang emitted it, except for marks. */
smelt_status pass_check_functions(struct unit *unit);

/* private.c — private variables keep what the optimiser would use up: arrays stay in memory where an access
 * may miss them, other variables begin with an unknown value.
 * Requires: functions inlined, variables still in memory. */
smelt_status pass_check_private(struct unit *unit);

/* ---- pointers.c, also for private.c */

/* A mark of where a variable's life begins or ends. */
bool check_is_lifetime(LLVMValueRef call);
/* Adds the bytes that a getelementptr with constant indexes adds; false: an index is not constant. */
bool check_constant_offset(struct unit *unit, LLVMValueRef gep, uint64_t *offset);
/* Replaces pointers in variables of the function that are written once by the pointer that is written. */
smelt_status check_forward_pointers(struct unit *unit, LLVMValueRef function);

/* accesses.c — every access asks first, with the object that its address comes from; stores to device memory
 * show their value; barriers and fences are announced.
 * Requires: variables in registers, intrinsics not yet lowered, thrown-away loads under their conditions. */
smelt_status pass_check_accesses(struct unit *unit);

/* undefined.c — undefined values are followed through registers and memory, by LLVM's MemorySanitizer.
 * Requires: pass_check_private. */
smelt_status pass_check_undefined(struct unit *unit);

/* ---- site.c */

/* A constant with the user's place of an instruction. name: of a variable; NULL: none. */
LLVMValueRef check_site(struct unit *unit, LLVMValueRef instruction, const char *name);

/* A call of one of the checker's functions at the builder's place. `pure`: it only computes its result. */
LLVMValueRef check_call(struct unit *unit, const char *function, LLVMTypeRef result, LLVMValueRef *arguments,
                        unsigned count, bool pure);

/* As a pointer of the address space that contains all others. */
LLVMValueRef check_pointer(struct unit *unit, LLVMValueRef pointer);

#endif
