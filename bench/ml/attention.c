/* Attention over a prompt: heads of 64 dimensions, half. */
#include "bench/cpu/threads.h"
#include "bench/kernel_text.h"
#include "bench/ml/ml.h"

#include <math.h>
#include <stdlib.h>

enum { D = 64, WAYS = 4 };

struct attention_job {
    struct ml_copies q;
    smelt_array *floats[3], *k, *v, *out, *expected; /* floats: of q, k and v */
    int64_t heads;
    struct {
        uint32_t queries, keys;
        float scale;
    } size;
};

static void expect_query(void *context, int64_t index) {
    const struct attention_job *job = context;
    int64_t keys = job->size.keys, head = index / job->size.queries;
    const float *q = floats(job->floats[0]) + index * D, *k = floats(job->floats[1]) + head * keys * D,
                *v = floats(job->floats[2]) + head * keys * D;
    double *weights = malloc((size_t)keys * sizeof *weights), top = -INFINITY, total = 0, sums[D] = {0};
    if (!weights) return; /* the comparison fails */
    for (int64_t key = 0; key < keys; key++) {
        weights[key] = 0;
        for (int i = 0; i < D; i++) weights[key] += (double)q[i] * k[key * D + i];
        weights[key] *= job->size.scale;
        top = fmax(top, weights[key]);
    }
    for (int64_t key = 0; key < keys; key++) {
        double weight = exp(weights[key] - top);
        total += weight;
        for (int i = 0; i < D; i++) sums[i] += weight * v[key * D + i];
    }
    for (int i = 0; i < D; i++) floats(job->expected)[index * D + i] = (float)(sums[i] / total);
    free(weights);
}

static smelt_status measure(struct bench *bench, const char *name, struct attention_job *job) {
    int64_t queries = job->size.queries, heads = job->heads;
    const struct ml_way ways[WAYS] = {
        {.name = "simdgroup matrices",
         .function = "matrices",
         .groups = {queries / 32, heads},
         .threads = {128}},
        {.name = "4 simdgroups per query",
         .function = "simdgroup_query",
         .groups = {queries, heads},
         .threads = {128}},
        {.name = "a thread per query",
         .function = "thread_query",
         .groups = {queries / 64, heads},
         .threads = {64}},
        {.name = "a thread per query, groups of one",
         .function = "thread_query",
         .groups = {queries, heads},
         .threads = {1},
         .slow = true},
    };
    smelt_dispatch_desc desc = {.buffers = {{.array = job->q.arrays[0]},
                                            {.array = job->k},
                                            {.array = job->v},
                                            {.array = job->out},
                                            {.bytes = &job->size, .size = sizeof job->size}}};
    struct contest contest = {.device = &cpu_contest,
                              .bench = bench,
                              .job = name,
                              .work = 4.0 * D * (double)(heads * queries) * job->size.keys,
                              .work_unit = "FLOP",
                              .output = job->out,
                              .expected = job->expected,
                              .tolerance = 2e-3}; /* weights are rounded to half */
    struct ml_variant variants[WAYS];
    struct ml_operations operations;
    ml_enter_operations(&contest, &operations);
    struct ml_anchor anchor = ml_enter_peer(&contest, "attention", 3, ML_FLOOR_OPERATIONS);
    ml_enter(&contest, variants, ways, WAYS, "ml_attention.metal", kernel_text_ml_attention, &desc, &job->q,
             anchor);
    smelt_status status = contest_run(&contest);
    for (int i = 0; i < WAYS; i++) launches_release(&variants[i].launches);
    ml_operations_release(&operations);
    return status;
}

/* Random halves, and the same numbers as floats. */
static smelt_status create_halves(int64_t count, uint64_t seed, smelt_array **halves, smelt_array **same) {
    smelt_array *random = NULL;
    *halves = NULL;
    smelt_status status = random_floats(SHAPE_OF(count), seed, -1, 1, &random);
    if (status == SMELT_OK) status = smelt_array_convert(random, SMELT_FLOAT16, halves);
    if (status == SMELT_OK) status = smelt_array_convert(*halves, SMELT_FLOAT32, same);
    smelt_array_release(random);
    return status;
}

smelt_status bench_ml_attention(struct bench *bench, const char *name) {
    struct attention_job job = {.heads = bench->quick ? 2 : 8,
                                .size = {bench->quick ? 64 : 256, bench->quick ? 128 : 1024, 0.125f}};
    int64_t queries = job.heads * job.size.queries * D, keys = job.heads * job.size.keys * D;
    smelt_array *q = NULL;
    smelt_status status = create_halves(queries, 6, &q, &job.floats[0]);
    if (status == SMELT_OK)
        status = ml_copies_create(q, queries * 2, true, &job.q);
    else
        smelt_array_release(q);
    if (status == SMELT_OK) status = create_halves(keys, 7, &job.k, &job.floats[1]);
    if (status == SMELT_OK) status = create_halves(keys, 8, &job.v, &job.floats[2]);
    if (status == SMELT_OK) status = new_floats(SHAPE_OF(queries), &job.out);
    if (status == SMELT_OK) status = new_floats(SHAPE_OF(queries), &job.expected);
    if (status == SMELT_OK) {
        team_run(expect_query, &job, job.heads * job.size.queries);
        status = measure(bench, name, &job);
    }
    ml_copies_release(&job.q);
    smelt_array *arrays[] = {job.floats[0], job.floats[1], job.floats[2], job.k,
                             job.v,         job.out,       job.expected};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) smelt_array_release(arrays[i]);
    return status;
}
