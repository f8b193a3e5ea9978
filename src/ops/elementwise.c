#include "ops/elementwise.h"
#include "array/dtype.h"
#include "ops/map.h"
#include "ops/operation.h"

#include <string.h>

/* ---- Kernels. */

static const char *expression_of(smelt_operation operation, smelt_dtype computed) {
    const struct elementwise *row = elementwise_find(operation);
    if (computed == SMELT_COMPLEX64) return row->complex;
    return !dtype_is_inexact(computed) && row->integer[0] ? row->integer : row->real;
}

/* The key omits properties that follow from the operands' dtypes, but its form holds `computed`. */
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
