/* smelt bench cpu: the CPU engines beside hand-written code, OpenBLAS and what the machine can do. */
#include "bench/cpu/contest.h"
#include "bench/cpu/openblas.h"
#include "bench/cpu/threads.h"
#include "commands.h"

#include <string.h>

/* Name as on the command line, function. */
#define JOBS(X)                                       \
    X("machine", bench_cpu_machine)                   \
    X("exp", bench_cpu_exp)                           \
    X("softmax-tree", bench_cpu_softmax_tree)         \
    X("softmax-simd", bench_cpu_softmax_simd)         \
    X("matmul-tiled", bench_cpu_matmul_tiled)         \
    X("matmul-register", bench_cpu_matmul_register)   \
    X("matmul-simdgroup", bench_cpu_matmul_simdgroup) \
    X("inverse", bench_cpu_inverse)                   \
    X("grid-sample", bench_cpu_grid_sample)           \
    X("divergent", bench_cpu_divergent)               \
    X("gelu-chain", bench_cpu_chain)                  \
    X("launch", bench_cpu_launch)

#define JOB(job_name, function) {.name = job_name, .run = function},
static const struct job {
    const char *name;
    smelt_status (*run)(struct bench *bench, const char *job);
} jobs[] = {JOBS(JOB)};
#define JOB_COUNT (sizeof jobs / sizeof *jobs)

#define JOB_NAME(job_name, function) job_name,
static const char *const job_names[] = {JOBS(JOB_NAME) NULL};

/* Starts every thread there will be, smelt's pool by a launch, and only then binds this one: else it wanders
 * onto the CPU of a worker now and then, and both get half of it. A launch that fails will fail again, and be
 * told. */
static void start_threads(void) {
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

/* A job that cannot be set up is a row; the others go on. */
static smelt_status run(struct bench *bench) {
    start_threads();
    for (size_t i = 0; i < JOB_COUNT; i++) {
        if (!bench_wants(bench, jobs[i].name)) continue;
        smelt_status status = jobs[i].run(bench, jobs[i].name);
        if (status == SMELT_OK) continue;
        status = bench_fail(bench, jobs[i].name, "preparing", exit_status_of(status), smelt_error());
        if (status != SMELT_OK) return status;
    }
    return SMELT_OK;
}

const struct benchmark bench_cpu = {
    .name = "cpu",
    .help = "the CPU engines beside hand-written AVX-512, OpenBLAS, and the machine's own bounds",
    .run = run,
    .jobs = job_names,
};
