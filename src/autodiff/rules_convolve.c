/* The derivative of convolution: by x and by weight it is another convolution. */
#include "autodiff/rules.h"
#include "ops/convolve.h"

static int64_t span(int64_t size, int64_t dilation) {
    return size ? (size - 1) * dilation + 1 : 0;
}

/* (outputs, kernel, channels of a group) with outputs and channels exchanged within each group. */
static smelt_array *exchanged(struct expression *e, const struct convolve *c, smelt_array *weight) {
    int64_t channels = c->channels / c->groups, outputs = c->outputs / c->groups;
    smelt_shape parts = {4, {c->groups, outputs, weight->size / (c->outputs * channels), channels}};
    smelt_shape shape = weight->shape;
    smelt_array *turned = expr_transpose(e, expr_reshape(e, weight, &parts), (int[]){0, 3, 2, 1});
    shape.size[0] = c->channels;
    shape.size[shape.ndim - 1] = outputs;
    return expr_reshape(e, turned, &shape);
}

/* The cotangent, its elements apart by the stride, convolved with the kernel turned round. */
static smelt_array *by_input(struct expression *e, const struct convolve *c, smelt_array *weight,
                             smelt_array *g) {
    smelt_apply_desc desc = {.operation = SMELT_OPERATION_CONV_GENERAL};
    struct convolve back = *c;
    back.flip = !c->flip;
    for (int d = 0; d < CONVOLVE_MOST; d++) {
        back.stride[d] = c->input_dilation[d];
        back.input_dilation[d] = c->stride[d];
        back.before[d] = span(c->kernel[d], c->kernel_dilation[d]) - 1 - c->before[d];
        back.after[d] = span(c->in[d], c->input_dilation[d]) - 1 + span(c->kernel[d], c->kernel_dilation[d]) -
                        span(c->out[d], c->stride[d]) - back.before[d];
    }
    convolve_write(&back, &desc);
    desc.inputs[0] = g;
    desc.inputs[1] = exchanged(e, c, weight);
    return expr_apply(e, &desc);
}

/* (batches, spatial …, groups of channels) as (channels of a group, spatial …, groups of batches), or with
 * `whole`, as (channels, spatial …, batches). */
static smelt_array *batches_last(struct expression *e, smelt_array *x, int64_t groups, bool whole) {
    int ndim = x->shape.ndim;
    smelt_shape parts = x->shape, shape = x->shape;
    int order[SMELT_MAX_DIMENSIONS];
    int64_t batches = x->shape.size[0], channels = x->shape.size[ndim - 1] / groups;
    parts.size[ndim - 1] = groups;
    parts.size[parts.ndim++] = channels;
    for (int d = 0; d < ndim - 1; d++) order[d] = d;
    order[0] = whole ? ndim - 1 : ndim;
    order[ndim - 1] = whole ? ndim : ndim - 1;
    order[ndim] = 0;
    if (whole) { /* (groups, channels of a group, spatial …, batches) */
        order[0] = ndim - 1, order[1] = ndim;
        for (int d = 1; d < ndim - 1; d++) order[d + 1] = d;
    }
    shape.size[0] = whole ? groups * channels : channels;
    shape.size[ndim - 1] = whole ? batches : groups * batches;
    return expr_reshape(e, expr_transpose(e, expr_reshape(e, x, &parts), order), &shape);
}

/* All dimensions between the first and the last, back to front. */
static smelt_array *reversed(struct expression *e, smelt_array *x) {
    smelt_apply_desc desc = {.operation = SMELT_OPERATION_SLICE, .inputs = {x}};
    if (!x) return NULL;
    for (int d = 0; d < x->shape.ndim; d++) {
        bool turn = d && d < x->shape.ndim - 1;
        desc.starts[d] = turn ? x->shape.size[d] - 1 : 0;
        desc.stops[d] = turn ? -1 : x->shape.size[d];
        desc.steps[d] = turn ? -1 : 1;
    }
    return expr_apply(e, &desc);
}

/* x convolved with the cotangent: channels take the place of batches, batches that of channels. */
static smelt_array *by_weight(struct expression *e, const struct convolve *c, smelt_array *x,
                              smelt_array *g) {
    smelt_apply_desc desc = {.operation = SMELT_OPERATION_CONV_GENERAL};
    struct convolve back = *c;
    back.flip = false;
    for (int d = 0; d < CONVOLVE_MOST; d++) {
        back.stride[d] = c->kernel_dilation[d];
        back.kernel_dilation[d] = c->stride[d];
        back.after[d] = span(c->kernel[d], c->kernel_dilation[d]) - 1 + span(c->out[d], c->stride[d]) -
                        span(c->in[d], c->input_dilation[d]) - c->before[d];
    }
    convolve_write(&back, &desc);
    desc.inputs[0] = batches_last(e, x, c->groups, false);
    desc.inputs[1] = batches_last(e, g, 1, true);
    smelt_array *made = expr_apply(e, &desc); /* (channels of a group, kernel, outputs) */
    if (!made) return NULL;
    int order[SMELT_MAX_DIMENSIONS], last = made->shape.ndim - 1;
    for (int d = 0; d <= last; d++) order[d] = d == 0 ? last : d == last ? 0 : d;
    made = expr_transpose(e, made, order);
    return c->flip ? reversed(e, made) : made;
}

smelt_array *vjp_convolve(struct expression *e, const struct node *node, int input, smelt_array *g) {
    const struct call call = {.desc = &node->desc,
                              .name = "conv_general",
                              .inputs = {node->inputs[0], node->inputs[1]},
                              .count = 2};
    struct convolve c;
    if (e->status == SMELT_OK) e->status = convolve_read(&call, &c);
    if (e->status != SMELT_OK) return NULL;
    if (!g->size) return expr_zeros(e, node->inputs[input]);
    if (input == 0) return by_input(e, &c, node->inputs[1], g);
    return by_weight(e, &c, node->inputs[0], g);
}
