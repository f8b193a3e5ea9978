/* The Walsh-Hadamard transform of the last dimension: by the kernel of kernels/signal/hadamard.metal;
 * float64, and what does not fit in threadgroup memory, as a product of two smaller transforms. */
#include "array/dtype.h"
#include "kernels/kernel_text.h"
#include "ops/expression.h"
#include "ops/routine_input.h"

#include <string.h>

#define MOST_IN_GROUP 4096
#define MOST_ORDER 28

/* Shared with the kernel. */
struct hadamard_size {
    uint32_t columns;
    float scale;
    uint32_t signs[MOST_ORDER];
};

/* ---- The matrices of 12, 20 and 28 rows: those of mx.hadamard_transform. */

/* Whether element (i, j) is -1. 12: Paley's second construction: a matrix of 6 rows with 0 on its diagonal, 1
 * beside it in the first row and column, and elsewhere whether the difference is a square modulo 5; each
 * element is then one of 2 x 2. 20 and 28: 4 x 4 blocks, each a matrix whose rows are its first row turned
 * (Williamson's way). */
static bool is_minus_of_12(int i, int j) {
    bool both = i % 2 && j % 2;
    int row = i / 2, column = j / 2, apart = (row - column + 5) % 5;
    if (row == column) return i % 2 || j % 2;
    bool square = !row || !column || apart == 1 || apart == 4;
    return square ? both : !both;
}

static bool is_minus(int order, int i, int j) {
    static const char *const blocks[2][16] = {
        {"+----", "-++++", "--++-", "-+--+", "+----", "+----", "+-++-", "--++-", "++--+", "-+--+", "+----",
         "+----", "+-++-", "++--+", "-++++", "+----"},
        {"+------", "--++++-", "-+-++-+", "-++--++", "++----+", "+------", "+--++--", "-+-++-+", "+-+--+-",
         "-++--++", "+------", "++----+", "+--++--", "+-+--+-", "--++++-", "+------"}};
    if (order == 12) return is_minus_of_12(i, j);
    int side = order / 4;
    const char *first = blocks[order == 28][i / side * 4 + j / side];
    return first[(j % side - i % side + side) % side] == '-';
}

/* The order m of the matrix for m 2^k elements; 0: there is none. */
static int order_of(int64_t columns) {
    static const int orders[] = {1, 12, 20, 28};
    while (columns > 0 && columns % 8 == 0) columns /= 2; /* 12, 20 and 28 are multiples of 4 */
    if (columns > 0 && !(columns & (columns - 1))) return 1;
    for (int i = 1; i < 4; i++)
        if (columns == orders[i]) return orders[i];
    return 0;
}

static smelt_status read(const struct call *call, int64_t *columns) {
    const smelt_array *x = call->inputs[0];
    *columns = x->shape.ndim ? x->shape.size[x->shape.ndim - 1] : 0;
    if (!order_of(*columns))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "%s: x has shape %s; expected a last dimension of m 2^k elements, m = 1, 12, 20 or 28",
                    call->name, shape_print(&x->shape).text);
    if (!dtype_is_float(x->dtype))
        return fail(SMELT_ERROR_UNSUPPORTED, "%s: x has dtype %s; expected a float dtype", call->name,
                    smelt_dtype_name(x->dtype));
    return SMELT_OK;
}

/* Of the matrix that a call multiplies by: the transpose with `reverse`. */
static bool minus_in(const struct call *call, int order, int i, int j) {
    return call->desc->reverse ? is_minus(order, j, i) : is_minus(order, i, j);
}

static smelt_status run(const struct call *call, const struct routine_rows *rows, smelt_array *out) {
    struct hadamard_size size = {(uint32_t)rows->columns, (float)call->desc->numbers[0], {0}};
    int order = order_of(rows->columns);
    for (int j = 0; j < order; j++)
        for (int i = 0; i < order; i++)
            size.signs[j] |= (uint32_t)(order > 1 && minus_in(call, order, i, j)) << i;
    const struct routine routine = {.entry = "smelt_hadamard",
                                    .texts = {kernel_text_hadamard},
                                    .types = {{"T", out->dtype}},
                                    .sizes = {{"M", order}}};
    int64_t threads = rows->columns / 4 < 32 ? 32 : rows->columns / 4 > 256 ? 256 : rows->columns / 4;
    return routine_run(
        call, &routine,
        &(smelt_dispatch_desc){
            .buffers = {{.array = rows->array}, {.array = out}, {.bytes = &size, .size = sizeof size}},
            .groups = {rows->rows, 1, 1},
            .threadgroup = {threads, 1, 1}});
}

static smelt_array *again(struct expression *e, const struct call *call, smelt_array *x, double scale) {
    return expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_HADAMARD_TRANSFORM,
                                             .inputs = {x},
                                             .reverse = call->desc->reverse,
                                             .numbers = {scale}});
}

/* The dimension as a x b: the transform of b for each of a, and the other way round. Of float64, two at a
 * time. */
static smelt_status in_two(const struct call *call, int64_t columns, int64_t b, smelt_array **result) {
    struct expression e = {.device = call->desc->device, .stream = call->desc->stream};
    smelt_array *x = call->inputs[0];
    double scale = call->desc->numbers[0];
    int64_t a = columns / b, rows = x->size / columns;
    if (a * b == 2) { /* float64: the sum and the difference */
        smelt_array *halves[2];
        for (int i = 0; i < 2; i++) {
            smelt_apply_desc slice = {.operation = SMELT_OPERATION_SLICE, .inputs = {x}};
            for (int d = 0; d < x->shape.ndim; d++) slice.stops[d] = x->shape.size[d], slice.steps[d] = 1;
            slice.starts[x->shape.ndim - 1] = i;
            slice.stops[x->shape.ndim - 1] = i + 1;
            halves[i] = expr_apply(&e, &slice);
        }
        smelt_array *both = expr_apply(
            &e,
            &(smelt_apply_desc){.operation = SMELT_OPERATION_CONCATENATE,
                                .inputs = {expr_binary(&e, SMELT_OPERATION_ADD, halves[0], halves[1]),
                                           expr_binary(&e, SMELT_OPERATION_SUBTRACT, halves[0], halves[1])},
                                .axes = {-1},
                                .axis_count = 1});
        return expr_close(&e, expr_with(&e, SMELT_OPERATION_MULTIPLY, both, scale), result);
    }
    smelt_array *matrix = again(&e, call, expr_reshape(&e, x, &(smelt_shape){3, {rows, a, b}}), 1);
    matrix = expr_transpose(&e, matrix, (int[]){0, 2, 1});
    matrix = expr_transpose(&e, again(&e, call, matrix, scale), (int[]){0, 2, 1});
    return expr_close(&e, expr_reshape(&e, matrix, &x->shape), result);
}

/* By a product with the matrix. */
static smelt_status by_matrix(const struct call *call, int order, smelt_array **result) {
    struct expression e = {.device = call->desc->device, .stream = call->desc->stream};
    smelt_array *x = call->inputs[0], *matrix;
    float signs[MOST_ORDER * MOST_ORDER];
    for (int i = 0; i < order; i++)
        for (int j = 0; j < order; j++) signs[i * order + j] = minus_in(call, order, i, j) ? -1 : 1;
    TRY(smelt_array_from_values(SMELT_FLOAT32, (smelt_shape){2, {order, order}}, signs, &matrix));
    matrix = expr_keep(&e, matrix);
    smelt_array *product = matrix ? expr_binary(&e, SMELT_OPERATION_MATMUL, x, expr_as(&e, matrix, x)) : NULL;
    return expr_close(&e, expr_with(&e, SMELT_OPERATION_MULTIPLY, product, call->desc->numbers[0]), result);
}

smelt_status compose_hadamard(const struct call *call, smelt_array **result) {
    struct expression e = {.device = call->desc->device, .stream = call->desc->stream};
    int64_t columns;
    TRY(read(call, &columns));
    int order = order_of(columns);
    if (call->inputs[0]->size && order > 1 && columns == order) return by_matrix(call, order, result);
    if (call->inputs[0]->size && columns > 1) {
        int64_t part = columns / order; /* a power of two, which becomes the last dimension */
        return in_two(call, columns, order > 1 ? part : columns / 2, result);
    }
    return expr_close(&e, expr_with(&e, SMELT_OPERATION_MULTIPLY, call->inputs[0], call->desc->numbers[0]),
                      result);
}

smelt_status evaluate_hadamard(const struct call *call, smelt_array **result) {
    struct routine_rows rows;
    smelt_array *x = call->inputs[0], *made = NULL;
    int64_t columns;
    TRY(read(call, &columns));
    if (columns > MOST_IN_GROUP) {
        int64_t b = columns / order_of(columns);
        while (b > MOST_IN_GROUP) b /= 2;
        struct call parts = *call;
        TRY(smelt_array_view(x, x->shape, x->strides, 0,
                             &parts.inputs[0])); /* tapes see this call, not its parts */
        smelt_status status = in_two(&parts, columns, b, result);
        smelt_array_release(parts.inputs[0]);
        return status;
    }
    TRY(routine_rows_open(call, x, UINT32_C(1) << (x->shape.ndim - 1), x->dtype, &rows));
    smelt_status status = call_output(call, x->dtype, &rows.shape, &made);
    if (status == SMELT_OK) status = run(call, &rows, made);
    return routine_rows_close(call, &rows, status, made, result);
}
