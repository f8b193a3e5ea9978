/* Kernels that read arrays once: copies, the reference for all others, and exp. */
#include "bench/gpu/gpu.h"
#include "bench/kernel_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 256
#define FLOATS_A_THREAD 8

/* ---- Copies. */

struct copy_job {
    struct gpu *gpu;
    float *expected; /* the block that `from` repeats */
};

static bool check_copy(void *context, const void *output, char *message, size_t size) {
    const struct copy_job *job = context;
    const float *actual = output;
    int64_t count = smelt_array_size(job->gpu->to);
    for (int64_t i = 0; i < count; i++) {
        if (actual[i] == job->expected[i % GPU_BLOCK]) continue; /* numbers, no zeros of two signs */
        snprintf(message, size, "wrong result: element %lld is %.9g, expected %.9g", (long long)i,
                 (double)actual[i], (double)job->expected[i % GPU_BLOCK]);
        return false;
    }
    return true;
}

static smelt_status copy_by_driver(void *context) {
    struct copy_job *job = context;
    struct gpu *gpu = job->gpu;
    return gpu_driver_status(gpu_driver_copy_on(smelt_stream_native(gpu->stream), gpu_place(gpu->to),
                                                gpu_place(gpu->from), gpu_bytes(gpu->to)));
}

smelt_status bench_gpu_copy(struct bench *bench, const char *name) {
    struct gpu *gpu = bench->shared;
    struct copy_job job = {.gpu = gpu,
                           .expected = gpu_first_values(gpu->from, GPU_BLOCK < smelt_array_size(gpu->from)
                                                                       ? GPU_BLOCK
                                                                       : smelt_array_size(gpu->from))};
    struct contest contest =
        gpu_byte_contest(gpu, name, 2.0 * (double)gpu_bytes(gpu->to), 5, gpu->to, check_copy, &job);
    struct launches launches = {0};
    if (!job.expected) return SMELT_ERROR_OUT_OF_MEMORY;
    smelt_status status =
        gpu_add_launch(gpu, &launches, "gpu_copy.metal", kernel_text_gpu_copy, "copy",
                       &(smelt_dispatch_desc){.buffers = {{.array = gpu->from}, {.array = gpu->to}},
                                              .grid = {smelt_array_size(gpu->to) / FLOATS_A_THREAD},
                                              .threadgroup = {THREADS}});
    contest_enter(&contest, (struct variant){.name = "cuMemcpyDtoD", .run = copy_by_driver, .context = &job});
    if (status == SMELT_OK)
        contest_enter(&contest, (struct variant){.name = "smelt kernel",
                                                 .run = launches_run,
                                                 .context = &launches,
                                                 .anchor = "cuMemcpyDtoD"});
    gpu_enter_peer(&contest, PYTORCH, "copy");
    if (status == SMELT_OK) status = gpu_contest_run(&contest);
    launches_release(&launches);
    free(job.expected);
    return status;
}

/* ---- exp. */

#define EXP_FLOATS (1 << 28)
#define ULP 2 /* docs/accuracy.md's bar */

struct exp_job {
    smelt_array *in, *out;
    float *values; /* the block that `in` repeats */
    int64_t block;
};

static bool check_exp(void *context, const void *output, char *message, size_t size) {
    const struct exp_job *job = context;
    const float *actual = output;
    int64_t count = smelt_array_size(job->out);
    for (int64_t i = 0; i < count; i++) {
        /* Of the first block every value, of the others that they are the same. */
        int64_t at = i % job->block;
        double expected = i < job->block ? exp((double)job->values[at]) : actual[at];
        if (fabs(actual[i] - expected) <= ULP * 0x1p-23 * expected) continue;
        snprintf(message, size, "wrong result: element %lld is %.9g, expected %.9g", (long long)i,
                 (double)actual[i], expected);
        return false;
    }
    return true;
}

static smelt_status measure_exp(struct gpu *gpu, const char *name, struct exp_job *job) {
    struct contest contest =
        gpu_byte_contest(gpu, name, 2.0 * (double)gpu_bytes(job->out), 5, job->out, check_exp, job);
    struct launches wide = {0}, plain = {0};
    smelt_dispatch_desc desc = {.buffers = {{.array = job->in}, {.array = job->out}},
                                .grid = {smelt_array_size(job->out) / FLOATS_A_THREAD},
                                .threadgroup = {THREADS}};
    smelt_status status =
        gpu_add_launch(gpu, &wide, "gpu_copy.metal", kernel_text_gpu_copy, "exponential", &desc);
    desc.grid[0] = smelt_array_size(job->out);
    if (status == SMELT_OK)
        status =
            gpu_add_launch(gpu, &plain, "gpu_copy.metal", kernel_text_gpu_copy, "exponential_plain", &desc);
    if (status == SMELT_OK) {
        gpu_enter_floor(&contest);
        gpu_enter_peer(&contest, PYTORCH, "exp");
        contest_enter(&contest, (struct variant){.name = "smelt, float4",
                                                 .run = launches_run,
                                                 .context = &wide,
                                                 .anchor = FLOOR,
                                                 .bar = {BENCH_SPEED_AT_LEAST, 0.9}});
        contest_compare(&contest, "smelt, float4", PYTORCH, NO_BAR);
        contest_enter(&contest, (struct variant){.name = "smelt, one per thread",
                                                 .run = launches_run,
                                                 .context = &plain,
                                                 .anchor = FLOOR});
        status = gpu_contest_run(&contest);
    }
    launches_release(&wide);
    launches_release(&plain);
    return status;
}

smelt_status bench_gpu_exp(struct bench *bench, const char *name) {
    struct gpu *gpu = bench->shared;
    smelt_shape shape = SHAPE_OF(gpu->bench->quick ? EXP_FLOATS >> 8 : EXP_FLOATS);
    struct exp_job job = {.block = GPU_BLOCK < shape.size[0] ? GPU_BLOCK : shape.size[0]};
    smelt_status status = gpu_random(SMELT_FLOAT32, shape, GPU_BLOCK, 20, -20, 20, &job.in);
    if (status == SMELT_OK) status = gpu_new(SMELT_FLOAT32, shape, &job.out);
    if (status == SMELT_OK) {
        job.values = gpu_first_values(job.in, job.block);
        status = job.values ? measure_exp(gpu, name, &job) : SMELT_ERROR_OUT_OF_MEMORY;
    }
    free(job.values);
    smelt_array_release(job.in);
    smelt_array_release(job.out);
    return status;
}
