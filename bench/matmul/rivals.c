/* What the ladder is compared with: OpenBLAS or cuBLAS, and as many multiply-adds as the device can do. */
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

static bool is_host(const struct ladder *ladder) {
    return !ladder->start;
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

static smelt_status measure_peak(void *context, double *seconds) {
    return ladder_time(context, run_peak, context, 1, seconds);
}

/* ---- Memory: a copy of many times the last-level cache. */

#define COPY_FLOATS (1 << 25)

static smelt_status measure_copy(void *context, double *seconds) {
    const struct ladder *ladder = context;
    double start = bench_now();
    machine_copy(smelt_array_data(ladder->from), smelt_array_data(ladder->to),
                 smelt_array_size(ladder->from));
    *seconds = bench_now() - start;
    return SMELT_OK;
}

/* ---- All. */

smelt_status rivals_open(struct ladder *ladder) {
    if (is_host(ladder)) {
        smelt_shape shape = SHAPE_OF(ladder->bench->quick ? COPY_FLOATS >> 8 : COPY_FLOATS);
        smelt_status copied = random_floats(shape, 1, -1, 1, &ladder->from);
        return copied == SMELT_OK ? new_floats(shape, &ladder->to) : copied;
    }
    smelt_status status =
        function_create("multiply_adds.metal", kernel_text_multiply_adds, "multiply_adds", &ladder->peak);
    if (status != SMELT_OK) return status;
    return smelt_array_create_on(ladder->device, SMELT_FLOAT32, SHAPE_OF(PEAK_THREADS), &ladder->peak_output);
}

void rivals_close(struct ladder *ladder) {
    smelt_function_release(ladder->peak);
    smelt_array_release(ladder->peak_output);
    smelt_array_release(ladder->from);
    smelt_array_release(ladder->to);
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
    if (host) {
        rivals->bandwidth = "cpu/copy";
        rivals->cases[rivals->count++] =
            (struct bench_case){.job = ladder->job,
                                .variant = rivals->bandwidth,
                                .measure = measure_copy,
                                .context = ladder,
                                .most_rounds = 3,
                                .work = 8.0 * (double)smelt_array_size(ladder->from),
                                .work_unit = "B"};
    }
    if (host && !handwritten_supported()) {
        bench_note(ladder->bench, ladder->job, "cpu/peak", "this CPU lacks AVX2 or fused multiply-adds");
        return;
    }
    if (!host && ladder->dtype != SMELT_FLOAT32) {
        bench_note(ladder->bench, ladder->job, "cuda/peak",
                   "only that of float32 is measured, not tensor cores'");
        return;
    }
    rivals->peak = host ? "cpu/peak" : "cuda/peak";
    rivals->cases[rivals->count++] = (struct bench_case){.job = ladder->job,
                                                         .variant = rivals->peak,
                                                         .measure = host ? measure_host_peak : measure_peak,
                                                         .context = ladder,
                                                         .most_rounds = 3,
                                                         .work = host ? 2e9 : PEAK_WORK,
                                                         .work_unit = "FLOP"};
}
