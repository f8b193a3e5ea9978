/* Copies and conversions: where elements are placed, as they are or in another dtype. */
#include "array/dtype.h"
#include "ops/map.h"
#include "ops/operation.h"

#include <string.h>

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
    if (program_is_symbolic(call->device)) return SMELT_OK;
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
