/* Derivatives of the recorded operations. */
#ifndef SMELT_AUTODIFF_RULES_H
#define SMELT_AUTODIFF_RULES_H

#include "ops/expression.h"
#include "autodiff/tape.h"

/* How tangents go through an operation. */
enum linearity {
    LINEAR_NOT = 0,     /* as the VJP's own VJP */
    LINEAR_ELEMENTWISE, /* the VJP's rule is multiplication by the derivative: it serves tangents too */
    LINEAR_JOINTLY, /* in all its differentiable inputs together: applied to tangents, zeros where there is
                       none */
    LINEAR_EACH     /* in each of them: applied with one input replaced, summed */
};

struct rule {
    /* The gradient by input `input` for the cotangent g of the result: it may still have to be summed over
     * what was broadcast and converted. NULL: the derivative is 0. Called for inputs that have derivatives
     * only. */
    smelt_array *(*vjp)(struct expression *e, const struct node *node, int input, smelt_array *g);
    enum linearity linearity;
};

/* NULL: no derivative flows (the result is of integers or bools). */
const struct rule *rule_find(smelt_operation operation);

/* Families of rules, by file. */
typedef smelt_array *vjp_rule(struct expression *e, const struct node *node, int input, smelt_array *g);
vjp_rule vjp_unary, vjp_binary, vjp_where, vjp_astype;
vjp_rule vjp_sum, vjp_prod, vjp_extreme, vjp_cumsum, vjp_cumprod, vjp_cumulative_extreme;
vjp_rule vjp_reshape, vjp_transpose, vjp_broadcast_to, vjp_slice, vjp_concatenate, vjp_slice_update, vjp_pad;
vjp_rule vjp_gather, vjp_scatter, vjp_scatter_sum, vjp_matmul;

#endif
