#include "ops/elementwise.h"
#include "array/dtype.h"
#include "ops/map.h"
#include "ops/operation.h"

#include <string.h>

/* ---- The table. */

const struct elementwise *elementwise_find(smelt_operation operation) {
    static const struct elementwise table[SMELT_OPERATION_END] = {
#define ROW(upper, domain, outcome, real, integer, complex, host) \
    [SMELT_OPERATION_##upper] = {DOMAIN_##domain, OUTCOME_##outcome, real, integer, complex},
        UNARY_TABLE(ROW) BINARY_TABLE(ROW)
#undef ROW
    };
    return &table[operation];
}

smelt_status elementwise_dtypes(smelt_operation operation, smelt_dtype common, smelt_dtype *computed,
                                smelt_dtype *result) {
    const struct elementwise *row = elementwise_find(operation);
    const char *name = smelt_operation_name(operation);
    if (row->domain == DOMAIN_FLOATS && !dtype_is_inexact(common)) common = SMELT_FLOAT32;
    if (row->domain == DOMAIN_INTEGERS && dtype_is_inexact(common))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: the inputs' dtype is %s, expected integers or bool",
                    name, smelt_dtype_name(common));
    if (common == SMELT_COMPLEX64 && !row->complex[0])
        return fail(SMELT_ERROR_UNSUPPORTED, "%s is not defined for complex64", name);
    *computed = common;
    *result = row->outcome == OUTCOME_BOOL                                ? SMELT_BOOL
              : row->outcome == OUTCOME_REAL && common == SMELT_COMPLEX64 ? SMELT_FLOAT32
                                                                          : common;
    return SMELT_OK;
}

/* ---- Kernels. */

static const char *expression_of(smelt_operation operation, smelt_dtype computed) {
    const struct elementwise *row = elementwise_find(operation);
    if (computed == SMELT_COMPLEX64) return row->complex;
    return !dtype_is_inexact(computed) && row->integer[0] ? row->integer : row->real;
}

/* What follows from the operands' dtypes is not in the key but `computed` is, in its form. */
static smelt_dtype computed_of(const struct map *map) {
    return (smelt_dtype)(map->key.form & 0xff);
}

static void write_elementwise(struct text *text, const struct map *map) {
    smelt_dtype computed = computed_of(map);
    int out = map->operand_count - 1;
    static const char names[] = "xy";
    program_typedef(text, "P", computed);
    program_typedef(text, "C", program_compute_dtype(computed));
    program_typedef(text, "R", map->operands[out].array->dtype);
    for (int j = 0; j < out; j++) text_addf(text, "  const C %c = C(P(p%d[o%d]));\n", names[j], j, j);
    text_addf(text, "  p%d[o%d] = R(%s);\n", out, out,
              expression_of((smelt_operation)map->key.operation, computed));
}

/* An input of one element on the host is converted there: fewer kernels differ by dtypes. */
static smelt_status narrow(smelt_array *input, smelt_dtype dtype, smelt_array **out) {
    if (input->size == 1 && !input->memory->space && input->dtype != dtype)
        return smelt_array_convert(input, dtype, out);
    *out = smelt_array_retain(input);
    return SMELT_OK;
}

static smelt_status run(const struct call *call, smelt_dtype computed, smelt_dtype result_dtype,
                        smelt_array **result) {
    smelt_array *inputs[2] = {0}, *made = NULL;
    smelt_shape shape;
    TRY(call_shape(call, 0, call->count, &shape));
    smelt_status status = SMELT_OK;
    for (int i = 0; i < call->count && status == SMELT_OK; i++)
        status = narrow(call->inputs[i], computed, &inputs[i]);
    if (status == SMELT_OK) status = call_output(call, result_dtype, &shape, &made);
    if (status == SMELT_OK) {
        struct map map = {.name = call->name,
                          .key = {.operation = (uint16_t)call->desc->operation, .form = (uint16_t)computed},
                          .device = call->device,
                          .stream = call->desc->stream,
                          .space = shape,
                          .operand_count = call->count + 1,
                          .write = write_elementwise};
        for (int i = 0; i < call->count; i++) map.operands[i] = map_operand(inputs[i], &shape, false);
        map.operands[call->count] = map_operand(made, &shape, true);
        status = map_run(&map);
    }
    for (int i = 0; i < call->count; i++) smelt_array_release(inputs[i]);
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}

static smelt_status evaluate(const struct call *call, evaluator *host, smelt_array **result) {
    smelt_dtype common, computed, dtype;
    TRY(call_dtype(call, 0, call->count, &common));
    TRY(elementwise_dtypes(call->desc->operation, common, &computed, &dtype));
    if (call_has_float64(call)) return host(call, result);
    return run(call, computed, dtype, result);
}

smelt_status evaluate_unary(const struct call *call, smelt_array **result) {
    return evaluate(call, host_unary, result);
}

smelt_status evaluate_binary(const struct call *call, smelt_array **result) {
    return evaluate(call, host_binary, result);
}

/* ---- Copies and conversions. */

static void write_convert(struct text *text, const struct map *map) {
    smelt_dtype dtype = map->operands[1].array->dtype;
    /* Halfs go through float32, to which and from which every dtype has a conversion. */
    bool small = program_compute_dtype(dtype) != dtype ||
                 program_compute_dtype(map->operands[0].array->dtype) != map->operands[0].array->dtype;
    text_addf(text, "  p1[o1] = %s(%s(p0[o0]));\n", program_type(dtype),
              small && dtype != map->operands[0].array->dtype ? "float" : "");
}

smelt_status call_place(const struct call *call, smelt_array *from, smelt_array *to, const smelt_shape *space,
                        const int64_t *strides, int64_t offset) {
    if (from->dtype == SMELT_FLOAT64 || to->dtype == SMELT_FLOAT64) {
        smelt_array *source, *target;
        int64_t broadcast[SMELT_MAX_DIMENSIONS];
        map_broadcast(from, space, broadcast);
        TRY(smelt_array_view(from, *space, broadcast, 0, &source));
        smelt_status status = smelt_array_view(to, *space, strides, offset, &target);
        if (status == SMELT_OK) {
            status = smelt_array_copy(target, source);
            smelt_array_release(target);
        }
        smelt_array_release(source);
        return status;
    }
    struct map map = {
        .name = "copy",
        .key = {.operation = SMELT_OPERATION_ASTYPE},
        .device = call->device,
        .stream = call->desc->stream,
        .space = *space,
        .operand_count = 2,
        .operands = {map_operand(from, space, false), {.array = to, .offset = offset, .written = true}},
        .write = write_convert};
    memcpy(map.operands[1].strides, strides, (size_t)space->ndim * sizeof *strides);
    return map_run(&map);
}

static smelt_status copy(const struct call *call, smelt_array *array, smelt_dtype dtype,
                         smelt_array **result) {
    smelt_array *made;
    TRY(call_output(call, dtype, &array->shape, &made));
    smelt_status status = call_place(call, array, made, &array->shape, made->strides, 0);
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}

smelt_status call_contiguous(const struct call *call, smelt_array *array, smelt_array **result) {
    if (!smelt_array_is_contiguous(array)) return copy(call, array, array->dtype, result);
    *result = smelt_array_retain(array);
    return SMELT_OK;
}

smelt_status evaluate_identity(const struct call *call, smelt_array **result) {
    smelt_array *input = call->inputs[0];
    return smelt_array_view(input, input->shape, input->strides, 0, result);
}

smelt_status evaluate_astype(const struct call *call, smelt_array **result) {
    smelt_dtype dtype = call->desc->dtype;
    if (!smelt_dtype_bytes(dtype))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "astype: dtype %d is not one of smelt_dtype", (int)dtype);
    if (call->inputs[0]->dtype == dtype) return evaluate_identity(call, result);
    return copy(call, call->inputs[0], dtype, result);
}

/* ---- where. */

static void write_where(struct text *text, const struct map *map) {
    smelt_dtype dtype = map->operands[3].array->dtype;
    program_typedef(text, "R", dtype);
    program_typedef(text, "C", program_compute_dtype(dtype));
    /* Both are read: no branch. */
    text_add(text, "  const R yes = R(C(p1[o1])), no = R(C(p2[o2]));\n"
                   "  p3[o3] = bool(p0[o0]) ? yes : no;\n");
}

smelt_status evaluate_where(const struct call *call, smelt_array **result) {
    smelt_dtype dtype;
    smelt_shape shape;
    smelt_array *made, *condition = NULL, *yes = NULL, *no = NULL;
    TRY(call_dtype(call, 1, 2, &dtype));
    TRY(call_shape(call, 0, 3, &shape));
    if (call_has_float64(call)) return host_where(call, result);
    TRY(call_output(call, dtype, &shape, &made));
    smelt_status status = narrow(call->inputs[0], SMELT_BOOL, &condition);
    if (status == SMELT_OK) status = narrow(call->inputs[1], dtype, &yes);
    if (status == SMELT_OK) status = narrow(call->inputs[2], dtype, &no);
    if (status == SMELT_OK) {
        struct map map = {.name = "where",
                          .key = {.operation = SMELT_OPERATION_WHERE},
                          .device = call->device,
                          .stream = call->desc->stream,
                          .space = shape,
                          .operand_count = 4,
                          .operands = {map_operand(condition, &shape, false), map_operand(yes, &shape, false),
                                       map_operand(no, &shape, false), map_operand(made, &shape, true)},
                          .write = write_where};
        status = map_run(&map);
    }
    smelt_array_release(condition);
    smelt_array_release(yes);
    smelt_array_release(no);
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}
