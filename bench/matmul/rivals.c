/* What the ladder is compared with: OpenBLAS or cuBLAS, as many multiply-adds as the device can do, and a
 * copy. */
#include "bench/cpu/cpu.h"
#include "bench/cpu/memory.h"
#include "bench/cpu/openblas.h"
#include "bench/cpu/threads.h"
#include "bench/gpu/cublas.h"
#include "bench/gpu/driver.h"
#include "bench/hand/handwritten.h"
#include "bench/kernel_text.h"
#include "bench/contest.h"
#include "bench/matmul/ladder.h"

#include <stdio.h>
#include <string.h>

static bool is_host(const struct ladder *ladder) {
    return !ladder->start;
}

/* Random numbers between -1 and 1 on the ladder's device. */
static smelt_status random_on(const struct ladder *ladder, smelt_dtype dtype, smelt_shape shape,
                              smelt_array **array) {
    smelt_array *raw = NULL, *rounded = NULL;
    smelt_status status = random_floats(shape, 1, -1, 1, &raw);
    if (status == SMELT_OK) status = smelt_array_convert(raw, dtype, &rounded);
    if (status == SMELT_OK) status = smelt_array_to(rounded, ladder->device, ladder->stream, array);
    smelt_array_release(raw);
    smelt_array_release(rounded);
    return status;
}

/* ---- The library. */

static smelt_status run_openblas(void *context) {
    const struct ladder *ladder = ((struct rung *)context)->ladder;
    const float *x = smelt_array_data(ladder->x), *y = smelt_array_data(ladder->y);
    float *z = smelt_array_data(ladder->z);
    int64_t m = ladder->m, n = ladder->n, k = ladder->k;
    for (int64_t i = 0; i < ladder->products; i++)
        openblas_product(x + i * m * k, y + i * k * n, z + i * m * n, m, n, k);
    return SMELT_OK;
}

static const char *library_error;

static const char *message_of_library(void) {
    return library_error ? library_error : smelt_error();
}

static smelt_status run_cublas(void *context) {
    const struct ladder *ladder = ((struct rung *)context)->ladder;
    enum cublas_type type = ladder->dtype == SMELT_FLOAT32   ? CUBLAS_FLOAT32
                            : ladder->dtype == SMELT_FLOAT16 ? CUBLAS_FLOAT16
                                                             : CUBLAS_BFLOAT16;
    library_error = cublas_matmul(smelt_stream_native(ladder->stream), type,
                                  (gpu_address)(uintptr_t)smelt_array_data(ladder->a),
                                  (gpu_address)(uintptr_t)smelt_array_data(ladder->b),
                                  (gpu_address)(uintptr_t)smelt_array_data(ladder->c),
                                  &(struct cublas_sizes){ladder->products, ladder->m, ladder->n, ladder->k});
    return library_error ? SMELT_ERROR_INTERNAL : SMELT_OK;
}

static smelt_status measure_library(void *context, double *seconds) {
    struct rung *rung = context;
    struct ladder *ladder = rung->ladder;
    if (is_host(ladder)) return ladder_time(ladder, run_openblas, rung, 1, seconds);
    if (!rung->runs) rung->runs = ladder_runs(ladder, run_cublas, rung);
    return ladder_time(ladder, run_cublas, rung, rung->runs, seconds);
}

/* NULL, or why it does not take part. */
static const char *open_library(const struct ladder *ladder) {
    if (is_host(ladder)) return openblas_open(team_size()) ? NULL : "not installed (libopenblas.so.0)";
    const char *why = gpu_driver_open();
    return why ? why : cublas_open();
}

/* ---- The peak. */

#define PEAK_THREADS (1 << 20)
#define PEAK_WORK (2.0 * 3 * 4096 * PEAK_THREADS) /* of multiply_adds.metal */

/* Of tensor_peak.metal. With this many threadgroups, a last wave that is not full matters little. */
#define TENSOR_ROUNDS 128
#define TENSOR_GROUPS (1 << 13)
#define TENSOR_ELEMENTS (128 * 64 + 64 * 256)
#define TENSOR_WORK (2.0 * 128 * 256 * 64 * TENSOR_ROUNDS * TENSOR_GROUPS)

static smelt_status measure_host_peak(void *context, double *seconds) {
    (void)context;
    double start = bench_now(), done = handwritten()->multiply_adds();
    *seconds = (bench_now() - start) * 1e9 / done;
    return SMELT_OK;
}

static smelt_status run_peak(void *context) {
    const struct ladder *ladder = context;
    return smelt_function_run(ladder->peak,
                              &(smelt_dispatch_desc){.buffers = {{.array = ladder->peak_output}},
                                                     .grid = {PEAK_THREADS},
                                                     .threadgroup = {256},
                                                     .device = ladder->device,
                                                     .stream = ladder->stream});
}

static smelt_status run_tensor_peak(void *context) {
    const struct ladder *ladder = context;
    int32_t rounds = TENSOR_ROUNDS;
    return smelt_function_run(ladder->peak,
                              &(smelt_dispatch_desc){.buffers = {{.array = ladder->tiles},
                                                                 {.array = ladder->peak_output},
                                                                 {.bytes = &rounds, .size = sizeof rounds}},
                                                     .groups = {TENSOR_GROUPS},
                                                     .threadgroup = {256},
                                                     .device = ladder->device,
                                                     .stream = ladder->stream});
}

/* NULL, or why the peak is not measured. */
static const char *no_peak(const struct ladder *ladder) {
    if (is_host(ladder)) return handwritten_supported() ? NULL : "this CPU lacks AVX2 or fused multiply-adds";
    const char *description = smelt_device_description(ladder->device);
    if (ladder->dtype == SMELT_FLOAT32 || (description && strstr(description, "compute capability 9.0")))
        return NULL;
    return "the peak of tensor cores is measured on compute capability 9.0 only";
}

static smelt_status measure_peak(void *context, double *seconds) {
    const struct ladder *ladder = context;
    return ladder_time(context, ladder->tiles ? run_tensor_peak : run_peak, context, 1, seconds);
}

/* For float32, the peak without tensor cores; for other dtypes, that of tensor cores. */
static smelt_status open_peak(struct ladder *ladder) {
    bool tensor = ladder->dtype != SMELT_FLOAT32;
    int64_t results = tensor ? 256 * TENSOR_GROUPS : PEAK_THREADS;
    smelt_status status = tensor ? function_create("tensor_peak.metal", kernel_text_tensor_peak,
                                                   smelt_dtype_name(ladder->dtype), &ladder->peak)
                                 : function_create("multiply_adds.metal", kernel_text_multiply_adds,
                                                   "multiply_adds", &ladder->peak);
    if (status == SMELT_OK && tensor)
        status = random_on(ladder, ladder->dtype, SHAPE_OF(TENSOR_ELEMENTS), &ladder->tiles);
    if (status != SMELT_OK) return status;
    return smelt_array_create_on(ladder->device, SMELT_FLOAT32, SHAPE_OF(results), &ladder->peak_output);
}

/* ---- Memory: a copy of many times the last-level cache. */

#define HOST_COPY_FLOATS (1 << 25)
#define COPY_FLOATS (1 << 26)
#define COPY_FLOATS_PER_THREAD 8 /* of gpu_copy.metal */

static smelt_status run_copy(void *context) {
    const struct ladder *ladder = context;
    return smelt_function_run(
        ladder->copy,
        &(smelt_dispatch_desc){.buffers = {{.array = ladder->from}, {.array = ladder->to}},
                               .grid = {smelt_array_size(ladder->from) / COPY_FLOATS_PER_THREAD},
                               .threadgroup = {256},
                               .device = ladder->device,
                               .stream = ladder->stream});
}

static smelt_status measure_copy(void *context, double *seconds) {
    const struct ladder *ladder = context;
    if (!is_host(ladder)) return ladder_time(context, run_copy, context, 1, seconds);
    double start = bench_now();
    machine_copy(smelt_array_data(ladder->from), smelt_array_data(ladder->to),
                 smelt_array_size(ladder->from));
    *seconds = bench_now() - start;
    return SMELT_OK;
}

static smelt_status open_copy(struct ladder *ladder) {
    int64_t count = is_host(ladder) ? HOST_COPY_FLOATS : COPY_FLOATS;
    smelt_shape shape = SHAPE_OF(ladder->bench->quick ? count >> 8 : count);
    smelt_status status = SMELT_OK;
    if (is_host(ladder)) {
        status = random_floats(shape, 1, -1, 1, &ladder->from);
        return status == SMELT_OK ? new_floats(shape, &ladder->to) : status;
    }
    status = smelt_array_create_on(ladder->device, SMELT_FLOAT32, shape, &ladder->from);
    if (status == SMELT_OK) status = smelt_array_fill(ladder->from, 1);
    if (status == SMELT_OK) status = smelt_array_create_on(ladder->device, SMELT_FLOAT32, shape, &ladder->to);
    if (status != SMELT_OK) return status;
    return function_create("gpu_copy.metal", kernel_text_gpu_copy, "copy", &ladder->copy);
}

/* ---- All. */

smelt_status rivals_open(struct ladder *ladder) {
    smelt_status status = open_copy(ladder);
    return status != SMELT_OK || is_host(ladder) || no_peak(ladder) ? status : open_peak(ladder);
}

void rivals_close(struct ladder *ladder) {
    smelt_array *arrays[] = {ladder->tiles, ladder->peak_output, ladder->from, ladder->to};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) smelt_array_release(arrays[i]);
    smelt_function_release(ladder->peak);
    smelt_function_release(ladder->copy);
}

void rivals_enter(struct ladder *ladder, struct rivals *rivals) {
    bool host = is_host(ladder);
    const char *name = host ? "cpu/OpenBLAS, float32" : "cuda/cuBLAS", *why = open_library(ladder);
    *rivals = (struct rivals){.rung = {.ladder = ladder}};
    if (why) {
        bench_note(ladder->bench, ladder->job, name, why);
    } else {
        rivals->library = name;
        rivals->cases[rivals->count++] = (struct bench_case){.job = ladder->job,
                                                             .variant = name,
                                                             .measure = measure_library,
                                                             .error = message_of_library,
                                                             .context = &rivals->rung};
    }
    rivals->bandwidth = host ? "cpu/copy" : "cuda/copy";
    rivals->cases[rivals->count++] = (struct bench_case){.job = ladder->job,
                                                         .variant = rivals->bandwidth,
                                                         .measure = measure_copy,
                                                         .context = ladder,
                                                         .most_rounds = 3,
                                                         .work = 8.0 * (double)smelt_array_size(ladder->from),
                                                         .work_unit = "B"};
    why = no_peak(ladder);
    if (why) {
        bench_note(ladder->bench, ladder->job, host ? "cpu/peak" : "cuda/peak", why);
        return;
    }
    rivals->peak = host ? "cpu/peak" : "cuda/peak";
    rivals->cases[rivals->count++] = (struct bench_case){.job = ladder->job,
                                                         .variant = rivals->peak,
                                                         .measure = host ? measure_host_peak : measure_peak,
                                                         .context = ladder,
                                                         .most_rounds = 3,
                                                         .work = host            ? 2e9
                                                                 : ladder->tiles ? TENSOR_WORK
                                                                                 : PEAK_WORK,
                                                         .work_unit = "FLOP"};
}
