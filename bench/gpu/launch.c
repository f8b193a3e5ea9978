/* What a launch on the GPU costs: a kernel that does nothing, by smelt and by bare calls of the driver; one
 * after another, and recorded. */
#include "bench/gpu/gpu.h"

#define THREADS 32
#define LAUNCHES 500 /* fewer than the driver's queue takes before it waits */
#define RECORDED 100

struct launch_job {
    struct gpu *gpu;
    smelt_function *function;
    smelt_dispatch_desc desc;
    smelt_recording *recording;
    void *graph;  /* of the driver */
    void *stream; /* the driver's own handle of gpu->stream */
};

static smelt_status launch_many(const struct launch_job *job, int count) {
    for (int i = 0; i < count; i++) {
        smelt_status status = smelt_function_run(job->function, &job->desc);
        if (status != SMELT_OK) return status;
    }
    return SMELT_OK;
}

static smelt_status settle(const struct launch_job *job) {
    return gpu_driver_status(gpu_driver_wait(job->stream));
}

/* *enqueued: the host's time for a call; *done: with the wait for the last. */
static smelt_status time_smelt(const struct launch_job *job, double *enqueued, double *done) {
    smelt_status status = settle(job);
    double start = bench_now();
    if (status == SMELT_OK) status = launch_many(job, LAUNCHES);
    *enqueued = (bench_now() - start) / LAUNCHES;
    if (status == SMELT_OK) status = settle(job);
    *done = (bench_now() - start) / LAUNCHES;
    return status;
}

static smelt_status time_bare(const struct launch_job *job, double *enqueued, double *done) {
    smelt_status status = settle(job);
    double start = bench_now();
    if (status == SMELT_OK) status = gpu_driver_status(gpu_driver_launch_empty(job->stream, LAUNCHES));
    *enqueued = (bench_now() - start) / LAUNCHES;
    if (status == SMELT_OK) status = settle(job);
    *done = (bench_now() - start) / LAUNCHES;
    return status;
}

static smelt_status measure_smelt(void *context, double *seconds) {
    double done;
    return time_smelt(context, seconds, &done);
}

static smelt_status measure_smelt_done(void *context, double *seconds) {
    double enqueued;
    return time_smelt(context, &enqueued, seconds);
}

static smelt_status measure_bare(void *context, double *seconds) {
    double done;
    return time_bare(context, seconds, &done);
}

static smelt_status measure_bare_done(void *context, double *seconds) {
    double enqueued;
    return time_bare(context, &enqueued, seconds);
}

/* Neither may be negative: a nanosecond is the minimum. */
static smelt_status measure_overhead(void *context, double *seconds) {
    double own = 0, bare = 0, done;
    smelt_status status = time_bare(context, &bare, &done);
    if (status == SMELT_OK) status = time_smelt(context, &own, &done);
    *seconds = own > bare ? own - bare : 1e-9;
    return status;
}

static smelt_status measure_recording(void *context, double *seconds) {
    const struct launch_job *job = context;
    smelt_status status = settle(job);
    double start = bench_now();
    if (status == SMELT_OK) status = smelt_recording_replay(job->recording, job->gpu->stream);
    if (status == SMELT_OK) status = settle(job);
    *seconds = (bench_now() - start) / RECORDED;
    return status;
}

static smelt_status measure_graph(void *context, double *seconds) {
    const struct launch_job *job = context;
    smelt_status status = settle(job);
    double start = bench_now();
    if (status == SMELT_OK) status = gpu_driver_status(gpu_driver_replay(job->graph, job->stream));
    if (status == SMELT_OK) status = settle(job);
    *seconds = (bench_now() - start) / RECORDED;
    return status;
}

static smelt_status record(struct launch_job *job) {
    smelt_status status = smelt_stream_record_begin(job->gpu->stream);
    if (status != SMELT_OK) return status;
    smelt_status launched = launch_many(job, RECORDED);
    status = smelt_stream_record_end(job->gpu->stream, &job->recording);
    return launched != SMELT_OK ? launched : status;
}

static smelt_status measure_calls(const struct launch_job *job, const char *name) {
    const struct bench_case cases[] = {
        {.job = name, .variant = "bare call", .measure = measure_bare, .error = gpu_error},
        {.job = name,
         .variant = "smelt call",
         .anchor = "bare call",
         .measure = measure_smelt,
         .error = gpu_error},
        {.job = name,
         .variant = "smelt less bare",
         .anchor = "1.5 us",
         .anchor_seconds = 1.5e-6,
         .measure = measure_overhead,
         .error = gpu_error,
         .bar = {BENCH_TIME_AT_MOST, 1}},
        {.job = name, .variant = "bare, to its end", .measure = measure_bare_done, .error = gpu_error},
        {.job = name,
         .variant = "smelt, to its end",
         .anchor = "bare, to its end",
         .measure = measure_smelt_done,
         .error = gpu_error},
    };
    enum { COUNT = sizeof cases / sizeof *cases };
    struct bench_case own[COUNT];
    for (int i = 0; i < COUNT; i++) {
        own[i] = cases[i];
        own[i].context = (void *)job;
    }
    return bench_measure(job->gpu->bench, own, COUNT, bench_repeats(job->gpu->bench, 31));
}

static smelt_status measure_recorded(struct launch_job *job, const char *name) {
    smelt_status status = record(job);
    if (status == SMELT_OK) status = gpu_driver_status(gpu_driver_record_empty(RECORDED, &job->graph));
    if (status != SMELT_OK) {
        bench_fail(job->gpu->bench, name, "recording", BENCH_WRONG_RESULT, gpu_error());
        return SMELT_OK;
    }
    const struct bench_case cases[] = {{.job = name,
                                        .variant = "bare graph of 100",
                                        .measure = measure_graph,
                                        .error = gpu_error,
                                        .context = job},
                                       {.job = name,
                                        .variant = "recording of 100",
                                        .anchor = "bare graph of 100",
                                        .measure = measure_recording,
                                        .error = gpu_error,
                                        .context = job}};
    return bench_measure(job->gpu->bench, cases, 2, bench_repeats(job->gpu->bench, 31));
}

smelt_status bench_gpu_launch(struct bench *bench, const char *name) {
    struct gpu *gpu = bench->shared;
    struct launch_job job = {.gpu = gpu,
                             .stream = smelt_stream_native(gpu->stream),
                             .desc = {.buffers = {{.array = gpu->to}},
                                      .grid = {THREADS},
                                      .threadgroup = {THREADS},
                                      .device = GPU,
                                      .stream = gpu->stream}};
    smelt_status status = function_create(
        "empty.metal", "kernel void empty(device float *unused [[buffer(0)]]) {}\n", "empty", &job.function);
    if (status == SMELT_OK) status = launch_many(&job, 2);
    if (status == SMELT_OK) status = measure_calls(&job, name);
    if (status == SMELT_OK) status = measure_recorded(&job, name);
    smelt_recording_release(job.recording);
    smelt_function_release(job.function);
    return status;
}
