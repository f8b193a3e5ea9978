/* Products of matrices of any strides, batches of them: what the ways to compute one share. */
#ifndef SMELT_OPS_PRODUCT_H
#define SMELT_OPS_PRODUCT_H

#include "ops/operation.h"

/* x as (batch …, rows, depth), y as (batch …, depth, columns) and the result as (batch …, rows, columns); a
 * vector's missing dimension has size 1. Strides are in elements. */
struct product {
    const struct call *call;
    smelt_dtype dtype; /* of the result: what x and y are converted to */
    smelt_array *x, *y, *result;
    smelt_shape shape; /* of the result */
    int batch;         /* its dimensions before the last two */
    int64_t depth;
    int64_t x_strides[SMELT_MAX_DIMENSIONS], y_strides[SMELT_MAX_DIMENSIONS];
    int64_t x_depth, y_depth; /* strides; those of x along columns and of y along rows are 0 above */
};

/* tiles.c. On a CPU, products of float32, float16 and bfloat16 with elements and terms. Sums are floats,
 * rounded once; except with few rows or columns, terms are added in order, each by one fused multiply-add.
 * *done is false, and nothing was computed, if the plain kernel should compute it. */
smelt_status product_by_tiles(const struct product *product, bool *done);

/* product_gpu.c. On a GPU; the result has elements and the depth is at least 1. *done is as above. */
smelt_status product_on_gpu(const struct product *product, bool *done);

/* By the kernel of kernels/matmul with this name; `form` as in matmul_desc. */
struct matmul_form;
smelt_status product_by_algorithm(const struct product *product, const char *name,
                                  const struct matmul_form *form);

/* vendor.c. Whether OpenBLAS has computed it: with SMELT_VENDOR=1, float32 on a CPU. */
bool product_by_vendor(const struct product *product);

#endif
