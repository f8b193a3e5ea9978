/* Products of matrices: by tiles where that is possible, on GPUs by kernels/matmul, else by the plain kernel
 * kernels/linalg/matmul.body.
 */
#include "array/dtype.h"
#include "kernels/kernel_text.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/thin.h"
#include "ops/map.h"
#include "ops/product.h"

#include <string.h>

static smelt_status read_matrices(const struct call *call, struct product *m) {
    const smelt_array *x = call->inputs[0], *y = call->inputs[1];
    int xn = x->shape.ndim, yn = y->shape.ndim;
    if (!xn || !yn)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "matmul: input %d has no dimensions", xn ? 1 : 0);
    int64_t depth = x->shape.size[xn - 1], other = y->shape.size[yn > 1 ? yn - 2 : 0];
    if (depth != other)
        return fail(
            SMELT_ERROR_INVALID_ARGUMENT, "matmul: shapes %s and %s do not match: %lld columns and %lld rows",
            shape_print(&x->shape).text, shape_print(&y->shape).text, (long long)depth, (long long)other);
    smelt_shape batches[2] = {x->shape, y->shape};
    batches[0].ndim = xn > 2 ? xn - 2 : 0;
    batches[1].ndim = yn > 2 ? yn - 2 : 0;
    smelt_status status = smelt_result_shape(batches, 2, &m->shape);
    if (status != SMELT_OK) return fail_within(status, "matmul, of the dimensions before the last two");
    m->batch = m->shape.ndim;
    m->depth = depth;
    for (int i = 0; i < 2; i++) {
        const smelt_array *array = i ? y : x;
        int64_t *strides = i ? m->y_strides : m->x_strides;
        smelt_array batch = *array;
        batch.shape = batches[i];
        map_broadcast(&batch, &m->shape, strides);
        strides[m->batch] = strides[m->batch + 1] = 0;
    }
    if (xn > 1) m->x_strides[m->batch] = x->strides[xn - 2];
    if (yn > 1) m->y_strides[m->batch + 1] = y->strides[yn - 1];
    m->x_depth = x->strides[xn - 1];
    m->y_depth = y->strides[yn > 1 ? yn - 2 : 0];
    m->shape.size[m->batch] = xn > 1 ? x->shape.size[xn - 2] : 1;
    m->shape.size[m->batch + 1] = yn > 1 ? y->shape.size[yn - 1] : 1;
    m->shape.ndim = m->batch + 2;
    return SMELT_OK;
}

static void write_matmul(struct text *text, const struct map *map) {
    smelt_dtype common = (smelt_dtype)(map->key.form & 0xff);
    program_typedef(text, "P", common);
    program_typedef(text, "C", program_compute_dtype(common));
    text_add(text, kernel_text_matmul);
}

static void multiply_on_host(const struct product *p) {
    const smelt_array *x = p->x, *y = p->y;
    struct walk a = walk_begin(&p->shape, p->x_strides), b = walk_begin(&p->shape, p->y_strides);
    int64_t x_bytes = (int64_t)smelt_dtype_bytes(x->dtype), y_bytes = (int64_t)smelt_dtype_bytes(y->dtype);
    for (int64_t i = 0; i < p->result->size; i++, walk_next(&a), walk_next(&b)) {
        double sum = 0;
        for (int64_t k = 0; k < p->depth; k++)
            sum += element_as_real(element_load(x->dtype, x->data + (a.offset + k * p->x_depth) * x_bytes)) *
                   element_as_real(element_load(y->dtype, y->data + (b.offset + k * p->y_depth) * y_bytes));
        ((double *)p->result->data)[i] = sum;
    }
}

/* The result without the dimensions that stood for those of vectors. */
static smelt_shape final_shape(const struct call *call, const struct product *m) {
    smelt_shape shape = {.ndim = m->batch};
    memcpy(shape.size, m->shape.size, sizeof shape.size);
    if (call->inputs[0]->shape.ndim > 1) shape.size[shape.ndim++] = m->shape.size[m->batch];
    if (call->inputs[1]->shape.ndim > 1) shape.size[shape.ndim++] = m->shape.size[m->batch + 1];
    return shape;
}

static smelt_status run_plain(const struct product *p) {
    const struct call *call = p->call;
    struct map map = {.name = call->name,
                      .key = {.operation = SMELT_OPERATION_MATMUL, .form = (uint16_t)p->dtype},
                      .device = call->device,
                      .stream = call->desc->stream,
                      .space = p->shape,
                      .operand_count = 3,
                      .operands = {{.array = p->x}, {.array = p->y}, {.array = p->result, .written = true}},
                      .number_count = 3,
                      .numbers = {p->depth, p->x_depth, p->y_depth},
                      .write = write_matmul};
    memcpy(map.operands[0].strides, p->x_strides, sizeof p->x_strides);
    memcpy(map.operands[1].strides, p->y_strides, sizeof p->y_strides);
    shape_strides(&p->shape, map.operands[2].strides);
    return map_run(&map);
}

const char *smelt_matmul_algorithm(int index) {
    return matmul_name(index);
}

static smelt_status check_algorithm(const struct product *p) {
    const char *wanted = p->call->desc->algorithm;
    bool known = false;
    struct text names = {0};
    for (int i = 0; matmul_name(i); i++) {
        known |= strcmp(matmul_name(i), wanted) == 0;
        text_addf(&names, "%s%s", i ? ", " : "", matmul_name(i));
    }
    bool matrices = p->x->shape.ndim == 2 && p->y->shape.ndim == 2, equal = p->x->dtype == p->y->dtype;
    smelt_status status = SMELT_OK;
    if (!known)
        status = fail(SMELT_ERROR_INVALID_ARGUMENT, "matmul: algorithm '%s' is unknown; expected one of %s",
                      wanted, text_string(&names));
    else if (!matrices)
        status = fail(SMELT_ERROR_INVALID_ARGUMENT,
                      "matmul: algorithm '%s' multiplies two matrices; the shapes are %s and %s", wanted,
                      shape_print(&p->x->shape).text, shape_print(&p->y->shape).text);
    else if (!equal || (p->dtype != SMELT_FLOAT32 && p->dtype != SMELT_FLOAT16 && p->dtype != SMELT_BFLOAT16))
        status = fail(
            SMELT_ERROR_INVALID_ARGUMENT,
            "matmul: algorithm '%s' has no product of %s and %s; expected both float32, float16 or bfloat16",
            wanted, smelt_dtype_name(p->x->dtype), smelt_dtype_name(p->y->dtype));
    else if (p->depth > INT32_MAX || p->shape.size[0] > INT32_MAX || p->shape.size[1] > INT32_MAX)
        status =
            fail(SMELT_ERROR_LIMIT,
                 "matmul: algorithm '%s' takes fewer than 2^31 rows and columns; the shapes are %s and %s",
                 wanted, shape_print(&p->x->shape).text, shape_print(&p->y->shape).text);
    text_free(&names);
    return status;
}

/* One of kernels/matmul, by name. */
static smelt_status run_algorithm(const struct product *p, const char *name) {
    const struct call *call = p->call;
    smelt_array *x = NULL, *y = NULL;
    smelt_status status = call_contiguous(call, p->x, &x);
    if (status == SMELT_OK) status = call_contiguous(call, p->y, &y);
    if (status == SMELT_OK)
        status = matmul_run(&(struct matmul_desc){.algorithm = name,
                                                  .a = x,
                                                  .b = y,
                                                  .c = p->result,
                                                  .device = call->device,
                                                  .stream = call->desc->stream});
    smelt_array_release(x);
    smelt_array_release(y);
    return status;
}

/* Products with fewer elements leave most of a GPU idle if tiles are as large as those of kernels/matmul,
 * unless the depth makes up for it. */
#define LEAST_SIDE 32
#define LEAST_ELEMENTS (512 * 512)
#define LEAST_MULTIPLY_ADDS (1 << 24)

/* Whether an operand has a matrix for each product, or one for all. */
static bool has_all_or_one(const struct product *p, const smelt_array *array) {
    if (array->shape.ndim == 2) return true;
    if (array->shape.ndim != p->batch + 2) return false;
    return memcmp(array->shape.size, p->shape.size, (size_t)p->batch * sizeof *p->shape.size) == 0;
}

/* The fastest of kernels/matmul on a GPU; NULL: the plain kernel. */
static const char *choose_on_gpu(const struct product *p) {
    const smelt_array *x = p->x, *y = p->y;
    int64_t rows = p->shape.size[p->batch], columns = p->shape.size[p->batch + 1], elements = rows * columns;
    if (x->shape.ndim < 2 || y->shape.ndim < 2 || x->dtype != y->dtype) return NULL;
    if (!has_all_or_one(p, x) || !has_all_or_one(p, y)) return NULL;
    if (rows > INT32_MAX || columns > INT32_MAX || p->depth > INT32_MAX) return NULL;
    for (int i = 0; i < p->batch; i++) elements *= p->shape.size[i];
    if (rows < LEAST_SIDE || columns < LEAST_SIDE) return NULL;
    if (elements < LEAST_ELEMENTS && elements < LEAST_MULTIPLY_ADDS / p->depth) return NULL;
    if (p->dtype == SMELT_FLOAT32) return "best";
    if (p->dtype != SMELT_FLOAT16 && p->dtype != SMELT_BFLOAT16) return NULL;
    if (program_has_warpgroups(p->call->device)) return "best";
    return p->batch ? NULL : "tensor_core";
}

/* ---- Few rows or columns on a GPU. */

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

static smelt_status multiply(const struct product *p) {
    const struct call *call = p->call;
    bool host = program_is_host(call->device), done = false;
    if (call->desc->algorithm) TRY(check_algorithm(p));
    if (program_is_symbolic(call->device)) return SMELT_OK;
    if (p->dtype == SMELT_FLOAT64 && !host)
        return fail(SMELT_ERROR_UNSUPPORTED, "matmul: float64 is supported on the host only");
    if (p->dtype == SMELT_FLOAT64) {
        multiply_on_host(p);
        return SMELT_OK;
    }
    if (!p->result->size) return SMELT_OK;
    if (!p->depth) return array_fill_on(p->result, call->desc->stream, 0);
    if (call->desc->algorithm) return run_algorithm(p, call->desc->algorithm);
    if (host && product_by_vendor(p)) return SMELT_OK;
    if (!host) TRY(run_thin(p, &done));
    if (done) return SMELT_OK;
    const char *name = host ? NULL : choose_on_gpu(p);
    if (name) return run_algorithm(p, name);
    if (host) TRY(product_by_tiles(p, &done));
    return done ? SMELT_OK : run_plain(p);
}

smelt_status evaluate_matmul(const struct call *call, smelt_array **result) {
    struct product p = {.call = call, .x = call->inputs[0], .y = call->inputs[1]};
    TRY(call_dtype(call, 0, 2, &p.dtype));
    TRY(read_matrices(call, &p));
    smelt_shape shape = final_shape(call, &p);
    TRY(call_output(call, p.dtype, &shape, &p.result));
    smelt_status status = multiply(&p);
    if (status == SMELT_OK)
        *result = p.result;
    else
        smelt_array_release(p.result);
    return status;
}
