/* Softmax and RMS norm of rows, which read and write memory. */
#include "bench/cpu/threads.h"
#include "bench/kernel_text.h"
#include "bench/ml/ml.h"

#include <math.h>

struct rows_job {
    struct ml_copies in;
    smelt_array *floats, *out, *expected;
    int64_t rows;
    uint32_t columns;
    team_piece *expect;
};

static void expect_softmax(void *context, int64_t row) {
    const struct rows_job *job = context;
    const float *in = floats(job->floats) + row * job->columns;
    float *out = floats(job->expected) + row * job->columns;
    double top = -INFINITY, sum = 0;
    for (uint32_t i = 0; i < job->columns; i++) top = fmax(top, in[i]);
    for (uint32_t i = 0; i < job->columns; i++) sum += exp(in[i] - top);
    for (uint32_t i = 0; i < job->columns; i++) out[i] = (float)(exp(in[i] - top) / sum);
}

static void expect_norm(void *context, int64_t row) {
    const struct rows_job *job = context;
    const float *in = floats(job->floats) + row * job->columns;
    double sum = 0;
    for (uint32_t i = 0; i < job->columns; i++) sum += (double)in[i] * in[i];
    for (uint32_t i = 0; i < job->columns; i++)
        floats(job->expected)[row * job->columns + i] = (float)(in[i] / sqrt(sum / job->columns + 1e-5));
}

#define MAX_WAYS 5

static smelt_status measure(struct bench *bench, const char *name, struct rows_job *job,
                            const struct ml_way *ways, int count) {
    smelt_dispatch_desc desc = {.buffers = {{.array = job->in.arrays[0]},
                                            {.array = job->out},
                                            {.bytes = &job->columns, .size = sizeof job->columns}}};
    struct contest contest = {.device = &cpu_contest,
                              .bench = bench,
                              .job = name,
                              .work = (double)job->in.bytes + 4.0 * (double)smelt_array_size(job->out),
                              .work_unit = "B",
                              .output = job->out,
                              .expected = job->expected,
                              .tolerance = 1e-4,
                              .smallest = 1e-4};
    struct ml_variant variants[MAX_WAYS];
    team_run(job->expect, job, job->rows);
    ml_enter_bytes(&contest, &job->in);
    struct ml_anchor anchor = ml_enter_peer(&contest, name, 1.25, ML_FLOOR_BYTES);
    ml_enter(&contest, variants, ways, count, "ml_rows.metal", kernel_text_ml_rows, &desc, &job->in, anchor);
    smelt_status status = contest_run(&contest);
    for (int i = 0; i < count; i++) launches_release(&variants[i].launches);
    return status;
}

static smelt_status run(struct bench *bench, const char *name, struct rows_job job, smelt_dtype dtype,
                        const struct ml_way *ways, int count) {
    smelt_array *random = NULL, *in = NULL;
    int64_t elements = job.rows * job.columns;
    smelt_status status = random_floats(SHAPE_OF(elements), 7, -4, 4, &random);
    if (status == SMELT_OK) status = smelt_array_convert(random, dtype, &in);
    if (status == SMELT_OK) status = smelt_array_convert(in, SMELT_FLOAT32, &job.floats);
    if (status == SMELT_OK)
        status = ml_copies_create(in, elements * (dtype == SMELT_FLOAT16 ? 2 : 4), bench->quick, &job.in);
    else
        smelt_array_release(in);
    if (status == SMELT_OK) status = new_floats(SHAPE_OF(elements), &job.out);
    if (status == SMELT_OK) status = new_floats(SHAPE_OF(elements), &job.expected);
    if (status == SMELT_OK) status = measure(bench, name, &job, ways, count);
    ml_copies_release(&job.in);
    smelt_array *arrays[] = {random, job.floats, job.out, job.expected};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) smelt_array_release(arrays[i]);
    return status;
}

static struct rows_job job_of(const struct bench *bench, team_piece *expect) {
    return (struct rows_job){
        .rows = bench->quick ? 128 : 4096, .columns = bench->quick ? 1024 : 4096, .expect = expect};
}

#define GROUP_PER_ROW(text, entry) \
    {.name = (text), .function = (entry), .groups = {job.rows}, .threads = {256}}
#define SIMDGROUP_PER_ROW(entry) \
    {.name = "a simdgroup per row", .function = (entry), .groups = {job.rows / 4}, .threads = {128}}
#define THREAD_PER_ROW(entry)    \
    {.name = "a thread per row", \
     .function = (entry),        \
     .groups = {job.rows / 64},  \
     .threads = {64},            \
     .slow = true}
#define GROUP_OF_ONE(entry)                     \
    {.name = "a thread per row, groups of one", \
     .function = (entry),                       \
     .groups = {job.rows},                      \
     .threads = {1},                            \
     .slow = true}

smelt_status bench_ml_softmax(struct bench *bench, const char *name) {
    struct rows_job job = job_of(bench, expect_softmax);
    const struct ml_way ways[] = {GROUP_PER_ROW("256 threads per row, simd_sum", "softmax_group"),
                                  GROUP_PER_ROW("256 threads per row, tree", "softmax_tree"),
                                  SIMDGROUP_PER_ROW("softmax_simdgroup"), THREAD_PER_ROW("softmax_thread"),
                                  GROUP_OF_ONE("softmax_thread")};
    return run(bench, name, job, SMELT_FLOAT32, ways, sizeof ways / sizeof *ways);
}

smelt_status bench_ml_norm(struct bench *bench, const char *name) {
    struct rows_job job = job_of(bench, expect_norm);
    const struct ml_way ways[] = {GROUP_PER_ROW("256 threads per row, 4 each", "norm_group"),
                                  SIMDGROUP_PER_ROW("norm_simdgroup"), THREAD_PER_ROW("norm_thread"),
                                  GROUP_OF_ONE("norm_thread")};
    return run(bench, name, job, SMELT_FLOAT16, ways, sizeof ways / sizeof *ways);
}
