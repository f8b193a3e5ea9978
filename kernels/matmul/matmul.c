#include "kernels/matmul/matmul.h"
#include "kernels/kernel_text.h"
#include "kernels/matmul/best.h"
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
/* On CPUs a tile packs its operands for itself, so large ones pay where every thread has several. */
static const struct algorithm best_large = {"best", kernel_text_best, 512, 256, 32, false, SMELT_MATH_SAFE};
#define ALGORITHMS ((int)(sizeof algorithms / sizeof *algorithms))

const char *matmul_name(int index) {
    return index >= 0 && index < ALGORITHMS ? algorithms[index].name : NULL;
}

static bool is_on_gpu(const struct matmul_desc *desc) {
    return desc->device && strncmp(desc->device, "cpu", 3) != 0;
}

static int64_t matrices(smelt_shape shape) {
    int64_t count = 1;
    for (int i = 0; i < shape.ndim - 2; i++) count *= shape.size[i];
    return count;
}

static bool fits(const struct matmul_desc *desc, bool best, struct matmul_job *job) {
    smelt_shape a = smelt_array_shape(desc->a), b = smelt_array_shape(desc->b),
                c = smelt_array_shape(desc->c);
    smelt_dtype dtype = smelt_array_dtype(desc->a);
    bool free = best && is_on_gpu(desc);
    int most = free ? SMELT_MAX_DIMENSIONS : 2;
    if (a.ndim < 2 || b.ndim < 2 || c.ndim < 2 || c.ndim > most) return false;
    if (!free && (desc->a_transposed || desc->b_transposed || desc->form)) return false;
    if (!shipped_is_float(desc->a, a.ndim) || dtype != smelt_array_dtype(desc->b) ||
        dtype != smelt_array_dtype(desc->c))
        return false;
    const int64_t *a_size = &a.size[a.ndim - 2], *b_size = &b.size[b.ndim - 2];
    struct matmul_sizes sizes = {c.size[c.ndim - 2], c.size[c.ndim - 1], a_size[!desc->a_transposed],
                                 matrices(c)};
    *job = (struct matmul_job){.sizes = sizes, .a_line = a_size[1], .b_line = b_size[1]};
    if (a.ndim > 2) job->a_batch = sizes.m * sizes.k;
    if (b.ndim > 2) job->b_batch = sizes.k * sizes.n;
    if (desc->form && !matmul_form_exists(dtype, desc->form)) return false;
    return a_size[desc->a_transposed] == sizes.m && b_size[desc->b_transposed] == sizes.k &&
           b_size[!desc->b_transposed] == sizes.n && (a.ndim == 2 || matrices(a) == sizes.products) &&
           (b.ndim == 2 || matrices(b) == sizes.products);
}

static int64_t pieces(int64_t size, int64_t of) {
    return (size + of - 1) / of;
}

static void set_grid(const struct algorithm *algorithm, const struct matmul_sizes *sizes,
                     smelt_dispatch_desc *dispatch) {
    int64_t rows = sizes->m, columns = sizes->n;
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

static smelt_status run(const struct matmul_desc *desc, const struct algorithm *algorithm, const char *form,
                        const struct matmul_sizes *sizes) {
    int32_t size[4] = {(int32_t)sizes->m, (int32_t)sizes->n, (int32_t)sizes->k, (int32_t)sizes->k};
    int32_t rows[2] = {size[2], size[1]};
    int64_t batches[2] = {0, 0};
    char name[64];
    snprintf(name, sizeof name, "%s_%s%s", algorithm->name, matmul_type(smelt_array_dtype(desc->a)), form);
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
    if (algorithm->text == kernel_text_best) {
        dispatch.buffers[4] = (smelt_buffer){.bytes = rows, .size = sizeof rows};
        dispatch.buffers[5] = (smelt_buffer){.bytes = batches, .size = sizeof batches};
    }
    set_grid(algorithm, sizes, &dispatch);
    return smelt_function_run(function, &dispatch);
}

/* `best` for floats on a CPU takes large tiles if every thread gets several. */
static bool takes_large(const struct matmul_desc *desc, const struct matmul_sizes *sizes) {
    int64_t tiles = pieces(sizes->m, best_large.rows) * pieces(sizes->n, best_large.columns);
    return smelt_array_dtype(desc->a) == SMELT_FLOAT32 &&
           tiles >= 4 * (int64_t)smelt_device_threads(desc->device ? desc->device : "cpu");
}

smelt_status matmul_run(const struct matmul_desc *desc) {
    const struct algorithm *algorithm = NULL;
    struct matmul_job job;
    for (int i = 0; i < ALGORITHMS; i++)
        if (desc->algorithm && strcmp(desc->algorithm, algorithms[i].name) == 0) algorithm = &algorithms[i];
    bool best = algorithm && strcmp(algorithm->name, "best") == 0;
    if (!algorithm || !fits(desc, best, &job)) return SMELT_ERROR_INVALID_ARGUMENT;
    const struct matmul_sizes *sizes = &job.sizes;
    if (sizes->m > MATMUL_MOST_SIZE || sizes->n > MATMUL_MOST_SIZE || sizes->k > MATMUL_MOST_SIZE)
        return SMELT_ERROR_LIMIT;
    if (!sizes->m || !sizes->n || !sizes->products) return SMELT_OK;
    if (best && is_on_gpu(desc)) return matmul_best_run(desc, &job);
    if (best && takes_large(desc, sizes)) return run(desc, &best_large, "_large", sizes);
    return run(desc, algorithm, "", sizes);
}

void matmul_reference(const double *a, const double *b, int64_t m, int64_t n, int64_t k, double *c) {
    memset(c, 0, (size_t)(m * n) * sizeof *c);
    for (int64_t i = 0; i < m; i++)
        for (int64_t t = 0; t < k; t++)
            for (int64_t j = 0; j < n; j++) c[i * n + j] += a[i * k + t] * b[t * n + j];
}
