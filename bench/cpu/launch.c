/* What a launch costs: kernels that do next to nothing, through the whole public call. */
#include "bench/cpu/cpu.h"

#define GROUP 32
#define LAUNCHES 2000

struct launch_job {
    smelt_kernel *kernel;
    smelt_array *input;
    int64_t threads;
    int launches;
};

static smelt_status run_once(const struct launch_job *job) {
    smelt_array *output;
    smelt_status status = smelt_kernel_run(job->kernel,
                                           &(smelt_run_desc){.inputs = {job->input},
                                                             .grid = {job->threads},
                                                             .threadgroup = {GROUP},
                                                             .output_shapes = {SHAPE_OF(job->threads)},
                                                             .output_dtypes = {SMELT_FLOAT32}},
                                           &output);
    if (status == SMELT_OK) smelt_array_release(output);
    return status;
}

/* One after another, so that the pool's threads are awake: they wait a while for the next launch. */
static smelt_status measure_launch(void *context, double *seconds) {
    const struct launch_job *job = context;
    double start = bench_now();
    for (int i = 0; i < job->launches; i++) {
        smelt_status status = run_once(job);
        if (status != SMELT_OK) return status;
    }
    *seconds = (bench_now() - start) / job->launches;
    return SMELT_OK;
}

smelt_status bench_cpu_launch(struct bench *bench, const char *name) {
    const struct bench_bar within = {BENCH_TIME_AT_MOST, 1};
    struct launch_job one = {.threads = GROUP, .launches = bench->quick ? 20 : LAUNCHES};
    smelt_status status = smelt_kernel_create(
        &(smelt_kernel_desc){.name = "twice",
                             .source = "uint i = thread_position_in_grid.x;\nout[i] = inp[i] + inp[i];\n",
                             .inputs = {"inp"},
                             .outputs = {"out"}},
        &one.kernel);
    if (status != SMELT_OK) return status;
    status = random_floats(SHAPE_OF(64 * GROUP), 14, -1, 1, &one.input);
    struct launch_job many = one;
    many.threads = 64 * GROUP;
    if (status == SMELT_OK)
        status = bench_measure(bench,
                               (const struct bench_case[]){{.job = name,
                                                            .variant = "one group of 32",
                                                            .anchor = "5 us",
                                                            .anchor_seconds = 5e-6,
                                                            .measure = measure_launch,
                                                            .context = &one,
                                                            .bar = within},
                                                           {.job = name,
                                                            .variant = "64 groups of 32, awake",
                                                            .anchor = "25 us",
                                                            .anchor_seconds = 25e-6,
                                                            .measure = measure_launch,
                                                            .context = &many,
                                                            .bar = within}},
                               2, bench_repeats(bench, 11));
    smelt_array_release(one.input);
    smelt_kernel_release(one.kernel);
    return status;
}
