/* Softmax of rows, phase by phase: all 256 threads of a row are vectors, so that its barriers cost nothing.
 * With AVX2, these vectors do not fit in registers and are kept in memory. */
#include "bench/hand/handwritten.h"
#include "bench/cpu/threads.h"
#include "bench/hand/vector_math.h"

#define THREADS 256
#define VECTORS (THREADS / LANES)

struct job {
    const float *in;
    float *out;
    int64_t columns;
};

/* The upper half onto the lower, down to one. */
#define TREE(name, operation, reduce)                                           \
    static inline float name(vector v[VECTORS]) {                               \
        for (int half = VECTORS / 2; half > 0; half /= 2)                       \
            for (int i = 0; i < half; i++) v[i] = operation(v[i], v[i + half]); \
        return reduce(v[0]);                                                    \
    }
TREE(tree_max, vector_max, vector_reduce_max)
TREE(tree_sum, vector_add, vector_reduce_add)

/* Each simdgroup to one number, then those eight. The eight are reduced together: each step halves the lanes
 * a simdgroup has, and with them the vectors. */
#ifdef __AVX512F__
#define IN_SIMDGROUPS(name, operation, reduce)                                                      \
    static inline float name(vector v[VECTORS]) {                                                   \
        vector s[8];                                                                                \
        for (int i = 0; i < 8; i++) s[i] = operation(v[2 * i], v[2 * i + 1]);                       \
        for (int i = 0; i < 4; i++)                                                                 \
            s[i] = operation(_mm512_shuffle_f32x4(s[2 * i], s[2 * i + 1], 0x44),                    \
                             _mm512_shuffle_f32x4(s[2 * i], s[2 * i + 1], 0xee));                   \
        for (int i = 0; i < 2; i++)                                                                 \
            s[i] = operation(_mm512_shuffle_f32x4(s[2 * i], s[2 * i + 1], 0x88),                    \
                             _mm512_shuffle_f32x4(s[2 * i], s[2 * i + 1], 0xdd));                   \
        s[0] = operation(_mm512_shuffle_ps(s[0], s[1], 0x44), _mm512_shuffle_ps(s[0], s[1], 0xee)); \
        s[0] = operation(s[0], _mm512_permute_ps(s[0], 0xb1));                                      \
        return reduce(_mm512_maskz_compress_ps(0x5555, s[0]));                                      \
    }

#define FIRST_EIGHT(v) _mm512_castps512_ps256(v)
#else
#define IN_SIMDGROUPS(name, operation, reduce)                                                              \
    static inline float name(vector v[VECTORS]) {                                                           \
        vector s[8];                                                                                        \
        for (int i = 0; i < 8; i++)                                                                         \
            s[i] = operation(operation(v[4 * i], v[4 * i + 1]), operation(v[4 * i + 2], v[4 * i + 3]));     \
        for (int i = 0; i < 4; i++)                                                                         \
            s[i] = operation(_mm256_permute2f128_ps(s[2 * i], s[2 * i + 1], 0x20),                          \
                             _mm256_permute2f128_ps(s[2 * i], s[2 * i + 1], 0x31));                         \
        for (int i = 0; i < 2; i++)                                                                         \
            s[i] = operation(_mm256_shuffle_ps(s[2 * i], s[2 * i + 1], 0x44),                               \
                             _mm256_shuffle_ps(s[2 * i], s[2 * i + 1], 0xee));                              \
        return reduce(operation(_mm256_shuffle_ps(s[0], s[1], 0x88), _mm256_shuffle_ps(s[0], s[1], 0xdd))); \
    }
#define FIRST_EIGHT(v) (v)
#endif

static inline float first_eight_max(vector v) {
    __m256 a = FIRST_EIGHT(v);
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
}
static inline float first_eight_sum(vector v) {
    __m256 a = FIRST_EIGHT(v);
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}
IN_SIMDGROUPS(simd_max, vector_max, first_eight_max)
IN_SIMDGROUPS(simd_sum, vector_add, first_eight_sum)

static inline void row(const struct job *job, int64_t index, float max_of(vector[]), float sum_of(vector[])) {
    const float *in = job->in + index * job->columns;
    float *out = job->out + index * job->columns;
    vector part[VECTORS];
    for (int v = 0; v < VECTORS; v++) part[v] = vector_load(in + LANES * v);
    for (int64_t i = THREADS; i < job->columns; i += THREADS)
        for (int v = 0; v < VECTORS; v++) part[v] = vector_max(part[v], vector_load(in + i + LANES * v));
    vector top = vector_set(max_of(part));
    for (int v = 0; v < VECTORS; v++) part[v] = vector_set(0);
    for (int64_t i = 0; i < job->columns; i += THREADS)
        for (int v = 0; v < VECTORS; v++) {
            vector e = vector_exp(vector_sub(vector_load(in + i + LANES * v), top));
            vector_store(out + i + LANES * v, e);
            part[v] = vector_add(part[v], e);
        }
    vector scale = vector_set(1.0f / sum_of(part));
    for (int64_t i = 0; i < job->columns; i += 4 * LANES)
        for (int v = 0; v < 4; v++)
            vector_store(out + i + LANES * v, vector_mul(vector_load(out + i + LANES * v), scale));
}

static void tree_row(void *job, int64_t index) {
    row(job, index, tree_max, tree_sum);
}
static void simd_row(void *job, int64_t index) {
    row(job, index, simd_max, simd_sum);
}

void BY_HAND(softmax_tree)(const float *in, float *out, int64_t rows, int64_t columns) {
    struct job job = {in, out, columns};
    team_run(tree_row, &job, rows);
}

void BY_HAND(softmax_simd)(const float *in, float *out, int64_t rows, int64_t columns) {
    struct job job = {in, out, columns};
    team_run(simd_row, &job, rows);
}
