/* Products of simdgroup matrices of bfloat, several rounds of a loop at a time, that generated code leaves to
 * the runtime where the CPU has AMX: for each round, sums[i][j] += left[i] · right[j] for up to four left and
 * four right matrices of 8 × 8 bfloats.
 *
 * A block of words: the head, then for each round the addresses of four left and four right matrices. */
#ifndef SMELT_ABI_MATRIX_BLOCK_H
#define SMELT_ABI_MATRIX_BLOCK_H

#include <stdint.h>

enum matrix_block_word {
    BLOCK_ROUNDS,   /* 0 to BLOCK_MOST_ROUNDS */
    BLOCK_LEFTS,    /* 1 to BLOCK_MATRICES */
    BLOCK_RIGHTS,   /* the same */
    BLOCK_LEFT_ROW, /* bytes from row to row, of all left matrices */
    BLOCK_RIGHT_ROW,
    BLOCK_SUMS, /* addresses of two tiles, float [16][4][8] at a multiple of 64: left matrices 0 and 1, 2 and
                   3 */
    BLOCK_OPERANDS = BLOCK_SUMS + 2
};

#define BLOCK_MATRICES 4
#define BLOCK_MOST_ROUNDS 4 /* 32 columns of left matrices: a row of AMX's tiles */
#define BLOCK_WORDS (BLOCK_OPERANDS + BLOCK_MOST_ROUNDS * 2 * BLOCK_MATRICES)

#endif
