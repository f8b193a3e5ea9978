/* Loops over products of bfloat matrices that the runtime multiplies, several rounds at a time
 * (matrix_block.c). */
#ifndef SMELT_COMPILER_SIMD_MATRIX_BLOCK_H
#define SMELT_COMPILER_SIMD_MATRIX_BLOCK_H

#include "compiler/simd/matrix/matrix.h"

/* Describes a loop of one block, which suits parts (matrix_loop.c), if it is such a loop; else NULL. */
struct matrix_block *matrix_block_of(struct simd *s, LLVMBasicBlockRef block);
/* The products of a round wait to be written: notes where their operands lie. */
void matrix_block_note_round(struct simd *s);
/* After the last round. */
void matrix_block_end(struct simd *s);
#endif
