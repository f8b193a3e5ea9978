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
/* … in smaller parts where large ones would leave multiprocessors idle. */
#define FEW_TILES 256
static const struct algorithm best_tiles_small = {"best", kernel_text_best_tiles, 64, 64, 64,
                                                  false,  SMELT_MATH_SAFE};
/* … and where these are too few as well, several threadgroups share a tile of C, and each has a part of K. */
#define TILE_DEPTH 8     /* BK of best_tiles.metal */
#define LEAST_PART 256   /* elements of K */
#define MANY_GROUPS 1024 /* enough to occupy a large GPU */
/* On CPUs a tile packs its operands for itself, so large ones pay where every thread has several. */
static const struct algorithm best_large = {"best", kernel_text_best, 512, 256, 32, false, SMELT_MATH_SAFE};
#define ALGORITHMS ((int)(sizeof algorithms / sizeof *algorithms))

const char *matmul_name(int index) {
    return index >= 0 && index < ALGORITHMS ? algorithms[index].name : NULL;
}

static const char *type_name(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT32 ? "float" : dtype == SMELT_FLOAT16 ? "half" : "bfloat";
}

/* M, N, K and the number of products. */
struct sizes {
    int64_t m, n, k, products;
    int64_t a_batch, b_batch; /* elements from one product's operand to the next's; 0: it is the same */
    int64_t parts;            /* of K, each summed by threadgroups of its own */
};

static bool is_on_gpu(const struct matmul_desc *desc) {
    return desc->device && strncmp(desc->device, "cpu", 3) != 0;
}

static int64_t matrices(smelt_shape shape) {
    int64_t count = 1;
    for (int i = 0; i < shape.ndim - 2; i++) count *= shape.size[i];
    return count;
}

static bool fits(const struct matmul_desc *desc, bool best, struct sizes *sizes) {
    smelt_shape a = smelt_array_shape(desc->a), b = smelt_array_shape(desc->b),
                c = smelt_array_shape(desc->c);
    smelt_dtype dtype = smelt_array_dtype(desc->a);
    int most = best && is_on_gpu(desc) ? SMELT_MAX_DIMENSIONS : 2;
    if (a.ndim < 2 || b.ndim < 2 || c.ndim < 2 || c.ndim > most) return false;
    if (!shipped_is_float(desc->a, a.ndim) || dtype != smelt_array_dtype(desc->b) ||
        dtype != smelt_array_dtype(desc->c))
        return false;
    *sizes = (struct sizes){c.size[c.ndim - 2], c.size[c.ndim - 1], a.size[a.ndim - 1], matrices(c), 0, 0, 1};
    if (a.ndim > 2) sizes->a_batch = sizes->m * sizes->k;
    if (b.ndim > 2) sizes->b_batch = sizes->k * sizes->n;
    return a.size[a.ndim - 2] == sizes->m && b.size[b.ndim - 2] == sizes->k &&
           b.size[b.ndim - 1] == sizes->n && (a.ndim == 2 || matrices(a) == sizes->products) &&
           (b.ndim == 2 || matrices(b) == sizes->products);
}

static int64_t pieces(int64_t size, int64_t of) {
    return (size + of - 1) / of;
}

static void set_grid(const struct algorithm *algorithm, const struct sizes *sizes,
                     smelt_dispatch_desc *dispatch) {
    int64_t rows = sizes->m, columns = sizes->n;
    if (algorithm->rows) {
        dispatch->groups[0] = pieces(columns, algorithm->columns);
        dispatch->groups[1] = pieces(rows, algorithm->rows);
        dispatch->groups[2] = sizes->products * sizes->parts;
        dispatch->threadgroup[0] = algorithm->threads;
        return;
    }
    int64_t x = algorithm->row_first ? rows : columns, y = algorithm->row_first ? columns : rows;
    dispatch->grid[0] = x;
    dispatch->grid[1] = y;
    dispatch->threadgroup[0] = x < 32 ? x : 32;
    dispatch->threadgroup[1] = y < 8 ? y : 8;
}

/* The elements of K in each of at most `parts` parts: a multiple of a tile's depth. */
static int64_t part_depth(const struct sizes *sizes, int64_t parts) {
    return sizes->k ? pieces(pieces(sizes->k, parts), TILE_DEPTH) * TILE_DEPTH : TILE_DEPTH;
}

/* Into how many parts K is divided so that small tiles of C occupy a GPU. */
static int64_t parts_of(const struct sizes *sizes) {
    int64_t groups = pieces(sizes->m, best_tiles_small.rows) * pieces(sizes->n, best_tiles_small.columns) *
                     sizes->products;
    int64_t wanted = MANY_GROUPS / groups, most = sizes->k / LEAST_PART;
    int64_t parts = wanted < most ? wanted : most;
    return parts > 1 ? pieces(sizes->k, part_depth(sizes, parts)) : 1;
}

/* The form of `best` for floats on the device, as the end of its name. */
static const char *choose_best(const struct matmul_desc *desc, struct sizes *sizes,
                               const struct algorithm **algorithm) {
    const char *device = desc->device ? desc->device : "cpu";
    if (strcmp((*algorithm)->name, "best") != 0 || smelt_array_dtype(desc->a) != SMELT_FLOAT32) return "";
    if (is_on_gpu(desc)) {
        int64_t tiles = pieces(sizes->m, best_tiles.rows) * pieces(sizes->n, best_tiles.columns);
        bool few = tiles < FEW_TILES && tiles * sizes->products < FEW_TILES;
        *algorithm = few ? &best_tiles_small : &best_tiles;
        if (few) sizes->parts = parts_of(sizes);
        return few ? "_tiles_small" : "_tiles";
    }
    int64_t tiles = pieces(sizes->m, best_large.rows) * pieces(sizes->n, best_large.columns);
    if (tiles < 4 * (int64_t)smelt_device_threads(device)) return "";
    *algorithm = &best_large;
    return "_large";
}

/* ---- Rows for tensor maps. */

#define ROW_ELEMENTS 8                /* of 16 bits: rows begin at multiples of 16 bytes */
#define LEAST_DEPTH 256               /* shorter sums do not use tensor maps (mpp_warpgroup.h) … */
#define LEAST_WORTH (512 * 512 * 256) /* … and fewer multiply-adds are not worth two launches more */

/* *matrix: a copy of it, dense matrices of rows of `columns` elements, with longer rows; the caller's. */
static smelt_status lengthen_rows(const struct matmul_desc *desc, int64_t columns, int32_t *row,
                                  int64_t *batch, smelt_array **matrix) {
    int64_t rows = smelt_array_size(*matrix) / columns;
    int32_t size[2] = {(int32_t)columns, (int32_t)(pieces(columns, ROW_ELEMENTS) * ROW_ELEMENTS)};
    smelt_array *longer;
    smelt_function *function;
    smelt_status status = smelt_array_create_on(desc->device, smelt_array_dtype(*matrix),
                                                (smelt_shape){.ndim = 2, .size = {rows, size[1]}}, &longer);
    if (status != SMELT_OK) return status;
    status = shipped_entry(kernel_text_best, "best_rows", SMELT_MATH_SAFE, &function);
    if (status == SMELT_OK)
        status = smelt_function_run(
            function,
            &(smelt_dispatch_desc){
                .buffers = {{.array = *matrix}, {.array = longer}, {.bytes = size, .size = sizeof size}},
                .grid = {size[1] / ROW_ELEMENTS, rows},
                .threadgroup = {32, 8},
                .device = desc->device,
                .stream = desc->stream});
    if (status != SMELT_OK) {
        smelt_array_release(longer);
        return status;
    }
    *batch = *batch / columns * size[1];
    *row = size[1];
    *matrix = longer;
    return SMELT_OK;
}

static bool needs_rows(const struct matmul_desc *desc, const struct algorithm *algorithm,
                       const struct sizes *sizes, int64_t columns) {
    return is_on_gpu(desc) && algorithm->text == kernel_text_best &&
           smelt_array_dtype(desc->a) != SMELT_FLOAT32 && columns % ROW_ELEMENTS && sizes->k >= LEAST_DEPTH &&
           sizes->m * sizes->n * sizes->products >= LEAST_WORTH / sizes->k;
}

static smelt_status run(const struct matmul_desc *desc, const struct algorithm *algorithm, const char *form,
                        struct sizes *sizes, int32_t rows[2]) {
    int32_t size[4] = {(int32_t)sizes->m, (int32_t)sizes->n, (int32_t)sizes->k, 0};
    int64_t batches[2] = {sizes->a_batch, sizes->b_batch};
    char name[64];
    snprintf(name, sizeof name, "%s_%s%s", algorithm->name, type_name(smelt_array_dtype(desc->a)), form);
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
    smelt_buffer batch = {.bytes = batches, .size = sizeof batches};
    if (algorithm->text == kernel_text_best) {
        dispatch.buffers[4] = (smelt_buffer){.bytes = rows, .size = 2 * sizeof *rows};
        dispatch.buffers[5] = batch;
    } else if (algorithm->text == kernel_text_best_tiles) {
        size[3] = (int32_t)part_depth(sizes, sizes->parts);
        dispatch.buffers[4] = batch;
    }
    set_grid(algorithm, sizes, &dispatch);
    return smelt_function_run(function, &dispatch);
}

/* C = the sums of `parts` matrices per product. */
static smelt_status add_parts(const struct matmul_desc *desc, const struct sizes *sizes, smelt_array *parts) {
    int64_t size[2] = {sizes->m * sizes->n, sizes->parts};
    smelt_function *function;
    smelt_status status = shipped_entry(kernel_text_best_tiles, "best_float_sum", SMELT_MATH_SAFE, &function);
    if (status != SMELT_OK) return status;
    return smelt_function_run(
        function, &(smelt_dispatch_desc){
                      .buffers = {{.array = parts}, {.array = desc->c}, {.bytes = size, .size = sizeof size}},
                      .grid = {pieces(size[0], 4), sizes->products},
                      .threadgroup = {128, 1},
                      .device = desc->device,
                      .stream = desc->stream});
}

/* run() with K in parts. */
static smelt_status run_parts(const struct matmul_desc *desc, const struct algorithm *algorithm,
                              const char *form, struct sizes *sizes) {
    struct matmul_desc own = *desc;
    smelt_status status = smelt_array_create_on(
        desc->device, SMELT_FLOAT32,
        (smelt_shape){.ndim = 3, .size = {sizes->products * sizes->parts, sizes->m, sizes->n}}, &own.c);
    if (status != SMELT_OK) return status;
    status = run(&own, algorithm, form, sizes, NULL);
    if (status == SMELT_OK) status = add_parts(desc, sizes, own.c);
    smelt_array_release(own.c);
    return status;
}

smelt_status matmul_run(const struct matmul_desc *desc) {
    const struct algorithm *algorithm = NULL;
    struct sizes sizes;
    for (int i = 0; i < ALGORITHMS; i++)
        if (desc->algorithm && strcmp(desc->algorithm, algorithms[i].name) == 0) algorithm = &algorithms[i];
    if (!algorithm || !fits(desc, strcmp(algorithm->name, "best") == 0, &sizes))
        return SMELT_ERROR_INVALID_ARGUMENT;
    if (sizes.m > INT32_MAX || sizes.n > INT32_MAX - ROW_ELEMENTS || sizes.k > INT32_MAX - ROW_ELEMENTS)
        return SMELT_ERROR_LIMIT;
    if (!sizes.m || !sizes.n || !sizes.products) return SMELT_OK;
    const char *form = choose_best(desc, &sizes, &algorithm);
    if (sizes.parts > 1) return run_parts(desc, algorithm, form, &sizes);
    struct matmul_desc own = *desc;
    int32_t rows[2] = {(int32_t)sizes.k, (int32_t)sizes.n};
    smelt_status status = SMELT_OK;
    if (needs_rows(desc, algorithm, &sizes, sizes.k))
        status = lengthen_rows(desc, sizes.k, &rows[0], &sizes.a_batch, &own.a);
    if (status == SMELT_OK && needs_rows(desc, algorithm, &sizes, sizes.n))
        status = lengthen_rows(desc, sizes.n, &rows[1], &sizes.b_batch, &own.b);
    if (status == SMELT_OK) status = run(&own, algorithm, form, &sizes, rows);
    if (own.a != desc->a) smelt_array_release(own.a);
    if (own.b != desc->b) smelt_array_release(own.b);
    return status;
}

void matmul_reference(const double *a, const double *b, int64_t m, int64_t n, int64_t k, double *c) {
    memset(c, 0, (size_t)(m * n) * sizeof *c);
    for (int64_t i = 0; i < m; i++)
        for (int64_t t = 0; t < k; t++)
            for (int64_t j = 0; j < n; j++) c[i * n + j] += a[i * k + t] * b[t * n + j];
}
