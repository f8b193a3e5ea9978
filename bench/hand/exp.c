/* Elementwise exp: a vector at a time. */
#include "bench/hand/handwritten.h"
#include "bench/cpu/threads.h"
#include "bench/hand/vector_math.h"

#define PIECE (1 << 16)

struct job {
    const float *in;
    float *out;
    int64_t count;
};

static void piece(void *context, int64_t index) {
    const struct job *job = context;
    int64_t first = index * PIECE, past = first + PIECE;
    if (past > job->count) past = job->count;
    for (int64_t i = first; i < past; i += 4 * LANES)
        for (int v = 0; v < 4; v++)
            vector_store(job->out + i + LANES * v, vector_exp(vector_load(job->in + i + LANES * v)));
}

void BY_HAND(exp)(const float *in, float *out, int64_t count) {
    struct job job = {in, out, count};
    team_run(piece, &job, (count + PIECE - 1) / PIECE);
}
