/* smelt bench compile: what it takes to get a kernel ready: cold, from the disk cache, in memory; by the
 * whole command; one entry of a large file; and many threads at once. */
#include "bench/compile/command.h"
#include "bench/compile/file.h"
#include "bench/compile/many.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define THREADS 64
/* Launches are too short for the clock: as many are timed together. */
#define LAUNCHES 2000

struct job {
    smelt_array *input;
    smelt_kernel *ready; /* compiled: the one launched, and the text of the disk hits */
    char ready_name[64];
    unsigned made;
};

static smelt_status make_kernel(const char *name, smelt_kernel **kernel) {
    return smelt_kernel_create(
        &(smelt_kernel_desc){
            .name = name,
            .source = "uint i = thread_position_in_grid.x;\nT x = inp[i];\nout[i] = metal::exp(x);\n",
            .inputs = {"inp"},
            .outputs = {"out"}},
        kernel);
}

static smelt_status run_once(const struct job *job, smelt_kernel *kernel, smelt_run_info *info) {
    smelt_array *output = NULL;
    smelt_status status = smelt_kernel_run(
        kernel,
        &(smelt_run_desc){.inputs = {job->input},
                          .grid = {THREADS},
                          .threadgroup = {THREADS},
                          .templates = {{.name = "T", .kind = SMELT_TEMPLATE_DTYPE, .dtype = SMELT_FLOAT32}},
                          .output_shapes = {{.ndim = 1, .size = {THREADS}}},
                          .output_dtypes = {SMELT_FLOAT32},
                          .info = info},
        &output);
    smelt_array_release(output);
    return status;
}

/* A new handle under this name, run once: from the descriptor to the result. */
static smelt_status make_and_run(const struct job *job, const char *name, double *seconds) {
    smelt_kernel *kernel;
    double start = bench_now();
    smelt_status status = make_kernel(name, &kernel);
    if (status != SMELT_OK) return status;
    status = run_once(job, kernel, NULL);
    *seconds = bench_now() - start;
    smelt_kernel_release(kernel);
    return status;
}

/* The name is part of the text: no cache has seen it. */
static void new_name(struct job *job, char name[64]) {
    snprintf(name, 64, "exp_%ld_%lld_%u", (long)getpid(), (long long)time(NULL), job->made++);
}

static smelt_status cold(void *context, double *seconds) {
    char name[64];
    new_name(context, name);
    return make_and_run(context, name, seconds);
}

static smelt_status from_disk(void *context, double *seconds) {
    const struct job *job = context;
    return make_and_run(job, job->ready_name, seconds);
}

static smelt_status launch(void *context, double *seconds) {
    const struct job *job = context;
    double start = bench_now();
    for (int i = 0; i < LAUNCHES; i++) {
        smelt_status status = run_once(job, job->ready, NULL);
        if (status != SMELT_OK) return status;
    }
    *seconds = (bench_now() - start) / LAUNCHES;
    return SMELT_OK;
}

static smelt_status measure(struct bench *bench, struct job *job) {
    new_name(job, job->ready_name);
    smelt_status status = make_kernel(job->ready_name, &job->ready);
    if (status == SMELT_OK) status = run_once(job, job->ready, NULL);
    if (status != SMELT_OK) return status;
    const struct bench_bar within = {BENCH_TIME_AT_MOST, 1};
    const struct bench_case cases[] = {
        {.job = "cold compile",
         .variant = "exp kernel, warm prelude",
         .anchor = "32 ms",
         .anchor_seconds = 0.032,
         .measure = cold,
         .context = job,
         .bar = within},
        {.job = "disk hit",
         .variant = "exp kernel",
         .anchor = "5 ms",
         .anchor_seconds = 0.005,
         .measure = from_disk,
         .context = job,
         .bar = within},
        {.job = "look-up and launch",
         .variant = "exp kernel, 64 threads",
         .anchor = "5 us",
         .anchor_seconds = 5e-6,
         .measure = launch,
         .context = job,
         .bar = within},
    };
    return bench_measure(bench, cases, sizeof cases / sizeof *cases, 0);
}

static smelt_status run(struct bench *bench) {
    struct job job = {0};
    smelt_status status =
        smelt_array_uniform(SMELT_FLOAT32, (smelt_shape){.ndim = 1, .size = {THREADS}}, 1, &job.input);
    if (status == SMELT_OK) status = measure(bench, &job);
    if (status == SMELT_OK) status = bench_compile_command(bench);
    if (status == SMELT_OK) status = bench_compile_file(bench);
    if (status == SMELT_OK) status = bench_compile_many(bench);
    smelt_kernel_release(job.ready);
    smelt_array_release(job.input);
    return status;
}

const struct benchmark bench_compile = {
    .name = "compile",
    .help = "from source to a kernel that is ready: cold, from the disk cache, in memory",
    .run = run};
