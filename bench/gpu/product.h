/* Square products on the GPU: their data, their check and cuBLAS's variant, for all jobs that multiply. */
#ifndef SMELT_BENCH_GPU_PRODUCT_H
#define SMELT_BENCH_GPU_PRODUCT_H

#include "bench/gpu/gpu.h"

/* c = a · b, of n × n elements each. */
struct gpu_product {
    struct gpu *gpu;
    smelt_dtype dtype; /* float32, float16 or bfloat16 */
    smelt_array *a, *b, *c;
    float *block_a, *block_b; /* on the host, what a and b repeat */
    uint32_t n;
};

/* Creates the data, lets `measure` use it and releases it. */
smelt_status gpu_product_run(struct gpu *gpu, const char *name, smelt_dtype dtype, uint32_t n,
                             smelt_status (*measure)(struct gpu_product *product, const char *name));

/* A contest of such products, which checks them; without variants. */
struct contest gpu_product_contest(struct gpu_product *product, const char *name);

/* Enters cuBLAS under this name and returns the name; where cuBLAS is missing, reports that and returns NULL.
 */
const char *gpu_product_enter_cublas(struct contest *contest, struct gpu_product *product,
                                     const char *variant);

/* A launch with the arguments a, b, c and n of as many groups as cover c in tiles of rows × columns. */
smelt_dispatch_desc gpu_product_dispatch(const struct gpu_product *product, uint32_t rows, uint32_t columns,
                                         uint32_t threads);

#endif
