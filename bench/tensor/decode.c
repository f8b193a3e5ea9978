/* Products of a few rows with packed weights on the GPU, as a model decodes, next to the time of reading the
 * weights. They lie in more memory than any cache holds, in several arrays that take turns. */
#include "bench/gpu/gpu.h"
#include "bench/tensor/tensor.h"
#include "smelt/ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define BITS 4
#define GROUP_SIZE 64
#define ROTATED_BYTES (INT64_C(512) << 20)
#define MAX_COPIES 64
#define BATCH 32

struct decode {
    struct gpu *gpu;
    int64_t rows, side; /* of x; both sizes of the weights */
    smelt_array *x, *w[MAX_COPIES], *scales[MAX_COPIES], *biases[MAX_COPIES];
    uint32_t *words; /* the first copy's on the host, and of its scales, biases and x */
    float *host_scales, *host_biases, *host_x;
    int copies, turn;
};

static smelt_status product(struct decode *decode, int copy, smelt_array **out) {
    return smelt_quantized_matmul(&(smelt_quantized_matmul_desc){.x = decode->x,
                                                                 .w = decode->w[copy],
                                                                 .scales = decode->scales[copy],
                                                                 .biases = decode->biases[copy],
                                                                 .bits = BITS,
                                                                 .group_size = GROUP_SIZE,
                                                                 .stream = decode->gpu->stream},
                                  out);
}

static smelt_status run(void *context) {
    struct decode *decode = context;
    smelt_array *out;
    decode->turn = (decode->turn + 1) % decode->copies;
    smelt_status status = product(decode, decode->turn, &out);
    if (status == SMELT_OK) smelt_array_release(out);
    return status;
}

static smelt_status measure(void *context, double *seconds) {
    struct decode *decode = context;
    return gpu_time_ahead(decode->gpu, run, decode, BATCH, seconds);
}

/* ---- Checking: some elements of every row against float64. */

static double weight(const struct decode *decode, int64_t line, int64_t term) {
    int64_t at = line * decode->side + term;
    uint32_t code = decode->words[at * BITS / 32] >> at * BITS % 32 & ((1u << BITS) - 1);
    return (double)code * decode->host_scales[at / GROUP_SIZE] + decode->host_biases[at / GROUP_SIZE];
}

static bool is_right(const struct decode *decode, const float *results, char *message, size_t size) {
    for (int64_t i = 0; i < decode->rows * decode->side; i += 61) {
        int64_t row = i / decode->side, line = i % decode->side;
        double expected = 0, sizes = 0;
        for (int64_t k = 0; k < decode->side; k++) {
            double part = decode->host_x[row * decode->side + k] * weight(decode, line, k);
            expected += part;
            sizes += fabs(part);
        }
        if (fabs(results[i] - expected) <= fabs(expected) * 0x1p-8 + sizes * 1e-6) continue;
        snprintf(message, size, "wrong result: element (%lld, %lld) is %.9g, expected %.9g", (long long)row,
                 (long long)line, results[i], expected);
        return false;
    }
    return true;
}

static smelt_status check(struct decode *decode, char *message, size_t size) {
    smelt_array *out;
    smelt_status status = product(decode, 0, &out);
    if (status != SMELT_OK) return status;
    status = smelt_stream_wait(decode->gpu->stream);
    float *results = status == SMELT_OK ? gpu_first_values(out, smelt_array_size(out)) : NULL;
    if (status == SMELT_OK && !results) status = SMELT_ERROR_OUT_OF_MEMORY;
    if (results && !is_right(decode, results, message, size)) status = BENCH_WRONG_RESULT;
    free(results);
    smelt_array_release(out);
    return status;
}

/* ---- Data. */

static smelt_status make(struct decode *decode) {
    int64_t side = decode->side, count = side * side * BITS / 32, groups = side / GROUP_SIZE;
    decode->copies = decode->gpu->bench->quick ? 2 : (int)(ROTATED_BYTES / (count * 4)) + 1;
    decode->words = malloc((size_t)count * 4);
    if (!decode->words) return SMELT_ERROR_OUT_OF_MEMORY;
    uint64_t random = 1;
    for (int64_t i = 0; i < count; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        decode->words[i] = (uint32_t)(random >> 32);
    }
    smelt_status status =
        gpu_random(SMELT_BFLOAT16, SHAPE_OF(decode->rows, side), GPU_BLOCK, 70, -1, 1, &decode->x);
    for (int i = 0; i < decode->copies && status == SMELT_OK; i++) {
        status = gpu_new(SMELT_UINT32, SHAPE_OF(side, side * BITS / 32), &decode->w[i]);
        if (status == SMELT_OK)
            status = gpu_driver_status(
                gpu_driver_write(gpu_place(decode->w[i]), decode->words, (size_t)count * 4));
        smelt_shape shape = SHAPE_OF(side, groups);
        if (status == SMELT_OK)
            status = gpu_random(SMELT_BFLOAT16, shape, GPU_BLOCK, 71, 0.01, 0.1, &decode->scales[i]);
        if (status == SMELT_OK)
            status = gpu_random(SMELT_BFLOAT16, shape, GPU_BLOCK, 72, -0.8, -0.1, &decode->biases[i]);
    }
    if (status != SMELT_OK) return status;
    decode->host_x = gpu_first_values(decode->x, decode->rows * side);
    decode->host_scales = gpu_first_values(decode->scales[0], side * groups);
    decode->host_biases = gpu_first_values(decode->biases[0], side * groups);
    return decode->host_x && decode->host_scales && decode->host_biases ? SMELT_OK
                                                                        : SMELT_ERROR_OUT_OF_MEMORY;
}

static void discard(struct decode *decode) {
    for (int i = 0; i < decode->copies; i++) {
        smelt_array_release(decode->w[i]);
        smelt_array_release(decode->scales[i]);
        smelt_array_release(decode->biases[i]);
    }
    smelt_array_release(decode->x);
    free(decode->words);
    free(decode->host_x);
    free(decode->host_scales);
    free(decode->host_biases);
}

static smelt_status compete(struct decode *decode, const char *name) {
    double weights = (double)decode->side * (double)decode->side;
    struct contest contest =
        gpu_byte_contest(decode->gpu, name, weights * (BITS / 8.0 + 4.0 / GROUP_SIZE), 1, NULL, NULL, NULL);
    char message[160] = "";
    smelt_status status = check(decode, message, sizeof message);
    if (status != SMELT_OK) {
        bench_fail(contest.bench, name, "smelt", status, *message ? message : gpu_error());
        return SMELT_OK;
    }
    gpu_enter_floor(&contest);
    contest_add(&contest, (struct bench_case){.variant = "smelt_quantized_matmul",
                                              .anchor = FLOOR,
                                              .measure = measure,
                                              .context = decode,
                                              .work = contest.work,
                                              .work_unit = contest.work_unit,
                                              .bar = {BENCH_SPEED_AT_LEAST, 0.7}});
    return contest_run(&contest);
}

static smelt_status run_decode(struct bench *bench, const char *name, int64_t rows) {
    uint64_t unused, total;
    struct gpu gpu;
    struct decode decode = {.gpu = &gpu, .rows = rows, .side = bench->quick ? 256 : 8192};
    if (smelt_device_memory(GPU, &unused, &total) != SMELT_OK) {
        bench_note(bench, name, "smelt_quantized_matmul", smelt_error());
        return SMELT_OK;
    }
    smelt_status status = gpu_open(bench, &gpu);
    if (status == SMELT_OK) status = make(&decode);
    if (status == SMELT_OK) status = compete(&decode, name);
    discard(&decode);
    gpu_close(&gpu);
    return status;
}

smelt_status bench_tensor_int4_1(struct bench *bench, const char *name) {
    return run_decode(bench, name, 1);
}

smelt_status bench_tensor_int4_16(struct bench *bench, const char *name) {
    return run_decode(bench, name, 16);
}
