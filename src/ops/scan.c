/* Cumulative operations along one axis. One thread computes a line; a team of threads does if the line's
 * elements are contiguous, or are made so because there are few lines (scan_turned). */
#include "array/dtype.h"
#include "kernels/kernel_text.h"
#include "ops/accumulate.h"
#include "ops/map.h"
#include "ops/rows_long.h"

#include <limits.h>

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

/* ---- By one thread per line. */

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
#define LANES 32

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

/* One function of the kernels' text, compiled for teams of `simdgroups`. stage: a number per entry. */
static smelt_status scan_function(const struct call *call, const char *entry, int stage, smelt_dtype element,
                                  smelt_dtype sum, smelt_dtype result, int simdgroups,
                                  smelt_function **function) {
    const struct scan_key scan = {
        call->desc->operation, sum, element, result, simdgroups, call->desc->reverse, call->desc->exclusive};
    struct program_key key = {.family = PROGRAM_SCAN, .operation = (uint16_t)scan.operation};
    key.form = (uint16_t)(simdgroups | scan.reverse << 8 | scan.exclusive << 9 | stage << 10);
    key.dtypes[0] = (uint8_t)element, key.dtypes[1] = (uint8_t)result, key.dtypes[2] = (uint8_t)sum;
    return program_get(&key, entry, write_scan, &scan, function);
}

static smelt_status scan_run(const struct call *call, smelt_function *function,
                             smelt_dispatch_desc *dispatch) {
    dispatch->device = call->device;
    dispatch->stream = call->desc->stream;
    return program_run(function, dispatch);
}

/* Two stages: the total of each chunk, then the chunks, each continued from the totals before it. */
static smelt_status scan_long(const struct call *call, const struct long_rows *cut, smelt_array *from,
                              smelt_dtype sum, smelt_array *out) {
    smelt_array *parts;
    smelt_function *first, *then;
    TRY(scan_function(call, "smelt_scan_parts", 1, from->dtype, sum, out->dtype, cut->simdgroups, &first));
    TRY(scan_function(call, "smelt_scan_long", 2, from->dtype, sum, out->dtype, cut->simdgroups, &then));
    TRY(rows_long_parts(call, cut, sum, 1, &parts));
    smelt_dispatch_desc dispatch = rows_long_dispatch(cut, (smelt_array *[]){from, parts}, 2);
    smelt_status status = scan_run(call, first, &dispatch);
    dispatch = rows_long_dispatch(cut, (smelt_array *[]){from, out, parts}, 3);
    if (status == SMELT_OK) status = scan_run(call, then, &dispatch);
    smelt_array_release(parts);
    return status;
}

/* Both arrays are row-contiguous. */
static smelt_status scan_dense(const struct call *call, smelt_array *from, smelt_dtype sum,
                               smelt_array *out) {
    smelt_function *function;
    struct long_rows cut;
    int64_t columns = from->shape.size[from->shape.ndim - 1], rows = from->size / columns;
    if (rows_long_cut(call, rows, columns, &cut)) return scan_long(call, &cut, from, sum, out);
    struct routine_team team = routine_team_of(call, rows, columns);
    const uint32_t size[2] = {(uint32_t)rows, (uint32_t)columns};
    TRY(scan_function(call, "smelt_scan", 0, from->dtype, sum, out->dtype, team.simdgroups, &function));
    return scan_run(call, function,
                    &(smelt_dispatch_desc){
                        .buffers = {{.array = from}, {.array = out}, {.bytes = size, .size = sizeof size}},
                        .groups = {team.groups},
                        .threadgroup = {team.threads}});
}

static smelt_status scan_rows(const struct call *call, smelt_array *from, smelt_dtype sum, smelt_array *out) {
    smelt_array *dense;
    TRY(routine_input(call, from, from->dtype, &dense));
    smelt_status status = scan_dense(call, dense, sum, out);
    smelt_array_release(dense);
    return status;
}

/* ---- Few lines whose elements are not contiguous: transposed, scanned as rows, and transposed back. */

static bool is_worth_turning(const struct call *call, const smelt_array *from, int axis) {
    int64_t count = from->shape.ndim ? from->shape.size[axis] : 0;
    bool host = program_is_host(call->device);
    return count >= (host ? 16384 : 256) && count <= UINT32_MAX / 2 &&
           from->size / count < (host ? LANES : 4096) && from->dtype != SMELT_COMPLEX64;
}

static smelt_status scan_turned(const struct call *call, smelt_array *from, int axis, smelt_dtype sum,
                                smelt_array *out) {
    struct routine_rows rows;
    smelt_array *made, *result;
    struct call own = *call;
    own.into = NULL;
    TRY(routine_rows_open(&own, from, UINT32_C(1) << axis, from->dtype, &rows));
    smelt_status status = call_output(&own, out->dtype, &rows.shape, &made);
    if (status == SMELT_OK) status = scan_dense(&own, rows.array, sum, made);
    TRY(routine_rows_close(&own, &rows, status, made, &result));
    status = call_place(call, result, out, &out->shape, out->strides, 0);
    smelt_array_release(result);
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
    TRY(call_line(call, &from, &axis));
    smelt_status status = call_output(call, dtype, &from->shape, &made);
    if (program_is_symbolic(call->device)) {
        /* Nothing to compute yet. */
    } else if (status == SMELT_OK && made->size && dtype == SMELT_FLOAT64) {
        host_lines_cumulative(call, from, axis, made);
    } else if (status == SMELT_OK && made->size && is_row(call, from, axis)) {
        status = scan_rows(call, from, sum, made);
    } else if (status == SMELT_OK && made->size && is_worth_turning(call, from, axis)) {
        status = scan_turned(call, from, axis, sum, made);
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
