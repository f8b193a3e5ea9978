#include "array/dtype.h"
#include "ops/index.h"

#include <string.h>

/* ---- The indices. */

static smelt_status read_axes(const struct call *call, struct indexed *out) {
    int axes[2 * SMELT_MAX_DIMENSIONS], ndim = out->shape.ndim, given = call->desc->axis_count;
    if (!given) {
        for (int j = 0; j < out->count; j++) axes[j] = j;
    } else if (given != out->count) {
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: %d axes are given for %d arrays of indices",
                    call->name, given, out->count);
    }
    if (out->count > ndim)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: %d arrays of indices for %d dimensions", call->name,
                    out->count, ndim);
    return call_check_axes(call->name, given ? call->desc->axes : axes, out->count, ndim, out->axes);
}

smelt_status indexed_read(const struct call *call, int first, const smelt_shape *shape, struct indexed *out) {
    out->shape = *shape;
    out->count = call->count - first;
    out->indices = (smelt_array **)call->inputs + first;
    if (out->count < 1)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: no array of indices is given", call->name);
    for (int j = 0; j < out->count; j++)
        if (!dtype_is_integer(out->indices[j]->dtype))
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: indices %d are %s, expected integers", call->name,
                        j, smelt_dtype_name(out->indices[j]->dtype));
    TRY(read_axes(call, out));
    TRY(call_shape(call, first, out->count, &out->query));
    int64_t position = call->desc->offset;
    int rest = shape->ndim - out->count;
    if (position < 0 || position > rest)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "%s: offset %lld, expected 0 to %d, the dimensions not indexed", call->name,
                    (long long)position, rest);
    if (rest + out->query.ndim > SMELT_MAX_DIMENSIONS)
        return fail(SMELT_ERROR_LIMIT, "%s: the result has %d dimensions; at most %d are allowed", call->name,
                    rest + out->query.ndim, SMELT_MAX_DIMENSIONS);
    out->position = (int)position;
    uint32_t taken = 0;
    for (int j = 0; j < out->count; j++) taken |= UINT32_C(1) << out->axes[j];
    out->picked = (smelt_shape){.ndim = 0};
    for (int d = 0, seen = 0; d <= shape->ndim; d++) {
        bool kept = d < shape->ndim && !(taken >> d & 1);
        if (seen == out->position && (kept || d == shape->ndim)) {
            for (int q = 0; q < out->query.ndim; q++)
                out->picked.size[out->picked.ndim++] = out->query.size[q];
            seen++; /* once only */
        }
        if (kept) {
            out->picked.size[out->picked.ndim++] = shape->size[d];
            seen++;
        }
    }
    for (int j = 0; j < out->count && shape_product(&out->picked); j++)
        if (!shape->size[out->axes[j]])
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: dimension %d has no elements to index", call->name,
                        out->axes[j]);
    return SMELT_OK;
}

void indexed_strides(const struct indexed *indexed, const int64_t *strides, int64_t *picked) {
    uint32_t taken = 0;
    int at = 0;
    for (int j = 0; j < indexed->count; j++) taken |= UINT32_C(1) << indexed->axes[j];
    for (int d = 0; d < indexed->shape.ndim; d++) {
        if (taken >> d & 1) continue;
        int place = at < indexed->position ? at : at + indexed->query.ndim;
        picked[place] = strides[d];
        at++;
    }
    for (int q = 0; q < indexed->query.ndim; q++) picked[indexed->position + q] = 0;
}

void indexed_operands(const struct indexed *indexed, const int64_t *strides, struct map *map) {
    for (int j = 0; j < indexed->count; j++) {
        struct operand *operand = &map->operands[j];
        int64_t own[SMELT_MAX_DIMENSIONS];
        *operand = (struct operand){.array = indexed->indices[j]};
        map_broadcast(indexed->indices[j], &indexed->query, own);
        for (int q = 0; q < indexed->query.ndim; q++) operand->strides[indexed->position + q] = own[q];
        map->numbers[2 * j] = indexed->shape.size[indexed->axes[j]];
        map->numbers[2 * j + 1] = strides[indexed->axes[j]];
    }
    map->number_count = 2 * indexed->count;
}

void indexed_write(struct text *text, int count) {
    text_add(text, "  const long at =");
    for (int j = 0; j < count; j++)
        text_addf(text, "%s index_of(long(p%d[o%d]), l.number[%d]) * l.number[%d]", j ? " +" : "", j, j,
                  2 * j, 2 * j + 1);
    text_add(text, ";\n");
}

smelt_array indexed_bits(const smelt_array *array) {
    smelt_array bits = *array;
    if (bits.dtype == SMELT_FLOAT64) bits.dtype = SMELT_INT64;
    return bits;
}

/* ---- Gathering. */

static void write_gather(struct text *text, const struct map *map) {
    int n = map->operand_count - 2;
    indexed_write(text, n);
    text_addf(text, "  p%d[o%d] = p%d[long(o%d) + at];\n", n + 1, n + 1, n, n);
}

smelt_status evaluate_gather(const struct call *call, smelt_array **result) {
    struct indexed indexed;
    smelt_array *made;
    TRY(indexed_read(call, 1, &call->inputs[0]->shape, &indexed));
    TRY(call_output(call, call->inputs[0]->dtype, &indexed.picked, &made));
    smelt_array from = indexed_bits(call->inputs[0]), to = indexed_bits(made);
    struct map map = {.name = call->name,
                      .key = {.operation = SMELT_OPERATION_GATHER},
                      .device = call->device,
                      .stream = call->desc->stream,
                      .space = indexed.picked,
                      .operand_count = indexed.count + 2,
                      .write = write_gather};
    indexed_operands(&indexed, from.strides, &map);
    map.operands[indexed.count] = (struct operand){.array = &from};
    indexed_strides(&indexed, from.strides, map.operands[indexed.count].strides);
    map.operands[indexed.count + 1] = map_operand(&to, &indexed.picked, true);
    smelt_status status = map_run(&map);
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}
