/* The registered operations that are there from the start: the product of two matrices, and attention. Stored
 * graphs may use them. */
#include "base/text.h"
#include "graph/owned.h"

#include <string.h>

/* The value of an attribute, or NULL. */
static const smelt_attribute *attribute_of(const smelt_operation_call *call, const char *name,
                                           smelt_attribute_kind kind) {
    for (const smelt_attribute *a = call->attributes; a->name; a++)
        if (strcmp(a->name, name) == 0 && a->kind == kind) return a;
    return NULL;
}

/* ---- matrix_multiplication: x, y; attribute "algorithm". */

static smelt_status infer_product(void *context, const smelt_operation_call *call, smelt_type *types,
                                  int *output_count) {
    smelt_array *shaped;
    (void)context;
    if (call->input_count != 2)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: %d inputs are given, expected 2", call->name,
                    call->input_count);
    smelt_apply_desc desc = {.operation = SMELT_OPERATION_MATMUL,
                             .inputs = {call->inputs[0], call->inputs[1]}};
    TRY(operation_infer(&desc, &shaped));
    types[0] = (smelt_type){.dtype = shaped->dtype, .shape = shaped->shape};
    *output_count = 1;
    smelt_array_release(shaped);
    return SMELT_OK;
}

static smelt_status run_product(void *context, const smelt_operation_call *call, smelt_array **outputs) {
    smelt_apply_desc desc = {.operation = SMELT_OPERATION_MATMUL,
                             .inputs = {call->inputs[0], call->inputs[1]}};
    (void)context;
    if (!array_is_symbolic(call->inputs[0]) && !array_is_symbolic(call->inputs[1]))
        desc.device = call->device;
    const smelt_attribute *algorithm = attribute_of(call, "algorithm", SMELT_ATTRIBUTE_STRING);
    if (algorithm) desc.algorithm = algorithm->string;
    return smelt_apply(&desc, outputs);
}

static smelt_status apply_product(smelt_array *x, smelt_array *y, bool turn_x, bool turn_y,
                                  smelt_array **result) {
    struct expression {
        smelt_array *x, *y;
    } turned = {NULL, NULL};
    smelt_status status = SMELT_OK;
    if (turn_x)
        status = smelt_apply(&(smelt_apply_desc){.operation = SMELT_OPERATION_TRANSPOSE, .inputs = {x}},
                             &turned.x);
    if (turn_y && status == SMELT_OK)
        status = smelt_apply(&(smelt_apply_desc){.operation = SMELT_OPERATION_TRANSPOSE, .inputs = {y}},
                             &turned.y);
    if (status == SMELT_OK)
        status = smelt_apply(&(smelt_apply_desc){.operation = SMELT_OPERATION_MATMUL,
                                                 .inputs = {turn_x ? turned.x : x, turn_y ? turned.y : y}},
                             result);
    smelt_array_release(turned.x);
    smelt_array_release(turned.y);
    return status;
}

static smelt_status differentiate_product(void *context, const smelt_operation_call *call,
                                          smelt_array *const *outputs, smelt_array *const *cotangents,
                                          smelt_array **gradients) {
    (void)context;
    (void)outputs;
    TRY(apply_product(cotangents[0], call->inputs[1], false, true, &gradients[0]));
    return apply_product(call->inputs[0], cotangents[0], true, false, &gradients[1]);
}

/* ---- attention: q, k, v, then the mask and the sinks where the attributes "mask" and "sinks" are true;
 * attributes "scale" and "causal". See smelt_attention_desc. It runs at each execution, as its tiles depend
 * on the device, by kernels that stored graphs hold. */

static bool is_set(const smelt_operation_call *call, const char *name) {
    const smelt_attribute *a = attribute_of(call, name, SMELT_ATTRIBUTE_BOOLEAN);
    return a && a->boolean;
}

static smelt_status check_count(const smelt_operation_call *call) {
    int expected = 3 + is_set(call, "mask") + is_set(call, "sinks");
    if (call->input_count == expected) return SMELT_OK;
    return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: %d inputs are given, expected %d", call->name,
                call->input_count, expected);
}

static smelt_status infer_attention(void *context, const smelt_operation_call *call, smelt_type *types,
                                    int *output_count) {
    (void)context;
    TRY(check_count(call));
    const smelt_array *q = call->inputs[0], *v = call->inputs[2];
    if (q->shape.ndim != 4 || v->shape.ndim != 4)
        return fail(
            SMELT_ERROR_INVALID_ARGUMENT,
            "%s: q has shape %s and v %s; expected 4 dimensions: batches, heads, rows, size of a head",
            call->name, shape_print(&q->shape).text, shape_print(&v->shape).text);
    types[0] = (smelt_type){.dtype = q->dtype, .shape = q->shape};
    types[0].shape.size[3] = v->shape.size[3];
    *output_count = 1;
    return SMELT_OK;
}

static smelt_status run_attention(void *context, const smelt_operation_call *call, smelt_array **outputs) {
    (void)context;
    TRY(check_count(call));
    const smelt_attribute *scale = attribute_of(call, "scale", SMELT_ATTRIBUTE_REAL);
    if (!scale) return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: the attribute 'scale' is missing", call->name);
    bool masked = is_set(call, "mask");
    smelt_attention_desc desc = {.q = call->inputs[0],
                                 .k = call->inputs[1],
                                 .v = call->inputs[2],
                                 .mask = masked ? call->inputs[3] : NULL,
                                 .sinks = is_set(call, "sinks") ? call->inputs[3 + masked] : NULL,
                                 .scale = scale->real,
                                 .causal = is_set(call, "causal"),
                                 .device = call->device};
    return smelt_attention(&desc, &outputs[0], NULL);
}

/* ---- The list. */

static const smelt_operation_desc operations[] = {
    {.name = "matrix_multiplication",
     .infer = infer_product,
     .run = run_product,
     .vjp = differentiate_product},
    {.name = "attention", .infer = infer_attention, .run = run_attention, .opaque = true},
};

const smelt_operation_desc *graph_shipped_operation(int index) {
    return index < (int)(sizeof operations / sizeof *operations) ? &operations[index] : NULL;
}
