/* smelt bench linalg: dense factorisations and solves in float32, single and batched, beside LAPACK
 * (OpenBLAS) and PyTorch, on GPUs beside PyTorch (cuSOLVER). Each result is checked before it is timed. */
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
/* Nothing waits to learn whether matrices failed. */
#define SMELT_UNCHECKED "smelt, unchecked"
#define PYTORCH_UNCHECKED "PyTorch, unchecked"
#define ROUNDS 9
#define GPU_RUNS 10 /* of one measurement: when two processes use a GPU in turn, each turn has a cost */

/* ---- Jobs. */

#define SPEED(least) {BENCH_SPEED_AT_LEAST, least}
/* clang-format off */
static const struct job {
    const char *name;
    enum problem_kind kind;
    int64_t batch, rows, columns;
    double condition; /* of matrices 64 × 64, in turn from 1 to this; 0: well conditioned */
    struct bench_bar bar, gpu_bar; /* to LAPACK; to PyTorch on the same GPU */
    bool gpu_only;
    const char *unchecked; /* the job of PyTorch that does not check, or NULL */
} jobs[] = {
    {"cholesky", CHOLESKY, 1, 1024, 1024, 0, .bar = SPEED(0.5), .unchecked = "cholesky-unchecked"},
    {"cholesky-2048", CHOLESKY, 1, 2048, 2048, 0, .bar = {0}},
    {"cholesky-4096", CHOLESKY, 1, 4096, 4096, 0, .gpu_bar = {BENCH_TIME_AT_MOST, 1.5}, .gpu_only = true,
     .unchecked = "cholesky-4096-unchecked"},
    {"cholesky-batch", CHOLESKY, 1024, 64, 64, 1e4, .gpu_bar = SPEED(2), .unchecked = "cholesky-batch-unchecked"},
    {"qr", QR, 1, 1024, 1024, 0, .bar = SPEED(0.5)},
    {"qr-4096", QR, 1, 4096, 4096, 0, .gpu_bar = SPEED(1), .gpu_only = true},
    {"qr-tall", QR, 1, 4096, 256, 0, .bar = {0}},
    {"qr-batch", QR, 1024, 64, 64, 1e6, .gpu_bar = SPEED(20)},
    {"lu", LU, 1, 1024, 1024, 0, .bar = {0}},
    {"lu-4096", LU, 1, 4096, 4096, 0, .gpu_only = true},
    {"lu-batch", LU, 1024, 64, 64, 1e6, .bar = {0}},
    {"solve", SOLVE, 1, 1024, 1024, 0, .bar = {0}},
    {"triangular", TRIANGULAR, 1, 1024, 1024, 0, .bar = {0}},
};
/* clang-format on */
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
    const char *device;
    bool unchecked;
    smelt_array *a, *b;       /* on the host */
    smelt_array *at_a, *at_b; /* the same on the device */
    struct problem problem;
};

/* (M + Mᵀ) / √(4 n) + 2 I, whose eigenvalues lie between 1 and 3: with less work. */
static smelt_status create_dominant(int64_t n, smelt_array **a) {
    smelt_status status = random_floats(SHAPE_OF(1, n, n), 1, -1, 1, a);
    if (status != SMELT_OK) return status;
    float *x = floats(*a), by = 1 / sqrtf(4 * (float)n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            x[i * n + j] = x[j * n + i] = (x[i * n + j] + x[j * n + i]) * by + (i == j ? 2 : 0);
    return SMELT_OK;
}

/* M Mᵀ / n + I / 2 */
static smelt_status create_definite(int64_t n, smelt_array **a) {
    if (n > 2048) return create_dominant(n, a);
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
    status = smelt_array_to(inputs->a, inputs->device, NULL, &inputs->at_a);
    return status == SMELT_OK && inputs->b ? smelt_array_to(inputs->b, inputs->device, NULL, &inputs->at_b)
                                           : status;
}

/* ---- Variants. */

static smelt_status compute(const struct inputs *inputs, smelt_array *made[2]) {
    smelt_linalg_desc desc = {.on_failure = inputs->unchecked ? SMELT_LINALG_IGNORE : SMELT_LINALG_ERROR};
    smelt_array *a = inputs->at_a, *b = inputs->at_b;
    switch (inputs->problem.kind) {
    case CHOLESKY:
        return smelt_cholesky(a, &desc, &made[0]);
    case QR:
        return smelt_qr(a, &desc, &made[0], &made[1]);
    case LU:
        return smelt_lu(a, &desc, &made[0], &made[1]);
    case SOLVE:
        return smelt_solve(a, b, &desc, &made[0]);
    default:
        return smelt_triangular_solve(a, b, &desc, &made[0]);
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

static smelt_status measure_on_gpu(const struct inputs *inputs, double *seconds) {
    smelt_status status = SMELT_OK;
    double start = bench_now();
    for (int i = 0; i < GPU_RUNS && status == SMELT_OK; i++) {
        smelt_array *made[2] = {0};
        status = compute(inputs, made);
        smelt_array_release(made[0]);
        smelt_array_release(made[1]);
    }
    if (status == SMELT_OK) status = smelt_device_wait(inputs->device);
    *seconds = (bench_now() - start) / GPU_RUNS;
    return status;
}

static smelt_status measure_smelt(void *context, double *seconds) {
    const struct inputs *inputs = context;
    smelt_array *made[2] = {0};
    if (bench_is_gpu(inputs->device)) return measure_on_gpu(inputs, seconds);
    read_inputs(inputs);
    double start = linalg_now();
    smelt_status status = compute(inputs, made);
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

static smelt_status to_host(smelt_array **array) {
    smelt_array *here;
    smelt_status status = smelt_array_to(*array, "cpu", NULL, &here);
    if (status != SMELT_OK) return status;
    smelt_array_release(*array);
    *array = here;
    return SMELT_OK;
}

static smelt_status measure_pytorch_on_gpu(void *context, double *seconds) {
    failure = peers_measure(context, GPU_RUNS, seconds);
    return failure ? SMELT_ERROR_INTERNAL : SMELT_OK;
}

/* False: reported as failed. */
static bool check_smelt(struct bench *bench, const char *job, const struct inputs *inputs) {
    smelt_array *made[2] = {0};
    char message[128];
    smelt_status status = compute(inputs, made);
    for (int i = 0; i < 2 && made[i] && status == SMELT_OK; i++) status = to_host(&made[i]);
    if (status != SMELT_OK) {
        bench_fail(bench, job, SMELT, status, smelt_error());
        smelt_array_release(made[0]);
        smelt_array_release(made[1]);
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

static void add_case(struct bench_case *cases, int *count, const struct job *job, double work,
                     struct bench_case one) {
    one.job = job->name;
    one.work = work;
    one.work_unit = "FLOP";
    if (one.measure != measure_smelt) one.error = message_of_failure;
    cases[(*count)++] = one;
}

/* LAPACK and PyTorch may be absent. */
static smelt_status measure_on_host(struct bench *bench, const struct job *job, struct inputs *inputs,
                                    struct lapack_job *lapack, double work, bool peer) {
    struct bench_case cases[3];
    const char *anchor = lapack ? LAPACK : NULL;
    int count = 0;
    if (lapack)
        add_case(cases, &count, job, work,
                 (struct bench_case){.variant = LAPACK, .measure = measure_lapack, .context = lapack});
    add_case(cases, &count, job, work,
             (struct bench_case){.variant = SMELT,
                                 .anchor = anchor,
                                 .bar = lapack ? job->bar : NO_BAR,
                                 .measure = measure_smelt,
                                 .context = inputs});
    if (peer)
        add_case(cases, &count, job, work,
                 (struct bench_case){.variant = PYTORCH,
                                     .anchor = anchor,
                                     .measure = measure_pytorch,
                                     .context = (void *)job->name});
    return bench_measure(bench, cases, count, bench_repeats(bench, ROUNDS));
}

/* Elapsed time, from the call until the device has finished. */
static smelt_status measure_gpu_job(struct bench *bench, const struct job *job, struct inputs *inputs,
                                    double work, bool peer) {
    struct bench_case cases[4];
    struct inputs unchecked = *inputs;
    int count = 0;
    unchecked.unchecked = true;
    for (int turn = 0; turn < (job->unchecked ? 2 : 1); turn++) {
        const char *theirs = turn ? PYTORCH_UNCHECKED : PYTORCH;
        if (peer)
            add_case(cases, &count, job, work,
                     (struct bench_case){.variant = theirs,
                                         .measure = measure_pytorch_on_gpu,
                                         .context = (void *)(turn ? job->unchecked : job->name)});
        add_case(cases, &count, job, work,
                 (struct bench_case){.variant = turn ? SMELT_UNCHECKED : SMELT,
                                     .anchor = peer ? theirs : NULL,
                                     .bar = peer ? job->gpu_bar : NO_BAR,
                                     .measure = measure_smelt,
                                     .context = turn ? &unchecked : inputs});
    }
    return bench_measure(bench, cases, count, bench_repeats(bench, ROUNDS));
}

static smelt_status measure(struct bench *bench, const struct job *job, struct inputs *inputs,
                            struct lapack_job *lapack) {
    const struct problem *p = &inputs->problem;
    double seconds, work = flops_of(job, p->rows, p->columns) * (double)p->batch;
    const char *absent = peers_measure(job->name, 1, &seconds);
    if (absent) bench_note(bench, job->name, PYTORCH, absent);
    smelt_status status = bench_is_gpu(inputs->device)
                              ? measure_gpu_job(bench, job, inputs, work, !absent)
                              : measure_on_host(bench, job, inputs, lapack, work, !absent);
    peers_forget(job->name);
    if (job->unchecked && bench_is_gpu(inputs->device)) peers_forget(job->unchecked);
    return status;
}

static struct lapack_job *create_lapack(struct bench *bench, const char *name, const struct inputs *inputs) {
    if (!lapack_open()) {
        bench_note(bench, name, LAPACK, "libopenblas.so.0 with LAPACK is not installed");
        return NULL;
    }
    struct lapack_job *lapack = lapack_create(&inputs->problem);
    if (!lapack || check_lapack(bench, name, inputs, lapack)) return lapack;
    lapack_free(lapack);
    return NULL;
}

static smelt_status run_named(struct bench *bench, const char *name) {
    const struct job *job = jobs;
    while (strcmp(job->name, name) != 0) job++;
    struct inputs inputs = {.device = bench->shared};
    struct lapack_job *lapack = NULL;
    if (job->gpu_only && !bench_is_gpu(inputs.device)) return SMELT_OK;
    smelt_status status = create_inputs(job, bench->quick, &inputs);
    if (status == SMELT_OK && !bench_is_gpu(inputs.device)) lapack = create_lapack(bench, name, &inputs);
    if (status == SMELT_OK && check_smelt(bench, name, &inputs))
        status = measure(bench, job, &inputs, lapack);
    lapack_free(lapack);
    smelt_array_release(inputs.a);
    smelt_array_release(inputs.b);
    smelt_array_release(inputs.at_a);
    smelt_array_release(inputs.at_b);
    return status;
}

static const struct bench_job named[] = {
    {"cholesky", run_named},
    {"cholesky-2048", run_named},
    {"cholesky-4096", run_named},
    {"cholesky-batch", run_named},
    {"qr", run_named},
    {"qr-4096", run_named},
    {"qr-tall", run_named},
    {"qr-batch", run_named},
    {"lu", run_named},
    {"lu-4096", run_named},
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
    const char *device = bench_device(bench);
    if (!device) return SMELT_OK; /* it is reported */
    bench->shared = (void *)device;
    peers_start_on(kernel_text_peers_linalg, bench->quick, device);
    cpu_start_threads();
    bench_run_jobs(bench, named, smelt_error);
    peers_stop();
    return SMELT_OK;
}

const struct benchmark bench_linalg = {
    .name = "linalg",
    .help = "factorisations and solves beside LAPACK and PyTorch; extended precision",
    .run = run,
    .jobs = named,
};
