/* Derivatives of operations on complex64. A complex number counts as two real ones: the gradient of a real
 * function by z = x + iy is its derivative by x plus i times that by y, the direction in which it grows
 * fastest, as in PyTorch. A VJP is therefore the adjoint of the linear map between pairs of real numbers:
 * for an operation with a complex derivative, multiplication by that derivative's conjugate. */
#include "autodiff/rules.h"
#include "autodiff/sweep.h"

enum complex_rule {
    COMPLEX_NONE = 0,
    COMPLEX_SAME,      /* moves or adds elements: the rule of real numbers */
    COMPLEX_CONJUGATE, /* the rule of real numbers, on conjugates of inputs and outputs */
    COMPLEX_OWN
};

/* clang-format off */
static enum complex_rule rule_of(smelt_operation operation) {
    static const unsigned char table[SMELT_OPERATION_END] = {
#define IS(upper, rule) [SMELT_OPERATION_##upper] = COMPLEX_##rule
        IS(ADD, SAME), IS(SUBTRACT, SAME), IS(NEGATIVE, SAME), IS(IDENTITY, SAME), IS(ASTYPE, SAME),
        IS(WHERE, SAME), IS(SUM, SAME), IS(RESHAPE, SAME), IS(TRANSPOSE, SAME), IS(BROADCAST_TO, SAME),
        IS(SLICE, SAME), IS(SLICE_UPDATE, SAME), IS(CONCATENATE, SAME), IS(PAD, SAME), IS(GATHER, SAME),
        IS(SCATTER_SUM, SAME), IS(CONTIGUOUS, SAME), IS(FFT, SAME),
        IS(MULTIPLY, CONJUGATE), IS(DIVIDE, CONJUGATE), IS(SQUARE, CONJUGATE), IS(RECIPROCAL, CONJUGATE),
        IS(MATMUL, CONJUGATE),
        IS(REAL, OWN), IS(IMAG, OWN), IS(CONJUGATE, OWN), IS(ABS, OWN),
#undef IS
    };
    return (enum complex_rule)table[operation];
}
/* clang-format on */

bool node_is_complex(const struct node *node) {
    bool found = false;
    for (int i = 0; i < node->input_count; i++) found |= node->inputs[i]->dtype == SMELT_COMPLEX64;
    for (int o = 0; o < node->output_count; o++) found |= node->outputs[o]->dtype == SMELT_COMPLEX64;
    return found;
}

smelt_status node_refuse_complex(const struct node *node) {
    if (!node_is_complex(node) || (!node->custom && rule_of(node->desc.operation))) return SMELT_OK;
    return fail(SMELT_ERROR_UNSUPPORTED, "%s has no derivative by or of complex64 arrays",
                node->custom ? node->custom->name : smelt_operation_name(node->desc.operation));
}

static smelt_array *times_i(struct expression *e, smelt_array *g) {
    const float unit[2] = {0, 1};
    smelt_array *i;
    if (e->status != SMELT_OK) return NULL;
    e->status = smelt_array_from_values(SMELT_COMPLEX64, (smelt_shape){.ndim = 0}, unit, &i);
    return e->status == SMELT_OK ? expr_binary(e, SMELT_OPERATION_MULTIPLY, g, expr_keep(e, i)) : NULL;
}

/* z / |z|, 0 at 0. */
static smelt_array *direction(struct expression *e, smelt_array *z, smelt_array *size, smelt_array *g) {
    smelt_array *scale = expr_apply(
        e, &(smelt_apply_desc){.operation = SMELT_OPERATION_WHERE,
                               .inputs = {expr_with(e, SMELT_OPERATION_EQUAL, size, 0), expr_number(e, 0),
                                          expr_binary(e, SMELT_OPERATION_DIVIDE, g, size)},
                               .weak = 2});
    return expr_binary(e, SMELT_OPERATION_MULTIPLY, z, scale);
}

static smelt_array *own(struct expression *e, const struct node *node, smelt_array *g) {
    switch (node->desc.operation) {
    case SMELT_OPERATION_IMAG:
        return times_i(e, g);
    case SMELT_OPERATION_CONJUGATE:
        return expr_unary(e, SMELT_OPERATION_CONJUGATE, g);
    case SMELT_OPERATION_ABS:
        return direction(e, node->inputs[0], node->outputs[0], g);
    default: /* REAL: converted to complex64 by the caller */
        return g;
    }
}

static smelt_array *conjugate(struct expression *e, smelt_array *x) {
    return x->dtype == SMELT_COMPLEX64 ? expr_unary(e, SMELT_OPERATION_CONJUGATE, x) : x;
}

smelt_array *vjp_of_complex(struct expression *e, const struct node *node, int input, smelt_array *g) {
    enum complex_rule rule = rule_of(node->desc.operation);
    if (rule == COMPLEX_OWN) return own(e, node, g);
    vjp_rule *real = rule_find(node->desc.operation)->vjp;
    if (rule == COMPLEX_SAME) return real(e, node, input, g);
    struct node seen = *node;
    smelt_array *output = conjugate(e, node->outputs[0]);
    seen.inputs = seen.desc.inputs;
    seen.outputs = &output;
    for (int i = 0; i < node->input_count; i++) seen.inputs[i] = conjugate(e, node->inputs[i]);
    return e->status == SMELT_OK ? real(e, &seen, input, g) : NULL;
}
