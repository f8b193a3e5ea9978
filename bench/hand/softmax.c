/* Softmax of rows, phase by phase: all 256 threads of a row are 16 vectors, so that its barriers cost
 * nothing. */
#include "bench/hand/handwritten.h"
#include "bench/cpu/threads.h"
#include "bench/hand/vector_math.h"

#define VECTORS 16
#define LANES 16
#define THREADS (VECTORS * LANES)

struct job {
    const float *in;
    float *out;
    int64_t columns;
};

/* The upper half onto the lower, down to one. */
#define TREE(name, operation, reduce)                                           \
    static inline float name(__m512 v[VECTORS]) {                               \
        for (int half = VECTORS / 2; half > 0; half /= 2)                       \
            for (int i = 0; i < half; i++) v[i] = operation(v[i], v[i + half]); \
        return reduce(v[0]);                                                    \
    }
TREE(tree_max, _mm512_max_ps, _mm512_reduce_max_ps)
TREE(tree_sum, _mm512_add_ps, _mm512_reduce_add_ps)

/* Each simdgroup (two vectors) to one number, then those eight. The eight are reduced together: each step
 * halves the lanes a simdgroup has, and with them the vectors. */
#define IN_SIMDGROUPS(name, operation, reduce)                                                      \
    static inline float name(__m512 v[VECTORS]) {                                                   \
        __m512 s[8];                                                                                \
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

static inline float first_eight_max(__m512 v) {
    __m256 a = _mm512_castps512_ps256(v);
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
}
static inline float first_eight_sum(__m512 v) {
    __m256 a = _mm512_castps512_ps256(v);
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}
IN_SIMDGROUPS(simd_max, _mm512_max_ps, first_eight_max)
IN_SIMDGROUPS(simd_sum, _mm512_add_ps, first_eight_sum)

static inline void row(const struct job *job, int64_t index, float max_of(__m512[]), float sum_of(__m512[])) {
    const float *in = job->in + index * job->columns;
    float *out = job->out + index * job->columns;
    __m512 part[VECTORS];
    for (int v = 0; v < VECTORS; v++) part[v] = _mm512_loadu_ps(in + LANES * v);
    for (int64_t i = THREADS; i < job->columns; i += THREADS)
        for (int v = 0; v < VECTORS; v++)
            part[v] = _mm512_max_ps(part[v], _mm512_loadu_ps(in + i + LANES * v));
    __m512 top = _mm512_set1_ps(max_of(part));
    for (int v = 0; v < VECTORS; v++) part[v] = _mm512_setzero_ps();
    for (int64_t i = 0; i < job->columns; i += THREADS)
        for (int v = 0; v < VECTORS; v++) {
            __m512 e = exp16(_mm512_sub_ps(_mm512_loadu_ps(in + i + LANES * v), top));
            _mm512_storeu_ps(out + i + LANES * v, e);
            part[v] = _mm512_add_ps(part[v], e);
        }
    __m512 scale = _mm512_set1_ps(1.0f / sum_of(part));
    for (int64_t i = 0; i < job->columns; i += 4 * LANES)
        for (int v = 0; v < 4; v++)
            _mm512_storeu_ps(out + i + LANES * v, _mm512_mul_ps(_mm512_loadu_ps(out + i + LANES * v), scale));
}

static void tree_row(void *job, int64_t index) {
    row(job, index, tree_max, tree_sum);
}
static void simd_row(void *job, int64_t index) {
    row(job, index, simd_max, simd_sum);
}

void handwritten_softmax_tree(const float *in, float *out, int64_t rows, int64_t columns) {
    struct job job = {in, out, columns};
    team_run(tree_row, &job, rows);
}

void handwritten_softmax_simd(const float *in, float *out, int64_t rows, int64_t columns) {
    struct job job = {in, out, columns};
    team_run(simd_row, &job, rows);
}
