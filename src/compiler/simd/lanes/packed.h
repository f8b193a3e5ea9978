/* Values that the lanes of each simdgroup share: see packed.c. */
#ifndef SMELT_COMPILER_SIMD_PACKED_H
#define SMELT_COMPILER_SIMD_PACKED_H

#include "compiler/simd/lanes/lanes.h"

/* Whether the gang has several simdgroups. */
bool packed_are_possible(const struct simd *s);
/* Whether it is a reduction over a simdgroup whose result may be packed. */
bool packed_is_reduction(LLVMValueRef instruction);
/* Whether a varying value may still be packed, by what is known of its operands. join: lanes meet in its
 * block that came by different paths. */
bool packed_stays(struct simd *s, LLVMValueRef instruction, bool join);

/* Sets the result of a reduction, with an element for each simdgroup, from the chunks of its operand. */
void packed_set_reduction(struct simd *s, LLVMValueRef call, enum simd_operation operation,
                          LLVMValueRef const *chunks);
/* The code of an instruction whose result is packed. False: there is no vector form of it. */
bool packed_emit(struct simd *s, LLVMValueRef instruction);
#endif
