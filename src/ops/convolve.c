/* Convolution: the elements that each output needs as rows of a matrix, times the weights; with groups of
 * channels one thread per output; float64 in plain loops. */
#include "ops/convolve.h"
#include "array/dtype.h"
#include "kernels/kernel_text.h"
#include "ops/program.h"
#include "ops/routine_input.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Elements of the matrix that exist at once: more rows are computed in parts. */
#define MOST_ELEMENTS (INT64_C(1) << 26)

/* Shared with the kernels. */
struct conv_size {
    int32_t in[3], out[3], stride[3], padding[3], dilation[3];
    int32_t channels, groups, group_channels, outputs, width, first_row;
};

/* ---- The call. */

static smelt_status read_settings(const struct call *call, struct convolve *c, int lead) {
    const smelt_apply_desc *desc = call->desc;
    for (int d = 0; d < CONVOLVE_MOST; d++) {
        int given = d - lead;
        c->stride[d] = c->kernel_dilation[d] = c->input_dilation[d] = 1;
        c->before[d] = c->after[d] = 0;
        if (given < 0) continue;
        if (desc->steps[given]) c->stride[d] = desc->steps[given];
        if (given < desc->shape.ndim) c->kernel_dilation[d] = desc->shape.size[given];
        if (given < desc->axis_count) c->input_dilation[d] = desc->axes[given];
        c->before[d] = desc->starts[given];
        c->after[d] = desc->stops[given];
        if (c->stride[d] < 1 || c->kernel_dilation[d] < 1 || c->input_dilation[d] < 1)
            return fail(
                SMELT_ERROR_INVALID_ARGUMENT,
                "%s: stride %lld, kernel dilation %lld and input dilation %lld of spatial dimension %d; "
                "expected at least 1",
                call->name, (long long)c->stride[d], (long long)c->kernel_dilation[d],
                (long long)c->input_dilation[d], given);
    }
    return SMELT_OK;
}

static smelt_status read_outputs(const struct call *call, struct convolve *c, int lead) {
    for (int d = 0; d < CONVOLVE_MOST; d++) {
        int64_t padded =
            (c->in[d] ? (c->in[d] - 1) * c->input_dilation[d] + 1 : 0) + c->before[d] + c->after[d];
        int64_t extent = (c->kernel[d] - 1) * c->kernel_dilation[d] + 1;
        if (c->kernel[d] < 1 || padded < extent)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "%s: spatial dimension %d has %lld elements with padding, and the kernel spans %lld; "
                        "expected at most as many, at least 1",
                        call->name, d - lead, (long long)padded, (long long)extent);
        c->out[d] = (padded - extent) / c->stride[d] + 1;
        const int64_t sizes[] = {padded, extent, c->out[d], c->stride[d],
                                 c->before[d] < 0 ? -c->before[d] : 0};
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            if (sizes[i] > INT_MAX / 4)
                return fail(SMELT_ERROR_LIMIT,
                            "%s: spatial dimension %d spans %lld elements; at most 2^29 are "
                            "allowed",
                            call->name, d - lead, (long long)sizes[i]);
    }
    return SMELT_OK;
}

smelt_status convolve_read(const struct call *call, struct convolve *c) {
    const smelt_shape *x = &call->inputs[0]->shape, *weight = &call->inputs[1]->shape;
    *c = (struct convolve){.spatial = x->ndim - 2, .flip = call->desc->reverse};
    if (x->ndim < 3 || x->ndim > 2 + CONVOLVE_MOST || weight->ndim != x->ndim)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "%s: x has shape %s and weight %s; expected (batches, spatial …, channels) and (outputs, "
                    "spatial …, channels) with 1 to %d spatial dimensions",
                    call->name, shape_print(x).text, shape_print(weight).text, CONVOLVE_MOST);
    int lead = CONVOLVE_MOST - c->spatial;
    c->batches = x->size[0];
    c->channels = x->size[x->ndim - 1];
    c->outputs = weight->size[0];
    c->groups = call->desc->offset ? call->desc->offset : 1;
    for (int d = 0; d < CONVOLVE_MOST; d++) {
        c->in[d] = d < lead ? 1 : x->size[1 + d - lead];
        c->kernel[d] = d < lead ? 1 : weight->size[1 + d - lead];
    }
    if (c->groups < 1 || c->outputs % c->groups || weight->size[weight->ndim - 1] * c->groups != c->channels)
        return fail(
            SMELT_ERROR_INVALID_ARGUMENT,
            "%s: x has %lld channels, weight %lld outputs of %lld channels, and there are %lld groups; "
            "expected outputs that the groups divide, and channels of x divided by groups",
            call->name, (long long)c->channels, (long long)c->outputs,
            (long long)weight->size[weight->ndim - 1], (long long)c->groups);
    if (c->channels > INT_MAX || c->outputs > INT_MAX)
        return fail(SMELT_ERROR_LIMIT, "%s: x has %lld channels; expected fewer than 2^31", call->name,
                    (long long)c->channels);
    TRY(read_settings(call, c, lead));
    return read_outputs(call, c, lead);
}

void convolve_write(const struct convolve *c, smelt_apply_desc *desc) {
    int lead = CONVOLVE_MOST - c->spatial;
    desc->shape.ndim = desc->axis_count = c->spatial;
    desc->offset = c->groups;
    desc->reverse = c->flip;
    for (int d = 0; d < c->spatial; d++) {
        desc->steps[d] = c->stride[lead + d];
        desc->starts[d] = c->before[lead + d];
        desc->stops[d] = c->after[lead + d];
        desc->shape.size[d] = c->kernel_dilation[lead + d];
        desc->axes[d] = (int)c->input_dilation[lead + d];
    }
}

static int64_t product(const int64_t sizes[CONVOLVE_MOST]) {
    return sizes[0] * sizes[1] * sizes[2];
}

static smelt_shape out_shape(const struct convolve *c) {
    smelt_shape shape = {.ndim = c->spatial + 2};
    shape.size[0] = c->batches;
    for (int d = 0; d < c->spatial; d++) shape.size[1 + d] = c->out[CONVOLVE_MOST - c->spatial + d];
    shape.size[c->spatial + 1] = c->outputs;
    return shape;
}

/* ---- Kernels. */

static struct conv_size size_of(const struct convolve *c) {
    struct conv_size size = {.channels = (int32_t)c->channels,
                             .groups = (int32_t)c->groups,
                             .group_channels = (int32_t)(c->channels / c->groups),
                             .outputs = (int32_t)c->outputs,
                             .width = (int32_t)(product(c->kernel) * c->channels / c->groups)};
    for (int d = 0; d < CONVOLVE_MOST; d++) {
        size.in[d] = (int32_t)c->in[d], size.out[d] = (int32_t)c->out[d];
        size.stride[d] = (int32_t)c->stride[d], size.padding[d] = (int32_t)c->before[d];
        size.dilation[d] = (int32_t)c->input_dilation[d];
    }
    return size;
}

static bool is_dilated(const struct convolve *c) {
    return product(c->input_dilation) > 1;
}

/* Fewer channels leave lanes idle that a kernel position has to itself. */
#define FEWEST_CHANNELS 16

static bool is_by_channel(const struct convolve *c) {
    return c->channels / c->groups >= FEWEST_CHANNELS;
}

/* What each element of a weight's row multiplies: its distance in each spatial dimension, and in elements of
 * x, or where those are dilated its channel. */
static smelt_status create_columns(const struct call *call, const struct convolve *c, smelt_array **columns) {
    int64_t channels = c->channels / c->groups, width = product(c->kernel) * channels;
    smelt_array *host;
    if (width > INT_MAX / 4)
        return fail(SMELT_ERROR_LIMIT, "%s: a row of weight has %lld elements; at most 2^29 are allowed",
                    call->name, (long long)width);
    TRY(smelt_array_create(SMELT_INT32, (smelt_shape){2, {width, 4}}, &host));
    int32_t *next = smelt_array_data(host);
    bool too_far = false;
    for (int64_t i = 0; i < width; i++) {
        int64_t rest = i / channels;
        for (int d = CONVOLVE_MOST - 1; d >= 0; d--) {
            int64_t k = rest % c->kernel[d];
            next[4 * i + d] = (int32_t)((c->flip ? c->kernel[d] - 1 - k : k) * c->kernel_dilation[d]);
            rest /= c->kernel[d];
        }
        const int32_t *at = next + 4 * i;
        int64_t place = is_dilated(c) ? 0 : ((at[0] * c->in[1] + at[1]) * c->in[2] + at[2]) * c->channels;
        if (place > INT_MAX - channels) too_far = true;
        next[4 * i + 3] = (int32_t)(place + i % channels);
    }
    smelt_status status =
        too_far ? fail(SMELT_ERROR_LIMIT, "%s: the kernel spans 2^31 elements of x or more", call->name)
                : routine_input(call, host, SMELT_INT32, columns);
    smelt_array_release(host);
    return status;
}

/* Threads: `grid`. */
static smelt_status run(const struct call *call, const char *entry, const struct convolve *c,
                        smelt_array *const arrays[4], const struct conv_size *size, const int64_t grid[3]) {
    const struct routine routine = {.entry = entry,
                                    .texts = {kernel_text_conv},
                                    .types = {{"T", arrays[0]->dtype}},
                                    .sizes = {{"DILATED", is_dilated(c)}, {"BY_CHANNEL", is_by_channel(c)}}};
    smelt_dispatch_desc dispatch = {.buffers = {{.array = arrays[0]},
                                                {.array = arrays[1]},
                                                {.array = arrays[2]},
                                                {.bytes = size, .size = sizeof *size},
                                                {.array = arrays[3]}},
                                    .grid = {grid[0], grid[1], grid[2]}};
    routine_group(call, grid, dispatch.threadgroup);
    return routine_run(call, &routine, &dispatch);
}

/* The product of `unfolded` and the weights' rows. */
static smelt_status multiply(const struct call *call, smelt_array *unfolded, smelt_array *weight,
                             smelt_array **made) {
    smelt_shape turned = {2, {unfolded->shape.size[1], weight->shape.size[0]}};
    const int64_t strides[] = {1, turned.size[0]};
    smelt_array *view;
    TRY(smelt_array_view(weight, turned, strides, 0, &view));
    smelt_status status = smelt_apply(&(smelt_apply_desc){.operation = SMELT_OPERATION_MATMUL,
                                                          .inputs = {unfolded, view},
                                                          .device = call->device,
                                                          .stream = call->desc->stream},
                                      made);
    smelt_array_release(view);
    return status;
}

/* Rows `first` … of the result. arrays: x, columns; `weight`: (outputs, width). */
static smelt_status run_part(const struct call *call, const struct convolve *c, smelt_array *const arrays[2],
                             smelt_array *weight, int64_t first, int64_t count, smelt_array **made) {
    struct conv_size size = size_of(c);
    smelt_array *unfolded;
    int64_t channels = size.group_channels;
    const int64_t grid[3] = {is_by_channel(c) ? channels : size.width,
                             is_by_channel(c) ? size.width / channels : 1, count};
    TRY(call_output(call, arrays[0]->dtype, &(smelt_shape){2, {count, size.width}}, &unfolded));
    size.first_row = (int32_t)first;
    smelt_status status = run(call, "smelt_conv_unfold", c,
                              (smelt_array *[4]){arrays[0], arrays[1], unfolded, arrays[0]}, &size, grid);
    if (status == SMELT_OK) status = multiply(call, unfolded, weight, made);
    smelt_array_release(unfolded);
    return status;
}

static smelt_status run_by_product(const struct call *call, const struct convolve *c,
                                   smelt_array *const arrays[2], smelt_array *weight, smelt_array **out) {
    int64_t rows = c->batches * product(c->out), most = MOST_ELEMENTS / weight->shape.size[1];
    const int64_t strides[] = {c->outputs, 1};
    smelt_shape shape = out_shape(c);
    smelt_array *part;
    if (most < 1) most = 1;
    if (rows <= most) {
        TRY(run_part(call, c, arrays, weight, 0, rows, &part));
        smelt_status status = smelt_array_view(part, shape, NULL, 0, out);
        smelt_array_release(part);
        return status;
    }
    TRY(call_output(call, arrays[0]->dtype, &shape, out));
    for (int64_t first = 0; first < rows; first += most) {
        int64_t count = rows - first < most ? rows - first : most;
        TRY(run_part(call, c, arrays, weight, first, count, &part));
        smelt_status status = call_place(call, part, *out, &part->shape, strides, first * c->outputs);
        smelt_array_release(part);
        TRY(status);
    }
    return SMELT_OK;
}

static smelt_status run_by_groups(const struct call *call, const struct convolve *c,
                                  smelt_array *const arrays[2], smelt_array *weight, smelt_array **out) {
    struct conv_size size = size_of(c);
    smelt_shape turned = {2, {size.width, size.outputs}}, shape = out_shape(c);
    const int64_t strides[] = {1, size.width}, grid[3] = {size.outputs, 1, c->batches * product(c->out)};
    smelt_array *view, *columns;
    TRY(smelt_array_view(weight, turned, strides, 0, &view));
    smelt_status status = call_contiguous(call, view, &columns);
    smelt_array_release(view);
    TRY(status);
    status = call_output(call, arrays[0]->dtype, &shape, out);
    if (status == SMELT_OK)
        status = run(call, "smelt_conv_groups", c, (smelt_array *[4]){arrays[0], arrays[1], *out, columns},
                     &size, grid);
    smelt_array_release(columns);
    return status;
}

/* *out may be set on failure. */
static smelt_status run_kernels(const struct call *call, const struct convolve *c, smelt_dtype dtype,
                                smelt_array **out) {
    smelt_array *arrays[2] = {0}, *weight = NULL, *rows = NULL;
    int64_t width = product(c->kernel) * c->channels / c->groups;
    if (c->batches * product(c->out) > INT_MAX)
        return fail(SMELT_ERROR_LIMIT, "%s: there are %lld places of outputs; expected fewer than 2^31",
                    call->name, (long long)(c->batches * product(c->out)));
    smelt_status status = routine_input(call, call->inputs[0], dtype, &arrays[0]);
    if (status == SMELT_OK) status = routine_input(call, call->inputs[1], dtype, &weight);
    if (status == SMELT_OK) status = create_columns(call, c, &arrays[1]);
    if (status == SMELT_OK)
        status = smelt_array_view(weight, (smelt_shape){2, {c->outputs, width}}, NULL, 0, &rows);
    if (status == SMELT_OK)
        status = (c->groups > 1 ? run_by_groups : run_by_product)(call, c, arrays, rows, out);
    smelt_array *const used[] = {arrays[0], arrays[1], weight, rows};
    for (int i = 0; i < 4; i++) smelt_array_release(used[i]);
    return status;
}

/* ---- Plain loops. */

static double place_sum(const struct convolve *c, const double *x, const double *weight, int64_t batch,
                        const int64_t at[3], int64_t output) {
    int64_t channels = c->channels / c->groups, first = output / (c->outputs / c->groups) * channels;
    double sum = 0;
    for (int64_t k = 0; k < product(c->kernel); k++) {
        int64_t rest = k, element = 0, position[CONVOLVE_MOST];
        bool inside = true;
        for (int d = CONVOLVE_MOST - 1; d >= 0; d--) {
            int64_t tap = rest % c->kernel[d];
            rest /= c->kernel[d];
            if (c->flip) tap = c->kernel[d] - 1 - tap;
            position[d] = at[d] * c->stride[d] + tap * c->kernel_dilation[d] - c->before[d];
            inside &= position[d] >= 0 && position[d] % c->input_dilation[d] == 0 &&
                      position[d] / c->input_dilation[d] < c->in[d];
        }
        if (!inside) continue;
        for (int d = 0; d < CONVOLVE_MOST; d++)
            element = element * c->in[d] + position[d] / c->input_dilation[d];
        element = (batch * product(c->in) + element) * c->channels + first;
        for (int64_t i = 0; i < channels; i++)
            sum += x[element + i] * weight[(output * product(c->kernel) + k) * channels + i];
    }
    return sum;
}

static smelt_status run_plain(const struct call *call, const struct convolve *c, smelt_array *out) {
    smelt_array *x = NULL, *weight = NULL;
    double *to = smelt_array_data(out);
    smelt_status status = routine_input(call, call->inputs[0], SMELT_FLOAT64, &x);
    if (status == SMELT_OK) status = routine_input(call, call->inputs[1], SMELT_FLOAT64, &weight);
    for (int64_t i = 0; i < out->size && status == SMELT_OK; i++) {
        int64_t at[CONVOLVE_MOST], rest = i / c->outputs;
        for (int d = CONVOLVE_MOST - 1; d >= 0; d--) {
            at[d] = rest % c->out[d];
            rest /= c->out[d];
        }
        to[i] = place_sum(c, smelt_array_data(x), smelt_array_data(weight), rest, at, i % c->outputs);
    }
    smelt_array_release(x);
    smelt_array_release(weight);
    return status;
}

/* ---- The operation. */

smelt_status evaluate_convolve(const struct call *call, smelt_array **result) {
    struct convolve c;
    smelt_dtype dtype;
    smelt_array *made;
    TRY(convolve_read(call, &c));
    TRY(call_dtype(call, 0, 2, &dtype));
    if (dtype == SMELT_COMPLEX64)
        return fail(SMELT_ERROR_UNSUPPORTED, "%s is not defined for complex64", call->name);
    if (!dtype_is_float(dtype)) dtype = SMELT_FLOAT32;
    smelt_shape shape = out_shape(&c);
    if (shape_product(&shape) && (!call->inputs[0]->size || !call->inputs[1]->size))
        return program_filled(call->device, call->desc->stream, dtype, &shape, 0, result);
    smelt_status status;
    made = NULL;
    if (program_is_symbolic(call->device) || dtype == SMELT_FLOAT64 || !shape_product(&shape)) {
        status = call_output(call, dtype, &shape, &made);
        if (status == SMELT_OK && made->size && !program_is_symbolic(call->device))
            status = run_plain(call, &c, made);
    } else {
        status = run_kernels(call, &c, dtype, &made);
    }
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}
