#include "kernels/matmul/thin.h"
#include "kernels/kernel_text.h"
#include "kernels/matmul/forms.h"
#include "kernels/shipped.h"

#include <stdio.h>

#define THREADS 128
#define LINE_BYTES 16
#define COLUMNS_AT_ONCE 8 /* of B by a threadgroup of thin_rows */
#define MANY_GROUPS 1024  /* enough to occupy a large GPU */
#define LEAST_ROUNDS 4    /* of a threadgroup over its part of K */

static int64_t pieces(int64_t size, int64_t of) {
    return (size + of - 1) / of;
}

/* What the kernels are passed (thin.metal). */
struct arguments {
    int32_t size[4];
    int64_t strides[4], batches[4];
};

static smelt_status launch(const struct matmul_thin_desc *desc, const char *name,
                           smelt_dispatch_desc *dispatch) {
    smelt_function *function;
    smelt_status status = shipped_entry(kernel_text_thin, name, SMELT_MATH_SAFE, &function);
    if (status != SMELT_OK) return status;
    dispatch->device = desc->device;
    dispatch->stream = desc->stream;
    return smelt_function_run(function, dispatch);
}

static smelt_status add_parts(const struct matmul_thin_desc *desc, const struct arguments *with,
                              smelt_array *partial) {
    char name[32];
    snprintf(name, sizeof name, "thin_sum_%s", matmul_type(smelt_array_dtype(desc->a)));
    return launch(desc, name,
                  &(smelt_dispatch_desc){.buffers = {{.array = partial},
                                                     {.array = desc->c},
                                                     {.bytes = with->size, .size = sizeof with->size},
                                                     {.bytes = with->strides, .size = sizeof with->strides},
                                                     {.bytes = with->batches, .size = sizeof with->batches}},
                                         .grid = {desc->n, desc->m, desc->products},
                                         .threadgroup = {desc->n < THREADS ? desc->n : THREADS, 1, 1}});
}

static smelt_status multiply(const struct matmul_thin_desc *desc, const struct arguments *with, int rows,
                             const int64_t groups[3], smelt_array *partial) {
    char name[32];
    snprintf(name, sizeof name, "thin_%s_%s_%d", desc->b_by_columns ? "rows" : "columns",
             matmul_type(smelt_array_dtype(desc->a)), rows);
    return launch(desc, name,
                  &(smelt_dispatch_desc){.buffers = {{.array = desc->a},
                                                     {.array = desc->b},
                                                     {.array = desc->c},
                                                     {.array = partial},
                                                     {.bytes = with->size, .size = sizeof with->size},
                                                     {.bytes = with->strides, .size = sizeof with->strides},
                                                     {.bytes = with->batches, .size = sizeof with->batches}},
                                         .groups = {groups[0], groups[1], groups[2]},
                                         .threadgroup = {THREADS, 1, 1},
                                         .info = desc->info});
}

smelt_status matmul_thin_run(const struct matmul_thin_desc *desc) {
    if (desc->m > INT32_MAX || desc->n > INT32_MAX || desc->k > INT32_MAX - THREADS * LINE_BYTES)
        return SMELT_ERROR_LIMIT;
    int64_t line = LINE_BYTES / (int64_t)smelt_dtype_bytes(smelt_array_dtype(desc->a));
    int rows = desc->m == 1 ? 1 : desc->m <= 4 ? 4 : 8;
    int64_t groups[3] = {pieces(desc->n, desc->b_by_columns ? COLUMNS_AT_ONCE : 32 * line),
                         pieces(desc->m, rows), desc->products};
    /* Elements of K that a threadgroup takes at a time. */
    int64_t round = desc->b_by_columns ? 32 * line : THREADS / 32 * 4;
    int64_t wanted = MANY_GROUPS / (groups[0] * groups[1] * groups[2]);
    int64_t most = desc->k / (round * LEAST_ROUNDS), parts = wanted < most ? wanted : most;
    int64_t depth = pieces(pieces(desc->k, parts > 1 ? parts : 1), round) * round;
    parts = pieces(desc->k, depth);
    groups[2] *= parts;
    struct arguments with = {{(int32_t)desc->m, (int32_t)desc->n, (int32_t)desc->k, (int32_t)depth},
                             {desc->a_row, desc->b_line, desc->c_row, desc->c_column},
                             {desc->a_batch, desc->b_batch, desc->c_batch, 0}};
    smelt_array *partial = NULL;
    smelt_status status =
        smelt_array_create_on(desc->device, SMELT_FLOAT32,
                              (smelt_shape){.ndim = 3,
                                            .size = {parts > 1 ? desc->products * parts : 1,
                                                     parts > 1 ? desc->m : 1, parts > 1 ? desc->n : 1}},
                              &partial);
    if (status != SMELT_OK) return status;
    status = multiply(desc, &with, rows, groups, partial);
    if (status == SMELT_OK && parts > 1) status = add_parts(desc, &with, partial);
    smelt_array_release(partial);
    return status;
}
