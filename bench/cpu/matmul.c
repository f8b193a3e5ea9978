/* Matrix products: tiles in threadgroup memory, one output a thread and 8 x 8 outputs a thread; simdgroup
 * matrices. */
#include "bench/cpu/cpu.h"
#include "bench/hand/handwritten.h"
#include "bench/kernel_text.h"
#include "bench/cpu/openblas.h"
#include "bench/cpu/threads.h"

#define OPENBLAS "OpenBLAS"
#define LANES_BY_HAND "hand-written, lanes"

struct product {
    void (*run)(const float *a, const float *b, float *c, int64_t n);
    const struct matmul_job *job;
};

struct matmul_job {
    smelt_array *a, *b, *c, *expected;
    int64_t n;
};

static void expect_row(void *context, int64_t row) {
    const struct matmul_job *job = context;
    int64_t n = job->n;
    float *expected = floats(job->expected) + row * n;
    double sums[1024];
    for (int64_t j = 0; j < n; j++) sums[j] = 0;
    for (int64_t k = 0; k < n; k++) {
        double a = floats(job->a)[row * n + k];
        const float *b = floats(job->b) + k * n;
        for (int64_t j = 0; j < n; j++) sums[j] += a * b[j];
    }
    for (int64_t j = 0; j < n; j++) expected[j] = (float)sums[j];
}

static smelt_status run_product(void *context) {
    const struct product *product = context;
    const struct matmul_job *job = product->job;
    product->run(floats(job->a), floats(job->b), floats(job->c), job->n);
    return SMELT_OK;
}

static struct contest contest_of(struct bench *bench, const char *name, struct matmul_job *job) {
    team_run(expect_row, job, job->n);
    return (struct contest){.device = &cpu_contest,
                            .bench = bench,
                            .job = name,
                            .work = 2.0 * (double)job->n * (double)job->n * (double)job->n,
                            .work_unit = "FLOP",
                            .output = job->c,
                            .expected = job->expected,
                            .tolerance = 1e-4}; /* sums of up to 1024 products in [-1, 1] */
}

static void enter_openblas(struct contest *contest, const struct product *product) {
    if (openblas_open(team_size()))
        contest_enter(contest,
                      (struct variant){.name = OPENBLAS, .run = run_product, .context = (void *)product});
    else
        contest_absent(contest, OPENBLAS, "not installed (libopenblas.so.0)");
}

static smelt_status measure_tiled(struct bench *bench, const char *name, struct matmul_job *job) {
    uint32_t n = (uint32_t)job->n;
    struct contest contest = contest_of(bench, name, job);
    smelt_dispatch_desc desc = {
        .buffers = {{.array = job->a}, {.array = job->b}, {.array = job->c}, {.bytes = &n, .size = sizeof n}},
        .grid = {n, n},
        .threadgroup = {32, 32}};
    struct standard standard;
    struct product blas = {openblas_matmul, job}, hand = {handwritten_matmul_tiled, job};
    enter_openblas(&contest, &blas);
    contest_enter_hand(&contest, HAND_WRITTEN, run_product, &hand, OPENBLAS);
    standard_enter(&contest, &standard, "matmul_tiled.metal", kernel_text_matmul_tiled, "matmul_tiled", &desc,
                   OPENBLAS, (struct bench_bar){BENCH_SPEED_AT_LEAST, 0.5});
    contest_compare(&contest, SMELT_CPU, HAND_WRITTEN, NO_BAR);
    smelt_status status = contest_run(&contest);
    standard_release(&standard);
    return status;
}

static smelt_status measure_register(struct bench *bench, const char *name, struct matmul_job *job) {
    uint32_t n = (uint32_t)job->n;
    struct contest contest = contest_of(bench, name, job);
    smelt_dispatch_desc desc = {
        .buffers = {{.array = job->a}, {.array = job->b}, {.array = job->c}, {.bytes = &n, .size = sizeof n}},
        .groups = {n / 64, n / 64, 1},
        .threadgroup = {64}};
    struct standard standard;
    struct product blas = {openblas_matmul, job}, hand = {handwritten_matmul_register, job},
                   lanes = {handwritten_matmul_register_lanes, job};
    enter_openblas(&contest, &blas);
    contest_enter_hand(&contest, HAND_WRITTEN, run_product, &hand, OPENBLAS);
    contest_enter_hand(&contest, LANES_BY_HAND, run_product, &lanes, OPENBLAS);
    standard_enter(&contest, &standard, "matmul_register.metal", kernel_text_matmul_register,
                   "matmul_register", &desc, LANES_BY_HAND, (struct bench_bar){BENCH_SPEED_AT_LEAST, 0.9});
    contest_compare(&contest, SMELT_CPU, OPENBLAS, (struct bench_bar){BENCH_SPEED_AT_LEAST, 0.5});
    contest_compare(&contest, SMELT_CPU, HAND_WRITTEN, NO_BAR);
    smelt_status status = contest_run(&contest);
    standard_release(&standard);
    return status;
}

static smelt_status measure_simdgroup(struct bench *bench, const char *name, struct matmul_job *job) {
    uint32_t n = (uint32_t)job->n;
    struct contest contest = contest_of(bench, name, job);
    smelt_dispatch_desc desc = {
        .buffers = {{.array = job->a}, {.array = job->b}, {.array = job->c}, {.bytes = &n, .size = sizeof n}},
        .groups = {n / 64, n / 64, 1},
        .threadgroup = {128}};
    struct standard standard;
    struct product blas = {openblas_matmul, job};
    enter_openblas(&contest, &blas);
    standard_enter(&contest, &standard, "matmul_simdgroup.metal", kernel_text_matmul_simdgroup,
                   "matmul_simdgroup", &desc, OPENBLAS, NO_BAR);
    smelt_status status = contest_run(&contest);
    standard_release(&standard);
    return status;
}

static smelt_status run(struct bench *bench, const char *name,
                        smelt_status (*measure)(struct bench *, const char *, struct matmul_job *)) {
    struct matmul_job job = {.n = bench->quick ? 128 : 1024};
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

smelt_status bench_cpu_matmul_tiled(struct bench *bench, const char *name) {
    return run(bench, name, measure_tiled);
}

smelt_status bench_cpu_matmul_register(struct bench *bench, const char *name) {
    return run(bench, name, measure_register);
}

smelt_status bench_cpu_matmul_simdgroup(struct bench *bench, const char *name) {
    return run(bench, name, measure_simdgroup);
}
