/* smelt bench cpu: the CPU engines compared with hand-written code, OpenBLAS and the machine's bounds. */
#include "bench/cpu/cpu.h"
#include "bench/cpu/openblas.h"
#include "bench/cpu/threads.h"

static const struct bench_job jobs[] = {
    {"machine", bench_cpu_machine},
    {"exp", bench_cpu_exp},
    {"softmax-tree", bench_cpu_softmax_tree},
    {"softmax-simd", bench_cpu_softmax_simd},
    {"matmul-tiled", bench_cpu_matmul_tiled},
    {"matmul-register", bench_cpu_matmul_register},
    {"matmul-simdgroup", bench_cpu_matmul_simdgroup},
    {"inverse", bench_cpu_inverse},
    {"grid-sample", bench_cpu_grid_sample},
    {"divergent", bench_cpu_divergent},
    {"gelu-chain", bench_cpu_chain},
    {"launch", bench_cpu_launch},
    {0},
};

/* Starts all threads, smelt's pool by a launch, before binding this one: otherwise it sometimes moves to the
 * CPU of a worker, and each gets half of it. A failing launch fails again later, and is reported then. */
void cpu_start_threads(void) {
    team_start(smelt_device_threads("cpu"));
    (void)openblas_open(team_size());
    smelt_kernel *kernel;
    smelt_array *output;
    if (smelt_kernel_create(&(smelt_kernel_desc){.name = "start",
                                                 .source = "out[thread_position_in_grid.x] = 1.0f;\n",
                                                 .outputs = {"out"}},
                            &kernel) != SMELT_OK)
        return;
    if (smelt_kernel_run(kernel,
                         &(smelt_run_desc){.grid = {4096},
                                           .threadgroup = {32},
                                           .output_shapes = {SHAPE_OF(4096)},
                                           .output_dtypes = {SMELT_FLOAT32}},
                         &output) == SMELT_OK) {
        smelt_array_release(output);
        team_pin_caller();
    }
    smelt_kernel_release(kernel);
}

static smelt_status run(struct bench *bench) {
    cpu_start_threads();
    bench_run_jobs(bench, jobs, smelt_error);
    return SMELT_OK;
}

const struct benchmark bench_cpu = {
    .name = "cpu",
    .help = "the CPU engines next to hand-written code, OpenBLAS, and the machine's own bounds",
    .run = run,
    .jobs = jobs,
};
