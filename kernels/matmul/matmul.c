#include "kernels/matmul/matmul.h"
#include "kernels/kernel_text.h"
#include "kernels/shipped.h"

#include <stdio.h>
#include <string.h>

/* How a kernel is launched. */
struct algorithm {
    const char *name, *text;
    int64_t rows, columns; /* of C that a threadgroup computes; 0: a thread computes an element */
    int64_t threads;       /* of a threadgroup */
    bool row_first;        /* threads' x is the row */
    smelt_math_mode math;
};

static const struct algorithm algorithms[] = {
    {.name = "naive", .text = kernel_text_naive, .row_first = true},
    {.name = "coalescing", .text = kernel_text_coalescing},
    {"tiled", kernel_text_tiled, 32, 32, 1024, false, SMELT_MATH_SAFE},
    {"tiled_register", kernel_text_tiled_register, 64, 64, 512, false, SMELT_MATH_SAFE},
    {"block_tiled", kernel_text_block_tiled, 128, 128, 256, false, SMELT_MATH_SAFE},
    {"block_tiled_vectorized", kernel_text_block_tiled_vectorized, 128, 128, 256, false, SMELT_MATH_SAFE},
    {"tensor_core", kernel_text_tensor_core, 64, 64, 128, false, SMELT_MATH_RELAXED},
    {"best", kernel_text_best, 128, 256, 256, false, SMELT_MATH_SAFE}};
/* On GPUs floats are multiplied by the plain cores. */
static const struct algorithm best_tiles = {"best", kernel_text_best_tiles, 128, 128, 128,
                                            false,  SMELT_MATH_SAFE};
/* … in smaller parts where those would leave most of the GPU idle. */
#define FEW_TILES 16
static const struct algorithm best_small = {"best", kernel_text_best, 64, 64, 128, false, SMELT_MATH_SAFE};
/* On CPUs a tile packs its operands for itself, so large ones pay where every thread has several. */
static const struct algorithm best_large = {"best", kernel_text_best, 512, 256, 32, false, SMELT_MATH_SAFE};
#define ALGORITHMS ((int)(sizeof algorithms / sizeof *algorithms))

const char *matmul_name(int index) {
    return index >= 0 && index < ALGORITHMS ? algorithms[index].name : NULL;
}

static const char *type_name(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT32 ? "float" : dtype == SMELT_FLOAT16 ? "half" : "bfloat";
}

static bool fits(const struct matmul_desc *desc) {
    if (!shipped_is_float(desc->a, 2) || !shipped_is_float(desc->b, 2) || !shipped_is_float(desc->c, 2))
        return false;
    smelt_shape a = smelt_array_shape(desc->a), b = smelt_array_shape(desc->b),
                c = smelt_array_shape(desc->c);
    smelt_dtype dtype = smelt_array_dtype(desc->a);
    return dtype == smelt_array_dtype(desc->b) && dtype == smelt_array_dtype(desc->c) &&
           a.size[1] == b.size[0] && a.size[0] == c.size[0] && b.size[1] == c.size[1];
}

static int64_t pieces(int64_t size, int64_t of) {
    return (size + of - 1) / of;
}

static void set_grid(const struct algorithm *algorithm, const int32_t size[4],
                     smelt_dispatch_desc *dispatch) {
    int64_t rows = size[0], columns = size[1];
    if (algorithm->rows) {
        dispatch->groups[0] = pieces(columns, algorithm->columns);
        dispatch->groups[1] = pieces(rows, algorithm->rows);
        dispatch->groups[2] = 1;
        dispatch->threadgroup[0] = algorithm->threads;
        return;
    }
    int64_t x = algorithm->row_first ? rows : columns, y = algorithm->row_first ? columns : rows;
    dispatch->grid[0] = x;
    dispatch->grid[1] = y;
    dispatch->threadgroup[0] = x < 32 ? x : 32;
    dispatch->threadgroup[1] = y < 8 ? y : 8;
}

/* The form of `best` for floats on the device, as the end of its name. */
static const char *choose_best(const struct matmul_desc *desc, const int32_t size[4],
                               const struct algorithm **algorithm) {
    const char *device = desc->device ? desc->device : "cpu";
    if (strcmp((*algorithm)->name, "best") != 0 || smelt_array_dtype(desc->a) != SMELT_FLOAT32) return "";
    if (strncmp(device, "cpu", 3) != 0) {
        bool few = pieces(size[0], best_tiles.rows) * pieces(size[1], best_tiles.columns) < FEW_TILES;
        *algorithm = few ? &best_small : &best_tiles;
        return few ? "_small" : "_tiles";
    }
    int64_t tiles = pieces(size[0], best_large.rows) * pieces(size[1], best_large.columns);
    if (tiles < 4 * (int64_t)smelt_device_threads(device)) return "";
    *algorithm = &best_large;
    return "_large";
}

smelt_status matmul_run(const struct matmul_desc *desc) {
    const struct algorithm *algorithm = NULL;
    for (int i = 0; i < ALGORITHMS; i++)
        if (desc->algorithm && strcmp(desc->algorithm, algorithms[i].name) == 0) algorithm = &algorithms[i];
    if (!algorithm || !fits(desc)) return SMELT_ERROR_INVALID_ARGUMENT;
    smelt_shape a = smelt_array_shape(desc->a), c = smelt_array_shape(desc->c);
    if (a.size[0] > INT32_MAX || a.size[1] > INT32_MAX || c.size[1] > INT32_MAX) return SMELT_ERROR_LIMIT;
    if (!c.size[0] || !c.size[1]) return SMELT_OK;
    int32_t size[4] = {(int32_t)a.size[0], (int32_t)c.size[1], (int32_t)a.size[1], 0};
    smelt_dtype dtype = smelt_array_dtype(desc->a);
    const char *form = choose_best(desc, size, &algorithm);
    char name[64];
    snprintf(name, sizeof name, "%s_%s%s", algorithm->name, type_name(dtype), form);
    smelt_function *function;
    smelt_status status = shipped_entry(algorithm->text, name, algorithm->math, &function);
    if (status != SMELT_OK) return status;
    smelt_dispatch_desc dispatch = {.buffers = {{.array = desc->a},
                                                {.array = desc->b},
                                                {.array = desc->c},
                                                {.bytes = size, .size = sizeof size}},
                                    .device = desc->device,
                                    .stream = desc->stream,
                                    .info = desc->info};
    set_grid(algorithm, size, &dispatch);
    return smelt_function_run(function, &dispatch);
}

void matmul_reference(const double *a, const double *b, int64_t m, int64_t n, int64_t k, double *c) {
    memset(c, 0, (size_t)(m * n) * sizeof *c);
    for (int64_t i = 0; i < m; i++)
        for (int64_t t = 0; t < k; t++)
            for (int64_t j = 0; j < n; j++) c[i * n + j] += a[i * k + t] * b[t * n + j];
}
