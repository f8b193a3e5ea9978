/* The benchmark's jobs written by hand in AVX-512, on the team's threads (bench/cpu/threads.h): what smelt's
 * code is measured against. Each does what the kernel of its job does, group by group; only the code differs.
 *
 * All arrays are row-major float32. Sizes must be as stated: this code is for benchmarks, and takes no
 * others. */
#ifndef SMELT_BENCH_HAND_HANDWRITTEN_H
#define SMELT_BENCH_HAND_HANDWRITTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether this CPU runs the functions below (AVX-512 F, BW, DQ, VL). */
bool handwritten_supported(void);

/* out[i] = exp(in[i]); count a multiple of 64. */
void handwritten_exp(const float *in, float *out, int64_t count);

/* out = softmax of each row; columns a multiple of 256. The row's 256 threads keep a maximum and a sum each,
 * which are reduced by halving (tree), or in simdgroups of 32 first (simd). */
void handwritten_softmax_tree(const float *in, float *out, int64_t rows, int64_t columns);
void handwritten_softmax_simd(const float *in, float *out, int64_t rows, int64_t columns);

/* c = a · b, square of n, in tiles of 32 x 32 x 32, eight rows of a tile at a time; n a multiple of 32. */
void handwritten_matmul_tiled(const float *a, const float *b, float *c, int64_t n);

/* c = a · b, square of n, in tiles of 64 x 64 x 16; n a multiple of 64. In the first, vectors run along the
 * columns of a tile; in the second, a vector's lanes are 16 threads, each with its own 8 x 8 outputs. */
void handwritten_matmul_register(const float *a, const float *b, float *c, int64_t n);
void handwritten_matmul_register_lanes(const float *a, const float *b, float *c, int64_t n);

/* (I + S)⁻¹ for each 64 x 64 square of a (length, heads, 64), S its part below the diagonal; length a
 * multiple of 64. The first finds a row after the other as the kernel does, the second four at a time. */
void handwritten_triangular_inverse(const float *a, float *inverse, int64_t length, int64_t heads);
void handwritten_triangular_inverse_fours(const float *a, float *inverse, int64_t length, int64_t heads);

/* Bilinear samples with zeros outside, corners not aligned: x (batch, height, width, 64), points
 * (batch, rows, 2), out (batch, rows, 64). */
void handwritten_grid_sample(const float *x, const float *points, float *out, int64_t batch, int64_t height,
                             int64_t width, int64_t rows);

/* out[r][c] = gelu(x[r][c] * scale[c] + bias[c]) * residual[r][c]; columns a multiple of 16. */
void handwritten_gelu_chain(const float *x, const float *scale, const float *bias, const float *residual,
                            float *out, int64_t rows, int64_t columns);

/* Fused multiply-adds on registers alone, on every thread; returns how many single ones that were. */
double handwritten_multiply_adds(void);

#endif
