/* Contests on the GPU: variants of one job are checked, then timed in turn. */
#include "bench/gpu/contest.h"
#include "bench/gpu/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Errors of the driver's own calls, beside smelt's. */

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

static smelt_status measure_entry(void *context, double *seconds) {
    struct gpu_entry *entry = context;
    return gpu_time(entry->contest->gpu, entry->run, entry->context, entry->contest->batch, seconds);
}

static smelt_status measure_peer(void *context, double *seconds) {
    const struct gpu_entry *entry = context;
    return gpu_driver_status(peers_measure(entry->peer, entry->contest->batch, seconds));
}

static smelt_status copy_by_driver(void *context) {
    struct gpu *gpu = context;
    return gpu_driver_status(gpu_driver_copy_on(smelt_stream_native(gpu->stream), gpu_place(gpu->to),
                                                gpu_place(gpu->from), gpu_bytes(gpu->to)));
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
    struct gpu_entry *entry = context;
    struct gpu *gpu = entry->contest->gpu;
    double by_driver = 0, by_kernel = 0;
    smelt_status status = gpu_time(gpu, copy_by_driver, gpu, 3, &by_driver);
    if (status == SMELT_OK) status = gpu_time(gpu, copy_by_kernel, gpu, 3, &by_kernel);
    if (status != SMELT_OK) return status;
    double faster = by_driver < by_kernel ? by_driver : by_kernel;
    *seconds = faster * entry->contest->bytes / (2.0 * (double)gpu_bytes(gpu->to));
    return SMELT_OK;
}

/* ---- Checking. */

static smelt_status fetch_output(const struct gpu_contest *contest, void **output) {
    size_t bytes = gpu_bytes(contest->output);
    *output = malloc(bytes);
    if (!*output) return SMELT_ERROR_OUT_OF_MEMORY;
    return gpu_driver_status(gpu_driver_read(*output, gpu_place(contest->output), bytes));
}

/* Runs it once. A failure or a wrong result becomes a row. */
static bool is_right(struct gpu_contest *contest, const char *variant, smelt_status (*run)(void *context),
                     void *context) {
    void *output = NULL;
    char message[256];
    smelt_status status =
        gpu_driver_status(gpu_driver_fill(gpu_place(contest->output), 0xff, gpu_bytes(contest->output)));
    if (status == SMELT_OK) status = run(context);
    if (status == SMELT_OK) status = smelt_stream_wait(contest->gpu->stream);
    if (status == SMELT_OK) status = fetch_output(contest, &output);
    bool right =
        status == SMELT_OK && contest->check(contest->check_context, output, message, sizeof message);
    free(output);
    if (right) return true;
    bench_fail(contest->gpu->bench, contest->job, variant, status == SMELT_OK ? BENCH_WRONG_RESULT : status,
               status == SMELT_OK ? message : gpu_error());
    return false;
}

/* ---- Taking part. */

void gpu_add_case(struct gpu_contest *contest, struct bench_case one) {
    if (contest->status != SMELT_OK || contest->case_count == 2 * GPU_MAX_CASES) return;
    one.job = contest->job;
    contest->cases[contest->case_count++] = one;
}

static struct gpu_entry *add_entry(struct gpu_contest *contest, struct gpu_entry entry) {
    entry.contest = contest;
    struct gpu_entry *added = &contest->entries[contest->count++];
    *added = entry;
    return added;
}

static struct bench_case rated(const struct gpu_contest *contest, struct bench_case one) {
    one.work = contest->bytes > 0 ? contest->bytes : contest->operations;
    one.work_unit = contest->bytes > 0 ? "B" : "FLOP";
    return one;
}

void gpu_enter_floor(struct gpu_contest *contest) {
    if (contest->count == GPU_MAX_CASES) return;
    struct gpu_entry *entry = add_entry(contest, (struct gpu_entry){0});
    gpu_add_case(contest, rated(contest, (struct bench_case){.variant = FLOOR,
                                                             .measure = measure_floor,
                                                             .error = gpu_error,
                                                             .context = entry}));
}

void gpu_enter(struct gpu_contest *contest, const char *variant, smelt_status (*run)(void *context),
               void *context, const char *anchor, struct bench_bar bar) {
    if (contest->status != SMELT_OK || contest->count == GPU_MAX_CASES) return;
    if (!is_right(contest, variant, run, context)) return;
    struct gpu_entry *entry = add_entry(contest, (struct gpu_entry){.run = run, .context = context});
    gpu_add_case(contest, rated(contest, (struct bench_case){.variant = variant,
                                                             .anchor = anchor,
                                                             .measure = measure_entry,
                                                             .error = gpu_error,
                                                             .context = entry,
                                                             .bar = bar}));
}

void gpu_enter_peer(struct gpu_contest *contest, const char *variant, const char *peer) {
    if (contest->status != SMELT_OK || contest->count == GPU_MAX_CASES) return;
    double unused;
    const char *why = peers_absent();
    if (!why) why = peers_measure(peer, 1, &unused);
    if (why) {
        bench_note(contest->gpu->bench, contest->job, variant, why);
        return;
    }
    struct gpu_entry *entry = add_entry(contest, (struct gpu_entry){.peer = peer});
    gpu_add_case(contest, rated(contest, (struct bench_case){.variant = variant,
                                                             .measure = measure_peer,
                                                             .error = gpu_error,
                                                             .context = entry}));
}

static bool takes_part(const struct gpu_contest *contest, const char *variant) {
    for (int i = 0; i < contest->case_count; i++)
        if (strcmp(contest->cases[i].variant, variant) == 0) return true;
    return false;
}

void gpu_compare(struct gpu_contest *contest, const char *variant, const char *anchor, struct bench_bar bar) {
    if (contest->status != SMELT_OK || contest->case_count == 0 || !takes_part(contest, anchor)) return;
    struct bench_case again = contest->cases[contest->case_count - 1];
    if (strcmp(again.variant, variant) != 0) return;
    again.measure = NULL;
    again.anchor = anchor;
    again.anchor_seconds = 0;
    again.bar = bar;
    gpu_add_case(contest, again);
}

#define ROUNDS 15

smelt_status gpu_contest_run(struct gpu_contest *contest) {
    if (contest->status != SMELT_OK || contest->case_count == 0) return contest->status;
    smelt_status status = bench_measure(contest->gpu->bench, contest->cases, contest->case_count,
                                        bench_repeats(contest->gpu->bench, ROUNDS));
    for (int i = 0; i < contest->count; i++)
        if (contest->entries[i].peer) peers_forget(contest->entries[i].peer);
    return status;
}

/* ---- Launches. */

smelt_status gpu_function(const char *file, const char *text, const char *name, smelt_function **function) {
    smelt_library *library;
    smelt_status status = smelt_library_create(&(smelt_library_desc){.path = file, .source = text}, &library);
    if (status != SMELT_OK) return status;
    status = smelt_library_function(library, &(smelt_function_desc){.name = name}, function);
    smelt_library_release(library);
    return status;
}

smelt_status gpu_add_launch(struct gpu *gpu, struct gpu_launches *launches, const char *file,
                            const char *text, const char *function, const smelt_dispatch_desc *desc) {
    if (launches->count == GPU_MAX_LAUNCHES) return SMELT_ERROR_LIMIT;
    launches->gpu = gpu;
    smelt_status status = gpu_function(file, text, function, &launches->functions[launches->count]);
    if (status != SMELT_OK) return status;
    smelt_dispatch_desc *own = &launches->descs[launches->count++];
    *own = *desc;
    own->device = GPU;
    own->stream = gpu->stream;
    return SMELT_OK;
}

smelt_status gpu_run_launches(void *context) {
    const struct gpu_launches *launches = context;
    for (int i = 0; i < launches->count; i++) {
        smelt_status status = smelt_function_run(launches->functions[i], &launches->descs[i]);
        if (status != SMELT_OK) return status;
    }
    return SMELT_OK;
}

void gpu_release_launches(struct gpu_launches *launches) {
    for (int i = 0; i < launches->count; i++) smelt_function_release(launches->functions[i]);
    launches->count = 0;
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
