/* Bilinear samples of images at random points, and their derivatives. */
#include "bench/gpu/gpu.h"
#include "bench/kernel_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHANNELS 64
#define QUARTERS (CHANNELS / 4)
#define THREADS 256
#define FLOATS_A_ZERO_THREAD 8
#define BATCH 8

struct sample_job {
    smelt_array *x, *points, *cotangent, *out, *x_grad, *points_grad;
    float *block, *places, *slopes; /* on the host: what x and cotangent repeat, all points */
    int64_t side, rows;             /* rows² points an image of side² pixels */
};

static int64_t point_count(const struct sample_job *job) {
    return BATCH * job->rows * job->rows;
}

static int64_t block_size(const smelt_array *array) {
    return smelt_array_size(array) < GPU_BLOCK ? smelt_array_size(array) : GPU_BLOCK;
}

/* ---- References. */

/* The four pixels around a point; weights as in shared formulas: 1 - distance in each direction. */
struct around {
    int64_t offset[4]; /* of channel 0 among the image's elements; -1: outside */
    double weight[4], by_x[4], by_y[4];
    bool near; /* to where the derivative jumps: float and double may take different sides */
};

#define NEAR 1e-3

static void look_around(const struct sample_job *job, int64_t point, struct around *around) {
    int64_t side = job->side, image = point / (job->rows * job->rows) * side * side;
    double x = ((job->places[2 * point] + 1.0) * (double)side - 1) / 2;
    double y = ((job->places[2 * point + 1] + 1.0) * (double)side - 1) / 2;
    around->near = fabs(x - rint(x)) < NEAR || fabs(y - rint(y)) < NEAR;
    for (int k = 0; k < 4; k++) {
        int64_t column = (int64_t)floor(x) + (k & 1), row = (int64_t)floor(y) + (k >> 1);
        double across = 1 - fabs(x - (double)column), down = 1 - fabs(y - (double)row);
        bool inside = row >= 0 && row < side && column >= 0 && column < side;
        around->offset[k] = inside ? (image + row * side + column) * CHANNELS : -1;
        around->weight[k] = across * down;
        around->by_x[k] = (k & 1 ? down : -down) * (double)side / 2;
        around->by_y[k] = (k >> 1 ? across : -across) * (double)side / 2;
    }
}

static double x_at(const struct sample_job *job, int64_t index) {
    return job->block[index % block_size(job->x)];
}

/* A coordinate of 1024 has 13 bits behind the point: weights are right to 2^-13. */
#define TOLERANCE 5e-4

static bool check_samples(void *context, const void *output, char *message, size_t size) {
    const struct sample_job *job = context;
    const float *actual = output;
    int64_t count = point_count(job);
    for (int64_t point = 0; point < count; point++) {
        struct around around;
        look_around(job, point, &around);
        for (int c = 0; c < CHANNELS; c++) {
            double sum = 0;
            for (int k = 0; k < 4; k++)
                if (around.offset[k] >= 0) sum += around.weight[k] * x_at(job, around.offset[k] + c);
            if (fabs(actual[point * CHANNELS + c] - sum) <= TOLERANCE) continue;
            snprintf(message, size, "wrong result: channel %d of point %lld is %.9g, expected %.9g", c,
                     (long long)point, (double)actual[point * CHANNELS + c], sum);
            return false;
        }
    }
    return true;
}

/* Its own output is points_grad; x_grad is fetched and compared as well. */
static bool check_x_grad(const struct sample_job *job, char *message, size_t size) {
    int64_t count = smelt_array_size(job->x_grad), channels = block_size(job->cotangent);
    float *expected = calloc((size_t)count, sizeof *expected),
          *actual = malloc((size_t)count * sizeof *actual);
    bool right =
        expected && actual && !gpu_driver_read(actual, gpu_place(job->x_grad), gpu_bytes(job->x_grad));
    if (!right) snprintf(message, size, "the derivatives cannot be fetched from the GPU");
    for (int64_t point = 0; right && point < point_count(job); point++) {
        struct around around;
        look_around(job, point, &around);
        for (int k = 0; k < 4; k++)
            for (int c = 0; c < CHANNELS && around.offset[k] >= 0; c++)
                expected[around.offset[k] + c] +=
                    (float)(around.weight[k] * job->slopes[(point * CHANNELS + c) % channels]);
    }
    for (int64_t i = 0; right && i < count; i++) {
        right = fabsf(actual[i] - expected[i]) <= (float)(4 * TOLERANCE);
        if (!right)
            snprintf(message, size, "wrong result: x_grad[%lld] is %.9g, expected %.9g", (long long)i,
                     (double)actual[i], (double)expected[i]);
    }
    free(expected);
    free(actual);
    return right;
}

static bool check_derivatives(void *context, const void *output, char *message, size_t size) {
    const struct sample_job *job = context;
    const float *actual = output;
    int64_t channels = block_size(job->cotangent);
    for (int64_t point = 0; point < point_count(job); point++) {
        struct around around;
        look_around(job, point, &around);
        if (around.near && isfinite(actual[2 * point]) && isfinite(actual[2 * point + 1])) continue;
        double by_x = 0, by_y = 0;
        for (int k = 0; k < 4; k++)
            for (int c = 0; c < CHANNELS && around.offset[k] >= 0; c++) {
                double part =
                    job->slopes[(point * CHANNELS + c) % channels] * x_at(job, around.offset[k] + c);
                by_x += part * around.by_x[k];
                by_y += part * around.by_y[k];
            }
        /* Sums of 256 products of numbers below 1, times half the side. */
        double allowed = TOLERANCE * 8 * (double)job->side;
        if (fabs(actual[2 * point] - by_x) <= allowed && fabs(actual[2 * point + 1] - by_y) <= allowed)
            continue;
        snprintf(message, size, "wrong result: point %lld has (%.9g, %.9g), expected (%.9g, %.9g)",
                 (long long)point, (double)actual[2 * point], (double)actual[2 * point + 1], by_x, by_y);
        return false;
    }
    return check_x_grad(job, message, size);
}

/* ---- Jobs. Floors: reference/grid_sample.md's, each corner of each point read once. */

static smelt_status make(struct gpu *gpu, struct sample_job *job) {
    bool quick = gpu->bench->quick;
    job->side = quick ? 64 : 1024;
    job->rows = quick ? 16 : 256;
    smelt_shape image = SHAPE_OF(BATCH, job->side, job->side, CHANNELS);
    smelt_shape points = SHAPE_OF(BATCH, job->rows, job->rows, 2);
    int64_t every = 2 * point_count(job);
    smelt_status status = gpu_random(SMELT_FLOAT32, image, GPU_BLOCK, 40, -1, 1, &job->x);
    if (status == SMELT_OK) status = gpu_random(SMELT_FLOAT32, points, every, 41, -1, 1, &job->points);
    if (status != SMELT_OK) return status;
    job->block = gpu_first_values(job->x, block_size(job->x));
    job->places = gpu_first_values(job->points, every);
    return job->block && job->places ? SMELT_OK : SMELT_ERROR_OUT_OF_MEMORY;
}

static void discard(struct sample_job *job) {
    smelt_array *const arrays[] = {job->x,   job->points, job->cotangent,
                                   job->out, job->x_grad, job->points_grad};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) smelt_array_release(arrays[i]);
    free(job->block);
    free(job->places);
    free(job->slopes);
}

struct sizes {
    int32_t height, width, rows, columns;
};

static smelt_dispatch_desc over_points(const struct sample_job *job) {
    return (smelt_dispatch_desc){.grid = {job->rows * QUARTERS, job->rows, BATCH},
                                 .threadgroup = {THREADS, 1, 1}};
}

static void enter_all(struct contest *contest, struct launches *launches, const char *peer,
                      const char *other_peer, double bar) {
    gpu_enter_floor(contest);
    gpu_enter_peer(contest, PYTORCH ", channels last", peer);
    gpu_enter_peer(contest, PYTORCH ", NCHW", other_peer);
    contest_enter(contest, (struct variant){.name = "smelt",
                                            .run = launches_run,
                                            .context = launches,
                                            .anchor = FLOOR,
                                            .bar = {BENCH_TIME_AT_MOST, 2}});
    contest_compare(contest, "smelt", PYTORCH ", channels last",
                    (struct bench_bar){BENCH_SPEED_AT_LEAST, bar});
    contest_compare(contest, "smelt", PYTORCH ", NCHW", NO_BAR);
}

static smelt_status measure_samples(struct gpu *gpu, const char *name, struct sample_job *job) {
    int32_t side = (int32_t)job->side, rows = (int32_t)job->rows;
    struct sizes size = {side, side, rows, rows};
    double points = (double)point_count(job);
    struct contest contest = gpu_byte_contest(
        gpu, name, points * (4 * CHANNELS + CHANNELS + 2) * sizeof(float), 10, job->out, check_samples, job);
    struct launches launches = {0};
    smelt_dispatch_desc desc = over_points(job);
    const smelt_buffer buffers[] = {{.array = job->x},
                                    {.array = job->points},
                                    {.array = job->out},
                                    {.bytes = &size, .size = sizeof size}};
    memcpy(desc.buffers, buffers, sizeof buffers);
    smelt_status status =
        gpu_add_launch(gpu, &launches, "gpu_sample.metal", kernel_text_gpu_sample, "sample_64", &desc);
    if (status == SMELT_OK) {
        enter_all(&contest, &launches, "grid-sample", "grid-sample-nchw", 5);
        status = gpu_contest_run(&contest);
    }
    launches_release(&launches);
    return status;
}

smelt_status bench_gpu_grid_sample(struct bench *bench, const char *name) {
    struct gpu *gpu = bench->shared;
    struct sample_job job = {0};
    smelt_status status = make(gpu, &job);
    if (status == SMELT_OK)
        status = gpu_new(SMELT_FLOAT32, SHAPE_OF(BATCH, job.rows, job.rows, CHANNELS), &job.out);
    if (status == SMELT_OK) status = measure_samples(gpu, name, &job);
    discard(&job);
    return status;
}

/* Zeros into x_grad, then the sums. Bytes: the zeros; of each corner x read, x_grad read and written; the
 * cotangent; points and their derivatives. */
static smelt_status measure_derivatives(struct gpu *gpu, const char *name, struct sample_job *job) {
    int32_t side = (int32_t)job->side, rows = (int32_t)job->rows;
    struct sizes size = {side, side, rows, rows};
    double points = (double)point_count(job);
    struct contest contest = gpu_byte_contest(gpu, name,
                                              (double)gpu_bytes(job->x_grad) +
                                                  points * (3 * 4 * CHANNELS + CHANNELS + 4) * sizeof(float),
                                              3, job->points_grad, check_derivatives, job);
    struct launches launches = {0};
    smelt_status status =
        gpu_add_launch(gpu, &launches, "gpu_copy.metal", kernel_text_gpu_copy, "zero",
                       &(smelt_dispatch_desc){.buffers = {{.array = job->x_grad}},
                                              .grid = {smelt_array_size(job->x_grad) / FLOATS_A_ZERO_THREAD},
                                              .threadgroup = {THREADS}});
    smelt_dispatch_desc desc = over_points(job);
    const smelt_buffer buffers[] = {{.array = job->x},           {.array = job->points},
                                    {.array = job->cotangent},   {.array = job->x_grad},
                                    {.array = job->points_grad}, {.bytes = &size, .size = sizeof size}};
    memcpy(desc.buffers, buffers, sizeof buffers);
    if (status == SMELT_OK)
        status = gpu_add_launch(gpu, &launches, "gpu_sample.metal", kernel_text_gpu_sample, "sample_vjp_64",
                                &desc);
    if (status == SMELT_OK)
        status = gpu_driver_status(gpu_driver_fill(gpu_place(job->x_grad), 0xff, gpu_bytes(job->x_grad)));
    if (status == SMELT_OK) {
        enter_all(&contest, &launches, "grid-sample-vjp", "grid-sample-vjp-nchw", 3);
        status = gpu_contest_run(&contest);
    }
    launches_release(&launches);
    return status;
}

smelt_status bench_gpu_grid_sample_vjp(struct bench *bench, const char *name) {
    struct gpu *gpu = bench->shared;
    struct sample_job job = {0};
    smelt_status status = make(gpu, &job);
    smelt_shape out = SHAPE_OF(BATCH, job.rows, job.rows, CHANNELS);
    if (status == SMELT_OK) status = gpu_random(SMELT_FLOAT32, out, GPU_BLOCK, 42, -1, 1, &job.cotangent);
    if (status == SMELT_OK) status = gpu_new(SMELT_FLOAT32, smelt_array_shape(job.x), &job.x_grad);
    if (status == SMELT_OK) status = gpu_new(SMELT_FLOAT32, smelt_array_shape(job.points), &job.points_grad);
    if (status == SMELT_OK) {
        job.slopes = gpu_first_values(job.cotangent, block_size(job.cotangent));
        status = job.slopes ? measure_derivatives(gpu, name, &job) : SMELT_ERROR_OUT_OF_MEMORY;
    }
    discard(&job);
    return status;
}
