/* Scales of groups, packed codes, and elements from codes: by the kernels of kernels/tensor/quantize.metal;
 * elements of float64 by plain loops, the reference of the kernel. */
#include "array/dtype.h"
#include "base/reserved.h"
#include "kernels/kernel_text.h"
#include "ops/expression.h"
#include "ops/program.h"
#include "ops/routine_input.h"

#define MOST_ELEMENTS (UINT32_MAX - 32)
#define SIMDGROUPS 4

struct packing {
    smelt_quantized_mode mode;
    int bits, group;
    bool affine;
};

static smelt_status read_packing(const struct call *call, struct packing *p) {
    const int64_t *given = call->desc->starts;
    int64_t bits = given[0], group = given[1], mode = given[2];
    if (mode < SMELT_QUANTIZED_AFFINE || mode > SMELT_QUANTIZED_MXFP8)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "%s: mode is %lld; expected 0 (affine), 1 (mxfp4) or 2 (mxfp8)", call->name,
                    (long long)mode);
    *p = (struct packing){(smelt_quantized_mode)mode, (int)bits, (int)group, mode == SMELT_QUANTIZED_AFFINE};
    bool known =
        p->affine ? bits >= 2 && bits <= 8 && bits != 7 : bits == (mode == SMELT_QUANTIZED_MXFP4 ? 4 : 8);
    if (!known)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: bits is %lld; expected %s", call->name,
                    (long long)bits,
                    p->affine                       ? "2, 3, 4, 5, 6 or 8"
                    : mode == SMELT_QUANTIZED_MXFP4 ? "4 for mxfp4"
                                                    : "8 for mxfp8");
    if (p->affine ? group != 32 && group != 64 && group != 128 : group != 32)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: group_size is %lld; expected %s", call->name,
                    (long long)group, p->affine ? "32, 64 or 128" : "32 for mxfp4 and mxfp8");
    return SMELT_OK;
}

/* The shape of elements, of whose last dimension `units` things are made for every `from`. */
static smelt_status divided(const struct call *call, const smelt_shape *shape, int64_t from, int64_t units,
                            smelt_shape *result) {
    int64_t columns = shape->ndim ? shape->size[shape->ndim - 1] : 0;
    if (shape->ndim < 1 || columns % from)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "%s: an array has shape %s; expected a last dimension of a multiple of %lld elements",
                    call->name, shape_print(shape).text, (long long)from);
    *result = *shape;
    result->size[shape->ndim - 1] = columns / from * units;
    return SMELT_OK;
}

static smelt_status check_size(const struct call *call, int64_t elements) {
    if (elements <= (int64_t)MOST_ELEMENTS) return SMELT_OK;
    return fail(SMELT_ERROR_LIMIT, "%s: %lld elements; expected fewer than 2^32 - 32", call->name,
                (long long)elements);
}

/* x, which is quantised: in its own dtype, float32 for integers. */
static smelt_status float_of(const struct call *call, const smelt_array *x, smelt_dtype *dtype) {
    *dtype = dtype_is_inexact(x->dtype) ? x->dtype : SMELT_FLOAT32;
    if (routine_is_float(*dtype)) return SMELT_OK;
    return fail(SMELT_ERROR_UNSUPPORTED, "%s: x has dtype %s; expected float32, float16 or bfloat16",
                call->name, smelt_dtype_name(x->dtype));
}

/* inputs: x or words, scales, biases. */
static smelt_status check_scales(const struct call *call, const struct packing *p,
                                 const smelt_shape *groups) {
    if (call->count != (p->affine ? 3 : 2))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: %d arrays are given; expected %s", call->name,
                    call->count,
                    p->affine ? "three: the last are scales and biases" : "two: the last one is scales");
    for (int i = 1; i < call->count; i++) {
        const smelt_array *array = call->inputs[i];
        const char *name = i == 1 ? "scales" : "biases";
        if (!shape_equal(&array->shape, groups))
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: %s has shape %s; expected %s", call->name, name,
                        shape_print(&array->shape).text, shape_print(groups).text);
        if (p->affine ? !dtype_is_float(array->dtype) : array->dtype != SMELT_UINT8)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: %s has dtype %s; expected %s", call->name, name,
                        smelt_dtype_name(array->dtype), p->affine ? "floats" : "uint8");
    }
    return SMELT_OK;
}

static smelt_status run(const struct call *call, const struct packing *p, const char *entry,
                        smelt_dtype element, smelt_dtype scale, smelt_dispatch_desc *dispatch) {
    const struct routine routine = {
        .entry = entry,
        .texts = {kernel_text_quantize},
        .types = {{"T", element}, {"S", scale}},
        .sizes = {{"MODE", (int32_t)p->mode}, {"BITS", p->bits}, {"GROUP", p->group}}};
    return routine_run(call, &routine, dispatch);
}

/* ---- Scales, and with mode affine biases: (2, …). */

smelt_status evaluate_quantize_scales(const struct call *call, smelt_array **result) {
    struct packing p;
    smelt_array *x = call->inputs[0], *rows, *made = NULL;
    smelt_shape shape, both = {.ndim = 1, .size = {2}};
    smelt_dtype dtype;
    TRY(read_packing(call, &p));
    TRY(float_of(call, x, &dtype));
    TRY(divided(call, &x->shape, p.group, 1, &shape));
    TRY(check_size(call, x->size));
    if (p.affine && shape.ndim == SMELT_MAX_DIMENSIONS)
        return fail(SMELT_ERROR_LIMIT, "%s: x has %d dimensions; expected fewer", call->name, shape.ndim);
    if (p.affine)
        for (int d = 0; d < shape.ndim; d++) both.size[both.ndim++] = shape.size[d];
    smelt_dtype scale = p.affine ? dtype : SMELT_UINT8;
    TRY(routine_input(call, x, dtype, &rows));
    smelt_status status = call_output(call, scale, p.affine ? &both : &shape, &made);
    if (status == SMELT_OK && made->size) {
        uint32_t groups = (uint32_t)(x->size / p.group);
        status =
            run(call, &p, "smelt_quantize_scales", dtype, scale,
                &(smelt_dispatch_desc){
                    .buffers = {{.array = rows}, {.array = made}, {.bytes = &groups, .size = sizeof groups}},
                    .groups = {(groups + SIMDGROUPS - 1) / SIMDGROUPS, 1, 1},
                    .threadgroup = {32 * SIMDGROUPS, 1, 1}});
    }
    smelt_array_release(rows);
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}

/* ---- Codes, and elements. */

/* Inputs in the dtypes of a kernel: the first in `first`, scales and biases in `scale`. */
static smelt_status open_inputs(const struct call *call, smelt_dtype first, smelt_dtype scale,
                                smelt_array *inputs[3]) {
    smelt_status status = SMELT_OK;
    for (int i = 0; i < call->count && status == SMELT_OK; i++)
        status = routine_input(call, call->inputs[i], i ? scale : first, &inputs[i]);
    return status;
}

static smelt_dispatch_desc dispatch_of(const struct call *call, smelt_array *inputs[3], smelt_array *out,
                                       int64_t elements) {
    const int64_t grid[3] = {elements, 1, 1};
    smelt_dispatch_desc dispatch = {.buffers = {{.array = inputs[0]},
                                                {.array = inputs[1]},
                                                {.array = inputs[inputs[2] ? 2 : 1]},
                                                {.array = out}},
                                    .grid = {elements, 1, 1}};
    routine_group(call, grid, dispatch.threadgroup);
    if (dispatch.threadgroup[0] % 32) dispatch.threadgroup[0] = 32;
    return dispatch;
}

smelt_status evaluate_quantize(const struct call *call, smelt_array **result) {
    struct packing p;
    smelt_array *x = call->inputs[0], *inputs[3] = {0}, *made = NULL;
    smelt_shape groups, words;
    smelt_dtype dtype;
    TRY(read_packing(call, &p));
    TRY(float_of(call, x, &dtype));
    TRY(divided(call, &x->shape, p.group, 1, &groups));
    TRY(divided(call, &x->shape, 32, p.bits, &words));
    TRY(check_size(call, x->size));
    TRY(check_scales(call, &p, &groups));
    smelt_dtype scale = p.affine ? SMELT_FLOAT32 : SMELT_UINT8;
    smelt_status status = open_inputs(call, dtype, scale, inputs);
    if (status == SMELT_OK) status = call_output(call, SMELT_UINT32, &words, &made);
    if (status == SMELT_OK && made->size) {
        smelt_dispatch_desc dispatch = dispatch_of(call, inputs, made, x->size);
        status = run(call, &p, "smelt_quantize", dtype, scale, &dispatch);
    }
    for (int i = 0; i < 3; i++) smelt_array_release(inputs[i]);
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}

/* Mode affine, on the host. */
static void dequantize_plainly(const struct packing *p, smelt_array *inputs[3], smelt_array *out) {
    const uint32_t *words = smelt_array_data(inputs[0]);
    const double *scales = smelt_array_data(inputs[1]), *biases = smelt_array_data(inputs[2]);
    double *to = smelt_array_data(out);
    for (int64_t i = 0; i < out->size; i++) {
        uint32_t code = 0;
        for (int b = 0; b < p->bits; b++) {
            int64_t bit = i * p->bits + b;
            code |= (words[bit / 32] >> bit % 32 & 1) << b;
        }
        to[i] = code * scales[i / p->group] + biases[i / p->group];
    }
}

static smelt_status dequantized_dtype(const struct call *call, const struct packing *p, smelt_dtype *dtype) {
    *dtype = call->desc->dtype ? call->desc->dtype : SMELT_FLOAT32;
    if (!call->desc->dtype && p->affine) TRY(call_dtype(call, 1, 2, dtype));
    if (routine_is_float(*dtype) || (p->affine && *dtype == SMELT_FLOAT64)) return SMELT_OK;
    return fail(SMELT_ERROR_UNSUPPORTED, "%s: dtype is %s; expected %s", call->name, smelt_dtype_name(*dtype),
                p->affine ? "a float dtype" : "float32, float16 or bfloat16");
}

smelt_status evaluate_dequantize(const struct call *call, smelt_array **result) {
    struct packing p;
    const smelt_array *w = call->inputs[0];
    smelt_array *inputs[3] = {0}, *made = NULL;
    smelt_shape shape, groups;
    smelt_dtype dtype;
    TRY(read_packing(call, &p));
    if (w->dtype != SMELT_UINT32)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: w has dtype %s; expected uint32", call->name,
                    smelt_dtype_name(w->dtype));
    TRY(divided(call, &w->shape, p.bits, 32, &shape));
    TRY(divided(call, &shape, p.group, 1, &groups));
    TRY(check_size(call, w->size / p.bits * 32));
    TRY(check_scales(call, &p, &groups));
    TRY(dequantized_dtype(call, &p, &dtype));
    bool plain = dtype == SMELT_FLOAT64 && !program_is_symbolic(call->device);
    smelt_dtype scale = plain ? SMELT_FLOAT64 : p.affine ? SMELT_FLOAT32 : SMELT_UINT8;
    struct call here = *call;
    if (plain) here.device = "cpu";
    smelt_status status = open_inputs(&here, SMELT_UINT32, scale, inputs);
    if (status == SMELT_OK) status = call_output(&here, dtype, &shape, &made);
    if (status == SMELT_OK && plain) {
        dequantize_plainly(&p, inputs, made);
    } else if (status == SMELT_OK && made->size) {
        smelt_dispatch_desc dispatch = dispatch_of(call, inputs, made, made->size);
        status = run(call, &p, "smelt_dequantize", dtype, scale, &dispatch);
    }
    for (int i = 0; i < 3; i++) smelt_array_release(inputs[i]);
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}

/* ---- All of it. */

smelt_status smelt_quantize(const smelt_quantize_desc *desc, smelt_array **w, smelt_array **scales,
                            smelt_array **biases) {
    if (!desc || !w || !scales)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "quantize: %s is NULL",
                    !desc ? "desc"
                    : w   ? "scales"
                          : "w");
    TRY(reserved_check(smelt_quantize_desc, desc));
    bool affine = desc->mode == SMELT_QUANTIZED_AFFINE;
    if (!desc->x || affine != (biases != NULL))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "quantize: %s",
                    !desc->x ? "x is NULL"
                    : affine ? "biases is NULL; expected an address, as mode is affine"
                             : "biases is given; expected NULL, as mode is not affine");
    smelt_apply_desc apply = {.operation = SMELT_OPERATION_QUANTIZE_SCALES,
                              .inputs = {desc->x},
                              .starts = {desc->bits, desc->group_size, desc->mode},
                              .device = desc->device,
                              .stream = desc->stream};
    struct expression e = {.device = desc->device, .stream = desc->stream};
    smelt_array *made[3] = {0}, *planes[2] = {0};
    planes[0] = expr_apply(&e, &apply);
    for (int i = 1; i >= 0 && affine; i--) planes[i] = expr_row(&e, planes[0], i);
    apply.operation = SMELT_OPERATION_QUANTIZE;
    apply.inputs[1] = planes[0], apply.inputs[2] = planes[1];
    smelt_array *words = expr_apply(&e, &apply);
    if (words) {
        made[0] = smelt_array_retain(words);
        made[1] = smelt_array_retain(planes[0]);
        made[2] = planes[1] ? smelt_array_retain(planes[1]) : NULL;
    }
    smelt_array *result = NULL;
    smelt_status status = expr_close(&e, words, &result);
    smelt_array_release(result);
    if (status != SMELT_OK) {
        for (int i = 0; i < 3; i++) smelt_array_release(made[i]);
        return status;
    }
    *w = made[0];
    *scales = made[1];
    if (biases) *biases = made[2];
    return SMELT_OK;
}
