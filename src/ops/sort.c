/* Sorting along an axis. GPUs and cpu-scalar run the kernels of kernels/sorting: a bitonic network, or for
 * long rows a radix sort (sort_radix.c). Device cpu runs a radix sort in plain code, since vectors do not
 * help its scattered stores; it also sorts 64-bit elements, on both CPU devices. Equal elements keep their
 * order. NaN counts as the largest element. */
#include "array/dtype.h"
#include "kernels/kernel_text.h"
#include "ops/program.h"
#include "ops/sort_radix.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Keys of 8 bytes in the smallest threadgroup memory of a device, 32 KiB. */
#define MOST_BLOCK 2048
#define LEAST_BLOCK 32
#define MOST_THREADS 256
/* Steps per launch of smelt_sort_step: a thread holds the 2^3 keys that they exchange with one another. */
#define MOST_STEPS 3

/* Shared with the kernels. */
struct sort_size {
    uint32_t rows, columns, padded, width, distance;
};

static bool gives_indices(const struct call *call) {
    return call->desc->operation == SMELT_OPERATION_ARGSORT;
}

/* ---- Kernels. */

static uint32_t power_of_two(int64_t count) {
    uint32_t power = LEAST_BLOCK;
    while (power < count) power *= 2;
    return power;
}

/* steps: the STEPS of smelt_sort_step; 0 for the other entries. */
static smelt_status run(const struct call *call, const char *entry, uint32_t block,
                        smelt_array *const arrays[3], const struct sort_size *size, int steps) {
    const struct routine routine = {.entry = entry,
                                    .texts = {kernel_text_sort},
                                    .types = {{"T", arrays[0]->dtype}, {"R", arrays[1]->dtype}},
                                    .sizes = {{"BLOCK", (int32_t)block},
                                              {"INDICES", gives_indices(call)},
                                              {"DESCENDING", call->desc->reverse},
                                              {"STEPS", steps ? steps : 1}}};
    smelt_dispatch_desc dispatch = {0};
    int64_t threads = block / 2 < MOST_THREADS ? block / 2 : MOST_THREADS;
    if (steps) {
        dispatch.buffers[0].array = arrays[2];
        dispatch.buffers[1] = (smelt_buffer){.bytes = size, .size = sizeof *size};
        dispatch.grid[0] = size->padded >> steps;
        dispatch.grid[1] = size->rows;
        dispatch.grid[2] = 1;
    } else {
        for (int i = 0; i < 3; i++) dispatch.buffers[i].array = arrays[i];
        dispatch.buffers[3] = (smelt_buffer){.bytes = size, .size = sizeof *size};
        dispatch.groups[0] = size->padded / block;
        dispatch.groups[1] = size->rows;
        dispatch.groups[2] = 1;
    }
    dispatch.threadgroup[0] = threads;
    dispatch.threadgroup[1] = dispatch.threadgroup[2] = 1;
    return routine_run(call, &routine, &dispatch);
}

/* Rows of several blocks: runs of growing width are merged. arrays: x, the result, keys. */
static smelt_status run_widths(const struct call *call, smelt_array *const arrays[3], struct sort_size size) {
    for (size.width = 2 * MOST_BLOCK; size.width <= size.padded && size.width; size.width *= 2) {
        for (size.distance = size.width / 2; size.distance >= MOST_BLOCK;) {
            int steps = 1;
            while (steps < MOST_STEPS && size.distance >> steps >= MOST_BLOCK) steps++;
            TRY(run(call, "smelt_sort_step", MOST_BLOCK, arrays, &size, steps));
            size.distance >>= steps;
        }
        TRY(run(call, "smelt_sort_merge", MOST_BLOCK, arrays, &size, 0));
    }
    return SMELT_OK;
}

static smelt_status sort_rows(const struct call *call, const struct routine_rows *rows, smelt_array *out) {
    if (rows->rows > UINT32_MAX || rows->columns > INT32_MAX / 2)
        return fail(SMELT_ERROR_LIMIT, "%s: %lld rows of %lld elements; expected at most 2^32 rows of 2^30",
                    call->name, (long long)rows->rows, (long long)rows->columns);
    if (sort_by_digits(rows)) return sort_radix(call, rows, gives_indices(call), out);
    struct sort_size size = {(uint32_t)rows->rows, (uint32_t)rows->columns, power_of_two(rows->columns), 0,
                             1};
    uint32_t block = size.padded < MOST_BLOCK ? size.padded : MOST_BLOCK;
    bool single = block == size.padded;
    smelt_array *scratch = NULL;
    smelt_shape keys = {2, {single ? 1 : rows->rows, size.padded}};
    TRY(call_output(call, SMELT_UINT64, &keys, &scratch));
    smelt_array *const arrays[] = {rows->array, out, scratch};
    smelt_status status = run(call, "smelt_sort_block", block, arrays, &size, 0);
    if (status == SMELT_OK && !single) status = run_widths(call, arrays, size);
    smelt_array_release(scratch);
    return status;
}

/* ---- Radix sort on the host. */

struct entry {
    uint64_t key;
    int64_t place;
};

#define MOST_BITS 11 /* of a digit: counts stay in the first-level cache */
#define FEW_BITS 8   /* for short rows, which would spend their time on counts */
#define FEW_ELEMENTS 4096
#define FEWEST_ELEMENTS 24 /* fewer are inserted one by one */

/* Unsigned numbers that compare as values: of floats the bits, those of negative ones complemented; NaN is
 * above all, and the zeros are equal. */
static uint64_t key_of(uint64_t bits, uint64_t sign, uint64_t infinity, uint64_t flip) {
    uint64_t ones = sign | (sign - 1), size = bits & ~sign;
    if (!infinity) return bits ^ flip;
    if (size > infinity) return ones;
    if (!size) bits = 0;
    return bits & sign ? ~bits & ones : bits | sign;
}

static uint64_t load_bits(const char *at, int64_t bytes) {
    uint64_t wide;
    uint32_t middle;
    uint16_t small;
    switch (bytes) {
    case 8:
        memcpy(&wide, at, sizeof wide);
        return wide;
    case 4:
        memcpy(&middle, at, sizeof middle);
        return middle;
    case 2:
        memcpy(&small, at, sizeof small);
        return small;
    default:
        return (unsigned char)*at;
    }
}

/* `turn`: exclusive bits that reverse the order. */
static void read_entries(const smelt_array *array, int64_t first, int64_t count, uint64_t turn,
                         struct entry *entries) {
    int64_t bytes = (int64_t)smelt_dtype_bytes(array->dtype);
    uint64_t sign = UINT64_C(1) << (8 * bytes - 1), infinity = sort_infinity(array->dtype);
    uint64_t flip = dtype_is_signed(array->dtype) ? sign : 0;
    const char *from = array->data + first * bytes;
    for (int64_t i = 0; i < count; i++)
        entries[i] =
            (struct entry){key_of(load_bits(from + bytes * i, bytes), sign, infinity, flip) ^ turn, i};
}

static void insert_all(struct entry *entries, int64_t count) {
    for (int64_t i = 1; i < count; i++) {
        struct entry entry = entries[i];
        int64_t to = i;
        for (; to > 0 && entries[to - 1].key > entry.key; to--) entries[to] = entries[to - 1];
        entries[to] = entry;
    }
}

/* From the lowest digit up, each pass stable; passes in which all digits are equal are left out. Returns
 * where the result is: `entries` or `other`. */
static struct entry *sort_entries(struct entry *entries, struct entry *other, int64_t count, int width) {
    int bits = count < FEW_ELEMENTS ? FEW_BITS : MOST_BITS;
    if (count < FEWEST_ELEMENTS) {
        insert_all(entries, count);
        return entries;
    }
    for (int shift = 0; shift < width; shift += bits) {
        int32_t starts[1 << MOST_BITS], next = 0;
        uint64_t mask = (UINT64_C(1) << bits) - 1;
        memset(starts, 0, sizeof *starts << bits);
        for (int64_t i = 0; i < count; i++) starts[entries[i].key >> shift & mask]++;
        if (starts[entries[0].key >> shift & mask] == count) continue;
        for (int digit = 0; digit < 1 << bits; digit++) {
            int32_t these = starts[digit];
            starts[digit] = next;
            next += these;
        }
        for (int64_t i = 0; i < count; i++) other[starts[entries[i].key >> shift & mask]++] = entries[i];
        struct entry *swapped = entries;
        entries = other;
        other = swapped;
    }
    return entries;
}

static smelt_status sort_on_host(const struct call *call, const struct routine_rows *rows, smelt_array *out) {
    int64_t columns = rows->columns, bytes = (int64_t)smelt_dtype_bytes(rows->array->dtype);
    uint64_t turn = call->desc->reverse ? UINT64_MAX >> (64 - 8 * bytes) : 0;
    if (columns > INT_MAX)
        return fail(SMELT_ERROR_LIMIT, "%s: rows have %lld elements; expected at most 2^31 - 1", call->name,
                    (long long)columns);
    struct entry *entries = malloc(2 * (size_t)columns * sizeof *entries);
    if (!entries) return fail_out_of_memory(2 * (size_t)columns * sizeof *entries);
    for (int64_t row = 0; row < rows->rows; row++) {
        const char *from = rows->array->data + row * columns * bytes;
        read_entries(rows->array, row * columns, columns, turn, entries);
        const struct entry *sorted = sort_entries(entries, entries + columns, columns, (int)bytes * 8);
        for (int64_t i = 0; i < columns; i++) {
            if (gives_indices(call))
                ((int32_t *)out->data)[row * columns + i] = (int32_t)sorted[i].place;
            else
                memcpy(out->data + (row * columns + i) * bytes, from + bytes * sorted[i].place,
                       (size_t)bytes);
        }
    }
    free(entries);
    return SMELT_OK;
}

/* ---- The operations. */

/* x, or with `flat` its elements in one row. */
static smelt_status line_of(const struct call *call, bool flat, smelt_array **result) {
    smelt_array *dense;
    if (!flat) {
        *result = smelt_array_retain(call->inputs[0]);
        return SMELT_OK;
    }
    TRY(routine_input(call, call->inputs[0], call->inputs[0]->dtype, &dense));
    smelt_status status = smelt_array_view(dense, (smelt_shape){1, {dense->size}}, NULL, 0, result);
    smelt_array_release(dense);
    return status;
}

smelt_status evaluate_sort(const struct call *call, smelt_array **result) {
    struct routine_rows rows;
    smelt_array *x, *made = NULL;
    smelt_dtype dtype = call->inputs[0]->dtype;
    int axis;
    bool flat, wide = smelt_dtype_bytes(dtype) == 8;
    TRY(call_axis(call, call->inputs[0]->shape.ndim, &axis, &flat));
    if (dtype == SMELT_COMPLEX64)
        return fail(SMELT_ERROR_UNSUPPORTED, "%s is not defined for complex64", call->name);
    if (program_is_symbolic(call->device)) {
        smelt_shape line = {1, {call->inputs[0]->size}};
        return call_output(call, gives_indices(call) ? SMELT_INT32 : dtype,
                           flat ? &line : &call->inputs[0]->shape, result);
    }
    if (wide && !program_is_host(call->device))
        return fail(SMELT_ERROR_UNSUPPORTED, "%s: %s is sorted on the host only; move x to 'cpu'", call->name,
                    smelt_dtype_name(dtype));
    TRY(line_of(call, flat, &x));
    smelt_status status = routine_rows_open(call, x, UINT32_C(1) << axis, dtype, &rows);
    smelt_array_release(x);
    TRY(status);
    status = call_output(call, gives_indices(call) ? SMELT_INT32 : dtype, &rows.shape, &made);
    if (status == SMELT_OK && made->size)
        status = (wide || strcmp(call->device, "cpu") == 0 ? sort_on_host : sort_rows)(call, &rows, made);
    return routine_rows_close(call, &rows, status, made, result);
}
