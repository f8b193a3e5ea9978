/* Products of matrices: by tiles where that is possible, on GPUs by kernels/matmul, else by the plain kernel
 * kernels/linalg/matmul.body.
 */
#include "array/dtype.h"
#include "kernels/kernel_text.h"
#include "kernels/matmul/matmul.h"
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
    else if (p->depth > MATMUL_MOST_SIZE || p->shape.size[0] > MATMUL_MOST_SIZE ||
             p->shape.size[1] > MATMUL_MOST_SIZE)
        status =
            fail(SMELT_ERROR_LIMIT,
                 "matmul: algorithm '%s' takes at most %d rows and columns; the shapes are %s and %s", wanted,
                 MATMUL_MOST_SIZE, shape_print(&p->x->shape).text, shape_print(&p->y->shape).text);
    text_free(&names);
    return status;
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
    if (call->desc->algorithm) return product_by_algorithm(p, call->desc->algorithm, NULL);
    if (host && product_by_vendor(p)) return SMELT_OK;
    TRY(host ? product_by_tiles(p, &done) : product_on_gpu(p, &done));
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
