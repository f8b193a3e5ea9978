/* smelt bench gpu: kernels on an NVIDIA GPU beside their floor (bytes by the speed of a copy), PyTorch,
 * cuBLAS and bare calls of the driver. */
#include "bench/gpu/contest.h"
#include "bench/kernel_text.h"
#include "bench/gpu/peers.h"
#include "commands.h"

#include <stdio.h>
#include <string.h>

/* Name as on the command line, function. */
#define JOBS(X)                                     \
    X("copy", bench_gpu_copy)                       \
    X("launch", bench_gpu_launch)                   \
    X("exp", bench_gpu_exp)                         \
    X("softmax", bench_gpu_softmax)                 \
    X("rms-norm", bench_gpu_rms_norm)               \
    X("grid-sample", bench_gpu_grid_sample)         \
    X("grid-sample-vjp", bench_gpu_grid_sample_vjp) \
    X("inverse", bench_gpu_inverse)                 \
    X("matmul", bench_gpu_matmul)

#define JOB(job_name, function) {.name = job_name, .run = function},
static const struct job {
    const char *name;
    smelt_status (*run)(struct gpu *gpu, const char *job);
} jobs[] = {JOBS(JOB)};
#define JOB_COUNT (sizeof jobs / sizeof *jobs)

#define JOB_NAME(job_name, function) job_name,
static const char *const job_names[] = {JOBS(JOB_NAME) NULL};

/* Read and written by the copy that floors are taken from: many times the second-level cache. */
#define COPY_FLOATS (1 << 28)

static smelt_status open_gpu(struct gpu *gpu) {
    smelt_shape shape = SHAPE_OF(bench_quick(gpu->bench) ? COPY_FLOATS >> 8 : COPY_FLOATS);
    smelt_status status = smelt_stream_create(GPU, &gpu->stream);
    if (status == SMELT_OK) status = smelt_event_create(GPU, &gpu->start);
    if (status == SMELT_OK) status = smelt_event_create(GPU, &gpu->end);
    if (status == SMELT_OK) status = gpu_driver_status(gpu_driver_open());
    if (status == SMELT_OK) status = gpu_random(SMELT_FLOAT32, shape, GPU_BLOCK, 1, -4, 4, &gpu->from);
    if (status == SMELT_OK) status = gpu_new(SMELT_FLOAT32, shape, &gpu->to);
    if (status == SMELT_OK) status = gpu_function("gpu_copy.metal", kernel_text_gpu_copy, "copy", &gpu->copy);
    return status;
}

static void close_gpu(struct gpu *gpu) {
    smelt_function_release(gpu->copy);
    smelt_array_release(gpu->from);
    smelt_array_release(gpu->to);
    smelt_event_release(gpu->start);
    smelt_event_release(gpu->end);
    smelt_stream_release(gpu->stream);
}

/* A job that cannot be set up is a row; the others go on. */
static smelt_status run_jobs(struct gpu *gpu) {
    for (size_t i = 0; i < JOB_COUNT; i++) {
        if (!bench_wants(gpu->bench, jobs[i].name)) continue;
        smelt_status status = jobs[i].run(gpu, jobs[i].name);
        peers_forget(jobs[i].name);
        if (status == SMELT_OK) continue;
        status = bench_fail(gpu->bench, jobs[i].name, "preparing", exit_status_of(status), gpu_error());
        if (status != SMELT_OK) return status;
    }
    return SMELT_OK;
}

static smelt_status run(struct bench *bench) {
    uint64_t unused, total;
    /* Without a GPU this call says why. */
    smelt_status status = smelt_device_memory(GPU, &unused, &total);
    if (status != SMELT_OK) return status;
    struct gpu gpu = {.bench = bench};
    peers_start(bench_quick(bench));
    status = open_gpu(&gpu);
    if (status == SMELT_OK)
        status = run_jobs(&gpu);
    else
        status = bench_fail(bench, "all", "preparing", exit_status_of(status), gpu_error());
    close_gpu(&gpu);
    peers_stop();
    return status;
}

const struct benchmark bench_gpu = {
    .name = "gpu",
    .help = "kernels on an NVIDIA GPU beside the speed of a copy, PyTorch, cuBLAS and bare launches",
    .run = run,
    .jobs = job_names,
};
