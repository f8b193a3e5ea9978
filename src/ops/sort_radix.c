#include "ops/sort_radix.h"
#include "array/dtype.h"
#include "kernels/kernel_text.h"
#include "ops/program.h"

/* A bitonic network takes fewer launches for short rows, and is faster unless there are many. Chosen by times
 * on an H200. */
#define SHORTEST_ROW 2049
#define LONG_ROW 32768
#define MANY_ELEMENTS (1 << 21)
/* For elements of one or two bytes, which take fewer passes. */
#define LONG_NARROW_ROW 8192
#define MANY_NARROW_ELEMENTS (1 << 18)

/* Constants of radix.metal. */
#define THREADS 256
#define TILE 4096
#define DIGIT_BITS 8
#define DIGITS (1 << DIGIT_BITS)
#define DIGITS_PER_GROUP (THREADS / 32) /* of smelt_radix_scan */

/* Shared with the kernels. */
struct radix_size {
    uint32_t columns, tiles, shift, first, last;
};

struct sorting {
    const struct call *call;
    const struct routine_rows *rows;
    bool indices;
    struct radix_size size;
    smelt_array *counts, *totals;
};

uint64_t sort_infinity(smelt_dtype dtype) {
    switch (dtype) {
    case SMELT_FLOAT16:
        return 0x7c00;
    case SMELT_BFLOAT16:
        return 0x7f80;
    case SMELT_FLOAT32:
        return 0x7f800000;
    case SMELT_FLOAT64:
        return UINT64_C(0x7ff) << 52;
    default:
        return 0;
    }
}

bool sort_by_digits(const struct routine_rows *rows) {
    bool narrow = smelt_dtype_bytes(rows->array->dtype) < 4;
    return rows->columns >= SHORTEST_ROW &&
           (rows->columns >= (narrow ? LONG_NARROW_ROW : LONG_ROW) ||
            rows->rows * rows->columns >= (narrow ? MANY_NARROW_ELEMENTS : MANY_ELEMENTS));
}

static int bits_of(const struct sorting *s) {
    return (int)(8 * smelt_dtype_bytes(s->rows->array->dtype));
}

/* Runs a kernel on `arrays`, followed by the size as the last buffer; groups: per row. */
static smelt_status run(const struct sorting *s, const char *entry, smelt_array *const *arrays, int count,
                        int64_t groups) {
    static const smelt_dtype unsigned_of[] = {[1] = SMELT_UINT8, [2] = SMELT_UINT16, [4] = SMELT_UINT32};
    smelt_dtype dtype = s->rows->array->dtype;
    const struct routine routine = {
        .entry = entry,
        .texts = {kernel_text_radix},
        .types = {{"U", unsigned_of[smelt_dtype_bytes(dtype)]}, {"R", SMELT_INT32}},
        .sizes = {{"BITS", bits_of(s)},
                  {"INFINITE", (int32_t)sort_infinity(dtype)},
                  {"SIGNED", dtype_is_signed(dtype)},
                  {"INDICES", s->indices},
                  {"DESCENDING", s->call->desc->reverse}}};
    smelt_dispatch_desc dispatch = {.groups = {groups, s->rows->rows, 1}, .threadgroup = {THREADS, 1, 1}};
    for (int i = 0; i < count; i++) dispatch.buffers[i].array = arrays[i];
    dispatch.buffers[count] = (smelt_buffer){.bytes = &s->size, .size = sizeof s->size};
    return routine_run(s->call, &routine, &dispatch);
}

/* Sorts by one digit: moves elements from x to `to`, and their places from `places` to `to_places`. */
static smelt_status run_pass(const struct sorting *s, smelt_array *x, smelt_array *places, smelt_array *to,
                             smelt_array *to_places) {
    TRY(run(s, "smelt_radix_count", (smelt_array *[]){x, s->counts}, 2, s->size.tiles));
    TRY(run(s, "smelt_radix_scan", (smelt_array *[]){s->counts, s->totals}, 2, DIGITS / DIGITS_PER_GROUP));
    smelt_array *const arrays[] = {x, places, s->counts, s->totals, to, to_places};
    return run(s, "smelt_radix_scatter", arrays, 6, s->size.tiles);
}

/* elements, places: two arrays each. Passes write them in turn, so that the last pass writes the second. */
static smelt_status run_passes(struct sorting *s, smelt_array *const elements[2],
                               smelt_array *const places[2]) {
    int passes = bits_of(s) / DIGIT_BITS;
    smelt_array *x = s->rows->array, *from = places[0];
    smelt_status status = SMELT_OK;
    for (int i = 0; i < passes && status == SMELT_OK; i++) {
        int into = (i + passes) % 2;
        s->size.shift = (uint32_t)(DIGIT_BITS * i);
        s->size.first = i == 0, s->size.last = i == passes - 1;
        status = run_pass(s, x, from, elements[into], places[into]);
        x = elements[into], from = places[into];
    }
    return status;
}

static smelt_status create(const struct sorting *s, smelt_dtype dtype, int64_t columns, smelt_array **array) {
    smelt_shape shape = {2, {s->rows->rows, columns}};
    return program_output(s->call->device, s->call->desc->stream, dtype, &shape, array);
}

smelt_status sort_radix(const struct call *call, const struct routine_rows *rows, bool indices,
                        smelt_array *out) {
    struct sorting s = {.call = call, .rows = rows, .indices = indices};
    int64_t columns = rows->columns, tiles = (columns + TILE - 1) / TILE;
    smelt_dtype dtype = rows->array->dtype;
    s.size = (struct radix_size){.columns = (uint32_t)columns, .tiles = (uint32_t)tiles};
    smelt_array *scratch[3] = {0};
    smelt_status status = create(&s, SMELT_UINT32, DIGITS * tiles, &s.counts);
    if (status == SMELT_OK) status = create(&s, SMELT_UINT32, DIGITS, &s.totals);
    if (status == SMELT_OK) status = create(&s, dtype, columns, &scratch[0]);
    if (status == SMELT_OK && indices) status = create(&s, SMELT_INT32, columns, &scratch[1]);
    if (status == SMELT_OK && indices) status = create(&s, dtype, columns, &scratch[2]);
    smelt_array *const elements[] = {scratch[0], indices ? scratch[2] : out};
    /* Without indices, the kernels do not access places: any array will do. */
    smelt_array *const places[] = {indices ? scratch[1] : s.totals, indices ? out : s.totals};
    if (status == SMELT_OK) status = run_passes(&s, elements, places);
    smelt_array_release(s.counts);
    smelt_array_release(s.totals);
    for (int i = 0; i < 3; i++) smelt_array_release(scratch[i]);
    return status;
}
