#include "ops/attention.h"
#include "array/dtype.h"
#include "base/reserved.h"
#include "ops/program.h"

#include <limits.h>
#include <string.h>

#define MOST_DEPTH 256

static const char *const array_names[ARRAY_COUNT] = {
    "q", "k", "v", "mask", "sinks", "bias_lines", "bias_columns", "out", "logsumexp", "cotangent"};

/* ---- Checks. */

static smelt_status check_shape(const struct attention *a, enum array_name name, smelt_dtype dtype,
                                const smelt_shape *shape) {
    const smelt_array *array = a->arrays[name];
    if (array->dtype != dtype)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "attention: %s has dtype %s; expected %s",
                    array_names[name], smelt_dtype_name(array->dtype), smelt_dtype_name(dtype));
    if (!shape_equal(&array->shape, shape))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "attention: %s has shape %s; expected %s",
                    array_names[name], shape_print(&array->shape).text, shape_print(shape).text);
    return SMELT_OK;
}

static smelt_status check_sizes(struct attention *a) {
    const smelt_shape *q = &a->arrays[Q]->shape, *k = &a->arrays[K]->shape, *v = &a->arrays[V]->shape;
    for (int i = Q; i <= V; i++) {
        const smelt_shape *shape = &a->arrays[i]->shape;
        if (shape->ndim != 4)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "attention: %s has shape %s; expected 4 dimensions: batches, heads, rows, size of a "
                        "head",
                        array_names[i], shape_print(shape).text);
        for (int d = 0; d < 4; d++)
            if (shape->size[d] > INT_MAX)
                return fail(SMELT_ERROR_LIMIT, "attention: %s has shape %s; sizes are at most %d",
                            array_names[i], shape_print(shape).text, INT_MAX);
        if (shape->size[3] > MOST_DEPTH || shape->size[3] < 1)
            return fail(SMELT_ERROR_LIMIT, "attention: %s has heads of %lld elements; expected 1 to %d",
                        array_names[i], (long long)shape->size[3], MOST_DEPTH);
    }
    if (k->size[1] < 1 || q->size[1] % k->size[1])
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "attention: q has %lld heads and k %lld; expected a multiple", (long long)q->size[1],
                    (long long)k->size[1]);
    a->batches = (int)q->size[0];
    a->dtype = a->arrays[Q]->dtype;
    a->size.heads = (int)q->size[1], a->size.rows = (int)q->size[2], a->size.depth = (int)q->size[3];
    a->size.key_heads = (int)k->size[1], a->size.keys = (int)k->size[2],
    a->size.value_depth = (int)v->size[3];
    if (a->dtype != SMELT_FLOAT32 && a->dtype != SMELT_FLOAT16 && a->dtype != SMELT_BFLOAT16)
        return fail(SMELT_ERROR_UNSUPPORTED,
                    "attention: q has dtype %s; expected float32, float16 or bfloat16",
                    smelt_dtype_name(a->dtype));
    TRY(check_shape(a, K, a->dtype,
                    &(smelt_shape){.ndim = 4, .size = {q->size[0], k->size[1], k->size[2], q->size[3]}}));
    return check_shape(a, V, a->dtype,
                       &(smelt_shape){.ndim = 4, .size = {q->size[0], k->size[1], k->size[2], v->size[3]}});
}

static smelt_status check_mask(struct attention *a) {
    const smelt_array *mask = a->arrays[MASK];
    if (!mask) return SMELT_OK;
    const int64_t sizes[4] = {a->batches, a->size.heads, a->size.rows, a->size.keys};
    bool is_float32 = a->dtype == SMELT_FLOAT32;
    if (mask->dtype != SMELT_BOOL && mask->dtype != SMELT_FLOAT32 && mask->dtype != a->dtype)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "attention: mask has dtype %s; expected bool%s float32%s%s",
                    smelt_dtype_name(mask->dtype), is_float32 ? " or" : ",", is_float32 ? "" : " or ",
                    is_float32 ? "" : smelt_dtype_name(a->dtype));
    bool fits = mask->shape.ndim == 4;
    for (int d = 0; d < 4 && fits; d++) fits = mask->shape.size[d] == 1 || mask->shape.size[d] == sizes[d];
    if (!fits)
        return fail(
            SMELT_ERROR_INVALID_ARGUMENT,
            "attention: mask has shape %s; expected 4 dimensions that can be broadcast to (%lld, %lld, "
            "%lld, %lld)",
            shape_print(&mask->shape).text, (long long)sizes[0], (long long)sizes[1], (long long)sizes[2],
            (long long)sizes[3]);
    a->mask = mask->dtype == SMELT_BOOL ? MASK_BOOLS : mask->dtype == SMELT_FLOAT32 ? MASK_FLOATS : MASK_SAME;
    return SMELT_OK;
}

/* The biases of keys that are lines of columns. */
static smelt_status check_bias(struct attention *a) {
    const smelt_array *lines = a->arrays[LINES], *columns = a->arrays[COLUMNS];
    if (!lines && !columns) return SMELT_OK;
    if (!lines || !columns || a->arrays[MASK])
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "attention: bias_lines is %s, bias_columns %s and mask %s; expected both biases, and no "
                    "mask with them",
                    lines ? "an array" : "NULL", columns ? "an array" : "NULL",
                    a->arrays[MASK] ? "an array" : "NULL");
    smelt_shape shape = {.ndim = 4, .size = {a->batches, a->size.heads, a->size.rows, 0}};
    for (int i = LINES; i <= COLUMNS; i++) {
        shape.size[3] = a->arrays[i]->shape.ndim == 4 ? a->arrays[i]->shape.size[3] : a->size.keys;
        TRY(check_shape(a, i, a->dtype, &shape));
    }
    int64_t line_count = lines->shape.size[3], width = columns->shape.size[3];
    if (width > UINT16_MAX || width < 1 || a->size.keys % width || line_count != a->size.keys / width)
        return fail(
            SMELT_ERROR_INVALID_ARGUMENT,
            "attention: bias_lines has %lld lines and bias_columns %lld columns; expected lines times "
            "columns to be %d, the number of keys, with 1 to %d columns",
            (long long)line_count, (long long)width, a->size.keys, UINT16_MAX);
    a->size.lines = (int)line_count;
    a->mask = MASK_SUMS;
    return SMELT_OK;
}

static smelt_status check_rest(struct attention *a) {
    smelt_shape rows = {.ndim = 3, .size = {a->batches, a->size.heads, a->size.rows}}, results = rows;
    results.size[results.ndim++] = a->size.value_depth;
    TRY(check_mask(a));
    TRY(check_bias(a));
    if (a->arrays[SINKS])
        TRY(check_shape(a, SINKS, SMELT_FLOAT32, &(smelt_shape){.ndim = 1, .size = {a->size.heads}}));
    if (a->arrays[OUT]) TRY(check_shape(a, OUT, a->dtype, &results));
    if (a->arrays[SUMS]) TRY(check_shape(a, SUMS, SMELT_FLOAT32, &rows));
    if (a->arrays[G]) TRY(check_shape(a, G, a->dtype, &results));
    return SMELT_OK;
}

/* ---- The arrays, where the kernels read them. */

bool attention_find_matrices(const smelt_array *array, struct matrices *matrices) {
    int64_t batches = array->shape.size[0], heads = array->shape.size[1], depth = array->shape.size[3];
    int64_t batch = batches > 1 ? array->strides[0] : 0, head = heads > 1 ? array->strides[1] : 0;
    int64_t row = array->shape.size[2] > 1 ? array->strides[2] : depth;
    int64_t between = head && (!batch || batch % head == 0) ? head : batch ? batch : row;
    if (batch < 0 || head < 0 || row < depth || batch % between || head % between) return false;
    int64_t count = 1 + (batches - 1) * (batch / between) + (heads - 1) * (head / between);
    if (count > INT_MAX) return false;
    *matrices = (struct matrices){.row = row,
                                  .between = between,
                                  .batch = (int)(batch / between),
                                  .head = (int)(head / between),
                                  .count = (int)count};
    return true;
}

/* Whether a kernel can read q, k or v as it is: ON_HOST, or that of warpgroups, by a tensor map.
 * Models keep all three in one array, or the heads side by side in each row. */
static bool is_readable(const struct attention *a, const smelt_array *array) {
    struct matrices matrices;
    if (!array->size || array->strides[3] != 1 || !attention_find_matrices(array, &matrices)) return false;
    bool wide = ((uintptr_t)array->data & 15) == 0 && matrices.row % 8 == 0 && matrices.between % 8 == 0;
    return wide || program_is_host(a->call.device);
}

/* On the call's device; contiguous, except the mask, and before a result is computed, what is_readable. */
static smelt_status place(struct attention *a, enum array_name name) {
    smelt_array *here = NULL;
    if (!a->arrays[name]) return SMELT_OK;
    TRY(call_bring(&a->call, a->arrays[name], &here));
    smelt_status status = SMELT_OK;
    if (name == MASK || (name <= V && !a->arrays[OUT] && is_readable(a, here))) {
        a->own[name] = here;
    } else {
        status = call_contiguous(&a->call, here, &a->own[name]);
        smelt_array_release(here);
    }
    a->arrays[name] = a->own[name];
    return status;
}

smelt_status attention_make_dense(struct attention *a) {
    for (int i = Q; i <= V; i++) {
        smelt_array *dense;
        TRY(call_contiguous(&a->call, a->own[i], &dense));
        smelt_array_release(a->own[i]);
        a->arrays[i] = a->own[i] = dense;
    }
    return SMELT_OK;
}

void attention_end(struct attention *a) {
    for (int i = 0; i < ARRAY_COUNT; i++) smelt_array_release(a->own[i]);
}

smelt_status attention_begin(const smelt_attention_desc *desc, struct attention *a) {
    if (!desc) return fail(SMELT_ERROR_INVALID_ARGUMENT, "attention: desc is NULL");
    TRY(reserved_check(smelt_attention_desc, desc));
    smelt_array *const given[] = {desc->q,     desc->k,          desc->v,           desc->mask,
                                  desc->sinks, desc->bias_lines, desc->bias_columns};
    memcpy(a->arrays, given, sizeof given);
    for (int i = 0; i < ARRAY_COUNT; i++)
        if (!a->arrays[i] && i <= V)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "attention: %s is NULL", array_names[i]);
    a->size.scale = (float)desc->scale;
    a->size.causal = desc->causal;
    a->rows_first = desc->rows_first;
    TRY(check_sizes(a));
    TRY(check_rest(a));
    a->apply.stream = desc->stream;
    a->call = (struct call){.desc = &a->apply, .name = "attention"};
    a->call.device = program_device(desc->device, a->arrays, V + 1);
    for (int i = 0; i < ARRAY_COUNT; i++) TRY(place(a, i));
    for (int d = 0; d < 4 && a->arrays[MASK]; d++)
        a->size.mask_strides[d] = a->arrays[MASK]->shape.size[d] == 1 ? 0 : a->arrays[MASK]->strides[d];
    return SMELT_OK;
}

bool attention_is_aligned(const struct attention *a) {
    bool aligned = a->size.depth % 8 == 0 && a->size.value_depth % 8 == 0;
    for (int i = Q; i < ARRAY_COUNT; i++)
        if (a->arrays[i] && (i <= V || i >= COLUMNS)) aligned &= ((uintptr_t)a->arrays[i]->data & 15) == 0;
    return aligned;
}
