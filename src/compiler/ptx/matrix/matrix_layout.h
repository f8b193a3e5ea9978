/* The layout of 8×8 matrices over the lanes of a simdgroup: as Metal's kernels see them, and as the tensor
 * cores take them.
 *
 * A lane holds two neighbours of a row, an even and an odd column: `pair` is the even one's number halved. */
#ifndef SMELT_COMPILER_PTX_MATRIX_LAYOUT_H
#define SMELT_COMPILER_PTX_MATRIX_LAYOUT_H

#define MATRIX_SIZE 8

/* ---- Metal's: lane bits 4 2 1 are the row, 3 and 0 the pair of columns. */
#define METAL_ROW_BITS 0x16u
#define METAL_PAIR_BITS 0x09u
static inline unsigned metal_lane(unsigned row, unsigned pair) {
    return (row & 4) << 2 | (row & 3) << 1 | (pair & 2) << 2 | (pair & 1);
}

/* ---- The tensor cores': of left matrices and sums, lane bits 4 3 2 are the row, 1 and 0 the pair; of right
 * ones, 4 3 2 are the column, and 1 and 0 the pair of *rows*. (PTX ISA, "Matrix fragments for mma.m16n8k8";
 * a left matrix of 16 rows is two of these in two registers, and so on.) */

/* A lane's number from the bits of another's, the lowest first; some flipped at the end. */
#define BIT_OFF -1
struct lane_map {
    int bit[5];
    unsigned flipped;
};

/* The place in Metal's layout of the element that a lane needs: */
enum lane_source {
    SOURCE_ROW,          /* both elements, of a left matrix or of sums */
    SOURCE_RIGHT_EVEN,   /* the element of the even row of the pair, of a right matrix, … */
    SOURCE_RIGHT_ODD,    /* … of the odd row; the column selects one of the two elements there */
    SOURCE_RIGHT_SAME,   /* the row of the pair that is odd if the column is … */
    SOURCE_RIGHT_OTHER,  /* … and the other one */
    SOURCE_BACK,         /* from sums of the tensor cores to Metal's layout */
    SOURCE_PAIR,         /* the lane whose bit 0 differs */
    SOURCE_PAIR_OF_FOUR, /* the lane whose bit 1 differs */
    SOURCE_COUNT
};
static const struct lane_map lane_sources[SOURCE_COUNT] = {
    [SOURCE_ROW] = {{0, 2, 3, 1, 4}, 0},
    [SOURCE_RIGHT_EVEN] = {{3, BIT_OFF, 0, 4, 1}, 0},
    [SOURCE_RIGHT_ODD] = {{3, BIT_OFF, 0, 4, 1}, 2},
    [SOURCE_RIGHT_SAME] = {{3, 2, 0, 4, 1}, 0},
    [SOURCE_RIGHT_OTHER] = {{3, 2, 0, 4, 1}, 2},
    [SOURCE_BACK] = {{0, 3, 1, 2, 4}, 0},
    [SOURCE_PAIR] = {{0, 1, 2, 3, 4}, 1},
    [SOURCE_PAIR_OF_FOUR] = {{0, 1, 2, 3, 4}, 2},
};

/* The same where lanes are in the fragments' order (warp/lanes.h): Metal's layout is that of left matrices
 * and of sums. */
static const struct lane_map ordered_sources[SOURCE_COUNT] = {
    [SOURCE_ROW] = {{0, 1, 2, 3, 4}, 0},
    [SOURCE_RIGHT_EVEN] = {{3, 4, BIT_OFF, 0, 1}, 0},
    [SOURCE_RIGHT_ODD] = {{3, 4, BIT_OFF, 0, 1}, 4},
    [SOURCE_RIGHT_SAME] = {{3, 4, 2, 0, 1}, 0},
    [SOURCE_RIGHT_OTHER] = {{3, 4, 2, 0, 1}, 4},
    [SOURCE_BACK] = {{0, 1, 2, 3, 4}, 0},
    [SOURCE_PAIR] = {{0, 1, 2, 3, 4}, 1},
    [SOURCE_PAIR_OF_FOUR] = {{0, 1, 2, 3, 4}, 2},
};

/* Bits of a lane: whether its column of a right matrix is odd; whether, in Metal's layout, its row is. */
#define RIGHT_COLUMN_BIT 2
#define METAL_ROW_BIT 1
#define ORDERED_ROW_BIT 2

#endif
