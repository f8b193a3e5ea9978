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
    {"attention-8", bench_gpu_attention},
    {"attention-8-128", bench_gpu_attention},
    {"attention-32", bench_gpu_attention},
    {"attention-32-128", bench_gpu_attention},
    {"straight-product", bench_gpu_straight},
    {0},
};

static smelt_status run(struct bench *bench) {
    uint64_t unused, total;
    /* Without a GPU this call reports the reason. */
    smelt_status status = smelt_device_memory(GPU, &unused, &total);
    if (status != SMELT_OK) return status;
    peers_start(kernel_text_peers_gpu, bench->quick);
    gpu_run_jobs(bench, jobs, true);
    peers_stop();
    return SMELT_OK;
}

const struct benchmark bench_gpu = {
    .name = "gpu",
    .help = "kernels on an NVIDIA GPU next to the speed of a copy, PyTorch, cuBLAS and bare launches",
    .run = run,
    .jobs = jobs,
};
