/* Writing at indices from integer arrays. Nothing is written in place: scatter first finds the last update to
 * each place, then every element of the result is either that or the old one; sums are added to zeros. */
#include "array/dtype.h"
#include "ops/index.h"

#include <string.h>

static smelt_status finish(smelt_status status, smelt_array *made, smelt_array **result) {
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}

static smelt_status check_updates(const struct call *call, const smelt_array *updates,
                                  const struct indexed *indexed) {
    if (shape_broadcasts(&updates->shape, &indexed->picked)) return SMELT_OK;
    return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: updates of shape %s cannot be broadcast to %s", call->name,
                shape_print(&updates->shape).text, shape_print(&indexed->picked).text);
}

/* ---- scatter. */

static void write_last(struct text *text, const struct map *map) {
    int n = map->operand_count - 2;
    indexed_write(text, n);
    text_addf(text, "  atomic_fetch_max_explicit(p%d + at, int(o%d), memory_order_relaxed);\n", n, n + 1);
}

static void write_choice(struct text *text, const struct map *map) {
    (void)map;
    text_add(text,
             "  const int last = p1[o1];\n"
             "  const auto old = p0[o0], update = p2[long(o2) + long(last < 0 ? 0 : last) * l.number[0]];\n"
             "  p3[o3] = last >= 0 ? update : old;\n");
}

/* For each place that can be indexed the number of the last query that does, or -1: int32, of the sizes of
 * the indexed dimensions. */
static smelt_status find_last(const struct call *call, const struct indexed *indexed, smelt_array **last) {
    smelt_shape places = {.ndim = indexed->count};
    int64_t strides[SMELT_MAX_DIMENSIONS] = {0};
    smelt_array *made;
    if (shape_product(&indexed->query) > INT32_MAX)
        return fail(SMELT_ERROR_LIMIT, "%s: shape %s has more than 2^31 indices", call->name,
                    shape_print(&indexed->query).text);
    for (int j = 0; j < indexed->count; j++) places.size[j] = indexed->shape.size[indexed->axes[j]];
    TRY(program_filled(call->device, call->desc->stream, SMELT_INT32, &places, -1, &made));
    for (int j = 0; j < indexed->count; j++) strides[indexed->axes[j]] = made->strides[j];
    struct indexed plain = *indexed;
    plain.position = 0;
    struct map map = {.name = call->name,
                      .key = {.operation = SMELT_OPERATION_SCATTER, .form = 1},
                      .device = call->device,
                      .stream = call->desc->stream,
                      .space = indexed->query,
                      .operand_count = indexed->count + 2,
                      .atomic = "atomic_int",
                      .write = write_last};
    indexed_operands(&plain, strides, &map);
    map.operands[indexed->count] = (struct operand){.array = made, .written = true};
    shape_strides(&indexed->query, map.operands[indexed->count + 1].strides);
    return finish(map_run(&map), made, last);
}

/* The updates with the query's dimensions first, of the result's dtype, row-contiguous. */
static smelt_status arrange_updates(const struct call *call, const struct indexed *indexed,
                                    smelt_array *updates, smelt_dtype dtype, smelt_array **arranged) {
    smelt_shape shape = {.ndim = indexed->picked.ndim};
    int64_t strides[SMELT_MAX_DIMENSIONS];
    int query = indexed->query.ndim, order[SMELT_MAX_DIMENSIONS];
    smelt_array *made;
    for (int d = 0; d < shape.ndim; d++) {
        order[d] = d < query ? indexed->position + d : d - query < indexed->position ? d - query : d;
        shape.size[d] = indexed->picked.size[order[d]];
    }
    TRY(call_output(call, dtype, &shape, &made));
    for (int d = 0; d < shape.ndim; d++) strides[order[d]] = made->strides[d];
    return finish(call_place(call, updates, made, &indexed->picked, strides, 0), made, arranged);
}

static smelt_status choose(const struct call *call, const struct indexed *indexed, smelt_array *last,
                           smelt_array *updates, smelt_array *made) {
    smelt_array from = indexed_bits(call->inputs[0]), to = indexed_bits(made), source = indexed_bits(updates);
    struct map map = {.name = call->name,
                      .key = {.operation = SMELT_OPERATION_SCATTER},
                      .device = call->device,
                      .stream = call->desc->stream,
                      .space = from.shape,
                      .operand_count = 4,
                      .operands = {map_operand(&from, &from.shape, false),
                                   {.array = last},
                                   {.array = &source},
                                   map_operand(&to, &from.shape, true)},
                      .number_count = 1,
                      .write = write_choice};
    uint32_t taken = 0;
    for (int j = 0; j < indexed->count; j++) {
        map.operands[1].strides[indexed->axes[j]] = last->strides[j];
        taken |= UINT32_C(1) << indexed->axes[j];
    }
    map.numbers[0] = 1;
    int next = indexed->query.ndim;
    for (int d = 0; d < from.shape.ndim; d++) {
        if (taken >> d & 1) continue;
        map.operands[2].strides[d] = updates->strides[next++];
        map.numbers[0] *= from.shape.size[d];
    }
    return map_run(&map);
}

smelt_status evaluate_scatter(const struct call *call, smelt_array **result) {
    struct indexed indexed;
    smelt_array *last = NULL, *updates = NULL, *made;
    if (call->count < 3)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "scatter: %d inputs are given, expected an array, updates, indices", call->count);
    TRY(indexed_read(call, 2, &call->inputs[0]->shape, &indexed));
    TRY(check_updates(call, call->inputs[1], &indexed));
    TRY(call_output(call, call->inputs[0]->dtype, &call->inputs[0]->shape, &made));
    smelt_status status = SMELT_OK;
    if (!shape_product(&indexed.picked)) {
        status = call_place(call, call->inputs[0], made, &made->shape, made->strides, 0);
    } else {
        status = find_last(call, &indexed, &last);
        if (status == SMELT_OK)
            status = arrange_updates(call, &indexed, call->inputs[1], made->dtype, &updates);
        if (status == SMELT_OK) status = choose(call, &indexed, last, updates, made);
    }
    smelt_array_release(last);
    smelt_array_release(updates);
    return finish(status, made, result);
}

/* ---- scatter_sum. */

static void write_sum(struct text *text, const struct map *map) {
    int n = map->operand_count - 2;
    indexed_write(text, n);
    text_addf(text,
              "  atomic_fetch_add_explicit(p%d + (long(o%d) + at), A(p%d[o%d]), memory_order_relaxed);\n",
              n + 1, n + 1, n, n);
}

static void write_sum_type(struct text *text, const struct map *map) {
    program_typedef(text, "A", map->operands[map->operand_count - 1].array->dtype);
}

/* The dtypes with atomic sums; the others are summed on the host. */
static smelt_dtype atomic_dtype(smelt_dtype dtype) {
    if (dtype == SMELT_FLOAT16 || dtype == SMELT_BFLOAT16 || dtype == SMELT_FLOAT32) return SMELT_FLOAT32;
    if (dtype == SMELT_BOOL || (dtype_is_integer(dtype) && smelt_dtype_bytes(dtype) <= 4))
        return dtype == SMELT_UINT32 ? SMELT_UINT32 : SMELT_INT32;
    return SMELT_NO_DTYPE;
}

static void add_on_host(const struct indexed *indexed, const smelt_array *updates, smelt_array *sum) {
    struct walk walks[SMELT_MAX_ARGUMENTS + 2];
    int64_t strides[SMELT_MAX_ARGUMENTS + 2][SMELT_MAX_DIMENSIONS];
    struct map map = {0};
    size_t bytes = smelt_dtype_bytes(sum->dtype), from_bytes = smelt_dtype_bytes(updates->dtype);
    int n = indexed->count;
    indexed_operands(indexed, sum->strides, &map);
    for (int j = 0; j < n; j++) memcpy(strides[j], map.operands[j].strides, sizeof strides[j]);
    map_broadcast(updates, &indexed->picked, strides[n]);
    indexed_strides(indexed, sum->strides, strides[n + 1]);
    for (int j = 0; j < n + 2; j++) walks[j] = walk_begin(&indexed->picked, strides[j]);
    for (; walks[n].left > 0;) {
        int64_t at = walks[n + 1].offset;
        for (int j = 0; j < n; j++) {
            const smelt_array *indices = indexed->indices[j];
            int64_t size = map.numbers[2 * j];
            int64_t i =
                element_load(indices->dtype,
                             indices->data + walks[j].offset * (int64_t)smelt_dtype_bytes(indices->dtype))
                    .integer;
            if (i < 0) i += size;
            at += (i < 0 ? 0 : i >= size ? size - 1 : i) * map.numbers[2 * j + 1];
        }
        char *address = sum->data + at * (int64_t)bytes;
        struct element a = element_load(sum->dtype, address);
        struct element b =
            element_load(updates->dtype, updates->data + walks[n].offset * (int64_t)from_bytes);
        a.integer = (int64_t)((uint64_t)a.integer + (uint64_t)b.integer);
        a.real += b.real;
        a.imaginary += b.imaginary;
        element_store(sum->dtype, address, a);
        for (int j = 0; j < n + 2; j++) walk_next(&walks[j]);
    }
}

smelt_status evaluate_scatter_sum(const struct call *call, smelt_array **result) {
    smelt_array *updates = call->inputs[0], *made;
    smelt_dtype atomic = atomic_dtype(updates->dtype);
    struct indexed indexed;
    int64_t size;
    TRY(shape_check("scatter_sum", updates->dtype, &call->desc->shape, &size));
    TRY(indexed_read(call, 1, &call->desc->shape, &indexed));
    TRY(check_updates(call, updates, &indexed));
    bool symbolic = program_is_symbolic(call->device);
    if (!atomic && !program_is_host(call->device) && !symbolic)
        return fail(SMELT_ERROR_UNSUPPORTED,
                    "scatter_sum: sums of %s are supported on the host only, but an input is on %s",
                    smelt_dtype_name(updates->dtype), call->device);
    TRY(program_filled(call->device, call->desc->stream, atomic ? atomic : updates->dtype, &call->desc->shape,
                       0, &made));
    smelt_status status = SMELT_OK;
    if (symbolic) {
        /* Nothing to compute yet. */
    } else if (!atomic) {
        add_on_host(&indexed, updates, made);
    } else {
        struct map map = {.name = call->name,
                          .key = {.operation = SMELT_OPERATION_SCATTER_SUM},
                          .device = call->device,
                          .stream = call->desc->stream,
                          .space = indexed.picked,
                          .operand_count = indexed.count + 2,
                          .atomic = atomic == SMELT_FLOAT32  ? "atomic_float"
                                    : atomic == SMELT_UINT32 ? "atomic_uint"
                                                             : "atomic_int",
                          .write_before = write_sum_type,
                          .write = write_sum};
        indexed_operands(&indexed, made->strides, &map);
        map.operands[indexed.count] = map_operand(updates, &indexed.picked, false);
        map.operands[indexed.count + 1] = (struct operand){.array = made, .written = true};
        indexed_strides(&indexed, made->strides, map.operands[indexed.count + 1].strides);
        status = map_run(&map);
    }
    if (status == SMELT_OK && made->dtype != updates->dtype) {
        smelt_array *converted;
        status = call_output(call, updates->dtype, &made->shape, &converted);
        if (status == SMELT_OK)
            status = finish(call_place(call, made, converted, &made->shape, converted->strides, 0), converted,
                            &converted);
        if (status == SMELT_OK) {
            smelt_array_release(made);
            made = converted;
        }
    }
    return finish(status, made, result);
}
