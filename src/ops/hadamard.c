/* The Walsh-Hadamard transform of the last dimension: by the kernel of kernels/signal/hadamard.metal;
 * float64, and what does not fit in threadgroup memory, as a product of two smaller transforms. */
#include "array/dtype.h"
#include "kernels/kernel_text.h"
#include "ops/expression.h"
#include "ops/routine_input.h"

#define MOST_IN_GROUP 4096

/* Shared with the kernel. */
struct hadamard_size {
    uint32_t columns;
    float scale;
};

static smelt_status read(const struct call *call, int64_t *columns) {
    const smelt_array *x = call->inputs[0];
    *columns = x->shape.ndim ? x->shape.size[x->shape.ndim - 1] : 0;
    if (*columns < 1 || *columns & (*columns - 1))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "%s: x has shape %s; expected a last dimension of 2^k elements", call->name,
                    shape_print(&x->shape).text);
    if (!dtype_is_float(x->dtype))
        return fail(SMELT_ERROR_UNSUPPORTED, "%s: x has dtype %s; expected a float dtype", call->name,
                    smelt_dtype_name(x->dtype));
    return SMELT_OK;
}

static smelt_status run(const struct call *call, const struct routine_rows *rows, smelt_array *out) {
    const struct hadamard_size size = {(uint32_t)rows->columns, (float)call->desc->numbers[0]};
    const struct routine routine = {
        .entry = "smelt_hadamard", .texts = {kernel_text_hadamard}, .types = {{"T", out->dtype}}};
    int64_t threads = rows->columns / 4 < 32 ? 32 : rows->columns / 4 > 256 ? 256 : rows->columns / 4;
    return routine_run(
        call, &routine,
        &(smelt_dispatch_desc){
            .buffers = {{.array = rows->array}, {.array = out}, {.bytes = &size, .size = sizeof size}},
            .groups = {rows->rows, 1, 1},
            .threadgroup = {threads, 1, 1}});
}

static smelt_array *again(struct expression *e, smelt_array *x, double scale) {
    return expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_HADAMARD_TRANSFORM,
                                             .inputs = {x},
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
    smelt_array *matrix = again(&e, expr_reshape(&e, x, &(smelt_shape){3, {rows, a, b}}), 1);
    matrix = expr_transpose(&e, matrix, (int[]){0, 2, 1});
    matrix = expr_transpose(&e, again(&e, matrix, scale), (int[]){0, 2, 1});
    return expr_close(&e, expr_reshape(&e, matrix, &x->shape), result);
}

smelt_status compose_hadamard(const struct call *call, smelt_array **result) {
    struct expression e = {.device = call->desc->device, .stream = call->desc->stream};
    int64_t columns;
    TRY(read(call, &columns));
    if (call->inputs[0]->size && columns > 1) return in_two(call, columns, columns / 2, result);
    return expr_close(&e, expr_with(&e, SMELT_OPERATION_MULTIPLY, call->inputs[0], call->desc->numbers[0]),
                      result);
}

smelt_status evaluate_hadamard(const struct call *call, smelt_array **result) {
    struct routine_rows rows;
    smelt_array *x = call->inputs[0], *made = NULL;
    int64_t columns;
    TRY(read(call, &columns));
    if (columns > MOST_IN_GROUP) {
        int64_t b = MOST_IN_GROUP;
        while (columns / b > MOST_IN_GROUP) b *= 2;
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
