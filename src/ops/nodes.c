/* Attention and products with packed matrices as operations, so that graphs have them as nodes: the kernels
 * of attention.c and quantized.c. The same of other operations, for derivatives. */
#include "array/dtype.h"
#include "ops/expression.h"
#include "ops/program.h"

#include <math.h>

static struct expression open(const struct call *call) {
    return (struct expression){.device = call->desc->device, .stream = call->desc->stream};
}

/* ---- Attention: q, k, v, then the mask if starts[1] is 1, or both biases if it is 2, then sinks. */

static smelt_status read_attention(const struct call *call, smelt_attention_desc *desc) {
    static const char *const names[3] = {"", ", mask", ", bias_lines, bias_columns"};
    int64_t more = call->desc->starts[1];
    if (more < 0 || more > 2)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "attention: starts[1] is %lld; expected 0, 1 (a mask) or 2 (biases)", (long long)more);
    bool masked = more == 1, biased = more == 2;
    int sinks = 3 + (int)more;
    if (call->count < sinks || call->count > sinks + 1)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "attention: %d arrays are given; expected q, k, v%s, and sinks or not", call->count,
                    names[more]);
    *desc = (smelt_attention_desc){.q = call->inputs[0],
                                   .k = call->inputs[1],
                                   .v = call->inputs[2],
                                   .mask = masked ? call->inputs[3] : NULL,
                                   .bias_lines = biased ? call->inputs[3] : NULL,
                                   .bias_columns = biased ? call->inputs[4] : NULL,
                                   .sinks = call->count > sinks ? call->inputs[sinks] : NULL,
                                   .scale = call->desc->numbers[0],
                                   .causal = call->desc->starts[0] == 1,
                                   .device = call->device,
                                   .stream = call->desc->stream};
    return SMELT_OK;
}

smelt_status evaluate_attention(const struct call *call, smelt_array **result) {
    smelt_attention_desc desc;
    TRY(read_attention(call, &desc));
    if (!program_is_symbolic(call->device)) return smelt_attention(&desc, result, NULL);
    const smelt_shape *q = &desc.q->shape, *v = &desc.v->shape;
    if (q->ndim != 4 || desc.k->shape.ndim != 4 || v->ndim != 4)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "attention: q, k and v have shapes %s, %s and %s; expected 4 dimensions",
                    shape_print(q).text, shape_print(&desc.k->shape).text, shape_print(v).text);
    smelt_shape shape = {4, {q->size[0], q->size[1], q->size[2], v->size[3]}};
    return call_output(call, desc.q->dtype, &shape, result);
}

/* Row i sees the keys up to i + keys - rows. */
static smelt_array *causal_mask(struct expression *e, int64_t rows, int64_t keys) {
    smelt_array *made;
    if (e->status == SMELT_OK)
        e->status = smelt_array_create(SMELT_BOOL, (smelt_shape){2, {rows, keys}}, &made);
    if (e->status != SMELT_OK) return NULL;
    bool *seen = smelt_array_data(made);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < keys; j++) seen[i * keys + j] = j <= i + keys - rows;
    return expr_keep(e, made);
}

static smelt_array *masked(struct expression *e, smelt_array *scores, smelt_array *mask) {
    if (!mask) return scores;
    if (mask->dtype != SMELT_BOOL) return expr_binary(e, SMELT_OPERATION_ADD, scores, mask);
    return expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_WHERE,
                                             .inputs = {mask, scores, expr_number(e, -(double)INFINITY)},
                                             .weak = 4});
}

/* Adds the biases of each key's line and column to its score; `all` is the shape of the scores. */
static smelt_array *with_biases(struct expression *e, smelt_array *scores, const smelt_attention_desc *desc,
                                const smelt_shape *all) {
    if (!desc->bias_lines) return scores;
    const int64_t *q = all->size;
    int64_t lines = desc->bias_lines->shape.size[3], columns = desc->bias_columns->shape.size[3];
    smelt_array *by_line = expr_reshape(e, expr_astype(e, desc->bias_lines, SMELT_FLOAT32),
                                        &(smelt_shape){5, {q[0], q[1], q[2], lines, 1}});
    smelt_array *by_column = expr_reshape(e, expr_astype(e, desc->bias_columns, SMELT_FLOAT32),
                                          &(smelt_shape){5, {q[0], q[1], q[2], 1, columns}});
    smelt_array *biases = expr_binary(e, SMELT_OPERATION_ADD, by_line, by_column);
    return expr_binary(e, SMELT_OPERATION_ADD, scores, expr_reshape(e, biases, all));
}

/* x, or `other` where it is `value`. */
static smelt_array *replaced(struct expression *e, smelt_array *x, double value, double other) {
    return expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_WHERE,
                                             .inputs = {expr_with(e, SMELT_OPERATION_EQUAL, x, value),
                                                        expr_number(e, other), x},
                                             .weak = 2});
}

smelt_status compose_attention(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    smelt_attention_desc desc;
    TRY(read_attention(call, &desc));
    const int64_t *q = desc.q->shape.size, *k = desc.k->shape.size;
    smelt_shape all = {4, {q[0], q[1], q[2], k[2]}}, results = {4, {q[0], q[1], q[2], desc.v->shape.size[3]}};
    /* The heads of q that share one of k are rows of one product. */
    smelt_shape together = {4, {q[0], k[1], q[1] / k[1] * q[2], q[3]}};
    smelt_array *rows =
        expr_with(&e, SMELT_OPERATION_MULTIPLY, expr_astype(&e, desc.q, SMELT_FLOAT32), desc.scale);
    smelt_array *keys = expr_transpose(&e, expr_astype(&e, desc.k, SMELT_FLOAT32), (int[]){0, 1, 3, 2});
    smelt_array *scores = expr_binary(&e, SMELT_OPERATION_MATMUL, expr_reshape(&e, rows, &together), keys);
    scores = with_biases(&e, masked(&e, expr_reshape(&e, scores, &all), desc.mask), &desc, &all);
    if (desc.causal) scores = masked(&e, scores, causal_mask(&e, q[2], k[2]));
    /* The result does not depend on what is subtracted, which only keeps exponentials small. */
    smelt_array *top =
        expr_reduce(&e, SMELT_OPERATION_MAX, expr_unary(&e, SMELT_OPERATION_STOP_GRADIENT, scores), 8, true);
    smelt_array *sinks = desc.sinks ? expr_reshape(&e, desc.sinks, &(smelt_shape){4, {1, q[1], 1, 1}}) : NULL;
    if (sinks)
        top = expr_binary(&e, SMELT_OPERATION_MAXIMUM, top,
                          expr_unary(&e, SMELT_OPERATION_STOP_GRADIENT, sinks));
    top = replaced(&e, top, -(double)INFINITY, 0);
    smelt_array *weights =
        expr_unary(&e, SMELT_OPERATION_EXP, expr_binary(&e, SMELT_OPERATION_SUBTRACT, scores, top));
    smelt_array *total = expr_reduce(&e, SMELT_OPERATION_SUM, weights, 8, true);
    if (sinks)
        total = expr_binary(
            &e, SMELT_OPERATION_ADD, total,
            expr_unary(&e, SMELT_OPERATION_EXP, expr_binary(&e, SMELT_OPERATION_SUBTRACT, sinks, top)));
    together.size[3] = k[2];
    smelt_array *values = expr_binary(&e, SMELT_OPERATION_MATMUL, expr_reshape(&e, weights, &together),
                                      expr_astype(&e, desc.v, SMELT_FLOAT32));
    values = expr_binary(&e, SMELT_OPERATION_DIVIDE, expr_reshape(&e, values, &results),
                         replaced(&e, total, 0, 1));
    return expr_close(&e, expr_astype(&e, values, desc.q->dtype), result);
}

/* ---- Products with a packed matrix: x, w, scales[, biases]; starts as of dequantize. */

smelt_status evaluate_quantized_matmul(const struct call *call, smelt_array **result) {
    const smelt_array *x = call->inputs[0], *w = call->count > 1 ? call->inputs[1] : NULL;
    if (call->count < 3 || call->count > 4)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "%s: %d arrays are given; expected x, w, scales, and biases or not", call->name,
                    call->count);
    const smelt_quantized_matmul_desc desc = {.x = call->inputs[0],
                                              .w = call->inputs[1],
                                              .scales = call->inputs[2],
                                              .biases = call->count > 3 ? call->inputs[3] : NULL,
                                              .bits = (int)call->desc->starts[0],
                                              .group_size = (int)call->desc->starts[1],
                                              .mode = (smelt_quantized_mode)call->desc->starts[2],
                                              .device = call->device,
                                              .stream = call->desc->stream};
    if (!program_is_symbolic(call->device)) return smelt_quantized_matmul(&desc, result);
    if (x->shape.ndim < 1 || w->shape.ndim != 2)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "%s: x has shape %s and w %s; expected 1 dimension or more, and 2", call->name,
                    shape_print(&x->shape).text, shape_print(&w->shape).text);
    smelt_shape shape = x->shape;
    shape.size[shape.ndim - 1] = w->shape.size[0];
    return call_output(call, x->dtype, &shape, result);
}

smelt_status compose_quantized_matmul(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    smelt_array *x = call->inputs[0];
    smelt_apply_desc desc = {.operation = SMELT_OPERATION_DEQUANTIZE, .dtype = SMELT_FLOAT32};
    for (int i = 0; i < 3; i++) desc.starts[i] = call->desc->starts[i];
    for (int i = 1; i < call->count; i++) desc.inputs[i - 1] = call->inputs[i];
    smelt_array *weights = expr_transpose(&e, expr_apply(&e, &desc), (int[]){1, 0});
    smelt_array *product =
        expr_binary(&e, SMELT_OPERATION_MATMUL, expr_astype(&e, x, SMELT_FLOAT32), weights);
    return expr_close(&e, expr_astype(&e, product, x->dtype), result);
}
