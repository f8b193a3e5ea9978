/* Kernels of bench/ml on the GPU, as public projects write them: quantised weights times a vector, staged and
 * straight products of simdgroup matrices, attention; next to the speed of a copy and PyTorch. */
#include "bench/gpu/gpu.h"
#include "bench/kernel_text.h"
#include "bench/ml/ml.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 4096
#define OWN_ROWS 256  /* of weights: the others repeat them */
#define OWN_TOKENS 32 /* likewise */
#define ROTATED_BYTES (INT64_C(512) << 20)
#define MOST_COPIES 48
#define SAMPLES 64

struct ml_job {
    struct gpu *gpu;
    const char *name;
    smelt_array *arrays[3], *out;
    smelt_array *copies[MOST_COPIES]; /* of arrays[0], which launches take in turn */
    int copy_count, turn;
    struct launches launches;
    double *expected; /* NULL: the check computes it */
    float *first[3];  /* what the arrays begin with, on the host */
    double tolerance; /* relative to `size` */
    double size;      /* of usual results */
    uint32_t sizes[3];
    float scale;
};

static smelt_status run_next(void *context) {
    struct ml_job *job = context;
    job->turn = (job->turn + 1) % job->copy_count;
    job->launches.descs[0].buffers[0].array = job->copies[job->turn];
    return launches_run(&job->launches);
}

static bool is_near(const struct ml_job *job, double actual, double expected, int64_t place, char *message,
                    size_t size) {
    if (fabs(actual - expected) <= job->tolerance * fmax(fabs(expected), job->size)) return true;
    snprintf(message, size, "wrong result: element %lld is %.9g, expected %.9g", (long long)place, actual,
             expected);
    return false;
}

/* ---- Weights: OWN_ROWS rows, repeated. */

/* Of blocks or, without a format, of half: `values` become their numbers, *packed their bytes. */
static smelt_status make_rows(const struct ml_format *format, smelt_array **packed, smelt_array **values) {
    int64_t count = (int64_t)OWN_ROWS * COLUMNS;
    if (format) return ml_blocks_create(format, count / format->weights, packed, values);
    smelt_array *random = NULL;
    smelt_status status = smelt_array_uniform(SMELT_FLOAT32, SHAPE_OF(count), 50, &random);
    if (status == SMELT_OK) status = smelt_array_convert(random, SMELT_FLOAT16, packed);
    if (status == SMELT_OK) status = smelt_array_convert(*packed, SMELT_FLOAT32, values);
    smelt_array_release(random);
    return status;
}

static smelt_status write_rows(const smelt_array *packed, int64_t rows, smelt_array **made) {
    size_t bytes = gpu_bytes(packed);
    smelt_status status = gpu_new(SMELT_UINT8, SHAPE_OF((int64_t)bytes * (rows / OWN_ROWS)), made);
    for (int64_t i = 0; status == SMELT_OK && i < rows / OWN_ROWS; i++)
        status = gpu_driver_status(
            gpu_driver_write(gpu_place(*made) + (size_t)i * bytes, smelt_array_data(packed), bytes));
    return status;
}

/* Products of `tokens` different vectors with the different rows. */
static smelt_status expect_rows(struct ml_job *job, const smelt_array *values, int64_t tokens) {
    const float *weights = smelt_array_data(values);
    job->first[0] = gpu_first_values(job->arrays[1], tokens * COLUMNS);
    job->expected = calloc((size_t)(tokens * OWN_ROWS), sizeof *job->expected);
    if (!job->first[0] || !job->expected) return SMELT_ERROR_OUT_OF_MEMORY;
    for (int64_t i = 0; i < tokens * OWN_ROWS; i++)
        for (int64_t c = 0; c < COLUMNS; c++)
            job->expected[i] +=
                (double)job->first[0][i / OWN_ROWS * COLUMNS + c] * weights[i % OWN_ROWS * COLUMNS + c];
    return SMELT_OK;
}

static smelt_status make_weights(struct ml_job *job, const struct ml_format *format, int64_t tokens,
                                 int copies) {
    smelt_array *packed = NULL, *values = NULL;
    smelt_status status = make_rows(format, &packed, &values);
    if (status == SMELT_OK && copies > 1) {
        int64_t bytes = (int64_t)gpu_bytes(packed) * (job->sizes[0] / OWN_ROWS);
        int64_t wanted = job->gpu->bench->quick ? 2 : (ROTATED_BYTES + bytes - 1) / bytes;
        copies = wanted < copies ? (int)wanted : copies;
    }
    for (int i = 0; status == SMELT_OK && i < copies; i++) {
        status = write_rows(packed, job->sizes[0], &job->copies[i]);
        if (status == SMELT_OK) job->copy_count++;
    }
    if (status == SMELT_OK)
        status =
            gpu_random(SMELT_FLOAT32, SHAPE_OF(tokens * COLUMNS),
                       (tokens < OWN_TOKENS ? tokens : OWN_TOKENS) * COLUMNS, 51, -1, 1, &job->arrays[1]);
    if (status == SMELT_OK) status = gpu_new(SMELT_FLOAT32, SHAPE_OF(tokens, job->sizes[0]), &job->out);
    if (status == SMELT_OK) status = expect_rows(job, values, tokens < OWN_TOKENS ? tokens : OWN_TOKENS);
    smelt_array_release(packed);
    smelt_array_release(values);
    return status;
}

static bool check_rows(void *context, const void *output, char *message, size_t size) {
    const struct ml_job *job = context;
    int64_t rows = job->sizes[0], count = smelt_array_size(job->out);
    for (int64_t i = 0; i < count; i++) {
        double expected = job->expected[i / rows % OWN_TOKENS * OWN_ROWS + i % rows % OWN_ROWS];
        if (!is_near(job, ((const float *)output)[i], expected, i, message, size)) return false;
    }
    return true;
}

/* ---- The jobs. */

static void release(struct ml_job *job) {
    launches_release(&job->launches);
    for (int i = 0; i < job->copy_count; i++) smelt_array_release(job->copies[i]);
    for (int i = 0; i < 3; i++) {
        smelt_array_release(job->arrays[i]);
        free(job->first[i]);
    }
    smelt_array_release(job->out);
    free(job->expected);
}

static struct contest contest_of(struct ml_job *job, double work, const char *unit, int batch,
                                 contest_check *check) {
    return (struct contest){.device = &gpu_contest,
                            .bench = job->gpu->bench,
                            .job = job->name,
                            .work = work,
                            .work_unit = unit,
                            .batch = batch,
                            .output = job->out,
                            .check = check,
                            .check_context = job};
}

static void enter(struct contest *contest, struct ml_job *job, const char *anchor, struct bench_bar bar) {
    contest_enter(contest, (struct variant){.name = "smelt, as written",
                                            .run = job->copy_count ? run_next : launches_run,
                                            .context = job->copy_count ? (void *)job : &job->launches,
                                            .anchor = anchor,
                                            .bar = bar});
}

smelt_status bench_gpu_matvec(struct bench *bench, const char *name) {
    const struct ml_format *format = ml_format_find(name + sizeof "matvec-" - 1);
    struct ml_job job = {.gpu = bench->shared,
                         .name = name,
                         .tolerance = 1e-4,
                         .size = 64,
                         .sizes = {bench->quick ? OWN_ROWS : 14336, COLUMNS}};
    char function[40];
    snprintf(function, sizeof function, "simdgroup_%s", format->name);
    smelt_status status = make_weights(&job, format, 1, MOST_COPIES);
    smelt_dispatch_desc desc = {.buffers = {{.array = job.copies[0]},
                                            {.array = job.arrays[1]},
                                            {.array = job.out},
                                            {.bytes = job.sizes, .size = 2 * sizeof *job.sizes}},
                                .groups = {job.sizes[0] / 8, 1, 1},
                                .threadgroup = {64, 1, 1}};
    if (status == SMELT_OK)
        status =
            gpu_add_launch(job.gpu, &job.launches, "ml_matvec.metal", kernel_text_ml_matvec, function, &desc);
    if (status == SMELT_OK) {
        struct contest contest = contest_of(
            &job, (double)job.sizes[0] * COLUMNS / format->weights * format->bytes, "B", 12, check_rows);
        gpu_enter_floor(&contest);
        enter(&contest, &job, FLOOR,
              (struct bench_bar){BENCH_SPEED_AT_LEAST, format->name[1] == '8' ? 0.45 : 0.33});
        status = gpu_contest_run(&contest);
    }
    release(&job);
    return status;
}

smelt_status bench_gpu_matmat(struct bench *bench, const char *name) {
    bool quantised = strcmp(name, "matmat-f16") != 0;
    struct ml_job job = {.gpu = bench->shared,
                         .name = name,
                         .tolerance = 2e-3, /* vectors and weights are rounded to half */
                         .size = 64,
                         .sizes = {bench->quick ? OWN_ROWS : 4096, COLUMNS, bench->quick ? 32 : 512}};
    smelt_status status = make_weights(&job, quantised ? ml_format_find("q4_0") : NULL, job.sizes[2], 1);
    smelt_dispatch_desc desc = {.buffers = {{.array = job.copies[0]},
                                            {.array = job.arrays[1]},
                                            {.array = job.out},
                                            {.bytes = job.sizes, .size = sizeof job.sizes}},
                                .groups = {job.sizes[0] / 64, job.sizes[2] / 32, 1},
                                .threadgroup = {128, 1, 1}};
    if (status == SMELT_OK)
        status = gpu_add_launch(job.gpu, &job.launches, "ml_matmat.metal", kernel_text_ml_matmat,
                                quantised ? "staged_q4_0" : "staged_f16", &desc);
    if (status == SMELT_OK) {
        double work = 2.0 * job.sizes[0] * job.sizes[1] * job.sizes[2];
        struct contest contest = contest_of(&job, work, "FLOP", 4, check_rows);
        gpu_enter_peer(&contest, PYTORCH, "matmat");
        enter(&contest, &job, PYTORCH, (struct bench_bar){0});
        status = gpu_contest_run(&contest);
    }
    release(&job);
    return status;
}

/* Some queries of the first head with the formula; the other heads have the same data. */
static bool check_attention(void *context, const void *output, char *message, size_t size) {
    struct ml_job *job = context;
    const float *q = job->first[0], *k = job->first[1], *v = job->first[2], *out = output;
    int64_t keys = job->sizes[1], depth = job->sizes[2], head = (int64_t)job->sizes[0] * depth;
    double *weights = malloc((size_t)keys * sizeof *weights);
    bool right = weights != NULL;
    for (int64_t query = 5; right && query < job->sizes[0]; query += job->sizes[0] / SAMPLES + 1) {
        double total = 0;
        for (int64_t key = 0; key < keys; key++) {
            double score = 0;
            for (int64_t i = 0; i < depth; i++) score += (double)q[query * depth + i] * k[key * depth + i];
            total += weights[key] = exp(score * job->scale);
        }
        for (int64_t i = 0; right && i < depth; i++) {
            double sum = 0;
            for (int64_t key = 0; key < keys; key++) sum += weights[key] * v[key * depth + i];
            right = is_near(job, out[query * depth + i], sum / total, query * depth + i, message, size);
        }
    }
    for (int64_t i = head; right && i < smelt_array_size(job->out); i++)
        right = is_near(job, out[i], out[i % head], i, message, size);
    free(weights);
    return right;
}

/* Four simdgroups per threadgroup, which have eight queries each, or together. */
struct attention_form {
    const char *job, *function;
    uint32_t depth, queries; /* of a head; per threadgroup */
    const char *peer;
};
static const struct attention_form attention_forms[] = {
    {"attention", "matrices", 64, 32, "attention"},
    {"attention-8", "eight_64", 64, 8, "attention"},
    {"attention-8-128", "eight_128", 128, 8, "attention-128"},
    {"attention-32", "staged_64", 64, 32, "attention"},
    {"attention-32-128", "staged_128", 128, 32, "attention-128"},
};

static const struct attention_form *form_of(const char *job) {
    size_t i = 0;
    while (strcmp(attention_forms[i].job, job) != 0) i++;
    return &attention_forms[i];
}

smelt_status bench_gpu_attention(struct bench *bench, const char *name) {
    const struct attention_form *form = form_of(name);
    bool shared = strcmp(form->function, "matrices") == 0;
    uint32_t length = bench->quick ? 64 : 4096, heads = bench->quick ? 2 : 16;
    struct ml_job job = {.gpu = bench->shared,
                         .name = name,
                         .tolerance = 4e-3, /* weights of keys are rounded to half */
                         .size = 0.05,
                         .sizes = {length, length, form->depth},
                         .scale = form->depth == 64 ? 0.125f : 0.08838835f};
    struct {
        uint32_t queries, keys;
        float scale;
    } sizes = {length, length, job.scale};
    smelt_shape shape = SHAPE_OF(heads, length, form->depth);
    int64_t own = (int64_t)length * form->depth;
    smelt_status status = gpu_new(SMELT_FLOAT32, shape, &job.out);
    for (int i = 0; status == SMELT_OK && i < 3; i++) {
        status = gpu_random(SMELT_FLOAT16, shape, own, 52 + (uint64_t)i, -2, 2, &job.arrays[i]);
        if (status == SMELT_OK) job.first[i] = gpu_first_values(job.arrays[i], own);
        if (!job.first[i]) status = SMELT_ERROR_OUT_OF_MEMORY;
    }
    smelt_dispatch_desc desc = {.buffers = {{.array = job.arrays[0]},
                                            {.array = job.arrays[1]},
                                            {.array = job.arrays[2]},
                                            {.array = job.out},
                                            {.bytes = &sizes, .size = sizeof sizes}},
                                .groups = {length / form->queries, heads, 1},
                                .threadgroup = {128, 1, 1}};
    if (status == SMELT_OK)
        status = gpu_add_launch(job.gpu, &job.launches, shared ? "ml_attention.metal" : "gpu_attention.metal",
                                shared ? kernel_text_ml_attention : kernel_text_gpu_attention, form->function,
                                &desc);
    if (status == SMELT_OK) {
        struct contest contest =
            contest_of(&job, 4.0 * heads * (double)length * (double)own, "FLOP", 2, check_attention);
        gpu_enter_peer(&contest, PYTORCH, form->peer);
        enter(&contest, &job, PYTORCH, (struct bench_bar){0});
        status = gpu_contest_run(&contest);
    }
    release(&job);
    return status;
}

/* Some elements of all rows. */
static bool check_straight(void *context, const void *output, char *message, size_t size) {
    const struct ml_job *job = context;
    int64_t n = job->sizes[0], own = n * n < GPU_BLOCK ? n * n : GPU_BLOCK;
    for (int64_t i = 0; i < n * n; i++) {
        double value = ((const float *)output)[i], expected = i % (n + 17) ? value : 0;
        for (int64_t k = 0; i % (n + 17) == 0 && k < n; k++)
            expected += (double)job->first[0][(i / n * n + k) % own] * job->first[1][(k * n + i % n) % own];
        if (!is_near(job, value, expected, i, message, size)) return false;
    }
    return true;
}

smelt_status bench_gpu_straight(struct bench *bench, const char *name) {
    uint32_t n = bench->quick ? 128 : 4096;
    struct ml_job job = {.gpu = bench->shared, .name = name, .tolerance = 1e-3, .size = 16, .sizes = {n}};
    smelt_status status = gpu_new(SMELT_FLOAT32, SHAPE_OF(n, n), &job.out);
    int64_t own = (int64_t)n * n < GPU_BLOCK ? (int64_t)n * n : GPU_BLOCK;
    for (int i = 0; status == SMELT_OK && i < 2; i++) {
        status = gpu_random(SMELT_FLOAT16, SHAPE_OF(n, n), own, 56 + (uint64_t)i, -1, 1, &job.arrays[i]);
        if (status == SMELT_OK) job.first[i] = gpu_first_values(job.arrays[i], own);
        if (!job.first[i]) status = SMELT_ERROR_OUT_OF_MEMORY;
    }
    smelt_dispatch_desc desc = {.buffers = {{.array = job.arrays[0]},
                                            {.array = job.arrays[1]},
                                            {.array = job.out},
                                            {.bytes = job.sizes, .size = sizeof *job.sizes}},
                                .groups = {n / 64, n / 64, 1},
                                .threadgroup = {128, 1, 1}};
    if (status == SMELT_OK)
        status = gpu_add_launch(job.gpu, &job.launches, "gpu_straight.metal", kernel_text_gpu_straight,
                                "straight", &desc);
    if (status == SMELT_OK) {
        struct contest contest = contest_of(&job, 2.0 * n * n * n, "FLOP", 2, check_straight);
        gpu_enter_peer(&contest, PYTORCH, "matmul-f16");
        enter(&contest, &job, PYTORCH, (struct bench_bar){0});
        status = gpu_contest_run(&contest);
    }
    release(&job);
    return status;
}
