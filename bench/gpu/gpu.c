#include "bench/gpu/gpu.h"
#include "bench/kernel_text.h"
#include "bench/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Errors of the driver's own calls, in addition to smelt's. */

static const char *driver_error;

smelt_status gpu_driver_status(const char *sentence) {
    driver_error = sentence;
    return sentence ? SMELT_ERROR_INTERNAL : SMELT_OK;
}

const char *gpu_error(void) {
    const char *error = driver_error;
    driver_error = NULL;
    return error ? error : smelt_error();
}

/* ---- Opening. */

/* Read and written by the copy that floors are taken from: many times the second-level cache. */
#define COPY_FLOATS (1 << 28)

smelt_status gpu_open(struct bench *bench, struct gpu *gpu) {
    *gpu = (struct gpu){.bench = bench};
    bench->shared = gpu;
    smelt_shape shape = SHAPE_OF(bench->quick ? COPY_FLOATS >> 8 : COPY_FLOATS);
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

void gpu_close(struct gpu *gpu) {
    smelt_function_release(gpu->copy);
    smelt_array_release(gpu->from);
    smelt_array_release(gpu->to);
    smelt_event_release(gpu->start);
    smelt_event_release(gpu->end);
    smelt_stream_release(gpu->stream);
}

void gpu_run_jobs(struct bench *bench, const struct bench_job *jobs, bool is_there) {
    struct gpu gpu = {0};
    smelt_status status = is_there ? gpu_open(bench, &gpu) : SMELT_OK;
    if (status == SMELT_OK)
        bench_run_jobs(bench, jobs, gpu_error);
    else
        bench_fail(bench, "all", "preparing", status, gpu_error());
    gpu_close(&gpu);
}

/* ---- Timing. */

smelt_status gpu_time(struct gpu *gpu, smelt_status (*run)(void *context), void *context, int count,
                      double *seconds) {
    double all = 0;
    smelt_status status = smelt_event_record(gpu->start, gpu->stream);
    for (int i = 0; i < count && status == SMELT_OK; i++) status = run(context);
    if (status == SMELT_OK) status = smelt_event_record(gpu->end, gpu->stream);
    if (status == SMELT_OK) status = smelt_event_seconds(gpu->start, gpu->end, &all);
    *seconds = all / count;
    return status;
}

static smelt_status copy_by_driver(void *context) {
    struct gpu *gpu = context;
    return gpu_driver_status(gpu_driver_copy_on(smelt_stream_native(gpu->stream), gpu_place(gpu->to),
                                                gpu_place(gpu->from), gpu_bytes(gpu->to)));
}

smelt_status gpu_time_ahead(struct gpu *gpu, smelt_status (*run)(void *context), void *context, int count,
                            double *seconds) {
    smelt_status status = copy_by_driver(gpu);
    return status == SMELT_OK ? gpu_time(gpu, run, context, count, seconds) : status;
}

static struct gpu *gpu_of(const struct contest *contest) {
    return contest->bench->shared;
}

static smelt_status measure(void *context, double *seconds) {
    const struct variant *variant = context;
    return gpu_time(gpu_of(variant->contest), variant->run, variant->context, variant->contest->batch,
                    seconds);
}

/* Its context is the job's name among PyTorch's. */
static smelt_status measure_peer(void *context, double *seconds) {
    const struct variant *variant = context;
    return gpu_driver_status(peers_measure(variant->context, variant->contest->batch, seconds));
}

#define COPY_THREADS 256
#define COPY_FLOATS_A_THREAD 8

static smelt_status copy_by_kernel(void *context) {
    struct gpu *gpu = context;
    return smelt_function_run(
        gpu->copy, &(smelt_dispatch_desc){.buffers = {{.array = gpu->from}, {.array = gpu->to}},
                                          .grid = {smelt_array_size(gpu->to) / COPY_FLOATS_A_THREAD},
                                          .threadgroup = {COPY_THREADS},
                                          .device = GPU,
                                          .stream = gpu->stream});
}

/* Each in its turn: one after the other the two would share what the first left in caches. */
static smelt_status measure_floor(void *context, double *seconds) {
    const struct contest *contest = context;
    struct gpu *gpu = gpu_of(contest);
    double by_driver = 0, by_kernel = 0;
    smelt_status status = gpu_time(gpu, copy_by_driver, gpu, 3, &by_driver);
    if (status == SMELT_OK) status = gpu_time(gpu, copy_by_kernel, gpu, 3, &by_kernel);
    if (status != SMELT_OK) return status;
    double faster = by_driver < by_kernel ? by_driver : by_kernel;
    *seconds = faster * contest->work / (2.0 * (double)gpu_bytes(gpu->to));
    return SMELT_OK;
}

/* ---- Checking. */

static smelt_status fetch_output(const struct contest *contest, void **output) {
    size_t bytes = gpu_bytes(contest->output);
    *output = malloc(bytes);
    if (!*output) return SMELT_ERROR_OUT_OF_MEMORY;
    return gpu_driver_status(gpu_driver_read(*output, gpu_place(contest->output), bytes));
}

static smelt_status check(struct variant *variant, char *message, size_t size) {
    const struct contest *contest = variant->contest;
    void *output = NULL;
    smelt_status status =
        gpu_driver_status(gpu_driver_fill(gpu_place(contest->output), 0xff, gpu_bytes(contest->output)));
    if (status == SMELT_OK) status = variant->run(variant->context);
    if (status == SMELT_OK) status = smelt_stream_wait(gpu_of(contest)->stream);
    if (status == SMELT_OK) status = fetch_output(contest, &output);
    if (status == SMELT_OK && !contest->check(contest->check_context, output, message, size))
        status = BENCH_WRONG_RESULT;
    free(output);
    return status;
}

const struct contest_device gpu_contest = {
    .rounds = 15, .check = check, .measure = measure, .error = gpu_error};

/* ---- Taking part. */

struct contest gpu_byte_contest(struct gpu *gpu, const char *name, double bytes, int batch,
                                smelt_array *output, contest_check *check, void *check_context) {
    return (struct contest){.device = &gpu_contest,
                            .bench = gpu->bench,
                            .job = name,
                            .work = bytes,
                            .work_unit = "B",
                            .batch = batch,
                            .output = output,
                            .check = check,
                            .check_context = check_context};
}

void gpu_enter_floor(struct contest *contest) {
    contest_add(contest, (struct bench_case){.variant = FLOOR,
                                             .measure = measure_floor,
                                             .context = contest,
                                             .work = contest->work,
                                             .work_unit = contest->work_unit});
}

void gpu_enter_peer(struct contest *contest, const char *variant, const char *peer) {
    if (contest->status != SMELT_OK || contest->count == MAX_VARIANTS) return;
    double unused;
    const char *why = peers_absent();
    if (!why) why = peers_measure(peer, 1, &unused);
    if (why) {
        contest_absent(contest, variant, why);
        return;
    }
    struct variant *entered = &contest->variants[contest->count++];
    *entered = (struct variant){.context = (void *)peer, .contest = contest};
    contest_add(contest, (struct bench_case){.variant = variant,
                                             .measure = measure_peer,
                                             .context = entered,
                                             .work = contest->work,
                                             .work_unit = contest->work_unit});
}

smelt_status gpu_contest_run(struct contest *contest) {
    smelt_status status = contest_run(contest);
    for (int i = 0; i < contest->count; i++)
        if (!contest->variants[i].run) peers_forget(contest->variants[i].context);
    return status;
}

smelt_status gpu_add_launch(struct gpu *gpu, struct launches *launches, const char *file, const char *text,
                            const char *function, const smelt_dispatch_desc *desc) {
    smelt_dispatch_desc own = *desc;
    own.device = GPU;
    own.stream = gpu->stream;
    return launches_add(launches, file, text, function, &own);
}

/* ---- Data. */

smelt_status gpu_new(smelt_dtype dtype, smelt_shape shape, smelt_array **array) {
    smelt_array *made;
    smelt_status status = smelt_array_create_on(GPU, dtype, shape, &made);
    /* The driver's own calls are not in the order of the stream that allocates. */
    if (status == SMELT_OK) status = smelt_device_wait(GPU);
    if (status == SMELT_OK) *array = made;
    return status;
}

/* Repeats the first `done` bytes until the array is full, twice as many each time. */
static smelt_status repeat_block(const smelt_array *array, size_t done) {
    size_t bytes = gpu_bytes(array);
    gpu_address at = gpu_place(array);
    while (done < bytes) {
        size_t piece = bytes - done < done ? bytes - done : done;
        smelt_status status = gpu_driver_status(gpu_driver_copy(at + done, at, piece));
        if (status != SMELT_OK) return status;
        done += piece;
    }
    return SMELT_OK;
}

smelt_status gpu_random(smelt_dtype dtype, smelt_shape shape, int64_t unique, uint64_t seed, double low,
                        double high, smelt_array **array) {
    smelt_array *block = NULL, *converted = NULL, *made = NULL;
    int64_t count = 1;
    for (int d = 0; d < shape.ndim; d++) count *= shape.size[d];
    if (unique > count) unique = count;
    smelt_status status = smelt_array_uniform(SMELT_FLOAT32, SHAPE_OF(unique), seed, &block);
    if (status != SMELT_OK) return status;
    float *values = smelt_array_data(block);
    for (int64_t i = 0; i < unique; i++) values[i] = (float)(low + (high - low) * values[i]);
    status = smelt_array_convert(block, dtype, &converted);
    if (status == SMELT_OK) status = gpu_new(dtype, shape, &made);
    size_t bytes = (size_t)unique * smelt_dtype_bytes(dtype);
    if (status == SMELT_OK)
        status = gpu_driver_status(gpu_driver_write(gpu_place(made), smelt_array_data(converted), bytes));
    if (status == SMELT_OK) status = repeat_block(made, bytes);
    smelt_array_release(block);
    smelt_array_release(converted);
    if (status == SMELT_OK)
        *array = made;
    else
        smelt_array_release(made);
    return status;
}

float gpu_widen_bfloat(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

float gpu_widen_half(uint16_t bits) {
    _Float16 value;
    memcpy(&value, &bits, sizeof value);
    return (float)value;
}

float *gpu_first_values(const smelt_array *array, int64_t count) {
    size_t width = smelt_dtype_bytes(smelt_array_dtype(array));
    float *values = malloc((size_t)count * sizeof *values);
    if (!values || gpu_driver_read(values, gpu_place(array), (size_t)count * width) != NULL) {
        free(values);
        return NULL;
    }
    bool brain = smelt_array_dtype(array) == SMELT_BFLOAT16;
    for (int64_t i = count - 1; width == 2 && i >= 0; i--) {
        uint16_t bits;
        memcpy(&bits, (const char *)values + (size_t)i * sizeof bits, sizeof bits);
        values[i] = brain ? gpu_widen_bfloat(bits) : gpu_widen_half(bits);
    }
    return values;
}
