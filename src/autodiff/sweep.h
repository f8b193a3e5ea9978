/* One sweep over a tape's nodes: shared by gradient.c and tangent.c. */
#ifndef SMELT_AUTODIFF_SWEEP_H
#define SMELT_AUTODIFF_SWEEP_H

#include "ops/expression.h"
#include "autodiff/tape.h"

struct sweep {
    smelt_tape *tape;
    smelt_array **values; /* by slot: the cotangent or tangent so far, a reference, or NULL for 0 */
    char *reached;        /* by slot: depends on an array it is differentiated by */
    char *wanted;         /* by slot: a requested array depends on it */
};

/* Checks the arguments of a product named `what`, and marks the arrays between inputs and outputs. */
smelt_status sweep_begin(struct sweep *sweep, const char *what, smelt_tape *tape, smelt_array *const *outputs,
                         int output_count, smelt_array *const *inputs, int input_count);
/* Sets the initial values of arrays: `given`, or ones for NULL (as the list or an element). */
smelt_status sweep_seed(struct sweep *sweep, const char *what, smelt_array *const *arrays, int count,
                        smelt_array *const *given);
/* Unless it failed, returns the values of arrays, zeros for missing ones; releases everything else. */
smelt_status sweep_end(struct sweep *sweep, smelt_status status, smelt_array *const *arrays, int count,
                       smelt_array **results);

/* Adds to a value, or sets it. */
smelt_status sweep_add(smelt_array **sum, smelt_array *more);
smelt_array **sweep_value(const struct sweep *sweep, const smelt_array *array);
/* One of the node's outputs, or inputs, has a value. */
bool sweep_meets(const struct sweep *sweep, const struct node *node, bool outputs);
/* The derivative by this input is needed. */
bool sweep_follows(const struct sweep *sweep, const struct node *node, int input);

/* ---- One node: node.c. */

/* Whether derivatives flow through an operation's input: not if its dtype or its role has none. */
bool node_differentiates(const struct node *node, int input);
smelt_status node_zeros_like(smelt_array *array, smelt_array **zeros);

/* The node for rules: weak inputs have the dtype that the operation was computed in, since they would widen
 * other operations of a rule. A tape tracks the node's own. `seen` must not move: its inputs point into it.
 */
void node_for_rules(struct expression *e, const struct node *node, struct node *seen);

/* Whether one of its arrays is complex64: rules_complex.c. UNSUPPORTED if it then has no derivative. */
bool node_is_complex(const struct node *node);
smelt_status node_refuse_complex(const struct node *node);

/* The gradient of an operation by one of its inputs, of that input's shape and dtype. */
smelt_status node_gradient(const struct node *node, int input, smelt_array *g, smelt_array **gradient);
/* The gradients of a custom function by all inputs, unchanged; cotangents may be NULL. Some may be set on
 * failure. */
smelt_status node_custom_gradients(const struct node *node, smelt_array *const *cotangents,
                                   smelt_array **gradients);

#endif
