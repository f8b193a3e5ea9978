/* The benchmark's jobs written by hand, on the team's threads (bench/cpu/threads.h): what smelt's code is
 * measured against. Each does what the kernel of its job does, group by group; only the code differs.
 *
 * There is one set for AVX-512 (F, BW, DQ, VL) and one for AVX2 with FMA. All arrays are row-major float32.
 * Sizes must be as stated: this code is for benchmarks, and takes no others. */
#ifndef SMELT_BENCH_HAND_HANDWRITTEN_H
#define SMELT_BENCH_HAND_HANDWRITTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct handwritten {
    /* out[i] = exp(in[i]); count a multiple of 64. */
    void (*exp)(const float *in, float *out, int64_t count);

    /* out = softmax of each row; columns a multiple of 256. The row's 256 threads keep a maximum and a sum
     * each, which are reduced by halving (tree), or in simdgroups of 32 first (simd). */
    void (*softmax_tree)(const float *in, float *out, int64_t rows, int64_t columns);
    void (*softmax_simd)(const float *in, float *out, int64_t rows, int64_t columns);

    /* c = a · b, square of n, in tiles of 32 x 32 x 32, several rows of a tile at a time; n a multiple of
     * 32. */
    void (*matmul_tiled)(const float *a, const float *b, float *c, int64_t n);

    /* c = a · b, square of n, in tiles of 64 x 64 x 16; n a multiple of 64. In the first, vectors run along
     * the columns of a tile; in the second, a vector's lanes are threads, each with its own 8 x 8 outputs. */
    void (*matmul_register)(const float *a, const float *b, float *c, int64_t n);
    void (*matmul_register_lanes)(const float *a, const float *b, float *c, int64_t n);

    /* (I + S)⁻¹ for each 64 x 64 square of a (length, heads, 64), S its part below the diagonal; length a
     * multiple of 64. The first finds a row after the other as the kernel does, the second four at a time. */
    void (*triangular_inverse)(const float *a, float *inverse, int64_t length, int64_t heads);
    void (*triangular_inverse_fours)(const float *a, float *inverse, int64_t length, int64_t heads);

    /* Bilinear samples with zeros outside, corners not aligned: x (batch, height, width, 64), points
     * (batch, rows, 2), out (batch, rows, 64). */
    void (*grid_sample)(const float *x, const float *points, float *out, int64_t batch, int64_t height,
                        int64_t width, int64_t rows);

    /* out[r][c] = gelu(x[r][c] * scale[c] + bias[c]) * residual[r][c]; columns a multiple of 16. */
    void (*gelu_chain)(const float *x, const float *scale, const float *bias, const float *residual,
                       float *out, int64_t rows, int64_t columns);

    /* Fused multiply-adds on registers alone, on every thread; returns how many single ones that were. */
    double (*multiply_adds)(void);
};

extern const struct handwritten handwritten_avx512, handwritten_avx2;

/* Whether this CPU runs one of the sets. */
bool handwritten_supported(void);

/* The set for the widest vectors that this CPU has and SMELT_CPU allows; for SMELT_CPU=sse2 that for AVX2. */
const struct handwritten *handwritten(void);

#endif
