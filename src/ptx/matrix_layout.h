/* Where the elements of 8×8 matrices lie among the lanes of a simdgroup: as Metal's kernels see them, and as
 * the tensor cores take them. Shared by the code that rearranges one into the other and by its test.
 *
 * A lane holds two neighbours of a row, an even and an odd column: `pair` is the even one's number halved. */
#ifndef SMELT_PTX_MATRIX_LAYOUT_H
#define SMELT_PTX_MATRIX_LAYOUT_H

#define MATRIX_SIZE 8

/* Metal's: lane bits 4 2 1 are the row, 3 and 0 the pair of columns. */
#define METAL_ROW_BITS 0x16u
#define METAL_PAIR_BITS 0x09u
static inline unsigned metal_row(unsigned lane) {
    return (lane >> 2 & 4) | (lane >> 1 & 3);
}
static inline unsigned metal_pair(unsigned lane) {
    return (lane >> 2 & 2) | (lane & 1);
}
static inline unsigned metal_lane(unsigned row, unsigned pair) {
    return (row & 4) << 2 | (row & 3) << 1 | (pair & 2) << 2 | (pair & 1);
}

#endif
