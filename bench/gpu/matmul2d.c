/* Products by matmul2d of Metal 4's tensor operations, bfloat16, compared with cuBLAS. */
#include "bench/gpu/cublas.h"
#include "bench/gpu/gpu.h"
#include "bench/kernel_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define CUBLAS "cuBLAS, bf16"

/* A threadgroup's part of the product, by this many threads. */
static const struct tile {
    const char *name, *entry;
    int rows, columns, threads;
} tiles[] = {{"smelt, tile 64 x 64", "tile_64_64", 64, 64, 128},
             {"smelt, tile 128 x 128", "tile_128_128", 128, 128, 128},
             {"smelt, tile 128 x 256", "tile_128_256", 128, 256, 256}};
enum { TILES = sizeof tiles / sizeof *tiles };

struct product {
    struct gpu *gpu;
    smelt_array *a, *b, *c;
    float *block_a, *block_b; /* on the host, what a and b repeat */
    int64_t n;
};

static int64_t block_size(const struct product *product) {
    return product->n * product->n < GPU_BLOCK ? product->n * product->n : GPU_BLOCK;
}

/* Some elements, spread over all rows, with the formula; all: that something was written. */
static bool check_product(void *context, const void *output, char *message, size_t size) {
    const struct product *product = context;
    int64_t n = product->n, block = block_size(product);
    for (int64_t i = 0; i < n * n; i++) {
        double value = gpu_widen_bfloat(((const uint16_t *)output)[i]), expected = 0, sizes = 0;
        bool sampled = i % (n + 17) == 0;
        for (int64_t k = 0; sampled && k < n; k++) {
            double part =
                (double)product->block_a[(i / n * n + k) % block] * product->block_b[(k * n + i % n) % block];
            expected += part;
            sizes += fabs(part);
        }
        double allowed = fabs(expected) * 0x1p-7 + sizes * 1e-5;
        if (sampled ? fabs(value - expected) <= allowed : isfinite(value)) continue;
        snprintf(message, size, "wrong result: element (%lld, %lld) is %.9g, expected %.9g",
                 (long long)(i / n), (long long)(i % n), value, sampled ? expected : (double)NAN);
        return false;
    }
    return true;
}

static smelt_status run_cublas(void *context) {
    const struct product *product = context;
    return gpu_driver_status(cublas_matmul(smelt_stream_native(product->gpu->stream), CUBLAS_BFLOAT16,
                                           gpu_place(product->a), gpu_place(product->b),
                                           gpu_place(product->c), product->n));
}

static smelt_status add_tile(struct product *product, const struct tile *tile, struct launches *launches) {
    static uint32_t side;
    side = (uint32_t)product->n;
    smelt_dispatch_desc desc = {.buffers = {{.array = product->a},
                                            {.array = product->b},
                                            {.array = product->c},
                                            {.bytes = &side, .size = sizeof side}},
                                .groups = {(product->n + tile->columns - 1) / tile->columns,
                                           (product->n + tile->rows - 1) / tile->rows, 1},
                                .threadgroup = {tile->threads, 1, 1}};
    return gpu_add_launch(product->gpu, launches, "gpu_matmul2d.metal", kernel_text_gpu_matmul2d, tile->entry,
                          &desc);
}

static smelt_status measure(struct product *product, const char *name) {
    struct contest contest = {.device = &gpu_contest,
                              .bench = product->gpu->bench,
                              .job = name,
                              .work = 2.0 * (double)product->n * (double)product->n * (double)product->n,
                              .work_unit = "FLOP",
                              .batch = 2,
                              .output = product->c,
                              .check = check_product,
                              .check_context = product};
    struct launches launches[TILES] = {0};
    smelt_status status = SMELT_OK;
    const char *why = cublas_open();
    if (why) bench_note(product->gpu->bench, name, CUBLAS, why);
    if (!why)
        contest_enter(&contest, (struct variant){.name = CUBLAS, .run = run_cublas, .context = product});
    for (int i = 0; i < TILES && status == SMELT_OK; i++) {
        status = add_tile(product, &tiles[i], &launches[i]);
        if (status != SMELT_OK) break;
        contest_enter(&contest, (struct variant){.name = tiles[i].name,
                                                 .run = launches_run,
                                                 .context = &launches[i],
                                                 .anchor = why ? NULL : CUBLAS});
    }
    if (status == SMELT_OK) status = gpu_contest_run(&contest);
    for (int i = 0; i < TILES; i++) launches_release(&launches[i]);
    return status;
}

static smelt_status run(struct gpu *gpu, const char *name, int64_t n) {
    struct product product = {.gpu = gpu, .n = n};
    smelt_shape shape = SHAPE_OF(n, n);
    smelt_status status = gpu_random(SMELT_BFLOAT16, shape, GPU_BLOCK, 60, -1, 1, &product.a);
    if (status == SMELT_OK) status = gpu_random(SMELT_BFLOAT16, shape, GPU_BLOCK, 61, -1, 1, &product.b);
    if (status == SMELT_OK) status = gpu_new(SMELT_BFLOAT16, shape, &product.c);
    if (status == SMELT_OK) {
        product.block_a = gpu_first_values(product.a, block_size(&product));
        product.block_b = gpu_first_values(product.b, block_size(&product));
        status = product.block_a && product.block_b ? measure(&product, name) : SMELT_ERROR_OUT_OF_MEMORY;
    }
    free(product.block_a);
    free(product.block_b);
    smelt_array_release(product.a);
    smelt_array_release(product.b);
    smelt_array_release(product.c);
    return status;
}

smelt_status bench_gpu_matmul2d_4096(struct bench *bench, const char *name) {
    return run(bench->shared, name, bench->quick ? 256 : 4096);
}

smelt_status bench_gpu_matmul2d_8192(struct bench *bench, const char *name) {
    return run(bench->shared, name, bench->quick ? 520 : 8192);
}
