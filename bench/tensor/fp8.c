/* matmul2d of fp8 matrices on the GPU next to cuBLAS, as PyTorch calls it. */
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

static const struct tile {
    const char *name, *entry;
    int64_t rows, columns, threads;
} tiles[] = {{"smelt, tile 128 x 128", "tile_128_128", 128, 128, 128},
             {"smelt, tile 128 x 128, 8 simdgroups", "tile_128_128_8", 128, 128, 256},
             {"smelt, tile 128 x 256", "tile_128_256", 128, 256, 256}};
enum { TILES = sizeof tiles / sizeof *tiles };

struct fp8_product {
    int64_t side;
    smelt_array *bytes[2], *out;
    uint8_t *codes[2]; /* on the host */
    smelt_tensor *tensors[3];
};

/* Codes of magnitudes below 2. */
static smelt_status make(struct fp8_product *product) {
    size_t size = (size_t)(product->side * product->side);
    uint64_t random = 7;
    smelt_status status = gpu_new(SMELT_FLOAT16, SHAPE_OF(product->side, product->side), &product->out);
    for (int i = 0; i < 2 && status == SMELT_OK; i++) {
        product->codes[i] = malloc(size);
        if (!product->codes[i]) return SMELT_ERROR_OUT_OF_MEMORY;
        for (size_t at = 0; at < size; at++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            product->codes[i][at] = (uint8_t)(random >> 56 & 0xbf);
        }
        status = gpu_new(SMELT_UINT8, SHAPE_OF(product->side, product->side), &product->bytes[i]);
        if (status == SMELT_OK)
            status =
                gpu_driver_status(gpu_driver_write(gpu_place(product->bytes[i]), product->codes[i], size));
        if (status == SMELT_OK)
            status = smelt_tensor_from_array(product->bytes[i], SMELT_FP8_E4M3, &product->tensors[i]);
    }
    return status == SMELT_OK ? smelt_tensor_from_array(product->out, 0, &product->tensors[2]) : status;
}

static void discard(struct fp8_product *product) {
    for (int i = 0; i < 3; i++) smelt_tensor_release(product->tensors[i]);
    for (int i = 0; i < 2; i++) {
        free(product->codes[i]);
        smelt_array_release(product->bytes[i]);
    }
    smelt_array_release(product->out);
}

/* Some elements, spread over all rows, with the formula; all: that something was written. */
static bool check_product(void *context, const void *output, char *message, size_t size) {
    const struct fp8_product *product = context;
    int64_t n = product->side;
    for (int64_t i = 0; i < n * n; i++) {
        double value = gpu_widen_half(((const uint16_t *)output)[i]), expected = 0, sizes = 0;
        bool sampled = i % (16 * n + 17) == 0;
        for (int64_t k = 0; sampled && k < n; k++) {
            double part = smelt_element_decode(SMELT_FP8_E4M3, product->codes[0][i / n * n + k]) *
                          smelt_element_decode(SMELT_FP8_E4M3, product->codes[1][i % n * n + k]);
            expected += part;
            sizes += fabs(part);
        }
        /* The tensor cores add up 128 products of bytes in sums of about 14 bits. */
        if (sampled ? fabs(value - expected) <= fabs(expected) * 0x1p-10 + sizes * 0x1p-13 : isfinite(value))
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
    struct launches launches[TILES] = {0};
    smelt_status status = SMELT_OK;
    gpu_enter_peer(&contest, CUBLAS, "fp8");
    gpu_enter_peer(&contest, CUBLAS_FAST, "fp8-fast");
    const char *anchor = contest.case_count ? CUBLAS : NULL;
    for (int i = 0; i < TILES && status == SMELT_OK; i++) {
        smelt_dispatch_desc desc = {.buffers = {{.tensor = product->tensors[0]},
                                                {.tensor = product->tensors[1]},
                                                {.tensor = product->tensors[2]}},
                                    .groups = {(product->side + tiles[i].columns - 1) / tiles[i].columns,
                                               (product->side + tiles[i].rows - 1) / tiles[i].rows, 1},
                                    .threadgroup = {tiles[i].threads, 1, 1}};
        status = gpu_add_launch(gpu, &launches[i], "tensor_fp8.metal", kernel_text_tensor_fp8, tiles[i].entry,
                                &desc);
        if (status != SMELT_OK) break;
        struct bench_bar bar = {BENCH_SPEED_AT_LEAST, 0.8};
        contest_enter(&contest, (struct variant){.name = tiles[i].name,
                                                 .run = launches_run,
                                                 .context = &launches[i],
                                                 .anchor = anchor,
                                                 .bar = i == TILES - 1 ? bar : NO_BAR});
    }
    if (status == SMELT_OK) status = gpu_contest_run(&contest);
    for (int i = 0; i < TILES; i++) launches_release(&launches[i]);
    return status;
}

smelt_status bench_tensor_fp8(struct bench *bench, const char *name) {
    uint64_t unused, total;
    struct gpu gpu;
    struct fp8_product product = {.side = bench->quick ? 528 : 8192};
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
