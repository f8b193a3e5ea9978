/* A block of a product in registers: ROWS rows by two vectors, half of the registers. */
#ifndef BENCH_HAND_MULTIPLY_BLOCK_H
#define BENCH_HAND_MULTIPLY_BLOCK_H

#include "bench/hand/vector.h"

#define ROWS (REGISTERS / 4)

/* Adds `terms` columns of ROWS rows of a, `a_stride` apart, times as many rows of b, to sum. Rows of b and of
 * sum are `width` apart. */
static inline __attribute__((always_inline)) void multiply_block(const float *a, int a_stride, int terms,
                                                                 const float *b, float *sum, int width) {
    vector s[ROWS][2];
    for (int r = 0; r < ROWS; r++)
        for (int v = 0; v < 2; v++) s[r][v] = vector_load(sum + r * width + LANES * v);
#pragma GCC unroll 4
    for (int k = 0; k < terms; k++) {
        vector low = vector_load(b + k * width), high = vector_load(b + k * width + LANES);
        for (int r = 0; r < ROWS; r++) {
            vector factor = vector_set(a[r * a_stride + k]);
            s[r][0] = vector_fmadd(factor, low, s[r][0]);
            s[r][1] = vector_fmadd(factor, high, s[r][1]);
        }
    }
    for (int r = 0; r < ROWS; r++)
        for (int v = 0; v < 2; v++) vector_store(sum + r * width + LANES * v, s[r][v]);
}

#endif
