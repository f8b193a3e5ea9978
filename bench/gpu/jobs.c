/* smelt bench gpu: kernels on an NVIDIA GPU compared with their floor (bytes by the speed of a copy),
 * PyTorch, cuBLAS and bare calls of the driver. */
#include "bench/gpu/gpu.h"
#include "bench/kernel_text.h"
#include "bench/peers.h"

static const struct bench_job jobs[] = {
    {"copy", bench_gpu_copy},
    {"launch", bench_gpu_launch},
    {"exp", bench_gpu_exp},
    {"exp-64", bench_gpu_plain},
    {"exp-256", bench_gpu_plain},
    {"exp-1024", bench_gpu_plain},
    {"swiglu-bf16", bench_gpu_plain},
    {"swiglu-f16", bench_gpu_plain},
    {"gelu-bf16", bench_gpu_plain},
    {"gelu-f16", bench_gpu_plain},
    {"residual-bf16", bench_gpu_plain},
    {"residual-f16", bench_gpu_plain},
    {"transpose-read", bench_gpu_plain},
    {"broadcast", bench_gpu_plain},
    {"scale-rows", bench_gpu_plain},
    {"layer-norm", bench_gpu_plain},
    {"softmax", bench_gpu_softmax},
    {"rms-norm", bench_gpu_rms_norm},
    {"grid-sample", bench_gpu_grid_sample},
    {"grid-sample-vjp", bench_gpu_grid_sample_vjp},
    {"inverse", bench_gpu_inverse},
    {"matmul", bench_gpu_matmul},
    {"matmul2d-4096", bench_gpu_matmul2d_4096},
    {"matmul2d-8192", bench_gpu_matmul2d_8192},
    {"matvec-q4_0", bench_gpu_matvec},
    {"matvec-q5_0", bench_gpu_matvec},
    {"matvec-q8_0", bench_gpu_matvec},
    {"matvec-mxfp4", bench_gpu_matvec},
    {"matvec-q4_K", bench_gpu_matvec},
    {"matvec-q6_K", bench_gpu_matvec},
    {"matmat-f16", bench_gpu_matmat},
    {"matmat-q4_0", bench_gpu_matmat},
    {"attention", bench_gpu_attention},
    {"straight-product", bench_gpu_straight},
    {0},
};

/* Read and written by the copy that floors are taken from: many times the second-level cache. */
#define COPY_FLOATS (1 << 28)

static smelt_status open_gpu(struct gpu *gpu) {
    smelt_shape shape = SHAPE_OF(gpu->bench->quick ? COPY_FLOATS >> 8 : COPY_FLOATS);
    smelt_status status = smelt_stream_create(GPU, &gpu->stream);
    if (status == SMELT_OK) status = smelt_event_create(GPU, &gpu->start);
    if (status == SMELT_OK) status = smelt_event_create(GPU, &gpu->end);
    if (status == SMELT_OK) status = gpu_driver_status(gpu_driver_open());
    if (status == SMELT_OK) status = gpu_random(SMELT_FLOAT32, shape, GPU_BLOCK, 1, -4, 4, &gpu->from);
    if (status == SMELT_OK) status = gpu_new(SMELT_FLOAT32, shape, &gpu->to);
    if (status == SMELT_OK)
        status = function_create("gpu_copy.metal", kernel_text_gpu_copy, "copy", &gpu->copy);
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

static smelt_status run(struct bench *bench) {
    uint64_t unused, total;
    /* Without a GPU this call reports the reason. */
    smelt_status status = smelt_device_memory(GPU, &unused, &total);
    if (status != SMELT_OK) return status;
    struct gpu gpu = {.bench = bench};
    bench->shared = &gpu;
    peers_start(kernel_text_peers_gpu, bench->quick);
    status = open_gpu(&gpu);
    if (status == SMELT_OK)
        bench_run_jobs(bench, jobs, gpu_error);
    else
        bench_fail(bench, "all", "preparing", status, gpu_error());
    close_gpu(&gpu);
    peers_stop();
    return SMELT_OK;
}

const struct benchmark bench_gpu = {
    .name = "gpu",
    .help = "kernels on an NVIDIA GPU next to the speed of a copy, PyTorch, cuBLAS and bare launches",
    .run = run,
    .jobs = jobs,
};
