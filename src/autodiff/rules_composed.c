/* Derivatives of operations that kernels compute and other operations express: those of the others. Unlike
 * the kernels, they store what lies between. */
#include "autodiff/rules.h"
#include "smelt/autodiff.h"

typedef smelt_status composition(const struct call *call, smelt_array **result);

/* Composes the operation again under a tape that watches one input. */
static smelt_status differentiate(composition *compose, const struct node *node, int input, smelt_array *g,
                                  smelt_array **gradient) {
    struct call call = {
        .desc = &node->desc, .name = smelt_operation_name(node->desc.operation), .count = node->input_count};
    smelt_array *out = NULL;
    smelt_tape *tape;
    for (int i = 0; i < node->input_count; i++) call.inputs[i] = node->inputs[i];
    TRY(smelt_tape_begin(&tape));
    smelt_status status = smelt_tape_watch(tape, node->inputs[input]);
    if (status == SMELT_OK) status = compose(&call, &out);
    smelt_status ended = smelt_tape_end(tape);
    if (status == SMELT_OK) status = ended;
    if (status == SMELT_OK) status = smelt_tape_vjp(tape, &out, 1, &g, &node->inputs[input], 1, gradient);
    smelt_array_release(out);
    smelt_tape_release(tape);
    return status;
}

static smelt_array *by_composition(struct expression *e, composition *compose, const struct node *node,
                                   int input, smelt_array *g) {
    smelt_array *gradient;
    if (e->status == SMELT_OK) e->status = differentiate(compose, node, input, g, &gradient);
    return e->status == SMELT_OK ? expr_keep(e, gradient) : NULL;
}

smelt_array *vjp_attention(struct expression *e, const struct node *node, int input, smelt_array *g) {
    return by_composition(e, compose_attention, node, input, g);
}

smelt_array *vjp_quantized_matmul(struct expression *e, const struct node *node, int input, smelt_array *g) {
    return by_composition(e, compose_quantized_matmul, node, input, g);
}
