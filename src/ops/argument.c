/* argmax and argmin along an axis: the first of equal elements; NaN wins over numbers. A simdgroup searches a
 * chunk of a line, each lane every 32nd element. The places found in chunks are the candidates of the next
 * stage, until one chunk is left. */
#include "array/dtype.h"
#include "ops/map.h"
#include "ops/operation.h"

#include <limits.h>

#define LANES 32
#define CHUNK 2048
#define CHUNK_OF_CANDIDATES 256

/* The kernel's numbers: elements of a line, its stride, elements of a chunk. Its operands: the line, the
 * result, the lane, the chunk, and with FORM_CANDIDATES the places of the elements to compare. */
enum { NUMBER_COUNT, NUMBER_STRIDE, NUMBER_CHUNK, NUMBERS };
enum { FORM_CANDIDATES = 1 };

static void write_argument(struct text *text, const struct map *map) {
    smelt_dtype dtype = program_compute_dtype(map->operands[0].array->dtype);
    program_typedef(text, "C", dtype);
    const char *better = map->key.operation == SMELT_OPERATION_ARGMAX ? ">" : "<";
    bool wide = smelt_dtype_bytes(dtype) == 8;
    const char *shuffle =
        wide ? "as_type<C>(simd_shuffle_down(as_type<uint2>(best), n))" : "C(simd_shuffle_down(best, n))";
    if (dtype == SMELT_BOOL) shuffle = "C(simd_shuffle_down(uint(best), n))";
    const char *place = map->key.form & FORM_CANDIDATES ? "long(p4[long(o4) + (k)])" : "(first + (k))";
    text_addf(text,
              "#define PLACE(k) %s\n"
              "#define AT(place) C(p0[long(o0) + (place) * l.number[1]])\n"
              "#define TAKE(x, place) if (x %s best || (x != x && best == best)) { best = x; index = "
              "int(place); }\n"
              "  const long first = long(o3) * l.number[2], lane = long(o2);\n"
              "  const long left = l.number[0] - first, count = left < l.number[2] ? left : l.number[2];\n"
              "  long k = lane < count ? lane : 0;\n"
              "  int index = int(PLACE(k));\n"
              "  C best = AT(PLACE(k));\n"
              "  for (k = lane + %d; k + %d < count; k += %d) {\n"
              "    const long a = PLACE(k), b = PLACE(k + %d), c = PLACE(k + %d), d = PLACE(k + %d);\n"
              "    const C w = AT(a), x = AT(b), y = AT(c), z = AT(d);\n"
              "    TAKE(w, a) TAKE(x, b) TAKE(y, c) TAKE(z, d)\n"
              "  }\n"
              "  for (; k < count; k += %d) {\n"
              "    const long a = PLACE(k);\n"
              "    const C w = AT(a);\n"
              "    TAKE(w, a)\n"
              "  }\n",
              place, better, LANES, 3 * LANES, 4 * LANES, LANES, 2 * LANES, 3 * LANES, LANES);
    text_addf(text,
              "  for (ushort n = %d; n > 0; n /= 2) {\n"
              "    const C x = %s;\n"
              "    const int i = simd_shuffle_down(index, n);\n"
              "    const bool wins = x %s best || (x != x && best == best);\n"
              "    const bool ties = x == best || (x != x && best != best);\n"
              "    if (wins || (ties && i < index)) { best = x; index = i; }\n"
              "  }\n"
              "  if (lane == 0) p1[o1] = index;\n",
              LANES / 2, shuffle, better);
}

/* One stage: `to` has the dimensions of `from` without the axis, followed by the chunks. candidates: the
 * places found by the stage before, `count` per line, in the same order; NULL: all of the line's `count`
 * elements are compared. */
static smelt_status run_stage(const struct call *call, smelt_array *from, int axis, smelt_array *candidates,
                              int64_t count, int64_t chunk, smelt_array *to) {
    struct map map = {
        .name = call->name,
        .key = {.operation = (uint16_t)call->desc->operation, .form = candidates ? FORM_CANDIDATES : 0},
        .device = call->device,
        .stream = call->desc->stream,
        .operand_count = candidates ? 5 : 4,
        .operands = {{.array = from}, {.array = to, .written = true}},
        .number_count = NUMBERS,
        .numbers = {count, from->shape.ndim ? from->strides[axis] : 0, chunk},
        .lanes = true,
        .write = write_argument};
    int64_t chunks = (count + chunk - 1) / chunk, lines = 1;
    for (int d = 0; d < from->shape.ndim; d++)
        if (d != axis) {
            map.operands[0].strides[map.space.ndim] = from->strides[d];
            map.space.size[map.space.ndim++] = from->shape.size[d];
        }
    int kept = map.space.ndim;
    for (int d = kept - 1; d >= 0; lines *= map.space.size[d--]) {
        map.operands[1].strides[d] = lines * chunks;
        map.operands[4].strides[d] = lines * count;
    }
    if (chunks > 1) {
        int d = map.space.ndim++;
        map.space.size[d] = chunks;
        map.operands[1].strides[d] = map.operands[3].strides[d] = 1;
        map.operands[4].strides[d] = chunk;
    }
    map.operands[2].strides[map.space.ndim] = 1;
    map.space.size[map.space.ndim++] = LANES;
    map.operands[4].array = candidates;
    return map_run(&map);
}

static smelt_status find_places(const struct call *call, smelt_array *from, int axis, smelt_array *out) {
    smelt_array *candidates = NULL;
    int64_t count = from->shape.ndim ? from->shape.size[axis] : 1, lines = from->size / count;
    for (;;) {
        smelt_array *next;
        int64_t chunk = candidates ? CHUNK_OF_CANDIDATES : CHUNK, chunks = (count + chunk - 1) / chunk;
        smelt_status status;
        if (count <= 2 * chunk || from->shape.ndim == SMELT_MAX_DIMENSIONS) {
            status = run_stage(call, from, axis, candidates, count, count, out);
            smelt_array_release(candidates);
            return status;
        }
        status = call_output(&(struct call){.desc = call->desc, .name = call->name, .device = call->device},
                             SMELT_INT32, &(smelt_shape){2, {lines, chunks}}, &next);
        if (status == SMELT_OK) status = run_stage(call, from, axis, candidates, count, chunk, next);
        smelt_array_release(candidates);
        TRY(status);
        candidates = next;
        count = chunks;
    }
}

smelt_status evaluate_argument(const struct call *call, smelt_array **result) {
    smelt_array *from, *made = NULL;
    int axis;
    TRY(call_line(call, &from, &axis));
    bool flat = call->desc->axis_count == 0;
    int64_t count = from->shape.ndim ? from->shape.size[axis] : 1;
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
        status = find_places(call, from, axis, made);
    }
    smelt_array_release(from);
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}
