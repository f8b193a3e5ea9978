/* One way over a tape's nodes: shared by gradient.c and tangent.c. */
#ifndef SMELT_AUTODIFF_SWEEP_H
#define SMELT_AUTODIFF_SWEEP_H

#include "ops/expression.h"
#include "autodiff/tape.h"

struct sweep {
    smelt_tape *tape;
    smelt_array **values; /* by slot: the cotangent or tangent so far, a reference, or NULL for 0 */
    char *reached;        /* by slot: depends on what it is differentiated by */
    char *wanted;         /* by slot: what is asked for depends on it */
};

smelt_array **sweep_value(const struct sweep *sweep, const smelt_array *array);
/* The derivative by this input matters. */
bool sweep_follows(const struct sweep *sweep, const struct node *node, int input);

/* The node as rules see it: inputs that were weak have the dtype that the operation was computed in, for
 * where a rule puts them they would widen it. A tape tracks the node's own. `seen` is used where it stands:
 * its inputs lie in it. */
void node_for_rules(struct expression *e, const struct node *node, struct node *seen);

/* The gradient of an operation by one of its inputs, of that input's shape and dtype. */
smelt_status node_gradient(const struct node *node, int input, smelt_array *g, smelt_array **gradient);
/* Those of a custom function by all of them, as it gave them; cotangents may be NULL. Some may be set on
 * failure, too.
 */
smelt_status custom_gradients(const struct node *node, smelt_array *const *cotangents,
                              smelt_array **gradients);

/* Gives a node's outputs their tangents. */
smelt_status forward_through(struct sweep *sweep, const struct node *node);

#endif
