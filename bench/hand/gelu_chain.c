/* gelu(x · scale + bias) · residual in one pass. */
#include "bench/hand/handwritten.h"
#include "bench/cpu/threads.h"
#include "bench/hand/vector_math.h"

struct job {
    const float *x, *scale, *bias, *residual;
    float *out;
    int64_t columns;
};

/* x (1 + tanh(u)) / 2 with u = sqrt(2/π) (x + 0.044715 x³), as x / (1 + e^-2u). */
static inline __m512 gelu16(__m512 x) {
    __m512 square = _mm512_mul_ps(x, x);
    __m512 inner = _mm512_fmadd_ps(_mm512_set1_ps(0.044715f), square, _mm512_set1_ps(1.0f));
    __m512 u = _mm512_mul_ps(_mm512_mul_ps(_mm512_set1_ps(-2 * 0.7978845608f), x), inner);
    return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), exp16(u)));
}

static void row(void *context, int64_t index) {
    const struct job *job = context;
    int64_t first = index * job->columns;
    for (int64_t c = 0; c < job->columns; c += 16) {
        __m512 x = _mm512_fmadd_ps(_mm512_loadu_ps(job->x + first + c), _mm512_loadu_ps(job->scale + c),
                                   _mm512_loadu_ps(job->bias + c));
        _mm512_storeu_ps(job->out + first + c,
                         _mm512_mul_ps(gelu16(x), _mm512_loadu_ps(job->residual + first + c)));
    }
}

void handwritten_gelu_chain(const float *x, const float *scale, const float *bias, const float *residual,
                            float *out, int64_t rows, int64_t columns) {
    struct job job = {x, scale, bias, residual, out, columns};
    team_run(row, &job, rows);
}
