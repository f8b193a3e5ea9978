/* Sorting along an axis: rows of up to 32-bit elements by the kernels of kernels/sorting, wider ones by the C
 * library. Equal elements keep their order; NaN comes last. */
#include "array/dtype.h"
#include "kernels/kernel_text.h"
#include "ops/program.h"
#include "ops/routine.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Keys of 8 bytes in the smallest threadgroup memory of a device, 32 KiB. */
#define MOST_BLOCK 2048
#define LEAST_BLOCK 32
#define MOST_THREADS 256

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

static smelt_status run(const struct call *call, const char *entry, uint32_t block,
                        smelt_array *const arrays[3], const struct sort_size *size, bool step) {
    const struct routine routine = {.entry = entry,
                                    .texts = {kernel_text_sort},
                                    .types = {{"T", arrays[0]->dtype}, {"R", arrays[1]->dtype}},
                                    .sizes = {{"BLOCK", (int32_t)block},
                                              {"INDICES", gives_indices(call)},
                                              {"DESCENDING", call->desc->reverse}}};
    smelt_dispatch_desc dispatch = {0};
    int64_t threads = block / 2 < MOST_THREADS ? block / 2 : MOST_THREADS;
    if (step) {
        dispatch.buffers[0].array = arrays[2];
        dispatch.buffers[1] = (smelt_buffer){.bytes = size, .size = sizeof *size};
        dispatch.grid[0] = size->padded / 2;
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
        for (size.distance = size.width / 2; size.distance >= MOST_BLOCK; size.distance /= 2)
            TRY(run(call, "smelt_sort_step", MOST_BLOCK, arrays, &size, true));
        TRY(run(call, "smelt_sort_merge", MOST_BLOCK, arrays, &size, false));
    }
    return SMELT_OK;
}

static smelt_status sort_rows(const struct call *call, const struct routine_rows *rows, smelt_array *out) {
    if (rows->rows > UINT32_MAX || rows->columns > INT32_MAX / 2)
        return fail(SMELT_ERROR_LIMIT, "%s: %lld rows of %lld elements; expected at most 2^32 rows of 2^30",
                    call->name, (long long)rows->rows, (long long)rows->columns);
    struct sort_size size = {(uint32_t)rows->rows, (uint32_t)rows->columns, power_of_two(rows->columns), 0,
                             1};
    uint32_t block = size.padded < MOST_BLOCK ? size.padded : MOST_BLOCK;
    bool single = block == size.padded;
    smelt_array *scratch = NULL;
    smelt_shape keys = {2, {single ? 1 : rows->rows, size.padded}};
    TRY(call_output(call, SMELT_UINT64, &keys, &scratch));
    smelt_array *const arrays[] = {rows->array, out, scratch};
    smelt_status status = run(call, "smelt_sort_block", block, arrays, &size, false);
    if (status == SMELT_OK && !single) status = run_widths(call, arrays, size);
    smelt_array_release(scratch);
    return status;
}

/* ---- 64-bit elements. */

struct entry {
    uint64_t key;
    int64_t place;
};

static int compare(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->place < y->place ? -1 : 1;
}

static uint64_t key_of(smelt_dtype dtype, const char *at) {
    const uint64_t sign = UINT64_C(1) << 63;
    uint64_t bits;
    memcpy(&bits, at, sizeof bits);
    if (dtype == SMELT_UINT64) return bits;
    if (dtype == SMELT_INT64) return bits ^ sign;
    double value;
    memcpy(&value, at, sizeof value);
    if (isnan(value)) return UINT64_MAX;
    if (value == 0) bits = 0;
    return bits & sign ? ~bits : bits | sign;
}

static smelt_status sort_plainly(const struct call *call, const struct routine_rows *rows, smelt_array *out) {
    int64_t columns = rows->columns;
    if (columns > INT_MAX)
        return fail(SMELT_ERROR_LIMIT, "%s: rows have %lld elements; expected at most 2^31 - 1", call->name,
                    (long long)columns);
    struct entry *entries = malloc((size_t)columns * sizeof *entries);
    if (!entries) return fail_out_of_memory((size_t)columns * sizeof *entries);
    for (int64_t row = 0; row < rows->rows; row++) {
        const char *from = rows->array->data + row * columns * 8;
        for (int64_t i = 0; i < columns; i++) {
            uint64_t key = key_of(rows->array->dtype, from + 8 * i);
            entries[i] = (struct entry){call->desc->reverse ? ~key : key, i};
        }
        qsort(entries, (size_t)columns, sizeof *entries, compare);
        for (int64_t i = 0; i < columns; i++) {
            if (gives_indices(call))
                ((int32_t *)out->data)[row * columns + i] = (int32_t)entries[i].place;
            else
                memcpy(out->data + (row * columns + i) * 8, from + 8 * entries[i].place, 8);
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
    if (wide && !program_is_host(call->device))
        return fail(SMELT_ERROR_UNSUPPORTED, "%s: %s is sorted on the host only; move x to 'cpu'", call->name,
                    smelt_dtype_name(dtype));
    TRY(line_of(call, flat, &x));
    smelt_status status = routine_rows_open(call, x, UINT32_C(1) << axis, dtype, &rows);
    smelt_array_release(x);
    TRY(status);
    status = call_output(call, gives_indices(call) ? SMELT_INT32 : dtype, &rows.shape, &made);
    if (status == SMELT_OK && made->size) status = (wide ? sort_plainly : sort_rows)(call, &rows, made);
    return routine_rows_close(call, &rows, status, made, result);
}
