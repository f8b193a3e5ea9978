/* The derivative of the Walsh-Hadamard transform, whose matrix is symmetric. */
#include "autodiff/rules.h"

smelt_array *vjp_hadamard(struct expression *e, const struct node *node, int input, smelt_array *g) {
    smelt_apply_desc desc = node->desc;
    (void)input;
    desc.inputs[0] = g;
    return expr_apply(e, &desc);
}

/* Fourier's transform has complex results, which have no derivatives: sweeps refuse it before they call this.
 */
smelt_array *vjp_complex(struct expression *e, const struct node *node, int input, smelt_array *g) {
    (void)g;
    if (e->status == SMELT_OK)
        e->status = fail(SMELT_ERROR_UNSUPPORTED, "%s has no derivative by input %d: its result is complex64",
                         smelt_operation_name(node->desc.operation), input);
    return NULL;
}
