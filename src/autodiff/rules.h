/* Derivatives of the recorded operations. */
#ifndef SMELT_AUTODIFF_RULES_H
#define SMELT_AUTODIFF_RULES_H

#include "ops/expression.h"
#include "autodiff/tape.h"

/* How an operation propagates tangents. */
enum linearity {
    LINEAR_NOT = 0,     /* as the VJP's own VJP */
    LINEAR_ELEMENTWISE, /* the VJP's rule is multiplication by the derivative: it serves tangents too */
    LINEAR_JOINTLY, /* in all its differentiable inputs together: applied to tangents, zeros where there is
                       none */
    LINEAR_EACH     /* in each of them: applied with one input replaced, summed */
};

struct rule {
    /* The gradient by input `input` for the cotangent g of the result: the caller sums it over broadcast
     * dimensions and converts it. NULL: the derivative is 0. Called only for inputs that have derivatives. */
    smelt_array *(*vjp)(struct expression *e, const struct node *node, int input, smelt_array *g);
    enum linearity linearity;
};

/* NULL: no derivative flows (the result is of integers or bools). */
const struct rule *rule_find(smelt_operation operation);

typedef smelt_array *vjp_rule(struct expression *e, const struct node *node, int input, smelt_array *g);

/* The rule of each operation, except the formulas of rules_elementwise.c; operations without one have
 * derivative 0 or are composed of others. */
/* clang-format off */
#define RULE_TABLE(X)                                                                                        \
    X(WHERE, where, ELEMENTWISE) X(ASTYPE, astype, ELEMENTWISE)                                              \
    X(SUM, sum, JOINTLY) X(PROD, prod, NOT) X(MAX, extreme, NOT) X(MIN, extreme, NOT)                        \
    X(CUMSUM, cumsum, JOINTLY) X(CUMPROD, cumprod, NOT)                                                      \
    X(CUMMAX, cumulative_extreme, NOT) X(CUMMIN, cumulative_extreme, NOT)                                    \
    X(RESHAPE, reshape, JOINTLY) X(TRANSPOSE, transpose, JOINTLY) X(BROADCAST_TO, broadcast_to, JOINTLY)     \
    X(SLICE, slice, JOINTLY) X(SLICE_UPDATE, slice_update, JOINTLY) X(CONCATENATE, concatenate, JOINTLY)     \
    X(PAD, pad, JOINTLY) X(GATHER, gather, JOINTLY) X(SCATTER, scatter, JOINTLY)                             \
    X(SCATTER_SUM, scatter_sum, JOINTLY) X(MATMUL, matmul, EACH)                                             \
    X(SOFTMAX, softmax, NOT) X(LOG_SOFTMAX, log_softmax, NOT)                                                \
    X(LAYER_NORM, norm, NOT) X(RMS_NORM, norm, NOT) X(ROPE, rope, JOINTLY)                                   \
    X(CONV_GENERAL, convolve, EACH) X(SORT, sort, NOT) X(CONTIGUOUS, contiguous, JOINTLY)        \
    X(VIEW, view, NOT)                                                                                       \
    X(GRID_SAMPLE, sample, NOT) X(CHUNK_INVERSE, chunk_inverse, NOT)                                         \
    X(FFT, fourier, JOINTLY) X(HADAMARD_TRANSFORM, hadamard, JOINTLY)                                     \
    X(DEQUANTIZE, dequantize, JOINTLY) X(ATTENTION, attention, NOT)                                          \
    X(QUANTIZED_MATMUL, quantized_matmul, NOT)
/* clang-format on */

vjp_rule vjp_unary, vjp_binary;
/* Of a node with complex64 arrays that node_refuse_complex lets pass. */
vjp_rule vjp_of_complex;
#define RULE_FUNCTION(upper, who, linearity) vjp_rule vjp_##who;
RULE_TABLE(RULE_FUNCTION)
#undef RULE_FUNCTION

#endif
