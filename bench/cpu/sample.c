/* Bilinear samples of images of 64 channels at random points: scattered reads of whole pixels. */
#include "bench/cpu/cpu.h"
#include "bench/hand/handwritten.h"
#include "bench/kernel_text.h"
#include "bench/cpu/threads.h"

#include <math.h>

#define CHANNELS 64
#define GROUP 256

struct sample_job {
    smelt_array *x, *points, *out, *expected;
    int64_t batch, side, rows; /* rows² points an image of side² pixels */
};

/* Weight 1 - distance in both directions, for pixels nearer than 1. */
static void expect_point(void *context, int64_t point) {
    const struct sample_job *job = context;
    int64_t side = job->side;
    const float *image = floats(job->x) + point / (job->rows * job->rows) * side * side * CHANNELS;
    double x = ((floats(job->points)[2 * point] + 1.0) * (double)side - 1) / 2;
    double y = ((floats(job->points)[2 * point + 1] + 1.0) * (double)side - 1) / 2;
    double sums[CHANNELS] = {0};
    for (int64_t row = (int64_t)floor(y); row <= (int64_t)floor(y) + 1; row++)
        for (int64_t column = (int64_t)floor(x); column <= (int64_t)floor(x) + 1; column++) {
            if (row < 0 || row >= side || column < 0 || column >= side) continue;
            double weight = (1 - fabs(y - (double)row)) * (1 - fabs(x - (double)column));
            for (int c = 0; c < CHANNELS; c++)
                sums[c] += weight * image[(row * side + column) * CHANNELS + c];
        }
    for (int c = 0; c < CHANNELS; c++) floats(job->expected)[point * CHANNELS + c] = (float)sums[c];
}

static smelt_status run_hand(void *context) {
    const struct sample_job *job = context;
    handwritten()->grid_sample(floats(job->x), floats(job->points), floats(job->out), job->batch, job->side,
                               job->side, job->rows * job->rows);
    return SMELT_OK;
}

static smelt_status measure(struct bench *bench, const char *name, struct sample_job *job) {
    int64_t points = job->batch * job->rows * job->rows;
    int32_t size[5] = {(int32_t)job->side, (int32_t)job->side, CHANNELS, (int32_t)job->rows,
                       (int32_t)job->rows};
    struct contest contest = {.device = &cpu_contest,
                              .bench = bench,
                              .job = name,
                              .work = 5.0 * CHANNELS * sizeof(float) * (double)points,
                              .work_unit = "B",
                              .output = job->out,
                              .expected = job->expected,
                              .tolerance = 5e-5}; /* a coordinate of 256 has 16 bits behind the point */
    smelt_dispatch_desc desc = {.buffers = {{.array = job->x},
                                            {.array = job->points},
                                            {.array = job->out},
                                            {.bytes = size, .size = sizeof size}},
                                .grid = {points * CHANNELS},
                                .threadgroup = {GROUP}};
    struct standard standard;
    team_run(expect_point, job, points);
    contest_enter_hand(&contest, HAND_WRITTEN, run_hand, job, NULL);
    standard_enter(&contest, &standard, "sample_grid.metal", kernel_text_sample_grid, "sample_grid", &desc,
                   HAND_WRITTEN, (struct bench_bar){BENCH_TIME_AT_MOST, 3});
    smelt_status status = contest_run(&contest);
    standard_release(&standard);
    return status;
}

smelt_status bench_cpu_grid_sample(struct bench *bench, const char *name) {
    bool quick = bench->quick;
    struct sample_job job = {.batch = quick ? 2 : 8, .side = quick ? 16 : 256, .rows = quick ? 8 : 64};
    smelt_shape out = SHAPE_OF(job.batch, job.rows, job.rows, CHANNELS);
    smelt_status status = random_floats(SHAPE_OF(job.batch, job.side, job.side, CHANNELS), 11, -1, 1, &job.x);
    /* A little beyond the edges, so that zeros outside are tried as well. */
    if (status == SMELT_OK)
        status = random_floats(SHAPE_OF(job.batch, job.rows, job.rows, 2), 12, -1.02, 1.02, &job.points);
    if (status == SMELT_OK) status = new_floats(out, &job.out);
    if (status == SMELT_OK) status = new_floats(out, &job.expected);
    if (status == SMELT_OK) status = measure(bench, name, &job);
    smelt_array_release(job.x);
    smelt_array_release(job.points);
    smelt_array_release(job.out);
    smelt_array_release(job.expected);
    return status;
}
