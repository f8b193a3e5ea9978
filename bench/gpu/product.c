#include "bench/gpu/product.h"
#include "bench/gpu/cublas.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int64_t block_size(const struct gpu_product *product) {
    int64_t size = (int64_t)product->n * product->n;
    return size < GPU_BLOCK ? size : GPU_BLOCK;
}

static float element(const struct gpu_product *product, const void *output, int64_t i) {
    if (product->dtype == SMELT_FLOAT32) return ((const float *)output)[i];
    uint16_t bits = ((const uint16_t *)output)[i];
    return product->dtype == SMELT_FLOAT16 ? gpu_widen_half(bits) : gpu_widen_bfloat(bits);
}

/* What rounding the sum may add, relative to it. */
static double rounding(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT32 ? 0 : dtype == SMELT_FLOAT16 ? 0x1p-10 : 0x1p-7;
}

/* Some elements, spread over all rows, with the formula; all: that something was written. */
static bool check_product(void *context, const void *output, char *message, size_t size) {
    const struct gpu_product *product = context;
    int64_t n = product->n, block = block_size(product);
    for (int64_t i = 0; i < n * n; i++) {
        double value = element(product, output, i), expected = 0, sizes = 0;
        bool sampled = i % (n + 17) == 0;
        for (int64_t k = 0; sampled && k < n; k++) {
            double part =
                (double)product->block_a[(i / n * n + k) % block] * product->block_b[(k * n + i % n) % block];
            expected += part;
            sizes += fabs(part);
        }
        double allowed = fabs(expected) * rounding(product->dtype) + sizes * 1e-5;
        if (sampled ? fabs(value - expected) <= allowed : isfinite(value)) continue;
        snprintf(message, size, "wrong result: element (%lld, %lld) is %.9g, expected %.9g",
                 (long long)(i / n), (long long)(i % n), value, sampled ? expected : (double)NAN);
        return false;
    }
    return true;
}

struct contest gpu_product_contest(struct gpu_product *product, const char *name) {
    return (struct contest){.device = &gpu_contest,
                            .bench = product->gpu->bench,
                            .job = name,
                            .work = 2.0 * product->n * product->n * product->n,
                            .work_unit = "FLOP",
                            .batch = 2,
                            .output = product->c,
                            .check = check_product,
                            .check_context = product};
}

static smelt_status run_cublas(void *context) {
    const struct gpu_product *product = context;
    enum cublas_type type = product->dtype == SMELT_FLOAT32   ? CUBLAS_FLOAT32
                            : product->dtype == SMELT_FLOAT16 ? CUBLAS_FLOAT16
                                                              : CUBLAS_BFLOAT16;
    return gpu_driver_status(cublas_matmul(
        smelt_stream_native(product->gpu->stream), type, gpu_place(product->a), gpu_place(product->b),
        gpu_place(product->c), &(struct cublas_sizes){1, product->n, product->n, product->n}));
}

const char *gpu_product_enter_cublas(struct contest *contest, struct gpu_product *product,
                                     const char *variant) {
    const char *why = cublas_open();
    if (why)
        bench_note(contest->bench, contest->job, variant, why);
    else
        contest_enter(contest, (struct variant){.name = variant, .run = run_cublas, .context = product});
    return why ? NULL : variant;
}

smelt_dispatch_desc gpu_product_dispatch(const struct gpu_product *product, uint32_t rows, uint32_t columns,
                                         uint32_t threads) {
    return (smelt_dispatch_desc){
        .buffers = {{.array = product->a},
                    {.array = product->b},
                    {.array = product->c},
                    {.bytes = &product->n, .size = sizeof product->n}},
        .groups = {(product->n + columns - 1) / columns, (product->n + rows - 1) / rows, 1},
        .threadgroup = {threads, 1, 1}};
}

smelt_status gpu_product_run(struct gpu *gpu, const char *name, smelt_dtype dtype, uint32_t n,
                             smelt_status (*measure)(struct gpu_product *product, const char *name)) {
    struct gpu_product product = {.gpu = gpu, .dtype = dtype, .n = n};
    smelt_shape shape = SHAPE_OF(n, n);
    smelt_status status = gpu_random(dtype, shape, GPU_BLOCK, 60, -1, 1, &product.a);
    if (status == SMELT_OK) status = gpu_random(dtype, shape, GPU_BLOCK, 61, -1, 1, &product.b);
    if (status == SMELT_OK) status = gpu_new(dtype, shape, &product.c);
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
