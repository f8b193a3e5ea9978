/* smelt bench linalg: dense factorisations and solves in float32 beside LAPACK (OpenBLAS) and PyTorch, single
 * and batched. Each result is checked before it is timed. */
#include "bench/linalg/linalg.h"
#include "bench/cpu/openblas.h"
#include "bench/kernel_text.h"
#include "bench/peers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMELT "smelt"
#define LAPACK "OpenBLAS's LAPACK"
#define PYTORCH "PyTorch"
#define ROUNDS 9

/* ---- Jobs. */

static const struct job {
    const char *name;
    enum problem_kind kind;
    int64_t batch, rows, columns;
    double condition; /* of matrices 64 × 64, in turn from 1 to this; 0: well conditioned */
    struct bench_bar bar;
} jobs[] = {
    {"cholesky", CHOLESKY, 1, 1024, 1024, 0, {BENCH_SPEED_AT_LEAST, 0.5}},
    {"cholesky-2048", CHOLESKY, 1, 2048, 2048, 0, {0}},
    {"cholesky-batch", CHOLESKY, 1024, 64, 64, 1e4, {0}},
    {"qr", QR, 1, 1024, 1024, 0, {BENCH_SPEED_AT_LEAST, 0.5}},
    {"qr-tall", QR, 1, 4096, 256, 0, {0}},
    {"qr-batch", QR, 1024, 64, 64, 1e6, {0}},
    {"lu", LU, 1, 1024, 1024, 0, {0}},
    {"lu-batch", LU, 1024, 64, 64, 1e6, {0}},
    {"solve", SOLVE, 1, 1024, 1024, 0, {0}},
    {"triangular", TRIANGULAR, 1, 1024, 1024, 0, {0}},
};
#define JOB_COUNT ((int)(sizeof jobs / sizeof *jobs))

/* Operations of one matrix, as LAPACK's authors count them. QR: factors and q. */
static double flops_of(const struct job *job, int64_t rows, int64_t columns) {
    double m = (double)rows, n = (double)columns;
    switch (job->kind) {
    case CHOLESKY:
        return n * n * n / 3;
    case QR:
        return 4 * m * n * n - 4 * n * n * n / 3;
    case LU:
        return 2 * n * n * n / 3;
    case SOLVE:
        return 8 * n * n * n / 3;
    default:
        return n * n * n;
    }
}

/* ---- Inputs. */

struct inputs {
    smelt_array *a, *b;
    struct problem problem;
};

/* M Mᵀ / n + I / 2 */
static smelt_status create_definite(int64_t n, smelt_array **a) {
    smelt_array *m;
    smelt_status status = random_floats(SHAPE_OF(n, n), 1, -1, 1, &m);
    if (status == SMELT_OK) status = new_floats(SHAPE_OF(1, n, n), a);
    if (status != SMELT_OK) return status;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            float sum = 0;
            const float *x = floats(m) + i * n, *y = floats(m) + j * n;
            for (int64_t k = 0; k < n; k++) sum += x[k] * y[k];
            floats(*a)[i * n + j] = floats(*a)[j * n + i] = sum / (float)n + (i == j ? 0.5F : 0);
        }
    smelt_array_release(m);
    return SMELT_OK;
}

/* Symmetric matrices of growing condition. */
static smelt_status create_batch(int64_t batch, int64_t n, double condition, smelt_array **a) {
    double *values = malloc((size_t)(n * n) * sizeof *values);
    if (!values) return SMELT_ERROR_OUT_OF_MEMORY;
    smelt_status status = new_floats(SHAPE_OF(batch, n, n), a);
    for (int64_t x = 0; x < batch && status == SMELT_OK; x++) {
        fill_with_condition(values, n, pow(condition, (double)x / (double)batch), (uint64_t)x + 1);
        for (int64_t i = 0; i < n * n; i++) floats(*a)[x * n * n + i] = (float)values[i];
    }
    free(values);
    return status;
}

/* Off the diagonal small enough that solutions stay of b's size. */
static void tame(float *a, int64_t n) {
    for (int64_t i = 0; i < n * n; i++) a[i] = i % (n + 1) ? a[i] / (float)n : 1.5F + a[i] / 2;
}

static smelt_status create_inputs(const struct job *job, bool quick, struct inputs *inputs) {
    int64_t batch = job->batch == 1 ? 1 : quick ? 5 : job->batch, m = job->rows, n = job->columns;
    if (quick && job->batch == 1) m = m * 3 / 32, n = n * 3 / 32;
    smelt_status status = job->condition > 0 ? create_batch(batch, n, job->condition, &inputs->a)
                          : job->kind == CHOLESKY
                              ? create_definite(n, &inputs->a)
                              : random_floats(SHAPE_OF(batch, m, n), 1, -1, 1, &inputs->a);
    if (status == SMELT_OK && (job->kind == SOLVE || job->kind == TRIANGULAR))
        status = random_floats(SHAPE_OF(batch, m, n), 2, -1, 1, &inputs->b);
    if (status != SMELT_OK) return status;
    if (job->kind == TRIANGULAR) tame(floats(inputs->a), n);
    inputs->problem = (struct problem){.kind = job->kind,
                                       .batch = batch,
                                       .rows = m,
                                       .columns = n,
                                       .a = floats(inputs->a),
                                       .b = inputs->b ? floats(inputs->b) : NULL};
    return SMELT_OK;
}

/* ---- Variants. */

static smelt_status compute(const struct inputs *inputs, smelt_array *made[2]) {
    switch (inputs->problem.kind) {
    case CHOLESKY:
        return smelt_cholesky(inputs->a, NULL, &made[0]);
    case QR:
        return smelt_qr(inputs->a, NULL, &made[0], &made[1]);
    case LU:
        return smelt_lu(inputs->a, NULL, &made[0], &made[1]);
    case SOLVE:
        return smelt_solve(inputs->a, inputs->b, NULL, &made[0]);
    default:
        return smelt_triangular_solve(inputs->a, inputs->b, NULL, &made[0]);
    }
}

/* Reads the inputs: LAPACK's were just copied, so that they are in the caches as well. */
static void read_inputs(const struct inputs *inputs) {
    static volatile float sink;
    float sum = 0;
    for (int64_t i = 0; i < smelt_array_size(inputs->a); i += 16) sum += inputs->problem.a[i];
    for (int64_t i = 0; inputs->b && i < smelt_array_size(inputs->b); i += 16) sum += inputs->problem.b[i];
    sink = sum;
    (void)sink;
}

static smelt_status measure_smelt(void *context, double *seconds) {
    smelt_array *made[2] = {0};
    read_inputs(context);
    double start = linalg_now();
    smelt_status status = compute(context, made);
    *seconds = linalg_now() - start;
    smelt_array_release(made[0]);
    smelt_array_release(made[1]);
    return status;
}

static const char *failure;
static const char *message_of_failure(void) {
    return failure ? failure : smelt_error();
}

static smelt_status measure_lapack(void *context, double *seconds) {
    lapack_prepare(context);
    double start = linalg_now();
    bool done = lapack_run(context);
    *seconds = linalg_now() - start;
    failure = done ? NULL : "LAPACK reports a failure";
    return done ? SMELT_OK : SMELT_ERROR_INTERNAL;
}

static smelt_status measure_pytorch(void *context, double *seconds) {
    failure = peers_measure(context, 1, seconds);
    return failure ? SMELT_ERROR_INTERNAL : SMELT_OK;
}

/* False: reported as failed. */
static bool check_smelt(struct bench *bench, const char *job, const struct inputs *inputs) {
    smelt_array *made[2] = {0};
    char message[128];
    smelt_status status = compute(inputs, made);
    if (status != SMELT_OK) {
        bench_fail(bench, job, SMELT, status, smelt_error());
        return false;
    }
    struct answer answer = {.first = floats(made[0])};
    if (inputs->problem.kind == QR) answer.second = floats(made[1]);
    if (inputs->problem.kind == LU) answer.pivots = smelt_array_data(made[1]);
    bool right = answer_check(&inputs->problem, &answer, message, sizeof message);
    if (!right) bench_fail(bench, job, SMELT, BENCH_WRONG_RESULT, message);
    smelt_array_release(made[0]);
    smelt_array_release(made[1]);
    return right;
}

static bool check_lapack(struct bench *bench, const char *job, const struct inputs *inputs,
                         struct lapack_job *lapack) {
    char message[128] = "LAPACK reports a failure";
    lapack_prepare(lapack);
    bool right = lapack_run(lapack);
    struct answer answer = lapack_answer(lapack);
    if (right) right = answer_check(&inputs->problem, &answer, message, sizeof message);
    if (!right) bench_fail(bench, job, LAPACK, BENCH_WRONG_RESULT, message);
    return right;
}

/* ---- A job. */

static smelt_status measure(struct bench *bench, const struct job *job, struct inputs *inputs,
                            struct lapack_job *lapack) {
    const struct problem *p = &inputs->problem;
    double seconds, work = flops_of(job, p->rows, p->columns) * (double)p->batch;
    const char *absent = peers_measure(job->name, 1, &seconds);
    struct bench_case cases[3];
    int count = 0;
    if (lapack)
        cases[count++] = (struct bench_case){.variant = LAPACK, .measure = measure_lapack, .context = lapack};
    cases[count++] = (struct bench_case){.variant = SMELT,
                                         .anchor = lapack ? LAPACK : NULL,
                                         .bar = lapack ? job->bar : NO_BAR,
                                         .measure = measure_smelt,
                                         .context = inputs};
    if (absent)
        bench_note(bench, job->name, PYTORCH, absent);
    else
        cases[count++] = (struct bench_case){.variant = PYTORCH,
                                             .anchor = lapack ? LAPACK : NULL,
                                             .measure = measure_pytorch,
                                             .context = (void *)job->name};
    for (int i = 0; i < count; i++) {
        cases[i].job = job->name;
        cases[i].work = work;
        cases[i].work_unit = "FLOP";
        if (cases[i].measure != measure_smelt) cases[i].error = message_of_failure;
    }
    smelt_status status = bench_measure(bench, cases, count, bench_repeats(bench, ROUNDS));
    peers_forget(job->name);
    return status;
}

static smelt_status run_named(struct bench *bench, const char *name) {
    const struct job *job = jobs;
    while (strcmp(job->name, name) != 0) job++;
    struct inputs inputs = {0};
    struct lapack_job *lapack = NULL;
    smelt_status status = create_inputs(job, bench->quick, &inputs);
    if (status == SMELT_OK && lapack_open()) {
        lapack = lapack_create(&inputs.problem);
        if (lapack && !check_lapack(bench, name, &inputs, lapack)) {
            lapack_free(lapack);
            lapack = NULL;
        }
    } else if (status == SMELT_OK) {
        bench_note(bench, name, LAPACK, "libopenblas.so.0 with LAPACK is not installed");
    }
    if (status == SMELT_OK && check_smelt(bench, name, &inputs))
        status = measure(bench, job, &inputs, lapack);
    lapack_free(lapack);
    smelt_array_release(inputs.a);
    smelt_array_release(inputs.b);
    return status;
}

static const struct bench_job named[] = {
    {"cholesky", run_named},
    {"cholesky-2048", run_named},
    {"cholesky-batch", run_named},
    {"qr", run_named},
    {"qr-tall", run_named},
    {"qr-batch", run_named},
    {"lu", run_named},
    {"lu-batch", run_named},
    {"solve", run_named},
    {"triangular", run_named},
    {"cholesky-extended", bench_linalg_extended},
    {"qr-extended", bench_linalg_extended},
    {"dot-extended", bench_linalg_extended},
    {"accuracy", bench_linalg_accuracy},
    {0},
};

/* The child starts before this thread is bound to one CPU, so that PyTorch may use all of them. */
static smelt_status run(struct bench *bench) {
    peers_start(kernel_text_peers_linalg, bench->quick);
    cpu_start_threads();
    bench_run_jobs(bench, named, smelt_error);
    peers_stop();
    return SMELT_OK;
}

const struct benchmark bench_linalg = {
    .name = "linalg",
    .help = "factorisations and solves beside LAPACK and PyTorch, on the CPU; extended precision",
    .run = run,
    .jobs = named,
};
