/* Matrix products by simdgroup matrices, compared with cuBLAS. */
#include "bench/gpu/gpu.h"
#include "bench/gpu/cublas.h"
#include "bench/kernel_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SIDE 4096
/* Of the kernels' own: outputs a group is wide and high, and its threads. */
#define TILE 64
#define THREADS 128
#define HALF_TILE 128
#define HALF_THREADS 256
#define CUBLAS "cuBLAS"

struct matmul_job {
    struct gpu *gpu;
    smelt_array *a, *b, *c;
    float *block_a, *block_b; /* on the host, what a and b repeat */
    int64_t n;
    bool half;
};

static int64_t block_size(const struct matmul_job *job) {
    return job->n * job->n < GPU_BLOCK ? job->n * job->n : GPU_BLOCK;
}

/* Some elements, spread over all rows, with the formula; all: that something was written. */
static bool check_product(void *context, const void *output, char *message, size_t size) {
    const struct matmul_job *job = context;
    int64_t n = job->n, block = block_size(job);
    for (int64_t i = 0; i < n * n; i++) {
        double value = job->half ? gpu_widen_half(((const uint16_t *)output)[i]) : ((const float *)output)[i];
        double expected = 0, sizes = 0;
        bool sampled = i % (n + 17) == 0;
        for (int64_t k = 0; sampled && k < n; k++) {
            double part =
                (double)job->block_a[(i / n * n + k) % block] * job->block_b[(k * n + i % n) % block];
            expected += part;
            sizes += fabs(part);
        }
        double allowed = job->half ? fabs(expected) * 0x1p-10 + sizes * 1e-5 : sizes * 1e-5;
        if (sampled ? fabs(value - expected) <= allowed : isfinite(value)) continue;
        snprintf(message, size, "wrong result: element (%lld, %lld) is %.9g, expected %.9g",
                 (long long)(i / n), (long long)(i % n), value, sampled ? expected : (double)NAN);
        return false;
    }
    return true;
}

static smelt_status run_cublas(void *context) {
    const struct matmul_job *job = context;
    return gpu_driver_status(cublas_matmul(smelt_stream_native(job->gpu->stream),
                                           job->half ? CUBLAS_FLOAT16 : CUBLAS_FLOAT32, gpu_place(job->a),
                                           gpu_place(job->b), gpu_place(job->c), job->n));
}

static smelt_status measure(struct gpu *gpu, const char *name, struct matmul_job *job) {
    static uint32_t n;
    n = (uint32_t)job->n;
    struct contest contest = {.device = &gpu_contest,
                              .bench = gpu->bench,
                              .job = name,
                              .work = 2.0 * (double)job->n * (double)job->n * (double)job->n,
                              .work_unit = "FLOP",
                              .batch = 2,
                              .output = job->c,
                              .check = check_product,
                              .check_context = job};
    int64_t tile = job->half ? HALF_TILE : TILE;
    struct launches launches = {0};
    const char *torch = job->half ? "PyTorch, f16" : "PyTorch, f32";
    const char *own = job->half ? "smelt, f16" : "smelt, f32";
    const char *blas = job->half ? CUBLAS ", f16" : CUBLAS ", f32";
    smelt_status status =
        gpu_add_launch(gpu, &launches, job->half ? "gpu_matmul_half.metal" : "matmul_simdgroup.metal",
                       job->half ? kernel_text_gpu_matmul_half : kernel_text_matmul_simdgroup,
                       job->half ? "matmul_half" : "matmul_simdgroup",
                       &(smelt_dispatch_desc){.buffers = {{.array = job->a},
                                                          {.array = job->b},
                                                          {.array = job->c},
                                                          {.bytes = &n, .size = sizeof n}},
                                              .groups = {job->n / tile, job->n / tile, 1},
                                              .threadgroup = {job->half ? HALF_THREADS : THREADS, 1, 1}});
    const char *why = cublas_open();
    if (status == SMELT_OK && !why)
        contest_enter(&contest, (struct variant){.name = blas, .run = run_cublas, .context = job});
    if (status == SMELT_OK && why) bench_note(gpu->bench, name, blas, why);
    if (status == SMELT_OK) {
        gpu_enter_peer(&contest, torch, job->half ? "matmul-f16" : "matmul-f32");
        contest_enter(&contest, (struct variant){.name = own,
                                                 .run = launches_run,
                                                 .context = &launches,
                                                 .anchor = why ? torch : blas});
        status = gpu_contest_run(&contest);
    }
    launches_release(&launches);
    return status;
}

static smelt_status run(struct gpu *gpu, const char *name, bool half) {
    struct matmul_job job = {.gpu = gpu, .n = gpu->bench->quick ? 256 : SIDE, .half = half};
    smelt_dtype dtype = half ? SMELT_FLOAT16 : SMELT_FLOAT32;
    smelt_shape shape = SHAPE_OF(job.n, job.n);
    smelt_status status = gpu_random(dtype, shape, GPU_BLOCK, 60, -1, 1, &job.a);
    if (status == SMELT_OK) status = gpu_random(dtype, shape, GPU_BLOCK, 61, -1, 1, &job.b);
    if (status == SMELT_OK) status = gpu_new(dtype, shape, &job.c);
    if (status == SMELT_OK) {
        job.block_a = gpu_first_values(job.a, block_size(&job));
        job.block_b = gpu_first_values(job.b, block_size(&job));
        status = job.block_a && job.block_b ? measure(gpu, name, &job) : SMELT_ERROR_OUT_OF_MEMORY;
    }
    free(job.block_a);
    free(job.block_b);
    smelt_array_release(job.a);
    smelt_array_release(job.b);
    smelt_array_release(job.c);
    return status;
}

smelt_status bench_gpu_matmul(struct bench *bench, const char *name) {
    struct gpu *gpu = bench->shared;
    smelt_status status = run(gpu, name, false);
    if (status != SMELT_OK) bench_fail(gpu->bench, name, "float32", BENCH_WRONG_RESULT, gpu_error());
    return run(gpu, name, true);
}
