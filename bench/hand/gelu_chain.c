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
static inline vector vector_gelu(vector x) {
    vector square = vector_mul(x, x);
    vector inner = vector_fmadd(vector_set(0.044715f), square, vector_set(1.0f));
    vector u = vector_mul(vector_mul(vector_set(-2 * 0.7978845608f), x), inner);
    return vector_div(x, vector_add(vector_set(1.0f), vector_exp(u)));
}

static void row(void *context, int64_t index) {
    const struct job *job = context;
    int64_t first = index * job->columns;
    for (int64_t c = 0; c < job->columns; c += LANES) {
        vector x = vector_fmadd(vector_load(job->x + first + c), vector_load(job->scale + c),
                                vector_load(job->bias + c));
        vector_store(job->out + first + c,
                     vector_mul(vector_gelu(x), vector_load(job->residual + first + c)));
    }
}

void BY_HAND(gelu_chain)(const float *x, const float *scale, const float *bias, const float *residual,
                         float *out, int64_t rows, int64_t columns) {
    struct job job = {x, scale, bias, residual, out, columns};
    team_run(row, &job, rows);
}
