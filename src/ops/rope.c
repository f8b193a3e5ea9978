/* Rotary positions: by the kernel of kernels/nn/rope.metal, or composed of other operations. */
#include "array/dtype.h"
#include "kernels/kernel_text.h"
#include "ops/expression.h"
#include "ops/routine_input.h"

#include <math.h>

/* Shared with the kernel. */
struct rope_size {
    uint32_t batches, heads, length, width, dims, offsets;
    float log_base, scale, direction;
};

struct rope {
    struct rope_size size;
    int traditional;
};

/* Inputs: x (…, length, width), offsets of integers, of one element or one per batch, and maybe frequencies.
 */
static smelt_status read(const struct call *call, struct rope *rope) {
    const smelt_apply_desc *desc = call->desc;
    const smelt_array *x = call->inputs[0];
    int64_t dims = desc->starts[0], heads = 1;
    int ndim = x->shape.ndim;
    if (call->count < 2 || call->count > 3)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "rope: %d inputs are given; expected x, offsets and maybe "
                    "frequencies",
                    call->count);
    if (ndim < 2 || !dtype_is_float(x->dtype))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "rope: x has shape %s and dtype %s; expected floats of at least two dimensions",
                    shape_print(&x->shape).text, smelt_dtype_name(x->dtype));
    if (dims < 2 || dims % 2 || dims > x->shape.size[ndim - 1])
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "rope: dims is %lld; expected an even number up to the %lld elements of a row",
                    (long long)dims, (long long)x->shape.size[ndim - 1]);
    for (int d = 1; d < ndim - 2; d++) heads *= x->shape.size[d];
    int64_t batches = ndim > 2 ? x->shape.size[0] : 1;
    const smelt_array *offsets = call->inputs[1];
    if ((offsets->size != 1 && offsets->size != batches) || !dtype_is_integer(offsets->dtype))
        return fail(
            SMELT_ERROR_INVALID_ARGUMENT,
            "rope: offset has shape %s and dtype %s; expected an integer, or one for each of %lld batches",
            shape_print(&offsets->shape).text, smelt_dtype_name(offsets->dtype), (long long)batches);
    if (call->count > 2 && (call->inputs[2]->shape.ndim != 1 || call->inputs[2]->size != dims / 2))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "rope: freqs has shape %s; expected %lld",
                    shape_print(&call->inputs[2]->shape).text, (long long)dims / 2);
    if (call->count == 2 && !(desc->numbers[0] > 0))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "rope: base is %g; expected a number above 0, or freqs",
                    desc->numbers[0]);
    int64_t length = x->shape.size[ndim - 2], width = x->shape.size[ndim - 1];
    if (batches * heads > UINT32_MAX || length > INT32_MAX || width > INT32_MAX)
        return fail(SMELT_ERROR_LIMIT, "rope: x has shape %s; sizes are below 2^31",
                    shape_print(&x->shape).text);
    rope->traditional = desc->starts[1] != 0;
    rope->size = (struct rope_size){(uint32_t)batches,
                                    (uint32_t)heads,
                                    (uint32_t)length,
                                    (uint32_t)width,
                                    (uint32_t)dims,
                                    (uint32_t)offsets->size,
                                    call->count == 2 ? (float)log(desc->numbers[0]) : 0,
                                    (float)desc->numbers[1],
                                    desc->reverse ? -1.0F : 1.0F};
    return SMELT_OK;
}

static smelt_status run_kernel(const struct call *call, const struct rope *rope, const char *entry,
                               smelt_array *const arrays[3], bool frequencies, smelt_dtype dtype,
                               const int64_t grid[3]) {
    const struct routine routine = {.entry = entry,
                                    .texts = {kernel_text_rope},
                                    .types = {{"T", dtype}},
                                    .sizes = {{"TRADITIONAL", rope->traditional},
                                              {"FREQUENCIES", frequencies},
                                              {"PARTIAL", rope->size.dims < rope->size.width}}};
    smelt_dispatch_desc dispatch = {.buffers = {{.array = arrays[0]},
                                                {.array = arrays[1]},
                                                {.array = arrays[2]},
                                                {.bytes = &rope->size, .size = sizeof rope->size}},
                                    .grid = {grid[0], grid[1], grid[2]}};
    routine_group(call, grid, dispatch.threadgroup);
    return routine_run(call, &routine, &dispatch);
}

/* arrays: x, offsets, frequencies or NULL. */
static smelt_status run(const struct call *call, const struct rope *rope, smelt_array *const arrays[3],
                        smelt_array *out) {
    const struct rope_size *size = &rope->size;
    int64_t half = size->dims / 2, tables = size->offsets;
    smelt_shape shape = {4, {2, tables, size->length, half}};
    smelt_array *table;
    TRY(call_output(call, SMELT_FLOAT32, &shape, &table));
    smelt_status status = run_kernel(
        call, rope, "smelt_rope_table", (smelt_array *[3]){arrays[1], arrays[2] ? arrays[2] : table, table},
        arrays[2] != NULL, SMELT_FLOAT32, (int64_t[3]){half, size->length, tables});
    int64_t pairs = half + (size->width - size->dims + 1) / 2;
    if (status == SMELT_OK)
        status =
            run_kernel(call, rope, "smelt_rope", (smelt_array *[3]){arrays[0], table, out}, false, out->dtype,
                       (int64_t[3]){pairs, size->length, (int64_t)size->batches * size->heads});
    smelt_array_release(table);
    return status;
}

smelt_status evaluate_rope(const struct call *call, smelt_array **result) {
    struct rope rope;
    smelt_array *arrays[3] = {0}, *made = NULL, *x = call->inputs[0];
    TRY(read(call, &rope));
    smelt_status status = routine_input(call, x, x->dtype, &arrays[0]);
    if (status == SMELT_OK) status = routine_input(call, call->inputs[1], SMELT_INT32, &arrays[1]);
    if (status == SMELT_OK && call->count > 2)
        status = routine_input(call, call->inputs[2], SMELT_FLOAT32, &arrays[2]);
    if (status == SMELT_OK) status = call_output(call, x->dtype, &x->shape, &made);
    if (status == SMELT_OK) status = run(call, &rope, arrays, made);
    for (int i = 0; i < 3; i++) smelt_array_release(arrays[i]);
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}

/* ---- Composed. */

static smelt_array *range(struct expression *e, smelt_array *like, int64_t count, double step) {
    return expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_ARANGE,
                                             .dtype = like->dtype,
                                             .device = smelt_array_device(like),
                                             .numbers = {0, ((double)count - 0.5) * step, step}});
}

/* Elements first, first + step … of the last dimension, `count` of them. */
static smelt_array *part(struct expression *e, smelt_array *x, int64_t first, int64_t step, int64_t count) {
    smelt_apply_desc desc = {.operation = SMELT_OPERATION_SLICE, .inputs = {x}};
    if (!x) return NULL;
    int last = x->shape.ndim - 1;
    for (int d = 0; d < last; d++) desc.stops[d] = x->shape.size[d], desc.steps[d] = 1;
    desc.starts[last] = first;
    desc.steps[last] = step;
    desc.stops[last] = count ? first + (count - 1) * step + 1 : first;
    return expr_apply(e, &desc);
}

/* Angles of (batches or 1, 1, length, dims / 2). */
static smelt_array *angles(struct expression *e, const struct call *call, const struct rope *rope) {
    smelt_array *x = call->inputs[0];
    int64_t half = rope->size.dims / 2, length = rope->size.length;
    double step = call->count > 2 ? 1 : -2 * log(call->desc->numbers[0]) / (double)rope->size.dims;
    smelt_array *frequency =
        call->count > 2 ? expr_unary(e, SMELT_OPERATION_RECIPROCAL, expr_as(e, call->inputs[2], x))
        : call->desc->numbers[0] == 1 ? expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_ONES,
                                                                          .dtype = x->dtype,
                                                                          .device = smelt_array_device(x),
                                                                          .shape = {1, {half}}})
                                      : expr_unary(e, SMELT_OPERATION_EXP, range(e, x, half, step));
    smelt_array *places = expr_reshape(e, range(e, x, length, 1), &(smelt_shape){4, {1, 1, length, 1}});
    smelt_array *offsets =
        expr_reshape(e, expr_as(e, call->inputs[1], x), &(smelt_shape){4, {call->inputs[1]->size, 1, 1, 1}});
    places = expr_with(e, SMELT_OPERATION_MULTIPLY, expr_binary(e, SMELT_OPERATION_ADD, places, offsets),
                       call->desc->numbers[1]);
    return expr_binary(e, SMELT_OPERATION_MULTIPLY, places,
                       expr_reshape(e, frequency, &(smelt_shape){4, {1, 1, 1, half}}));
}

smelt_status compose_rope(const struct call *call, smelt_array **result) {
    struct expression e = {.device = call->desc->device, .stream = call->desc->stream};
    struct rope rope;
    smelt_array *x = call->inputs[0];
    TRY(read(call, &rope));
    const struct rope_size *size = &rope.size;
    int64_t half = size->dims / 2;
    smelt_array *angle = angles(&e, call, &rope);
    smelt_array *c = expr_unary(&e, SMELT_OPERATION_COS, angle),
                *s = expr_unary(&e, SMELT_OPERATION_SIN, angle);
    if (call->desc->reverse) s = expr_unary(&e, SMELT_OPERATION_NEGATIVE, s);
    smelt_array *rows =
        expr_reshape(&e, x, &(smelt_shape){4, {size->batches, size->heads, size->length, size->width}});
    int64_t step = rope.traditional ? 2 : 1;
    smelt_array *a = part(&e, rows, 0, step, half),
                *b = part(&e, rows, rope.traditional ? 1 : half, step, half);
    smelt_array *first =
        expr_binary(&e, SMELT_OPERATION_SUBTRACT, expr_binary(&e, SMELT_OPERATION_MULTIPLY, a, c),
                    expr_binary(&e, SMELT_OPERATION_MULTIPLY, b, s));
    smelt_array *second =
        expr_binary(&e, SMELT_OPERATION_ADD, expr_binary(&e, SMELT_OPERATION_MULTIPLY, a, s),
                    expr_binary(&e, SMELT_OPERATION_MULTIPLY, b, c));
    smelt_array *turned;
    if (rope.traditional) {
        turned = expr_apply(&e, &(smelt_apply_desc){.operation = SMELT_OPERATION_STACK,
                                                    .inputs = {first, second},
                                                    .axes = {-1},
                                                    .axis_count = 1});
        turned = expr_reshape(&e, turned,
                              &(smelt_shape){4, {size->batches, size->heads, size->length, size->dims}});
    } else {
        turned = expr_apply(&e, &(smelt_apply_desc){.operation = SMELT_OPERATION_CONCATENATE,
                                                    .inputs = {first, second},
                                                    .axes = {-1},
                                                    .axis_count = 1});
    }
    if (size->dims < size->width)
        turned = expr_apply(&e, &(smelt_apply_desc){.operation = SMELT_OPERATION_CONCATENATE,
                                                    .inputs = {turned, part(&e, rows, size->dims, 1,
                                                                            size->width - size->dims)},
                                                    .axes = {-1},
                                                    .axis_count = 1});
    return expr_close(&e, expr_astype(&e, expr_reshape(&e, turned, &x->shape), x->dtype), result);
}
