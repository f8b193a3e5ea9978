/* Reductions. A reduction over several axes goes in stages, each over one run of elements a fixed stride
 * apart; long runs are cut in chunks, whose results a further stage reduces: so that there is work for all
 * threads, and sums are added in groups of groups, not one after the other. A run whose elements are
 * neighbours is taken by the 32 lanes of a simdgroup, any other by one thread, next to threads for its
 * neighbours. The order is fixed: same bits every time. */
#include "array/dtype.h"
#include "ops/accumulate.h"
#include "ops/map.h"

#include <stdlib.h>
#include <string.h>

/* A lane adds at most 128 elements one after the other, a lone thread 512. */
#define LANES 32
#define ROW_CHUNK 4096
#define COLUMN_CHUNK 512
/* Shorter runs would leave most of a simdgroup idle. */
#define SHORTEST_ROW 32

/* The part still to be reduced: an array with dimensions in any order. */
struct pending {
    smelt_array *array; /* a reference */
    int64_t offset;
    int ndim;
    struct dimension {
        int64_t size, stride;
        bool reduced;
    } dimensions[SMELT_MAX_DIMENSIONS + 1];
};

struct run {
    int64_t count, stride, chunk, chunks;
    bool row;
};

/* ---- Which run next. */

static int compare_strides(const void *a, const void *b) {
    int64_t x = llabs(((const struct dimension *)a)->stride),
            y = llabs(((const struct dimension *)b)->stride);
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Kept dimensions in their order, then the reduced, which have none: by stride, joined where they touch. */
static void arrange(struct pending *pending) {
    struct dimension kept[SMELT_MAX_DIMENSIONS + 1], reduced[SMELT_MAX_DIMENSIONS + 1];
    int kept_count = 0, reduced_count = 0, joined = 0;
    for (int d = 0; d < pending->ndim; d++) {
        const struct dimension *dimension = &pending->dimensions[d];
        if (dimension->size == 1) continue;
        if (dimension->reduced)
            reduced[reduced_count++] = *dimension;
        else
            kept[kept_count++] = *dimension;
    }
    qsort(reduced, (size_t)reduced_count, sizeof *reduced, compare_strides);
    for (int i = 0; i < reduced_count; i++) {
        struct dimension *last = joined ? &reduced[joined - 1] : NULL;
        if (last && last->stride == reduced[i].stride * reduced[i].size) {
            last->size *= reduced[i].size;
            last->stride = reduced[i].stride;
        } else {
            reduced[joined++] = reduced[i];
        }
    }
    memcpy(pending->dimensions, kept, (size_t)kept_count * sizeof *kept);
    memcpy(pending->dimensions + kept_count, reduced, (size_t)joined * sizeof *reduced);
    pending->ndim = kept_count + joined;
}

/* The last dimension, if it is reduced; else a run of one element. It is taken out. */
static struct run next_run(struct pending *pending) {
    struct run run = {.count = 1, .chunk = 1, .chunks = 1};
    if (!pending->ndim || !pending->dimensions[pending->ndim - 1].reduced) return run;
    struct dimension last = pending->dimensions[--pending->ndim];
    int64_t beside = pending->ndim ? llabs(pending->dimensions[pending->ndim - 1].stride) : INT64_MAX;
    run.count = last.size;
    run.stride = last.stride;
    run.row = last.size >= SHORTEST_ROW && llabs(last.stride) <= beside;
    run.chunk = run.row ? ROW_CHUNK : COLUMN_CHUNK;
    if (run.count <= 2 * run.chunk) run.chunk = run.count;
    run.chunks = (run.count + run.chunk - 1) / run.chunk;
    return run;
}

/* ---- Kernels. Operands: elements, results, the chunk's index, the lane. */

enum { NUMBER_COUNT, NUMBER_STRIDE, NUMBER_CHUNK, NUMBERS };

static void write_functions(struct text *text, const struct map *map) {
    smelt_dtype sum = (smelt_dtype)(map->key.form & 0xff);
    accumulate_write(text, (smelt_operation)map->key.operation, sum, map->operands[1].array->dtype);
}

static const char fold_text[] = "  const long left = l.number[0] - long(o2) * l.number[2];\n"
                                "  const long count = left < l.number[2] ? left : l.number[2];\n"
                                "  A sum = start();\n"
                                "  long o = long(o0);\n";

static void write_column(struct text *text, const struct map *map) {
    (void)map;
    text_add(text, fold_text);
    text_add(text,
             "  for (long k = 0; k < count; k++, o += l.number[1]) sum = combine(sum, element(p0[o]));\n"
             "  p1[o1] = R(sum);\n");
}

static void write_row(struct text *text, const struct map *map) {
    (void)map;
    text_add(text, fold_text);
    text_addf(text,
              "  for (long k = long(o3); k < count; k += %d, o += %d * l.number[1])\n"
              "    sum = combine(sum, element(p0[o]));\n"
              "  for (ushort n = %d; n > 0; n /= 2) sum = combine(sum, shuffled(sum, n));\n"
              "  if (o3 == 0) p1[o1] = R(sum);\n",
              LANES, LANES, LANES / 2);
}

/* One stage: `out` has the pending dimensions and then the chunks, row-contiguous. */
static smelt_status run_stage(const struct call *call, const struct pending *pending, const struct run *run,
                              smelt_dtype sum, smelt_array *out) {
    struct map map = {
        .name = call->name,
        .key = {.operation = (uint16_t)call->desc->operation,
                .form = (uint16_t)(sum | (run->row ? 0x100 : 0))},
        .device = call->device,
        .stream = call->desc->stream,
        .operand_count = run->row ? 4 : 3,
        .operands = {{.array = pending->array, .offset = pending->offset}, {.array = out, .written = true}},
        .number_count = NUMBERS,
        .numbers = {run->count, run->stride, run->chunk},
        .lanes = run->row,
        .write_before = write_functions,
        .write = run->row ? write_row : write_column};
    int ndim = pending->ndim;
    int64_t step = run->chunks;
    for (int d = ndim - 1; d >= 0; d--) {
        map.operands[0].strides[d] = pending->dimensions[d].stride;
        map.operands[1].strides[d] = step;
        map.space.size[d] = pending->dimensions[d].size;
        step *= map.space.size[d];
    }
    map.space.size[ndim] = run->chunks;
    map.operands[0].strides[ndim] = run->chunk * run->stride;
    map.operands[1].strides[ndim] = 1;
    map.operands[2].strides[ndim] = 1;
    map.space.ndim = ndim + 1;
    if (run->row) {
        map.space.size[ndim + 1] = LANES;
        map.operands[0].strides[ndim + 1] = run->stride;
        map.operands[3].strides[ndim + 1] = 1;
        map.space.ndim++;
    }
    return map_run(&map);
}

/* The array between two stages becomes the pending one. */
static smelt_status continue_with(const struct call *call, struct pending *pending, const struct run *run,
                                  smelt_dtype sum) {
    smelt_shape shape = {.ndim = 1, .size = {run->chunks}};
    smelt_array *between;
    for (int d = 0; d < pending->ndim; d++) shape.size[0] *= pending->dimensions[d].size;
    TRY(call_output(call, sum, &shape, &between));
    smelt_status status = run_stage(call, pending, run, sum, between);
    smelt_array_release(pending->array);
    pending->array = between;
    pending->offset = 0;
    int64_t step = run->chunks;
    for (int d = pending->ndim - 1; d >= 0; d--) {
        pending->dimensions[d].stride = step;
        step *= pending->dimensions[d].size;
    }
    pending->dimensions[pending->ndim++] = (struct dimension){run->chunks, 1, true};
    return status;
}

static bool is_last(const struct pending *pending, const struct run *run) {
    bool more = run->chunks > 1;
    for (int d = 0; d < pending->ndim; d++) more |= pending->dimensions[d].reduced;
    return !more;
}

static smelt_status reduce(const struct call *call, struct pending *pending, smelt_dtype sum,
                           smelt_array *out) {
    for (;;) {
        arrange(pending);
        struct run run = next_run(pending);
        if (is_last(pending, &run)) return run_stage(call, pending, &run, sum, out);
        TRY(continue_with(call, pending, &run, sum));
    }
}

/* ---- The operation. */

/* The result's shape, and the elements that go into one of it. */
static void reduced_shape(const smelt_array *array, uint32_t axes, bool keepdims, smelt_shape *shape,
                          int64_t *count) {
    *shape = (smelt_shape){.ndim = 0};
    *count = 1;
    for (int d = 0; d < array->shape.ndim; d++) {
        bool reduced = axes >> d & 1;
        if (reduced) *count *= array->shape.size[d];
        if (!reduced || keepdims) shape->size[shape->ndim++] = reduced ? 1 : array->shape.size[d];
    }
}

smelt_status evaluate_reduce(const struct call *call, smelt_array **result) {
    smelt_array *input = call->inputs[0], *made;
    smelt_dtype sum, dtype;
    smelt_shape shape;
    uint32_t axes;
    int64_t count;
    TRY(call_axes(call, input->shape.ndim, &axes));
    reduced_shape(input, axes, call->desc->keepdims, &shape, &count);
    accumulate_dtypes(call->desc->operation, input->dtype, &sum, &dtype);
    TRY(accumulate_check(call, shape_product(&shape) ? count : 1));
    if (input->dtype == SMELT_FLOAT64) return host_reduce(call, result);
    if (!count)
        return program_filled(call->device, call->desc->stream, dtype, &shape,
                              accumulate_start(call->desc->operation), result);
    TRY(call_output(call, dtype, &shape, &made));
    struct pending pending = {.array = smelt_array_retain(input), .ndim = input->shape.ndim};
    for (int d = 0; d < pending.ndim; d++)
        pending.dimensions[d] =
            (struct dimension){input->shape.size[d], input->strides[d], (axes >> d & 1) != 0};
    smelt_status status = made->size ? reduce(call, &pending, sum, made) : SMELT_OK;
    smelt_array_release(pending.array);
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}
