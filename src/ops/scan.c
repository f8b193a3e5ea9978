/* Along one axis: cumulative operations, and the index of an extreme element. A thread takes a line, or where
 * the line's elements are neighbours a team of threads. */
#include "array/dtype.h"
#include "kernels/kernel_text.h"
#include "ops/accumulate.h"
#include "ops/map.h"
#include "ops/routine_input.h"

#include <limits.h>
#include <string.h>

/* The array itself with its axis, or flattened with axis 0. *array is a reference. */
static smelt_status line_of(const struct call *call, smelt_array **array, int *axis) {
    bool flat;
    smelt_array *input = call->inputs[0], *dense;
    TRY(call_axis(call, input->shape.ndim, axis, &flat));
    if (!flat) {
        *array = smelt_array_retain(input);
        return SMELT_OK;
    }
    TRY(call_contiguous(call, input, &dense));
    smelt_status status = smelt_array_view(dense, (smelt_shape){1, {input->size}}, NULL, 0, array);
    smelt_array_release(dense);
    return status;
}

/* A map over all dimensions but the axis. */
static struct map lines(const struct call *call, smelt_array *from, smelt_array *to,
                        const int64_t *to_strides, int axis) {
    struct map map = {.name = call->name,
                      .device = call->device,
                      .stream = call->desc->stream,
                      .operand_count = 2,
                      .operands = {{.array = from}, {.array = to, .written = true}}};
    for (int d = 0; d < from->shape.ndim; d++) {
        if (d == axis) continue;
        map.operands[0].strides[map.space.ndim] = from->strides[d];
        map.operands[1].strides[map.space.ndim] = to_strides[d];
        map.space.size[map.space.ndim++] = from->shape.size[d];
    }
    map.key.operation = (uint16_t)call->desc->operation;
    return map;
}

/* ---- Cumulative operations. */

static void write_functions(struct text *text, const struct map *map) {
    accumulate_write(text, (smelt_operation)map->key.operation, (smelt_dtype)(map->key.form & 0xff),
                     map->operands[1].array->dtype);
}

static void write_cumulative(struct text *text, const struct map *map) {
    bool exclusive = map->key.form & 0x100;
    text_add(text, "  A sum = start();\n"
                   "  long o = long(o0), to = long(o1);\n"
                   "  for (long k = 0; k < l.number[0]; k++, o += l.number[1], to += l.number[2]) {\n");
    if (exclusive) text_add(text, "    const A before = sum;\n");
    text_add(text, "    sum = combine(sum, element(p0[o]));\n");
    text_addf(text, "    p1[to] = R(%s);\n  }\n", exclusive ? "before" : "sum");
}

/* ---- By teams. */

/* Shorter lines leave most of a simdgroup idle. */
#define SHORTEST_ROW 32

struct scan_key {
    smelt_operation operation;
    smelt_dtype sum, element, result;
    int simdgroups;
    bool reverse, exclusive;
};

static void write_scan(struct text *text, const void *context) {
    const struct scan_key *key = context;
    accumulate_write(text, key->operation, key->sum, key->result);
    program_typedef(text, "T", key->element);
    text_addf(text, "constant constexpr int SIMDGROUPS = %d, REVERSE = %d, EXCLUSIVE = %d;\n",
              key->simdgroups, key->reverse, key->exclusive);
    text_add(text, kernel_text_scan);
}

static bool is_row(const struct call *call, const smelt_array *from, int axis) {
    int64_t count = from->shape.ndim ? from->shape.size[axis] : 0;
    return axis == from->shape.ndim - 1 && count >= SHORTEST_ROW && count <= UINT32_MAX / 2 &&
           from->size / count <= INT_MAX && call->inputs[0]->dtype != SMELT_COMPLEX64;
}

static smelt_status scan_rows(const struct call *call, smelt_array *from, smelt_dtype sum, smelt_array *out) {
    smelt_array *dense;
    smelt_function *function;
    int64_t columns = from->shape.size[from->shape.ndim - 1], rows = from->size / columns;
    struct routine_team team = routine_team_of(call, rows, columns);
    const struct scan_key scan = {
        call->desc->operation, sum, from->dtype, out->dtype, team.simdgroups, call->desc->reverse,
        call->desc->exclusive};
    struct program_key key = {.family = PROGRAM_SCAN, .operation = (uint16_t)scan.operation};
    key.form = (uint16_t)(scan.simdgroups | scan.reverse << 8 | scan.exclusive << 9);
    key.dtypes[0] = (uint8_t)scan.element, key.dtypes[1] = (uint8_t)scan.result, key.dtypes[2] = (uint8_t)sum;
    TRY(program_get(&key, "smelt_scan", write_scan, &scan, &function));
    TRY(routine_input(call, from, from->dtype, &dense));
    const uint32_t size[2] = {(uint32_t)rows, (uint32_t)columns};
    smelt_status status = smelt_function_run(
        function, &(smelt_dispatch_desc){
                      .buffers = {{.array = dense}, {.array = out}, {.bytes = size, .size = sizeof size}},
                      .groups = {team.groups},
                      .threadgroup = {team.threads},
                      .device = call->device,
                      .stream = call->desc->stream});
    smelt_array_release(dense);
    return status;
}

smelt_status evaluate_cumulative(const struct call *call, smelt_array **result) {
    smelt_array *from, *made = NULL;
    smelt_dtype sum, dtype;
    int axis;
    if (call->desc->exclusive && accumulate_check(call, 0) != SMELT_OK)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s has no exclusive form: it has no identity", call->name);
    TRY(accumulate_check(call, 1));
    accumulate_dtypes(call->desc->operation, call->inputs[0]->dtype, &sum, &dtype);
    TRY(line_of(call, &from, &axis));
    smelt_status status = call_output(call, dtype, &from->shape, &made);
    if (program_is_symbolic(call->device)) {
        /* Nothing to compute yet. */
    } else if (status == SMELT_OK && made->size && dtype == SMELT_FLOAT64) {
        host_lines_cumulative(call, from, axis, made);
    } else if (status == SMELT_OK && made->size && is_row(call, from, axis)) {
        status = scan_rows(call, from, sum, made);
    } else if (status == SMELT_OK && made->size) {
        int64_t count = from->shape.size[axis], back = call->desc->reverse ? -1 : 1;
        struct map map = lines(call, from, made, made->strides, axis);
        map.key.form = (uint16_t)(sum | (call->desc->exclusive ? 0x100 : 0));
        map.number_count = 3;
        map.numbers[0] = count;
        map.numbers[1] = back * from->strides[axis];
        map.numbers[2] = back * made->strides[axis];
        if (call->desc->reverse) {
            map.operands[0].offset = (count - 1) * from->strides[axis];
            map.operands[1].offset = (count - 1) * made->strides[axis];
        }
        map.write_before = write_functions;
        map.write = write_cumulative;
        status = map_run(&map);
    }
    smelt_array_release(from);
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}

/* ---- The index of the largest or smallest element: the first of equals; a NaN is before all. Lanes take
 * every 32nd element of a line. */

#define LANES 32

static void write_argument(struct text *text, const struct map *map) {
    smelt_dtype dtype = program_compute_dtype(map->operands[0].array->dtype);
    program_typedef(text, "C", dtype);
    const char *better = map->key.operation == SMELT_OPERATION_ARGMAX ? ">" : "<";
    bool wide = smelt_dtype_bytes(dtype) == 8;
    const char *shuffle =
        wide ? "as_type<C>(simd_shuffle_down(as_type<uint2>(best), n))" : "C(simd_shuffle_down(best, n))";
    if (dtype == SMELT_BOOL) shuffle = "C(simd_shuffle_down(uint(best), n))";
    text_addf(text,
              "  int index = int(o2);\n"
              "  C best = C(p0[long(o2) < l.number[0] ? long(o0) : long(o0) - long(o2) * l.number[1]]);\n"
              "  if (long(o2) >= l.number[0]) index = 0;\n"
              "  long o = long(o0) + %d * l.number[1];\n"
              "  for (long k = long(o2) + %d; k < l.number[0]; k += %d, o += %d * l.number[1]) {\n"
              "    const C x = C(p0[o]);\n"
              "    if (x %s best || (x != x && best == best)) { best = x; index = int(k); }\n"
              "  }\n"
              "  for (ushort n = %d; n > 0; n /= 2) {\n"
              "    const C x = %s;\n"
              "    const int i = simd_shuffle_down(index, n);\n"
              "    const bool wins = x %s best || (x != x && best == best);\n"
              "    const bool ties = x == best || (x != x && best != best);\n"
              "    if (wins || (ties && i < index)) { best = x; index = i; }\n"
              "  }\n"
              "  if (o2 == 0) p1[o1] = index;\n",
              LANES, LANES, LANES, LANES, better, LANES / 2, shuffle, better);
}

smelt_status evaluate_argument(const struct call *call, smelt_array **result) {
    smelt_array *from, *made = NULL;
    int axis;
    TRY(line_of(call, &from, &axis));
    bool flat = call->desc->axis_count == 0;
    int64_t count = from->shape.ndim ? from->shape.size[axis] : 1, strides[SMELT_MAX_DIMENSIONS];
    smelt_shape shape = {.ndim = 0};
    for (int d = 0; d < (flat ? call->inputs[0]->shape.ndim : from->shape.ndim); d++)
        if (call->desc->keepdims || (!flat && d != axis))
            shape.size[shape.ndim++] = flat || d == axis ? 1 : from->shape.size[d];
    smelt_status status = SMELT_OK;
    if (from->dtype == SMELT_COMPLEX64)
        status = fail(SMELT_ERROR_UNSUPPORTED, "%s is not defined for complex64", call->name);
    else if (!count && shape_product(&shape))
        status = fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: no elements along the axis of shape %s", call->name,
                      shape_print(&call->inputs[0]->shape).text);
    else if (count > INT_MAX)
        status = fail(SMELT_ERROR_LIMIT,
                      "%s: %lld elements along the axis; the int32 result allows at most 2^31 - 1",
                      call->name, (long long)count);
    if (status == SMELT_OK) status = call_output(call, SMELT_INT32, &shape, &made);
    if (program_is_symbolic(call->device)) {
        /* Nothing to compute yet. */
    } else if (status == SMELT_OK && made->size && from->dtype == SMELT_FLOAT64) {
        host_lines_argument(call, from, axis, made);
    } else if (status == SMELT_OK && made->size) {
        int64_t step = 1;
        for (int d = from->shape.ndim - 1; d >= 0; d--) {
            strides[d] = step;
            if (d != axis) step *= from->shape.size[d];
        }
        struct map map = lines(call, from, made, strides, axis);
        map.operand_count = 3;
        map.operands[0].strides[map.space.ndim] = from->strides[axis];
        map.operands[2].strides[map.space.ndim] = 1;
        map.space.size[map.space.ndim++] = LANES;
        map.lanes = true;
        map.number_count = 2;
        map.numbers[0] = count;
        map.numbers[1] = from->strides[axis];
        map.write = write_argument;
        status = map_run(&map);
    }
    smelt_array_release(from);
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}
