/* Inverses of unit lower triangular 64 x 64 squares along a sequence, in a layout of (length, heads, 64). */
#include "bench/cpu/cpu.h"
#include "bench/hand/handwritten.h"
#include "bench/kernel_text.h"
#include "bench/cpu/threads.h"

#define SIDE 64
#define FOURS_BY_HAND "hand-written, four rows"

struct inverse_job {
    smelt_array *a, *inverse, *expected;
    int64_t length, heads;
};

static void expect_square(void *context, int64_t index) {
    const struct inverse_job *job = context;
    int64_t step = job->heads * SIDE, start = index / job->heads * SIDE * step + index % job->heads * SIDE;
    const float *a = floats(job->a) + start;
    float *expected = floats(job->expected) + start;
    double x[SIDE][SIDE];
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            double value = i == j;
            for (int k = 0; k < i; k++) value -= a[i * step + k] * x[k][j];
            x[i][j] = value;
            expected[i * step + j] = (float)value;
        }
}

static smelt_status hand_rows(void *context) {
    const struct inverse_job *job = context;
    handwritten()->triangular_inverse(floats(job->a), floats(job->inverse), job->length, job->heads);
    return SMELT_OK;
}

static smelt_status hand_fours(void *context) {
    const struct inverse_job *job = context;
    handwritten()->triangular_inverse_fours(floats(job->a), floats(job->inverse), job->length, job->heads);
    return SMELT_OK;
}

static smelt_status measure(struct bench *bench, const char *name, struct inverse_job *job) {
    uint32_t size[4] = {1, (uint32_t)job->length, (uint32_t)job->heads, SIDE};
    struct contest contest = {.device = &cpu_contest,
                              .bench = bench,
                              .job = name,
                              .work = 8.0 * (double)smelt_array_size(job->a),
                              .work_unit = "B",
                              .output = job->inverse,
                              .expected = job->expected,
                              .tolerance = 1e-5};
    smelt_dispatch_desc desc = {
        .buffers = {{.array = job->a}, {.array = job->inverse}, {.bytes = size, .size = sizeof size}},
        .threadgroup_memory = {2 * SIDE * SIDE * sizeof(float)},
        .groups = {job->length / SIDE, job->heads, 1},
        .threadgroup = {SIDE}};
    struct standard standard;
    team_run(expect_square, job, job->length / SIDE * job->heads);
    contest_enter_hand(&contest, HAND_WRITTEN, hand_rows, job, NULL);
    contest_enter_hand(&contest, FOURS_BY_HAND, hand_fours, job, HAND_WRITTEN);
    standard_enter(&contest, &standard, "chunk_inverse.metal", kernel_text_chunk_inverse, "chunk_inverse",
                   &desc, HAND_WRITTEN, (struct bench_bar){BENCH_TIME_AT_MOST, 1.15});
    smelt_status status = contest_run(&contest);
    standard_release(&standard);
    return status;
}

smelt_status bench_cpu_inverse(struct bench *bench, const char *name) {
    bool quick = bench->quick;
    struct inverse_job job = {.length = quick ? 128 : 8192, .heads = quick ? 2 : 16};
    smelt_shape shape = SHAPE_OF(1, job.length, job.heads, SIDE);
    smelt_status status = random_floats(shape, 10, -0.1, 0.1, &job.a);
    if (status == SMELT_OK) status = new_floats(shape, &job.inverse);
    if (status == SMELT_OK) status = new_floats(shape, &job.expected);
    if (status == SMELT_OK) status = measure(bench, name, &job);
    smelt_array_release(job.a);
    smelt_array_release(job.inverse);
    smelt_array_release(job.expected);
    return status;
}
