/* Softmax's relatives and norms composed of other operations: what computes float64, and derivatives of
 * derivatives. The same formulas as kernels/nn, in plain sight. */
#include "array/dtype.h"
#include "ops/expression.h"

static struct expression open(const struct call *call) {
    return (struct expression){.device = call->desc->device, .stream = call->desc->stream};
}

static bool is_small(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT16 || dtype == SMELT_BFLOAT16;
}

/* In the dtype to compute in: float32 for halfs and integers. */
static smelt_array *widened(struct expression *e, smelt_array *x) {
    if (!x) return NULL;
    return is_small(x->dtype) || !dtype_is_inexact(x->dtype) ? expr_astype(e, x, SMELT_FLOAT32) : x;
}

static smelt_dtype result_of(smelt_dtype dtype) {
    return dtype_is_inexact(dtype) ? dtype : SMELT_FLOAT32;
}

/* ---- Softmax. */

smelt_status compose_log_softmax(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    uint32_t axes;
    TRY(call_axes(call, call->inputs[0]->shape.ndim, &axes));
    smelt_array *x = widened(&e, call->inputs[0]);
    smelt_array *value = x && x->size ? expr_binary(&e, SMELT_OPERATION_SUBTRACT, x,
                                                    expr_reduce(&e, SMELT_OPERATION_LOGSUMEXP, x, axes, true))
                                      : expr_unary(&e, SMELT_OPERATION_EXP, x);
    return expr_close(&e, expr_astype(&e, value, result_of(call->inputs[0]->dtype)), result);
}

/* y (g - sum(y g)); for the logarithm g - exp(y) sum(g). */
smelt_status compose_softmax_vjp(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    uint32_t axes;
    TRY(call_axes(call, call->inputs[0]->shape.ndim, &axes));
    smelt_array *y = widened(&e, call->inputs[0]), *g = widened(&e, call->inputs[1]), *value;
    if (call->desc->operation == SMELT_OPERATION_LOG_SOFTMAX_VJP) {
        smelt_array *sum = expr_reduce(&e, SMELT_OPERATION_SUM, g, axes, true);
        value = expr_binary(
            &e, SMELT_OPERATION_SUBTRACT, g,
            expr_binary(&e, SMELT_OPERATION_MULTIPLY, expr_unary(&e, SMELT_OPERATION_EXP, y), sum));
    } else {
        smelt_array *sum =
            expr_reduce(&e, SMELT_OPERATION_SUM, expr_binary(&e, SMELT_OPERATION_MULTIPLY, y, g), axes, true);
        value =
            expr_binary(&e, SMELT_OPERATION_MULTIPLY, y, expr_binary(&e, SMELT_OPERATION_SUBTRACT, g, sum));
    }
    return expr_close(&e, expr_astype(&e, value, call->inputs[0]->dtype), result);
}

/* ---- Norms over the last dimension. */

static smelt_array *mean(struct expression *e, smelt_array *x) {
    if (!x) return NULL;
    return expr_reduce(e, SMELT_OPERATION_MEAN, x, UINT32_C(1) << (x->shape.ndim - 1), true);
}

/* x without its mean (layer norm), and 1 / sqrt(mean square + eps) of that. */
static smelt_array *centred(struct expression *e, smelt_array *x, bool layer, double eps,
                            smelt_array **scale) {
    if (layer) x = expr_binary(e, SMELT_OPERATION_SUBTRACT, x, mean(e, x));
    *scale =
        expr_unary(e, SMELT_OPERATION_RSQRT,
                   expr_with(e, SMELT_OPERATION_ADD, mean(e, expr_unary(e, SMELT_OPERATION_SQUARE, x)), eps));
    return x;
}

static smelt_status check(const struct call *call) {
    const smelt_array *x = call->inputs[0];
    if (x->shape.ndim < 1 || call->count > 3)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "%s: %d inputs are given and x has %d dimensions; expected at most 3 inputs, at least 1 "
                    "dimension",
                    call->name, call->count, x->shape.ndim);
    for (int i = 1; i < call->count; i++)
        if (call->inputs[i]->shape.ndim != 1 || call->inputs[i]->size != x->shape.size[x->shape.ndim - 1])
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: %s has shape %s; expected %lld, as x has shape %s",
                        call->name, i == 1 ? "weight" : "bias", shape_print(&call->inputs[i]->shape).text,
                        (long long)x->shape.size[x->shape.ndim - 1], shape_print(&x->shape).text);
    return SMELT_OK;
}

smelt_status compose_norm(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    smelt_dtype dtype;
    TRY(check(call));
    TRY(call_dtype(call, 0, call->count, &dtype));
    dtype = result_of(dtype);
    smelt_dtype wide = is_small(dtype) ? SMELT_FLOAT32 : dtype;
    smelt_array *scale, *x = expr_astype(&e, call->inputs[0], wide);
    x = centred(&e, x, call->desc->operation == SMELT_OPERATION_LAYER_NORM, call->desc->numbers[0], &scale);
    smelt_array *y = expr_binary(&e, SMELT_OPERATION_MULTIPLY, x, scale);
    if (call->count > 1)
        y = expr_binary(&e, SMELT_OPERATION_MULTIPLY, y, expr_astype(&e, call->inputs[1], wide));
    if (call->count > 2) y = expr_binary(&e, SMELT_OPERATION_ADD, y, expr_astype(&e, call->inputs[2], wide));
    return expr_close(&e, expr_astype(&e, y, dtype), result);
}

/* With h = g weight and n the normalised row: (h - mean(h) - n mean(h n)) scale, without mean(h) for RMS
 * norm. Inputs: x, g, and maybe weight. */
smelt_status compose_norm_vjp(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    bool layer = call->desc->operation == SMELT_OPERATION_LAYER_NORM_VJP;
    smelt_array *scale, *x = widened(&e, call->inputs[0]), *h = widened(&e, call->inputs[1]);
    if (call->count > 2) h = expr_binary(&e, SMELT_OPERATION_MULTIPLY, h, widened(&e, call->inputs[2]));
    smelt_array *n = centred(&e, x, layer, call->desc->numbers[0], &scale);
    n = expr_binary(&e, SMELT_OPERATION_MULTIPLY, n, scale);
    smelt_array *along = mean(&e, expr_binary(&e, SMELT_OPERATION_MULTIPLY, h, n));
    smelt_array *rest =
        expr_binary(&e, SMELT_OPERATION_SUBTRACT, h, expr_binary(&e, SMELT_OPERATION_MULTIPLY, n, along));
    if (layer) rest = expr_binary(&e, SMELT_OPERATION_SUBTRACT, rest, mean(&e, h));
    return expr_close(
        &e, expr_astype(&e, expr_binary(&e, SMELT_OPERATION_MULTIPLY, rest, scale), call->inputs[0]->dtype),
        result);
}
