/* matmul2d of fp8 matrices on the GPU, with block scales and without, next to cuBLAS, as PyTorch calls it.
 * Both multiply numbers of the same distribution: a GPU's power is limited, so its speed depends on how
 * many bits change. */
#include "bench/gpu/gpu.h"
#include "bench/kernel_text.h"
#include "bench/peers.h"
#include "bench/tensor/tensor.h"
#include "smelt/tensor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define CUBLAS "cuBLAS fp8, by PyTorch"
#define CUBLAS_FAST "cuBLAS fp8, fast sums"
#define BLOCK 32 /* elements of a scale */
#define MOST_TILES 3

struct tile {
    const char *name, *entry;
    int64_t rows, columns, threads;
};

/* Only the last tile has the bar. */
static const struct fp8_job {
    bool scaled;
    double bar;
    int count;
    struct tile tiles[MOST_TILES];
} plain_job = {.bar = 0.8,
               .count = 3,
               .tiles = {{"smelt, tile 128 x 128", "tile_128_128", 128, 128, 128},
                         {"smelt, tile 128 x 128, 8 simdgroups", "tile_128_128_8", 128, 128, 256},
                         {"smelt, tile 128 x 256", "tile_128_256", 128, 256, 256}}},
  scaled_job = {.scaled = true,
                .bar = 0.45,
                .count = 2,
                .tiles = {{"smelt, scales, 128 x 128", "scaled_128_128_8", 128, 128, 256},
                          {"smelt, scales, 128 x 256", "scaled_128_256", 128, 256, 256}}};

struct fp8_product {
    const struct fp8_job *job;
    int64_t side;
    smelt_array *out;
    uint8_t *codes[2], *scales[2]; /* on the host */
    smelt_tensor *tensors[3];
};

static uint64_t next_random(uint64_t *random) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return *random;
}

/* Numbers from -0.5 to 0.5, as peers_tensor.py; scales from 2^-2 to 2^2. */
static smelt_status make_operand(struct fp8_product *product, int i, const uint8_t *codes, uint64_t *random) {
    int64_t side = product->side;
    size_t size = (size_t)(side * side);
    smelt_tensor_desc desc = {
        .element = SMELT_FP8_E4M3, .ndim = 2, .dimensions = {side, side}, .device = GPU};
    if (product->job->scaled)
        desc.scales = (smelt_tensor_plane_desc){.element = SMELT_UE8M0, .block = {BLOCK, 1}};
    product->codes[i] = malloc(size), product->scales[i] = malloc(size / BLOCK);
    if (!product->codes[i] || !product->scales[i]) return SMELT_ERROR_OUT_OF_MEMORY;
    for (size_t at = 0; at < size; at++) product->codes[i][at] = codes[next_random(random) >> 48];
    for (size_t at = 0; at < size / BLOCK; at++)
        product->scales[i][at] =
            product->job->scaled ? (uint8_t)(125 + (next_random(random) >> 56) % 5) : 127;
    smelt_status status = smelt_tensor_create(&desc, &product->tensors[i]);
    if (status == SMELT_OK)
        status = smelt_tensor_write_slice(product->tensors[i], NULL, product->codes[i], size);
    if (status == SMELT_OK && product->job->scaled)
        status = smelt_tensor_write_slice(
            product->tensors[i],
            &(smelt_tensor_slice){.plane = SMELT_PLANE_SCALES, .size = {side / BLOCK, side}},
            product->scales[i], size / BLOCK);
    return status;
}

static smelt_status make(struct fp8_product *product) {
    uint64_t random = 7;
    uint8_t *codes = malloc(1 << 16);
    if (!codes) return SMELT_ERROR_OUT_OF_MEMORY;
    for (int i = 0; i < 1 << 16; i++)
        codes[i] = (uint8_t)smelt_element_encode(SMELT_FP8_E4M3, i * 0x1p-16 - 0.5);
    smelt_status status = gpu_new(SMELT_FLOAT16, SHAPE_OF(product->side, product->side), &product->out);
    for (int i = 0; i < 2 && status == SMELT_OK; i++) status = make_operand(product, i, codes, &random);
    free(codes);
    return status == SMELT_OK ? smelt_tensor_from_array(product->out, 0, &product->tensors[2]) : status;
}

static void discard(struct fp8_product *product) {
    for (int i = 0; i < 3; i++) smelt_tensor_release(product->tensors[i]);
    for (int i = 0; i < 2; i++) free(product->codes[i]), free(product->scales[i]);
    smelt_array_release(product->out);
}

static double element(const struct fp8_product *product, int operand, int64_t at) {
    return ldexp(smelt_element_decode(SMELT_FP8_E4M3, product->codes[operand][at]),
                 product->scales[operand][at / BLOCK] - 127);
}

/* Some elements, spread over all rows, with the formula; all: that something was written. */
static bool check_product(void *context, const void *output, char *message, size_t size) {
    const struct fp8_product *product = context;
    int64_t n = product->side;
    /* Of relaxed products: the tensor cores add up 256 products of bytes in sums of about 14 bits. */
    double unit = product->job->scaled ? 0x1p-16 : 0x1p-13;
    for (int64_t i = 0; i < n * n; i++) {
        double value = gpu_widen_half(((const uint16_t *)output)[i]), expected = 0, sizes = 0;
        bool sampled = i % (16 * n + 17) == 0;
        for (int64_t k = 0; sampled && k < n; k++) {
            double part = element(product, 0, i / n * n + k) * element(product, 1, i % n * n + k);
            expected += part;
            sizes += fabs(part);
        }
        if (sampled ? fabs(value - expected) <= fabs(expected) * 0x1p-10 + sizes * unit : isfinite(value))
            continue;
        snprintf(message, size, "wrong result: element (%lld, %lld) is %.9g, expected %.9g",
                 (long long)(i / n), (long long)(i % n), value, sampled ? expected : (double)NAN);
        return false;
    }
    return true;
}

static smelt_status compete(struct gpu *gpu, const char *name, struct fp8_product *product) {
    double side = (double)product->side;
    struct contest contest = {.device = &gpu_contest,
                              .bench = gpu->bench,
                              .job = name,
                              .work = 2 * side * side * side,
                              .work_unit = "FLOP",
                              .batch = 4,
                              .output = product->out,
                              .check = check_product,
                              .check_context = product};
    struct launches launches[MOST_TILES] = {0};
    const struct fp8_job *of = product->job;
    smelt_status status = SMELT_OK;
    gpu_enter_peer(&contest, CUBLAS, "fp8");
    gpu_enter_peer(&contest, CUBLAS_FAST, "fp8-fast");
    const char *anchor = contest.case_count ? CUBLAS : NULL;
    for (int i = 0; i < of->count && status == SMELT_OK; i++) {
        const struct tile *tile = &of->tiles[i];
        smelt_dispatch_desc desc = {.buffers = {{.tensor = product->tensors[0]},
                                                {.tensor = product->tensors[1]},
                                                {.tensor = product->tensors[2]}},
                                    .groups = {(product->side + tile->columns - 1) / tile->columns,
                                               (product->side + tile->rows - 1) / tile->rows, 1},
                                    .threadgroup = {tile->threads, 1, 1}};
        status =
            gpu_add_launch(gpu, &launches[i], "tensor_fp8.metal", kernel_text_tensor_fp8, tile->entry, &desc);
        if (status != SMELT_OK) break;
        struct bench_bar bar = {BENCH_SPEED_AT_LEAST, of->bar};
        contest_enter(&contest, (struct variant){.name = tile->name,
                                                 .run = launches_run,
                                                 .context = &launches[i],
                                                 .anchor = anchor,
                                                 .bar = i == of->count - 1 ? bar : NO_BAR});
    }
    if (status == SMELT_OK) status = gpu_contest_run(&contest);
    for (int i = 0; i < of->count; i++) launches_release(&launches[i]);
    return status;
}

static smelt_status run_job(struct bench *bench, const char *name, const struct fp8_job *job) {
    uint64_t unused, total;
    struct gpu gpu;
    struct fp8_product product = {.job = job, .side = bench->quick ? 544 : 8192};
    if (smelt_device_memory(GPU, &unused, &total) != SMELT_OK) {
        bench_note(bench, name, "smelt", smelt_error());
        return SMELT_OK;
    }
    peers_start(kernel_text_peers_tensor, bench->quick);
    smelt_status status = gpu_open(bench, &gpu);
    if (status == SMELT_OK) status = make(&product);
    if (status == SMELT_OK) status = compete(&gpu, name, &product);
    discard(&product);
    gpu_close(&gpu);
    peers_stop();
    return status;
}

smelt_status bench_tensor_fp8(struct bench *bench, const char *name) {
    return run_job(bench, name, &plain_job);
}

smelt_status bench_tensor_fp8_scaled(struct bench *bench, const char *name) {
    return run_job(bench, name, &scaled_job);
}
