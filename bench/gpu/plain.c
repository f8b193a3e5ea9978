/* Kernels as users write them first, one small element per thread, beside the speed of a copy. */
#include "bench/gpu/gpu.h"
#include "bench/kernel_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIDE 8192 /* of planes; elements are its square */
#define ROW 4096
#define EPSILON 1e-5

struct plain_job {
    const struct plain_kernel *kernel;
    smelt_array *a, *b, *out;
    float *first, *second;  /* on the host: the blocks that `a` and `b` repeat */
    double *means, *scales; /* of the different rows */
    int64_t side, block;
};

struct plain_kernel {
    const char *name, *function;
    smelt_dtype dtype;
    int arrays; /* that it moves */
    int64_t group[2];
    enum { LINE, PLANE, ROWS } kind;
    double bar; /* of the copy's speed */
    double (*expect)(const struct plain_job *job, int64_t i);
};

/* ---- What is right. */

static double a_at(const struct plain_job *job, int64_t i) {
    return job->first[i % job->block];
}

static double b_at(const struct plain_job *job, int64_t i) {
    return job->second[i % job->block];
}

static double expect_exp(const struct plain_job *job, int64_t i) {
    return exp(a_at(job, i));
}

static double expect_swiglu(const struct plain_job *job, int64_t i) {
    return a_at(job, i) / (1 + exp(-a_at(job, i))) * b_at(job, i);
}

static double expect_gelu(const struct plain_job *job, int64_t i) {
    double x = a_at(job, i);
    return 0.5 * x * (1 + tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
}

static double expect_residual(const struct plain_job *job, int64_t i) {
    return a_at(job, i) + b_at(job, i);
}

static double expect_transpose(const struct plain_job *job, int64_t i) {
    return a_at(job, i % job->side * job->side + i / job->side);
}

static double expect_broadcast(const struct plain_job *job, int64_t i) {
    return a_at(job, i) + b_at(job, i % job->side);
}

static double expect_scale(const struct plain_job *job, int64_t i) {
    return 2 * a_at(job, i);
}

static double expect_layer_norm(const struct plain_job *job, int64_t i) {
    int64_t row = i / ROW % (job->block / ROW);
    return (a_at(job, i) - job->means[row]) * job->scales[row] * b_at(job, i % ROW);
}

static const struct plain_kernel kernels[] = {
    {"exp-64", "plain_exp", SMELT_FLOAT32, 2, {64}, LINE, 0.93, expect_exp},
    {"exp-256", "plain_exp", SMELT_FLOAT32, 2, {256}, LINE, 0.93, expect_exp},
    {"exp-1024", "plain_exp", SMELT_FLOAT32, 2, {1024}, LINE, 0.93, expect_exp},
    {"swiglu-bf16", "swiglu_bfloat", SMELT_BFLOAT16, 3, {256}, LINE, 0.85, expect_swiglu},
    {"swiglu-f16", "swiglu_half", SMELT_FLOAT16, 3, {256}, LINE, 0.85, expect_swiglu},
    {"gelu-bf16", "gelu_bfloat", SMELT_BFLOAT16, 2, {256}, LINE, 0.85, expect_gelu},
    {"gelu-f16", "gelu_half", SMELT_FLOAT16, 2, {256}, LINE, 0.85, expect_gelu},
    {"residual-bf16", "residual_bfloat", SMELT_BFLOAT16, 3, {256}, LINE, 0.85, expect_residual},
    {"residual-f16", "residual_half", SMELT_FLOAT16, 3, {256}, LINE, 0.85, expect_residual},
    {"transpose-read", "transpose_read", SMELT_FLOAT32, 2, {32, 8}, PLANE, 0.7, expect_transpose},
    {"broadcast", "broadcast", SMELT_FLOAT32, 2, {32, 8}, PLANE, 0.7, expect_broadcast},
    {"scale-rows", "scale_rows", SMELT_FLOAT32, 2, {256}, ROWS, 0.95, expect_scale},
    {"layer-norm", "layer_norm", SMELT_FLOAT32, 2, {256}, ROWS, 0.87, expect_layer_norm},
};

static double value_at(const struct plain_job *job, const void *output, int64_t i) {
    if (job->kernel->dtype == SMELT_FLOAT32) return ((const float *)output)[i];
    uint16_t bits = ((const uint16_t *)output)[i];
    return job->kernel->dtype == SMELT_FLOAT16 ? gpu_widen_half(bits) : gpu_widen_bfloat(bits);
}

/* The whole first block, and of the rest an element in 251. */
static bool check_plain(void *context, const void *output, char *message, size_t size) {
    const struct plain_job *job = context;
    smelt_dtype dtype = job->kernel->dtype;
    double most = dtype == SMELT_FLOAT32 ? 1e-5 : dtype == SMELT_FLOAT16 ? 0.0012 : 0.0085;
    int64_t count = smelt_array_size(job->out);
    for (int64_t i = 0; i < count; i += i < job->block ? 1 : 251) {
        double expected = job->kernel->expect(job, i), actual = value_at(job, output, i);
        if (fabs(actual - expected) <= most * (fabs(expected) + 0.05)) continue;
        snprintf(message, size, "wrong result: element %lld is %.9g, expected %.9g", (long long)i, actual,
                 expected);
        return false;
    }
    return true;
}

/* ---- The job. */

static smelt_status measure_rows(struct plain_job *job) {
    int64_t rows = job->block / ROW;
    job->means = calloc((size_t)rows, sizeof *job->means);
    job->scales = calloc((size_t)rows, sizeof *job->scales);
    if (!job->means || !job->scales) return SMELT_ERROR_OUT_OF_MEMORY;
    for (int64_t row = 0; row < rows; row++) {
        const float *values = job->first + row * ROW;
        double sum = 0, squares = 0;
        for (int i = 0; i < ROW; i++) sum += values[i];
        job->means[row] = sum / ROW;
        for (int i = 0; i < ROW; i++) squares += pow(values[i] - job->means[row], 2);
        job->scales[row] = 1 / sqrt(squares / ROW + EPSILON);
    }
    return SMELT_OK;
}

static smelt_status make(struct gpu *gpu, struct plain_job *job) {
    job->side = gpu->bench->quick ? SIDE >> 4 : SIDE;
    smelt_shape shape = SHAPE_OF(job->side * job->side);
    job->block = GPU_BLOCK < shape.size[0] ? GPU_BLOCK : shape.size[0];
    smelt_dtype dtype = job->kernel->dtype;
    smelt_status status = gpu_random(dtype, shape, job->block, 40, -4, 4, &job->a);
    if (status == SMELT_OK) status = gpu_random(dtype, shape, job->block, 41, -4, 4, &job->b);
    if (status == SMELT_OK) status = gpu_new(dtype, shape, &job->out);
    if (status != SMELT_OK) return status;
    job->first = gpu_first_values(job->a, job->block);
    job->second = gpu_first_values(job->b, job->block);
    return job->first && job->second ? measure_rows(job) : SMELT_ERROR_OUT_OF_MEMORY;
}

static smelt_status measure(struct gpu *gpu, struct plain_job *job) {
    const struct plain_kernel *k = job->kernel;
    struct launches launches = {0};
    double bytes = (double)k->arrays * (double)gpu_bytes(job->out);
    struct contest contest = gpu_byte_contest(gpu, k->name, bytes, 10, job->out, check_plain, job);
    uint32_t n = k->kind == LINE    ? (uint32_t)smelt_array_size(job->out)
                 : k->kind == PLANE ? (uint32_t)job->side
                                    : ROW;
    smelt_dispatch_desc desc = {.buffers = {{.array = job->a},
                                            {.array = job->b},
                                            {.array = job->out},
                                            {.bytes = &n, .size = sizeof n}},
                                .threadgroup = {k->group[0], k->group[1] ? k->group[1] : 1, 1}};
    if (k->kind == ROWS) {
        desc.groups[0] = smelt_array_size(job->out) / ROW;
        desc.groups[1] = desc.groups[2] = 1;
    } else {
        desc.grid[0] = n;
        desc.grid[1] = k->kind == PLANE ? n : 1;
        desc.grid[2] = 1;
    }
    smelt_status status =
        gpu_add_launch(gpu, &launches, "gpu_plain.metal", kernel_text_gpu_plain, k->function, &desc);
    if (status == SMELT_OK) {
        gpu_enter_floor(&contest);
        contest_enter(&contest, (struct variant){.name = "smelt, as written",
                                                 .run = launches_run,
                                                 .context = &launches,
                                                 .anchor = FLOOR,
                                                 .bar = {BENCH_SPEED_AT_LEAST, k->bar}});
        status = gpu_contest_run(&contest);
    }
    launches_release(&launches);
    return status;
}

smelt_status bench_gpu_plain(struct bench *bench, const char *name) {
    struct plain_job job = {.kernel = kernels};
    while (strcmp(job.kernel->name, name) != 0) job.kernel++;
    smelt_status status = make(bench->shared, &job);
    if (status == SMELT_OK) status = measure(bench->shared, &job);
    free(job.first);
    free(job.second);
    free(job.means);
    free(job.scales);
    smelt_array_release(job.a);
    smelt_array_release(job.b);
    smelt_array_release(job.out);
    return status;
}
