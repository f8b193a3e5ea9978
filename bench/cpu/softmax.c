/* Softmax of rows: what barriers and simdgroup reductions cost. */
#include "bench/cpu/cpu.h"
#include "bench/hand/handwritten.h"
#include "bench/kernel_text.h"
#include "bench/cpu/threads.h"

#include <math.h>

#define GROUP 256

struct softmax_job {
    smelt_array *in, *out, *expected;
    int64_t rows, columns;
    void (*hand)(const float *in, float *out, int64_t rows, int64_t columns);
};

static void expect_row(void *context, int64_t row) {
    const struct softmax_job *job = context;
    const float *in = floats(job->in) + row * job->columns;
    float *expected = floats(job->expected) + row * job->columns;
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < job->columns; i++) top = in[i] > top ? in[i] : top;
    for (int64_t i = 0; i < job->columns; i++) sum += exp(in[i] - top);
    for (int64_t i = 0; i < job->columns; i++) expected[i] = (float)(exp(in[i] - top) / sum);
}

static smelt_status run_hand(void *context) {
    const struct softmax_job *job = context;
    job->hand(floats(job->in), floats(job->out), job->rows, job->columns);
    return SMELT_OK;
}

static smelt_status measure(struct bench *bench, const char *name, struct softmax_job *job, const char *file,
                            const char *text, const char *function) {
    uint32_t columns = (uint32_t)job->columns;
    struct contest contest = {.device = &cpu_contest,
                              .bench = bench,
                              .job = name,
                              .work = 8.0 * (double)(job->rows * job->columns),
                              .work_unit = "B",
                              .output = job->out,
                              .expected = job->expected,
                              .tolerance = 1e-5,
                              .smallest = 1e-6};
    smelt_dispatch_desc desc = {
        .buffers = {{.array = job->in}, {.array = job->out}, {.bytes = &columns, .size = sizeof columns}},
        .groups = {job->rows, 1, 1},
        .threadgroup = {GROUP}};
    struct standard standard;
    team_run(expect_row, job, job->rows);
    contest_enter_hand(&contest, HAND_WRITTEN, run_hand, job, NULL);
    standard_enter(&contest, &standard, file, text, function, &desc, HAND_WRITTEN,
                   (struct bench_bar){BENCH_TIME_AT_MOST, 1.25});
    smelt_status status = contest_run(&contest);
    standard_release(&standard);
    return status;
}

static smelt_status run(struct bench *bench, const char *name, struct softmax_job job, const char *file,
                        const char *text, const char *function) {
    job.rows = bench->quick ? 8 : 4096;
    job.columns = bench->quick ? 768 : 4096;
    smelt_shape shape = SHAPE_OF(job.rows, job.columns);
    smelt_status status = random_floats(shape, 7, -4, 4, &job.in);
    if (status == SMELT_OK) status = new_floats(shape, &job.out);
    if (status == SMELT_OK) status = new_floats(shape, &job.expected);
    if (status == SMELT_OK) status = measure(bench, name, &job, file, text, function);
    smelt_array_release(job.in);
    smelt_array_release(job.out);
    smelt_array_release(job.expected);
    return status;
}

smelt_status bench_cpu_softmax_tree(struct bench *bench, const char *name) {
    return run(bench, name, (struct softmax_job){.hand = handwritten()->softmax_tree}, "softmax_tree.metal",
               kernel_text_softmax_tree, "softmax_tree");
}

smelt_status bench_cpu_softmax_simd(struct bench *bench, const char *name) {
    return run(bench, name, (struct softmax_job){.hand = handwritten()->softmax_simd}, "softmax_simd.metal",
               kernel_text_softmax_simd, "softmax_simd");
}
