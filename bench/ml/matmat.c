/* The vectors of many tokens times weights: prefill, which is bound by multiply-adds. */
#include "bench/kernel_text.h"
#include "bench/ml/ml.h"

#include <math.h>
#include <string.h>

struct matmat_job {
    struct ml_copies weights;
    smelt_array *floats, *x, *out, *expected;
    uint32_t size[3]; /* rows, columns, tokens */
};

enum { WAYS = 2 };

static smelt_status measure(struct bench *bench, const char *name, bool quantised, struct matmat_job *job) {
    int64_t rows = job->size[0], tokens = job->size[2];
    const struct ml_way ways[WAYS] = {
        {.name = "staged tiles, simdgroup matrices",
         .function = quantised ? "staged_q4_0" : "staged_f16",
         .groups = {rows / 64, tokens / 32},
         .threads = {128}},
        {.name = "staged tiles, an output per thread",
         .function = "tiled_f16",
         .groups = {rows / 16, tokens / 16},
         .threads = {16, 16}},
    };
    smelt_dispatch_desc desc = {.buffers = {{.array = job->weights.arrays[0]},
                                            {.array = job->x},
                                            {.array = job->out},
                                            {.bytes = job->size, .size = sizeof job->size}}};
    struct contest contest = {.device = &cpu_contest,
                              .bench = bench,
                              .job = name,
                              .work = 2.0 * (double)rows * job->size[1] * (double)tokens,
                              .work_unit = "FLOP",
                              .output = job->out,
                              .expected = job->expected,
                              .tolerance = quantised ? 1e-3 : 1e-4, /* weights are rounded to half */
                              .smallest = 32};
    struct ml_variant variants[WAYS];
    struct ml_operations operations;
    ml_enter_operations(&contest, &operations);
    struct ml_anchor anchor = ml_enter_peer(&contest, "matmat", 3, ML_FLOOR_OPERATIONS);
    int count = quantised ? 1 : WAYS;
    ml_enter(&contest, variants, ways, count, "ml_matmat.metal", kernel_text_ml_matmat, &desc, &job->weights,
             anchor);
    smelt_status status = contest_run(&contest);
    for (int i = 0; i < count; i++) launches_release(&variants[i].launches);
    ml_operations_release(&operations);
    return status;
}

/* Numbers that half holds exactly. */
static smelt_status exact_halves(int64_t count, uint64_t seed, smelt_array **array) {
    smelt_status status = random_floats(SHAPE_OF(count), seed, -1, 1, array);
    for (int64_t i = 0; status == SMELT_OK && i < count; i++)
        floats(*array)[i] = roundf(floats(*array)[i] * 256) / 256;
    return status;
}

static smelt_status create_weights(struct matmat_job *job, bool quantised, bool quick) {
    int64_t count = (int64_t)job->size[0] * job->size[1];
    smelt_array *packed = NULL;
    smelt_status status;
    if (quantised) {
        status = ml_blocks_create(ml_format_find("q4_0"), count / 32, &packed, &job->floats);
    } else {
        status = exact_halves(count, 4, &job->floats);
        if (status == SMELT_OK) status = smelt_array_convert(job->floats, SMELT_FLOAT16, &packed);
    }
    if (status == SMELT_OK)
        return ml_copies_create(packed, quantised ? count / 32 * 18 : count * 2, quick, &job->weights);
    smelt_array_release(packed);
    return status;
}

smelt_status bench_ml_matmat(struct bench *bench, const char *name) {
    bool quantised = strcmp(name, "matmat-q4_0") == 0;
    struct matmat_job job = {.size = {1024, 1024, 512}};
    if (bench->quick) memcpy(job.size, (uint32_t[]){128, 128, 64}, sizeof job.size);
    int64_t rows = job.size[0], columns = job.size[1], tokens = job.size[2];
    smelt_status status = create_weights(&job, quantised, bench->quick);
    if (status == SMELT_OK) status = exact_halves(tokens * columns, 5, &job.x);
    if (status == SMELT_OK) status = new_floats(SHAPE_OF(tokens * rows), &job.out);
    if (status == SMELT_OK) status = new_floats(SHAPE_OF(tokens * rows), &job.expected);
    if (status == SMELT_OK) {
        ml_expect_products(job.floats, job.x, job.expected, rows, columns, tokens);
        status = measure(bench, name, quantised, &job);
    }
    ml_copies_release(&job.weights);
    smelt_array_release(job.floats);
    smelt_array_release(job.x);
    smelt_array_release(job.out);
    smelt_array_release(job.expected);
    return status;
}
