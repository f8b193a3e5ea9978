/* turns.c — the masked rounds of a loop, for one chunk after another. */
#ifndef SMELT_COMPILER_SIMD_TURNS_H
#define SMELT_COMPILER_SIMD_TURNS_H

#include "compiler/simd/simd.h"

/* Whether a loop that is written twice can have them. */
bool turns_suit(struct simd *s, int loop);
/* Until turns_end, the loop's block and its end are written for a gang of one chunk. */
void turns_begin(struct simd *s, int loop);
/* `rounds_end`: where a chunk has run all its rounds. Leaves the builder where all chunks have. */
void turns_end(struct simd *s, int loop, LLVMBasicBlockRef rounds_end);

#endif
