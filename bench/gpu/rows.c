/* Rows of bfloats: softmax, and division by the root of the mean square. */
#include "bench/gpu/gpu.h"
#include "bench/kernel_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 256
#define WIDTH 8192 /* the kernels' own */
#define ROWS 16384
#define BLOCK_ROWS (GPU_BLOCK / WIDTH) /* different ones */
#define EPSILON 1e-5f

struct rows_job {
    smelt_array *in, *weight, *out;
    float *values, *weights; /* on the host: of the different rows */
    int64_t rows;
    void (*expect)(const struct rows_job *job, const float *row, double *expected);
};

static void expect_softmax(const struct rows_job *job, const float *row, double *expected) {
    double top = -INFINITY, sum = 0;
    (void)job;
    for (int i = 0; i < WIDTH; i++) top = row[i] > top ? row[i] : top;
    for (int i = 0; i < WIDTH; i++) sum += expected[i] = exp(row[i] - top);
    for (int i = 0; i < WIDTH; i++) expected[i] /= sum;
}

static void expect_rms_norm(const struct rows_job *job, const float *row, double *expected) {
    double sum = 0;
    for (int i = 0; i < WIDTH; i++) sum += (double)row[i] * row[i];
    double scale = 1 / sqrt(sum / WIDTH + EPSILON);
    for (int i = 0; i < WIDTH; i++) expected[i] = row[i] * scale * job->weights[i];
}

/* Every different row against the formula, of the others that they are the same. bfloat has 8 bits: a result
 * is right within half of the last one and a little more. */
static bool check_rows(void *context, const void *output, char *message, size_t size) {
    const struct rows_job *job = context;
    const uint16_t *actual = output;
    double *expected = malloc(WIDTH * sizeof *expected);
    if (!expected) return false;
    for (int64_t row = 0; row < job->rows; row++) {
        int64_t same = row % BLOCK_ROWS;
        if (row == same) job->expect(job, job->values + row * WIDTH, expected);
        for (int64_t i = 0; i < WIDTH; i++) {
            double value = gpu_widen_bfloat(actual[row * WIDTH + i]);
            bool right = row == same ? fabs(value - expected[i]) <= 0.0045 * fabs(expected[i])
                                     : actual[row * WIDTH + i] == actual[same * WIDTH + i];
            if (right) continue;
            snprintf(message, size, "wrong result: element %lld of row %lld is %.9g, expected %.9g",
                     (long long)i, (long long)row, value,
                     row == same ? expected[i] : (double)gpu_widen_bfloat(actual[same * WIDTH + i]));
            free(expected);
            return false;
        }
    }
    free(expected);
    return true;
}

static smelt_status measure(struct gpu *gpu, const char *name, struct rows_job *job, const char *kernel,
                            const smelt_dispatch_desc *desc) {
    struct contest contest =
        gpu_byte_contest(gpu, name, 2.0 * (double)gpu_bytes(job->out), 10, job->out, check_rows, job);
    struct launches launches = {0};
    smelt_status status =
        gpu_add_launch(gpu, &launches, "gpu_rows.metal", kernel_text_gpu_rows, kernel, desc);
    if (status == SMELT_OK) {
        gpu_enter_floor(&contest);
        gpu_enter_peer(&contest, PYTORCH, name);
        contest_enter(&contest, (struct variant){.name = "smelt",
                                                 .run = launches_run,
                                                 .context = &launches,
                                                 .anchor = FLOOR,
                                                 .bar = {BENCH_SPEED_AT_LEAST, 0.9}});
        contest_compare(&contest, "smelt", PYTORCH, NO_BAR);
        status = gpu_contest_run(&contest);
    }
    launches_release(&launches);
    return status;
}

static smelt_status make(struct gpu *gpu, struct rows_job *job) {
    job->rows = gpu->bench->quick ? 64 : ROWS;
    int64_t different = job->rows < BLOCK_ROWS ? job->rows : BLOCK_ROWS;
    smelt_shape shape = SHAPE_OF(job->rows, WIDTH);
    smelt_status status = gpu_random(SMELT_BFLOAT16, shape, GPU_BLOCK, 30, -4, 4, &job->in);
    if (status == SMELT_OK)
        status = gpu_random(SMELT_BFLOAT16, SHAPE_OF(WIDTH), WIDTH, 31, 0.5, 1.5, &job->weight);
    if (status == SMELT_OK) status = gpu_new(SMELT_BFLOAT16, shape, &job->out);
    if (status != SMELT_OK) return status;
    job->values = gpu_first_values(job->in, different * WIDTH);
    job->weights = gpu_first_values(job->weight, WIDTH);
    return job->values && job->weights ? SMELT_OK : SMELT_ERROR_OUT_OF_MEMORY;
}

static void discard(struct rows_job *job) {
    free(job->values);
    free(job->weights);
    smelt_array_release(job->in);
    smelt_array_release(job->weight);
    smelt_array_release(job->out);
}

smelt_status bench_gpu_softmax(struct bench *bench, const char *name) {
    struct gpu *gpu = bench->shared;
    struct rows_job job = {.expect = expect_softmax};
    smelt_status status = make(gpu, &job);
    if (status == SMELT_OK)
        status = measure(gpu, name, &job, "softmax_rows",
                         &(smelt_dispatch_desc){.buffers = {{.array = job.in}, {.array = job.out}},
                                                .groups = {job.rows, 1, 1},
                                                .threadgroup = {THREADS}});
    discard(&job);
    return status;
}

smelt_status bench_gpu_rms_norm(struct bench *bench, const char *name) {
    struct gpu *gpu = bench->shared;
    static const float epsilon = EPSILON;
    struct rows_job job = {.expect = expect_rms_norm};
    smelt_status status = make(gpu, &job);
    if (status == SMELT_OK)
        status = measure(gpu, name, &job, "rms_norm_rows",
                         &(smelt_dispatch_desc){.buffers = {{.array = job.in},
                                                            {.array = job.weight},
                                                            {.array = job.out},
                                                            {.bytes = &epsilon, .size = sizeof epsilon}},
                                                .groups = {job.rows, 1, 1},
                                                .threadgroup = {THREADS}});
    discard(&job);
    return status;
}
