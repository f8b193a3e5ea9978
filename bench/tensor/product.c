/* matmul2d on the CPU: floats beside OpenBLAS; bfloats in math mode relaxed, and bytes, beside floats. */
#include "bench/tensor/tensor.h"
#include "bench/cpu/cpu.h"
#include "bench/cpu/openblas.h"
#include "bench/cpu/threads.h"
#include "bench/kernel_text.h"

#include <stdlib.h>

#define OPENBLAS "OpenBLAS"
#define FLOATS "smelt float"

struct product_job {
    smelt_array *a, *b, *c, *expected;
    int64_t n;
};

static void expect_row(void *context, int64_t row) {
    const struct product_job *job = context;
    int64_t n = job->n;
    double *sums = calloc((size_t)n, sizeof *sums);
    for (int64_t k = 0; sums && k < n; k++) {
        double a = floats(job->a)[row * n + k];
        const float *b = floats(job->b) + k * n;
        for (int64_t j = 0; j < n; j++) sums[j] += a * b[j];
    }
    for (int64_t j = 0; sums && j < n; j++) floats(job->expected)[row * n + j] = (float)sums[j];
    free(sums);
}

static smelt_status run_openblas(void *context) {
    const struct product_job *job = context;
    openblas_matmul(floats(job->a), floats(job->b), floats(job->c), job->n);
    return SMELT_OK;
}

static smelt_dispatch_desc dispatch_of(smelt_array *a, smelt_array *b, smelt_array *c, const uint32_t *n,
                                       uint32_t rows, uint32_t columns) {
    return (smelt_dispatch_desc){
        .buffers = {{.array = a}, {.array = b}, {.array = c}, {.bytes = n, .size = sizeof *n}},
        .groups = {(*n + columns - 1) / columns, (*n + rows - 1) / rows, 1},
        .threadgroup = {128},
        .device = "cpu"};
}

/* A kernel of tensor_product.metal in a math mode. */
static smelt_status prepare(struct launches *launches, const char *name, smelt_math_mode math,
                            smelt_dispatch_desc desc) {
    smelt_library *library;
    smelt_status status = smelt_library_create(&(smelt_library_desc){.path = "tensor_product.metal",
                                                                     .source = kernel_text_tensor_product,
                                                                     .math = math},
                                               &library);
    if (status != SMELT_OK) return status;
    status = smelt_library_function(library, &(smelt_function_desc){.name = name}, &launches->functions[0]);
    smelt_library_release(library);
    launches->descs[0] = desc;
    launches->count = status == SMELT_OK;
    return status;
}

static struct contest contest_of(struct bench *bench, const char *name, struct product_job *job) {
    team_run(expect_row, job, job->n);
    return (struct contest){.device = &cpu_contest,
                            .bench = bench,
                            .job = name,
                            .work = 2.0 * (double)job->n * (double)job->n * (double)job->n,
                            .work_unit = "FLOP",
                            .output = job->c,
                            .expected = job->expected,
                            .tolerance = 2e-4}; /* sums of up to 2048 products in [-1, 1] */
}

static void enter(struct contest *contest, struct launches *launches, const char *name, const char *anchor,
                  struct bench_bar bar) {
    contest_enter(contest,
                  (struct variant){
                      .name = name, .run = launches_run, .context = launches, .anchor = anchor, .bar = bar});
}

static smelt_status measure_floats(struct bench *bench, const char *name, struct product_job *job) {
    uint32_t n = (uint32_t)job->n;
    struct contest contest = contest_of(bench, name, job);
    struct launches small = {0}, large = {0};
    if (openblas_open(team_size()))
        contest_enter(&contest, (struct variant){.name = OPENBLAS, .run = run_openblas, .context = job});
    else
        contest_absent(&contest, OPENBLAS, "not installed (libopenblas.so.0)");
    smelt_status status =
        prepare(&small, "float 64 x 32", SMELT_MATH_SAFE, dispatch_of(job->a, job->b, job->c, &n, 64, 32));
    if (status == SMELT_OK)
        status = prepare(&large, "float 128 x 128", SMELT_MATH_SAFE,
                         dispatch_of(job->a, job->b, job->c, &n, 128, 128));
    if (status == SMELT_OK) {
        enter(&contest, &small, "smelt, tiles of 64 x 32", OPENBLAS,
              n == 1024 ? (struct bench_bar){BENCH_SPEED_AT_LEAST, 0.6} : NO_BAR);
        enter(&contest, &large, "smelt, tiles of 128 x 128", OPENBLAS, NO_BAR);
        status = contest_run(&contest);
    }
    launches_release(&small);
    launches_release(&large);
    return status;
}

/* The elements of `values` as bfloats, which replace them. */
static smelt_status round_to_bfloats(smelt_array **values, smelt_array **bfloats) {
    smelt_array *rounded;
    smelt_status status = smelt_array_convert(*values, SMELT_BFLOAT16, bfloats);
    if (status == SMELT_OK) status = smelt_array_convert(*bfloats, SMELT_FLOAT32, &rounded);
    if (status != SMELT_OK) return status;
    smelt_array_release(*values);
    *values = rounded;
    return SMELT_OK;
}

static smelt_status measure_launches(void *context, double *seconds) {
    double start = bench_now();
    smelt_status status = launches_run(context);
    *seconds = bench_now() - start;
    return status;
}

struct narrow {
    smelt_array *a, *b, *bytes, *sums;
    struct launches floats, bfloats, relaxed, bytes_run;
};

static smelt_status prepare_narrow(struct narrow *narrow, struct product_job *job, const uint32_t *n) {
    smelt_shape shape = SHAPE_OF(job->n, job->n);
    smelt_dispatch_desc bfloats = dispatch_of(narrow->a, narrow->b, job->c, n, 128, 128);
    smelt_status status = smelt_array_uniform(SMELT_INT8, shape, 10, &narrow->bytes);
    if (status == SMELT_OK) status = smelt_array_create(SMELT_INT32, shape, &narrow->sums);
    if (status == SMELT_OK)
        status = prepare(&narrow->floats, "float 128 x 128", SMELT_MATH_SAFE,
                         dispatch_of(job->a, job->b, job->c, n, 128, 128));
    if (status == SMELT_OK) status = prepare(&narrow->bfloats, "bfloat 128 x 128", SMELT_MATH_SAFE, bfloats);
    if (status == SMELT_OK)
        status = prepare(&narrow->relaxed, "bfloat 128 x 128", SMELT_MATH_RELAXED, bfloats);
    if (status == SMELT_OK)
        status = prepare(&narrow->bytes_run, "int8 128 x 128", SMELT_MATH_SAFE,
                         dispatch_of(narrow->bytes, narrow->bytes, narrow->sums, n, 128, 128));
    return status;
}

/* AMX is the only way to three times the floats' speed. */
static struct bench_bar relaxed_bar(void) {
    bool tiles = false;
#ifdef __x86_64__
    tiles = __builtin_cpu_supports("avx512bf16");
#endif
    return tiles ? (struct bench_bar){BENCH_SPEED_AT_LEAST, 3} : NO_BAR;
}

static smelt_status measure_narrow(struct bench *bench, const char *name, struct product_job *job) {
    uint32_t n = (uint32_t)job->n;
    struct narrow narrow = {0};
    smelt_status status = round_to_bfloats(&job->a, &narrow.a);
    if (status == SMELT_OK) status = round_to_bfloats(&job->b, &narrow.b);
    if (status == SMELT_OK) status = prepare_narrow(&narrow, job, &n);
    if (status == SMELT_OK) {
        struct contest contest = contest_of(bench, name, job);
        enter(&contest, &narrow.floats, FLOATS, NULL, NO_BAR);
        enter(&contest, &narrow.bfloats, "smelt bfloat", FLOATS, NO_BAR);
        enter(&contest, &narrow.relaxed, "smelt bfloat, relaxed", FLOATS, relaxed_bar());
        contest_add(&contest, (struct bench_case){.variant = "smelt int8",
                                                  .anchor = FLOATS,
                                                  .measure = measure_launches,
                                                  .context = &narrow.bytes_run,
                                                  .work = contest.work,
                                                  .work_unit = contest.work_unit});
        status = contest_run(&contest);
    }
    struct launches *launches[] = {&narrow.floats, &narrow.bfloats, &narrow.relaxed, &narrow.bytes_run};
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) launches_release(launches[i]);
    smelt_array *arrays[] = {narrow.a, narrow.b, narrow.bytes, narrow.sums};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) smelt_array_release(arrays[i]);
    return status;
}

static smelt_status run(struct bench *bench, const char *name, int64_t n,
                        smelt_status (*measure)(struct bench *, const char *, struct product_job *)) {
    struct product_job job = {.n = bench->quick ? 128 : n};
    smelt_shape shape = SHAPE_OF(job.n, job.n);
    smelt_status status = random_floats(shape, 8, -1, 1, &job.a);
    if (status == SMELT_OK) status = random_floats(shape, 9, -1, 1, &job.b);
    if (status == SMELT_OK) status = new_floats(shape, &job.c);
    if (status == SMELT_OK) status = new_floats(shape, &job.expected);
    if (status == SMELT_OK) status = measure(bench, name, &job);
    smelt_array_release(job.a);
    smelt_array_release(job.b);
    smelt_array_release(job.c);
    smelt_array_release(job.expected);
    return status;
}

smelt_status bench_tensor_float_256(struct bench *bench, const char *name) {
    return run(bench, name, 256, measure_floats);
}

smelt_status bench_tensor_float_1024(struct bench *bench, const char *name) {
    return run(bench, name, 1024, measure_floats);
}

smelt_status bench_tensor_float_2048(struct bench *bench, const char *name) {
    return run(bench, name, 2048, measure_floats);
}

smelt_status bench_tensor_bfloat_1024(struct bench *bench, const char *name) {
    return run(bench, name, 1024, measure_narrow);
}
