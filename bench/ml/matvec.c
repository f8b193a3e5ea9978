/* A token's vector times quantised weights: decoding, which reads every weight once. */
#include "bench/kernel_text.h"
#include "bench/ml/ml.h"

#include <stdio.h>

struct matvec_job {
    struct ml_copies weights;
    smelt_array *floats, *x, *y, *expected;
    uint32_t rows, columns;
};

enum { WAYS = 3 };

static smelt_status measure(struct bench *bench, const char *name, const char *format,
                            struct matvec_job *job) {
    char functions[WAYS][40];
    static const char *const prefixes[WAYS] = {"simdgroup_", "group_", "thread_"};
    for (int i = 0; i < WAYS; i++) snprintf(functions[i], sizeof functions[i], "%s%s", prefixes[i], format);
    const struct ml_way ways[WAYS] = {
        {.name = "a simdgroup for 4 rows",
         .function = functions[0],
         .groups = {job->rows / 8},
         .threads = {64}},
        {.name = "a group of 128 per row", .function = functions[1], .groups = {job->rows}, .threads = {128}},
        {.name = "a thread per row",
         .function = functions[2],
         .groups = {job->rows / 64},
         .threads = {64},
         .slow = true},
    };
    uint32_t size[2] = {job->rows, job->columns};
    smelt_dispatch_desc desc = {.buffers = {{.array = job->weights.arrays[0]},
                                            {.array = job->x},
                                            {.array = job->y},
                                            {.bytes = size, .size = sizeof size}}};
    struct contest contest = {.device = &cpu_contest,
                              .bench = bench,
                              .job = name,
                              .work = (double)job->weights.bytes,
                              .work_unit = "B",
                              .output = job->y,
                              .expected = job->expected,
                              .tolerance = 1e-4,
                              .smallest = 64}; /* a sum of thousands of products of about 1 */
    struct ml_variant variants[WAYS];
    ml_enter_bytes(&contest, &job->weights);
    struct ml_anchor anchor = ml_enter_peer(&contest, "matvec", 2.5, ML_FLOOR_BYTES);
    ml_enter(&contest, variants, ways, WAYS, "ml_matvec.metal", kernel_text_ml_matvec, &desc, &job->weights,
             anchor);
    smelt_status status = contest_run(&contest);
    for (int i = 0; i < WAYS; i++) launches_release(&variants[i].launches);
    return status;
}

smelt_status bench_ml_matvec(struct bench *bench, const char *name) {
    const char *format_name = name + sizeof "matvec-" - 1;
    const struct ml_format *format = ml_format_find(format_name);
    struct matvec_job job = {.rows = bench->quick ? 256 : 4096, .columns = bench->quick ? 1024 : 4096};
    int64_t blocks = (int64_t)job.rows * job.columns / format->weights;
    smelt_array *packed = NULL;
    smelt_status status = ml_blocks_create(format, blocks, &packed, &job.floats);
    if (status == SMELT_OK)
        status = ml_copies_create(packed, blocks * format->bytes, bench->quick, &job.weights);
    else
        smelt_array_release(packed);
    if (status == SMELT_OK) status = random_floats(SHAPE_OF(job.columns), 3, -1, 1, &job.x);
    if (status == SMELT_OK) status = new_floats(SHAPE_OF(job.rows), &job.y);
    if (status == SMELT_OK) status = new_floats(SHAPE_OF(job.rows), &job.expected);
    if (status == SMELT_OK) {
        ml_expect_products(job.floats, job.x, job.expected, job.rows, job.columns, 1);
        status = measure(bench, name, format_name, &job);
    }
    ml_copies_release(&job.weights);
    smelt_array_release(job.floats);
    smelt_array_release(job.x);
    smelt_array_release(job.y);
    smelt_array_release(job.expected);
    return status;
}
