/* Vectors as the hand-written code uses them. Its files are compiled twice: for AVX-512 (16 floats) and for
 * AVX2 (8 floats). Loads and stores need no alignment. */
#ifndef SMELT_BENCH_HAND_VECTOR_H
#define SMELT_BENCH_HAND_VECTOR_H

#include <immintrin.h>
#include <stdint.h>

#ifdef __AVX512F__

#define LANES 16
#define REGISTERS 32
#define BY_HAND(job) handwritten_##job##_avx512
#define BY_HAND_TABLE handwritten_avx512
typedef __m512 vector;

#define vector_load(from) _mm512_loadu_ps(from)
#define vector_store(to, v) _mm512_storeu_ps(to, v)
#define vector_set(x) _mm512_set1_ps(x)
#define vector_add(a, b) _mm512_add_ps(a, b)
#define vector_sub(a, b) _mm512_sub_ps(a, b)
#define vector_mul(a, b) _mm512_mul_ps(a, b)
#define vector_div(a, b) _mm512_div_ps(a, b)
#define vector_min(a, b) _mm512_min_ps(a, b)
#define vector_max(a, b) _mm512_max_ps(a, b)
#define vector_fmadd(a, b, c) _mm512_fmadd_ps(a, b, c)   /* a b + c */
#define vector_fnmadd(a, b, c) _mm512_fnmadd_ps(a, b, c) /* c - a b */

/* x · 2^n; n an integer. */
static inline vector vector_scale(vector x, vector n) {
    return _mm512_scalef_ps(x, n);
}

#else

#define LANES 8
#define REGISTERS 16
#define BY_HAND(job) handwritten_##job##_avx2
#define BY_HAND_TABLE handwritten_avx2
typedef __m256 vector;

#define vector_load(from) _mm256_loadu_ps(from)
#define vector_store(to, v) _mm256_storeu_ps(to, v)
#define vector_set(x) _mm256_set1_ps(x)
#define vector_add(a, b) _mm256_add_ps(a, b)
#define vector_sub(a, b) _mm256_sub_ps(a, b)
#define vector_mul(a, b) _mm256_mul_ps(a, b)
#define vector_div(a, b) _mm256_div_ps(a, b)
#define vector_min(a, b) _mm256_min_ps(a, b)
#define vector_max(a, b) _mm256_max_ps(a, b)
#define vector_fmadd(a, b, c) _mm256_fmadd_ps(a, b, c)
#define vector_fnmadd(a, b, c) _mm256_fnmadd_ps(a, b, c)

static inline __m256 vector_power_of_two(__m256i n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

/* In two steps, as 2^n may be too small or too large for a float. */
static inline vector vector_scale(vector x, vector n) {
    __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
    x = _mm256_mul_ps(x, vector_power_of_two(half));
    return _mm256_mul_ps(x, vector_power_of_two(_mm256_sub_epi32(whole, half)));
}

#endif

static inline float vector_reduce_max(vector v) {
    float lanes[LANES], most;
    vector_store(lanes, v);
    most = lanes[0];
    for (int i = 1; i < LANES; i++) most = lanes[i] > most ? lanes[i] : most;
    return most;
}

static inline float vector_reduce_add(vector v) {
    float lanes[LANES], sum = 0;
    vector_store(lanes, v);
    for (int i = 0; i < LANES; i++) sum += lanes[i];
    return sum;
}

/* The functions of struct handwritten for this set (handwritten.h). */
void BY_HAND(exp)(const float *in, float *out, int64_t count);
void BY_HAND(softmax_tree)(const float *in, float *out, int64_t rows, int64_t columns);
void BY_HAND(softmax_simd)(const float *in, float *out, int64_t rows, int64_t columns);
void BY_HAND(matmul_tiled)(const float *a, const float *b, float *c, int64_t n);
void BY_HAND(matmul_register)(const float *a, const float *b, float *c, int64_t n);
void BY_HAND(matmul_register_lanes)(const float *a, const float *b, float *c, int64_t n);
void BY_HAND(triangular_inverse)(const float *a, float *inverse, int64_t length, int64_t heads);
void BY_HAND(triangular_inverse_fours)(const float *a, float *inverse, int64_t length, int64_t heads);
void BY_HAND(grid_sample)(const float *x, const float *points, float *out, int64_t batch, int64_t height,
                          int64_t width, int64_t rows);
void BY_HAND(gelu_chain)(const float *x, const float *scale, const float *bias, const float *residual,
                         float *out, int64_t rows, int64_t columns);
double BY_HAND(multiply_adds)(void);

#endif
