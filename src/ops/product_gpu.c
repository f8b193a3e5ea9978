/* Products of matrices on GPUs, by the kernels of kernels/matmul. */
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/thin.h"
#include "ops/product.h"
#include "ops/program.h"
#include "tune/setting.h"

#include <string.h>

static int64_t rows_of(const struct product *p) {
    return p->shape.size[p->batch];
}

static int64_t columns_of(const struct product *p) {
    return p->shape.size[p->batch + 1];
}

static int64_t products_of(const struct product *p) {
    int64_t products = 1;
    for (int i = 0; i < p->batch; i++) products *= p->shape.size[i];
    return products;
}

/* ---- Few rows or columns. */

/* Whether the matrices of all products are equally far apart; *stride is set to that distance. */
static bool is_even(const struct product *p, const int64_t *strides, int64_t *stride) {
    int64_t next = 0;
    bool known = false;
    *stride = 0;
    for (int i = p->batch - 1; i >= 0; i--) {
        if (p->shape.size[i] == 1) continue;
        if (known && strides[i] != next) return false;
        if (!known) *stride = strides[i];
        next = strides[i] * p->shape.size[i];
        known = true;
    }
    return true;
}

/* Describes a product with few rows as A = x, B = y, and one with few columns as its transpose, A = yᵀ, B =
 * xᵀ. The lines of A and B may still be any distance apart. False: another way must compute it. */
static bool describe_thin(const struct product *p, struct matmul_thin_desc *thin) {
    if (p->x->dtype != p->dtype || p->y->dtype != p->dtype || p->depth < 1) return false;
    if (p->dtype != SMELT_FLOAT32 && p->dtype != SMELT_FLOAT16 && p->dtype != SMELT_BFLOAT16) return false;
    int64_t m = rows_of(p), n = columns_of(p), x_row = p->x_strides[p->batch],
            y_column = p->y_strides[p->batch + 1];
    int64_t x_batch, y_batch, products = products_of(p);
    if (!is_even(p, p->x_strides, &x_batch) || !is_even(p, p->y_strides, &y_batch)) return false;
    /* The rows of all products are one matrix if B is the same. */
    if (y_batch == 0 && products > 1 && x_batch == m * x_row) {
        m *= products;
        products = 1;
        x_batch = 0;
    }
    bool x_by_rows = p->x_depth == 1 || p->depth == 1, y_by_columns = p->y_depth == 1 || p->depth == 1;
    *thin = (struct matmul_thin_desc){.c = p->result, .k = p->depth, .products = products, .c_batch = m * n};
    thin->device = p->call->device;
    thin->stream = p->call->desc->stream;
    if (m < THIN_ROWS && x_by_rows && (y_by_columns || y_column == 1)) {
        thin->a = p->x, thin->m = m, thin->a_row = x_row, thin->a_batch = x_batch;
        thin->b = p->y, thin->n = n, thin->b_line = y_by_columns ? y_column : p->y_depth,
        thin->b_batch = y_batch;
        thin->b_by_columns = y_by_columns;
        thin->c_row = n, thin->c_column = 1;
        return true;
    }
    if (n < THIN_ROWS && y_by_columns && (x_by_rows || x_row == 1)) {
        thin->a = p->y, thin->m = n, thin->a_row = y_column, thin->a_batch = y_batch;
        thin->b = p->x, thin->n = m, thin->b_line = x_by_rows ? x_row : p->x_depth, thin->b_batch = x_batch;
        thin->b_by_columns = x_by_rows;
        thin->c_row = 1, thin->c_column = n;
        return true;
    }
    return false;
}

/* *array becomes dense: `products` matrices of `lines` lines of `length` elements, which are contiguous. It
 * is the array itself or a copy, in either case a reference of the caller's. *batch and *line become its
 * strides. */
static smelt_status make_dense(const struct call *call, smelt_array **array, int64_t products, int64_t lines,
                               int64_t length, int64_t *batch, int64_t *line) {
    smelt_array *view = NULL;
    if (*batch == 0) products = 1;
    int64_t strides[3] = {*batch, *line, 1};
    smelt_status status = smelt_array_view(
        *array, (smelt_shape){.ndim = 3, .size = {products, lines, length}}, strides, 0, &view);
    if (status == SMELT_OK) status = call_contiguous(call, view, array);
    smelt_array_release(view);
    *line = length;
    if (*batch) *batch = lines * length;
    return status;
}

/* *done is false, and nothing was computed, if another way should compute it. */
static smelt_status run_thin(const struct product *p, bool *done) {
    struct matmul_thin_desc thin;
    *done = describe_thin(p, &thin);
    if (!*done) return SMELT_OK;
    smelt_array *a = thin.a, *b = thin.b;
    int64_t b_lines = thin.b_by_columns ? thin.n : thin.k, b_length = thin.b_by_columns ? thin.k : thin.n;
    thin.a = thin.b = NULL;
    smelt_status status = make_dense(p->call, &a, thin.products, thin.m, thin.k, &thin.a_batch, &thin.a_row);
    if (status != SMELT_OK) return status;
    thin.a = a;
    status = make_dense(p->call, &b, thin.products, b_lines, b_length, &thin.b_batch, &thin.b_line);
    if (status == SMELT_OK) {
        thin.b = b;
        status = matmul_thin_run(&thin);
    }
    smelt_array_release(thin.a);
    smelt_array_release(thin.b);
    /* Sizes are past its limits. */
    if (status == SMELT_ERROR_LIMIT) *done = false;
    return *done ? status : SMELT_OK;
}

/* ---- By one of kernels/matmul. */

/* *stored becomes a contiguous array, a reference of the caller's: the array itself; its transpose, if that
 * is contiguous and `transposed` is not NULL (*transposed is set to true then); or a copy of the array. */
static smelt_status store_rows(const struct call *call, smelt_array *array, bool *transposed,
                               smelt_array **stored) {
    smelt_shape shape = array->shape;
    int64_t strides[SMELT_MAX_DIMENSIONS];
    int last = shape.ndim - 1;
    if (!transposed || smelt_array_is_contiguous(array)) return call_contiguous(call, array, stored);
    memcpy(strides, array->strides, sizeof strides);
    shape.size[last] = array->shape.size[last - 1];
    shape.size[last - 1] = array->shape.size[last];
    strides[last] = array->strides[last - 1];
    strides[last - 1] = array->strides[last];
    smelt_status status = smelt_array_view(array, shape, strides, 0, stored);
    if (status != SMELT_OK) return status;
    *transposed = smelt_array_is_contiguous(*stored);
    if (*transposed) return SMELT_OK;
    smelt_array_release(*stored);
    return call_contiguous(call, array, stored);
}

smelt_status product_by_algorithm(const struct product *p, const char *name, const struct matmul_form *form) {
    const struct call *call = p->call;
    bool free = !program_is_host(call->device) && strcmp(name, "best") == 0;
    struct matmul_desc desc = {.algorithm = name,
                               .c = p->result,
                               .form = form,
                               .multiprocessors = free ? program_warpgroup_multiprocessors(call->device) : 0,
                               .device = call->device,
                               .stream = call->desc->stream};
    smelt_status status = store_rows(call, p->x, free ? &desc.a_transposed : NULL, &desc.a);
    if (status == SMELT_OK) status = store_rows(call, p->y, free ? &desc.b_transposed : NULL, &desc.b);
    if (status == SMELT_OK) status = matmul_run(&desc);
    smelt_array_release(desc.a);
    smelt_array_release(desc.b);
    return status;
}

/* ---- The choice of the kernel. */

/* Products with fewer elements leave most of a GPU idle if tiles are as large as those of kernels/matmul,
 * unless the depth makes up for it. */
#define LEAST_SIDE 32
#define LEAST_ELEMENTS (512 * 512)
#define LEAST_MULTIPLY_ADDS (1 << 24)
/* With 16 bits, tensor cores are faster than thin.metal's plain cores from these sizes on: so many rows and
 * columns, and the depth from which tensor maps feed them (mpp_warpgroup.h). */
#define LEAST_TENSOR_SIDE 9
#define LEAST_TENSOR_DEPTH 256

static bool takes_tensor_cores(const struct product *p) {
    return (p->dtype == SMELT_FLOAT16 || p->dtype == SMELT_BFLOAT16) &&
           program_has_warpgroups(p->call->device);
}

/* Whether an operand has a matrix for each product, or one for all. */
static bool has_all_or_one(const struct product *p, const smelt_array *array) {
    if (array->shape.ndim == 2) return true;
    if (array->shape.ndim != p->batch + 2) return false;
    return memcmp(array->shape.size, p->shape.size, (size_t)p->batch * sizeof *p->shape.size) == 0;
}

/* The algorithm of kernels/matmul; NULL: none takes the product, or none is fast. */
static const char *choose(const struct product *p) {
    const smelt_array *x = p->x, *y = p->y;
    int64_t rows = rows_of(p), columns = columns_of(p), elements = rows * columns * products_of(p);
    bool tensor_cores = takes_tensor_cores(p), deep = tensor_cores && p->depth >= LEAST_TENSOR_DEPTH;
    int64_t least = deep ? LEAST_TENSOR_SIDE : LEAST_SIDE;
    if (x->shape.ndim < 2 || y->shape.ndim < 2 || x->dtype != y->dtype) return NULL;
    if (!has_all_or_one(p, x) || !has_all_or_one(p, y)) return NULL;
    if (rows > MATMUL_MOST_SIZE || columns > MATMUL_MOST_SIZE || p->depth > MATMUL_MOST_SIZE) return NULL;
    if (rows < least || columns < least) return NULL;
    if (elements < LEAST_ELEMENTS && elements < LEAST_MULTIPLY_ADDS / p->depth) return NULL;
    if (p->dtype == SMELT_FLOAT32 || tensor_cores) return "best";
    if (p->dtype != SMELT_FLOAT16 && p->dtype != SMELT_BFLOAT16) return NULL;
    return p->batch ? NULL : "tensor_core";
}

/* The tuned form for a single product; false: there is none, or the operation's own choice was tuned. */
static bool find_form(const struct product *p, struct matmul_form *form) {
    struct tune_job job = {"matmul", p->call->device, p->dtype, {rows_of(p), columns_of(p), p->depth}, 3};
    int64_t tuned[SETTING_NUMBERS];
    if (products_of(p) != 1 || !tune_setting(&job, tuned)) return false;
    *form = (struct matmul_form){tuned[0], tuned[1], tuned[2], tuned[3]};
    return matmul_form_exists(p->dtype, form);
}

smelt_status product_on_gpu(const struct product *p, bool *done) {
    const char *name = choose(p);
    struct matmul_form form;
    bool is_best = name && strcmp(name, "best") == 0;
    *done = false;
    if (!(is_best && takes_tensor_cores(p))) TRY(run_thin(p, done));
    if (*done || !name) return SMELT_OK;
    *done = true;
    return product_by_algorithm(p, name, is_best && find_form(p, &form) ? &form : NULL);
}
