/* smelt bench attention: smelt_attention, its derivative and the kernel that follows Apple's talk, next to
 * PyTorch's kernels for the same work, on the CPU and on the GPU. A job's name gives the device, the size of
 * a head, and what is asked for. */
#include "bench/cpu/cpu.h"
#include "bench/gpu/gpu.h"
#include "bench/kernel_text.h"
#include "bench/peers.h"
#include "kernels/kernel_text.h"
#include "smelt/ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMELT "smelt_attention"
#define SMELT_VJP "smelt_attention_vjp"
#define TALK "the talk's kernel"
#define CUDNN "PyTorch, cuDNN"
#define FLASH "PyTorch, flash-attention 2"
#define SAMPLES 16 /* rows that are checked */

enum array_name { Q, K, V, G, INPUTS };

/* Shared with flash_attention.metal. */
struct talk_size {
    int rows, keys, heads, key_heads;
    float scale;
    int causal;
};

struct job {
    struct bench *bench;
    const char *name;
    struct gpu *gpu; /* NULL: on the CPU */
    bool causal, derive;
    int64_t batches, heads, rows, depth; /* as many keys as rows */
    smelt_array *inputs[INPUTS], *out, *sums;
    float *values[INPUTS]; /* on the host: the elements that an input repeats */
    int64_t count;         /* of them */
    struct launches talk;
    struct talk_size talk_size;
};

static smelt_attention_desc desc_of(const struct job *job) {
    return (smelt_attention_desc){.q = job->inputs[Q],
                                  .k = job->inputs[K],
                                  .v = job->inputs[V],
                                  .scale = 1 / sqrt((double)job->depth),
                                  .causal = job->causal,
                                  .stream = job->gpu ? job->gpu->stream : NULL};
}

/* ---- What is timed. */

static smelt_status attend(void *context) {
    smelt_attention_desc desc = desc_of(context);
    smelt_array *out;
    smelt_status status = smelt_attention(&desc, &out, NULL);
    if (status == SMELT_OK) smelt_array_release(out);
    return status;
}

static smelt_status derive(void *context) {
    const struct job *job = context;
    smelt_attention_desc desc = desc_of(job);
    smelt_array *gradients[3];
    smelt_status status = smelt_attention_vjp(&desc, job->out, job->sums, job->inputs[G], gradients);
    for (int i = 0; i < 3 && status == SMELT_OK; i++) smelt_array_release(gradients[i]);
    return status;
}

static smelt_status run_talk(void *context) {
    return launches_run(&((struct job *)context)->talk);
}

static smelt_status time_runs(struct job *job, smelt_status (*run)(void *context), double *seconds) {
    if (job->gpu) return gpu_time(job->gpu, run, job, 4, seconds);
    double start = bench_now();
    smelt_status status = run(job);
    *seconds = bench_now() - start;
    return status;
}

static smelt_status measure_attend(void *job, double *seconds) {
    return time_runs(job, attend, seconds);
}

static smelt_status measure_derive(void *job, double *seconds) {
    return time_runs(job, derive, seconds);
}

static smelt_status measure_talk(void *job, double *seconds) {
    return time_runs(job, run_talk, seconds);
}

struct peer {
    const struct job *job;
    char name[48];
};

static smelt_status measure_peer(void *context, double *seconds) {
    const struct peer *peer = context;
    return gpu_driver_status(peers_measure(peer->name, peer->job->gpu ? 4 : 1, seconds));
}

/* ---- Checking: some rows of the result, or of the gradient by q, against float64. */

static const float *row_of(const struct job *job, enum array_name input, int64_t row) {
    return job->values[input] + row * job->depth % job->count;
}

static double dot(const float *a, const float *b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (double)a[i] * b[i];
    return sum;
}

/* The weights of the `keys` keys that a row sees; `row` counts the rows of all heads. */
static void weights_of(const struct job *job, int64_t row, int64_t keys, double *weights) {
    const float *q = row_of(job, Q, row);
    int64_t first = row / job->rows * job->rows;
    double top = -INFINITY, sum = 0, scale = 1 / sqrt((double)job->depth);
    for (int64_t k = 0; k < keys; k++) {
        weights[k] = dot(q, row_of(job, K, first + k), job->depth) * scale;
        top = fmax(top, weights[k]);
    }
    for (int64_t k = 0; k < keys; k++) sum += weights[k] = exp(weights[k] - top);
    for (int64_t k = 0; k < keys; k++) weights[k] /= sum;
}

/* Weights become, with derive, the derivatives by the scores, times the scale. */
static void derive_weights(const struct job *job, int64_t row, int64_t keys, double *weights) {
    const float *g = row_of(job, G, row);
    int64_t first = row / job->rows * job->rows;
    double mean = 0;
    for (int64_t k = 0; k < keys; k++) mean += weights[k] * dot(g, row_of(job, V, first + k), job->depth);
    for (int64_t k = 0; k < keys; k++)
        weights[k] *= (dot(g, row_of(job, V, first + k), job->depth) - mean) / sqrt((double)job->depth);
}

static bool row_is_right(const struct job *job, int64_t row, const float *results, double *weights,
                         bool gradient, char *message, size_t size) {
    int64_t first = row / job->rows * job->rows, keys = job->causal ? row - first + 1 : job->rows;
    /* Of bfloat: half of the result's last bit, and the sum of the errors of rounded weights. */
    double of_result = job->gpu ? 0x1p-7 : 1e-5, of_sizes = job->gpu ? 0x1p-9 : 1e-5;
    weights_of(job, row, keys, weights);
    if (gradient) derive_weights(job, row, keys, weights);
    for (int64_t i = 0; i < job->depth; i++) {
        double expected = 0, sizes = 0, value = results[row * job->depth + i];
        for (int64_t k = 0; k < keys; k++) {
            double part = weights[k] * row_of(job, gradient ? K : V, first + k)[i];
            expected += part;
            sizes += fabs(part);
        }
        if (fabs(value - expected) <= of_result * fabs(expected) + of_sizes * sizes) continue;
        snprintf(message, size, "wrong result: element %lld of row %lld is %.9g, expected %.9g", (long long)i,
                 (long long)row, value, expected);
        return false;
    }
    return true;
}

static smelt_status check_array(const struct job *job, const smelt_array *array, bool gradient, char *message,
                                size_t size) {
    int64_t all = job->batches * job->heads * job->rows;
    float *results = job->gpu ? gpu_first_values(array, smelt_array_size(array)) : smelt_array_data(array);
    double *weights = malloc((size_t)job->rows * sizeof *weights);
    smelt_status status = results && weights ? SMELT_OK : SMELT_ERROR_OUT_OF_MEMORY;
    for (int i = 0; i < SAMPLES && status == SMELT_OK; i++)
        if (!row_is_right(job, (all - 1) * i / (SAMPLES - 1), results, weights, gradient, message, size))
            status = BENCH_WRONG_RESULT;
    if (job->gpu) free(results);
    free(weights);
    return status;
}

static smelt_status check_talk(struct job *job, char *message, size_t size) {
    smelt_array *to = job->talk.descs[0].buffers[3].array;
    smelt_status status = gpu_driver_status(gpu_driver_fill(gpu_place(to), 0xff, gpu_bytes(to)));
    if (status == SMELT_OK) status = run_talk(job);
    if (status == SMELT_OK) status = smelt_stream_wait(job->gpu->stream);
    return status == SMELT_OK ? check_array(job, to, false, message, size) : status;
}

/* The derivative needs what was computed before it, which stays in `job`. */
static smelt_status check(struct job *job, char *message, size_t size) {
    smelt_attention_desc desc = desc_of(job);
    smelt_array *gradients[3];
    smelt_status status = smelt_attention(&desc, &job->out, &job->sums);
    if (status == SMELT_OK && job->gpu) status = smelt_stream_wait(job->gpu->stream);
    if (status == SMELT_OK) status = check_array(job, job->out, false, message, size);
    if (status != SMELT_OK || !job->derive) return status;
    status = smelt_attention_vjp(&desc, job->out, job->sums, job->inputs[G], gradients);
    if (status != SMELT_OK) return status;
    if (job->gpu) status = smelt_stream_wait(job->gpu->stream);
    if (status == SMELT_OK) status = check_array(job, gradients[0], true, message, size);
    for (int i = 0; i < 3; i++) smelt_array_release(gradients[i]);
    return status;
}

/* ---- A job. */

static smelt_status make(struct job *job) {
    smelt_shape shape = SHAPE_OF(job->batches, job->heads, job->rows, job->depth);
    int64_t size = job->batches * job->heads * job->rows * job->depth;
    job->count = job->gpu && GPU_BLOCK < size ? GPU_BLOCK : size;
    for (int i = 0; i < INPUTS; i++) {
        uint64_t seed = 80 + (uint64_t)i;
        smelt_status status = job->gpu
                                  ? gpu_random(SMELT_BFLOAT16, shape, GPU_BLOCK, seed, -2, 2, &job->inputs[i])
                                  : random_floats(shape, seed, -2, 2, &job->inputs[i]);
        if (status != SMELT_OK) return status;
        job->values[i] =
            job->gpu ? gpu_first_values(job->inputs[i], job->count) : smelt_array_data(job->inputs[i]);
        if (!job->values[i]) return SMELT_ERROR_OUT_OF_MEMORY;
    }
    return SMELT_OK;
}

static void discard(struct job *job) {
    for (int i = 0; i < INPUTS; i++) {
        if (job->gpu) free(job->values[i]);
        smelt_array_release(job->inputs[i]);
    }
    smelt_array_release(job->out);
    smelt_array_release(job->sums);
    launches_release(&job->talk);
}

static struct bench_case case_of(const struct job *job, const char *variant) {
    double work = 4.0 * (double)(job->batches * job->heads * job->rows) * (double)(job->rows * job->depth);
    return (struct bench_case){.variant = variant,
                               .work = work * (job->causal ? 0.5 : 1) * (job->derive ? 2.5 : 1),
                               .work_unit = "FLOP"};
}

/* Returns the variant's name, or NULL where PyTorch lacks it. */
static const char *enter_peer(struct contest *contest, struct peer *peer, const struct job *job,
                              const char *variant, const char *backend) {
    double unused;
    peer->job = job;
    snprintf(peer->name, sizeof peer->name, "%s%s", job->name, backend);
    const char *why = peers_measure(peer->name, 1, &unused);
    if (why) {
        contest_absent(contest, variant, why);
        return NULL;
    }
    struct bench_case one = case_of(job, variant);
    one.measure = measure_peer;
    one.context = peer;
    contest_add(contest, one);
    return variant;
}

static void enter_smelt(struct contest *contest, const struct job *job, const char *variant,
                        smelt_status (*measure)(void *context, double *seconds), const char *anchor,
                        double bar) {
    struct bench_case one = case_of(job, variant);
    one.measure = measure;
    one.context = (void *)job;
    one.anchor = anchor;
    if (anchor) one.bar = (struct bench_bar){BENCH_SPEED_AT_LEAST, bar};
    contest_add(contest, one);
}

static void enter_talk(struct contest *contest, struct job *job, const char *anchor) {
    job->talk_size =
        (struct talk_size){(int)job->rows, (int)job->rows, (int)job->heads, (int)job->heads, 0, job->causal};
    job->talk_size.scale = 1 / sqrtf((float)job->depth);
    char function[32], message[160] = "";
    snprintf(function, sizeof function, "flash_attention_bfloat_%d", (int)job->depth);
    smelt_library *library = NULL;
    smelt_status status = smelt_library_create(
        &(smelt_library_desc){.path = "flash_attention.metal", .source = kernel_text_flash_attention},
        &library);
    smelt_function_desc desc = {.name = function, .constants = {{.index = 0, .dtype = SMELT_BOOL}}};
    if (status == SMELT_OK) status = smelt_library_function(library, &desc, &job->talk.functions[0]);
    smelt_library_release(library);
    if (status == SMELT_OK) {
        job->talk.count = 1;
        job->talk.descs[0] =
            (smelt_dispatch_desc){.buffers = {{.array = job->inputs[Q]},
                                              {.array = job->inputs[K]},
                                              {.array = job->inputs[V]},
                                              {.array = job->out},
                                              {.bytes = &job->talk_size, .size = sizeof job->talk_size}},
                                  .groups = {(job->rows + 127) / 128, job->heads, job->batches},
                                  .threadgroup = {256, 1, 1}, /* 16 rows for each simdgroup */
                                  .device = GPU,
                                  .stream = job->gpu->stream};
        status = check_talk(job, message, sizeof message);
    }
    if (status != SMELT_OK)
        bench_fail(job->bench, job->name, TALK, status, *message ? message : gpu_error());
    else
        enter_smelt(contest, job, TALK, measure_talk, anchor, 1);
}

static smelt_status compete(struct job *job) {
    struct contest contest = {
        .device = job->gpu ? &gpu_contest : &cpu_contest, .bench = job->bench, .job = job->name};
    struct peer cudnn, flash, peer;
    const char *variant = job->derive ? SMELT_VJP : SMELT;
    smelt_status (*measure)(void *context, double *seconds) = job->derive ? measure_derive : measure_attend;
    char message[160] = "";
    smelt_status status = check(job, message, sizeof message);
    if (status != SMELT_OK) {
        bench_fail(job->bench, job->name, variant, status, *message ? message : gpu_error());
        return SMELT_OK;
    }
    if (!job->gpu) {
        const char *anchor = enter_peer(&contest, &peer, job, PYTORCH, "");
        enter_smelt(&contest, job, variant, measure, anchor, 1);
        status = contest_run(&contest);
        peers_forget(peer.name);
        return status;
    }
    const char *by_cudnn = enter_peer(&contest, &cudnn, job, CUDNN, ":cudnn");
    const char *by_flash = enter_peer(&contest, &flash, job, FLASH, ":flash");
    enter_smelt(&contest, job, variant, measure, by_cudnn, job->derive ? 0.8 : 1);
    if (by_flash) contest_compare(&contest, variant, FLASH, NO_BAR);
    if (!job->derive) enter_talk(&contest, job, by_flash);
    status = contest_run(&contest);
    peers_forget(cudnn.name);
    peers_forget(flash.name);
    return status;
}

static smelt_status run_job(struct bench *bench, const char *name) {
    struct job job = {.bench = bench,
                      .name = name,
                      .causal = strstr(name, "causal") != NULL,
                      .derive = strstr(name, "vjp") != NULL,
                      .depth = strstr(name, "-128") ? 128 : 64};
    bool on_gpu = strncmp(name, "gpu", 3) == 0;
    job.gpu = on_gpu ? bench->shared : NULL;
    if (on_gpu && !job.gpu) {
        bench_note(bench, name, job.derive ? SMELT_VJP : SMELT, "this machine has no GPU that can be used");
        return SMELT_OK;
    }
    job.batches = on_gpu && !bench->quick ? 4 : 1;
    job.heads = !on_gpu ? 8 : bench->quick ? 2 : 16;
    job.rows = on_gpu ? (bench->quick ? 256 : 4096) : bench->quick ? 128 : 1024;
    smelt_status status = make(&job);
    if (status == SMELT_OK) status = compete(&job);
    discard(&job);
    return status;
}

static const struct bench_job jobs[] = {
    {"cpu-64", run_job},
    {"cpu-64-causal", run_job},
    {"cpu-128", run_job},
    {"cpu-64-vjp", run_job},
    {"gpu-128", run_job},
    {"gpu-128-causal", run_job},
    {"gpu-64", run_job},
    {"gpu-64-causal", run_job},
    {"gpu-128-vjp", run_job},
    {"gpu-128-causal-vjp", run_job},
    {"gpu-64-vjp", run_job},
    {"gpu-64-causal-vjp", run_job},
    {0},
};

/* The child starts before this thread is bound to one CPU, so that PyTorch may use all of them. */
static smelt_status run(struct bench *bench) {
    uint64_t unused, total;
    peers_start(kernel_text_peers_attention, bench->quick);
    cpu_start_threads();
    gpu_run_jobs(bench, jobs, smelt_device_memory(GPU, &unused, &total) == SMELT_OK);
    peers_stop();
    return SMELT_OK;
}

const struct benchmark bench_attention = {
    .name = "attention",
    .help = "attention and its derivative next to PyTorch's kernels, on the CPU and an NVIDIA GPU",
    .run = run,
    .jobs = jobs,
};
