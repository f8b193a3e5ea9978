/* smelt bench tensor-ops: products of Metal's tensors, and of packed weights, compared with the libraries
 * and the memory of the machine. */
#include "bench/tensor/tensor.h"
#include "bench/cpu/cpu.h"

static const struct bench_job jobs[] = {
    {"cpu-float-256", bench_tensor_float_256},
    {"cpu-float-1024", bench_tensor_float_1024},
    {"cpu-float-2048", bench_tensor_float_2048},
    {"cpu-narrow-1024", bench_tensor_bfloat_1024},
    {"gpu-int4-1", bench_tensor_int4_1},
    {"gpu-int4-16", bench_tensor_int4_16},
    {"gpu-fp8-8192", bench_tensor_fp8},
    {"gpu-fp8-scaled-8192", bench_tensor_fp8_scaled},
    {0},
};

static smelt_status run(struct bench *bench) {
    cpu_start_threads();
    bench_run_jobs(bench, jobs, smelt_error);
    return SMELT_OK;
}

const struct benchmark bench_tensor_ops = {
    .name = "tensor-ops",
    .help = "matmul2d of Metal's tensors next to OpenBLAS; packed weights next to reading them",
    .run = run,
    .jobs = jobs,
};
