/* Attention and its derivative: which kernels run, on which arrays. */
#include "ops/attention.h"
#include "ops/program.h"

#include <math.h>

#define SUMS_ALIGNMENT 64   /* bytes, of sums that follow a result: a cache line */
#define VJP_BLOCK_SUMS 8192 /* floats, of a block of rows: attention_vjp_warpgroups.metal */

static smelt_status create(const struct attention *a, const smelt_shape *shape, smelt_dtype dtype,
                           smelt_array **array) {
    return call_output(&a->call, dtype, shape, array);
}

/* Fills results that no kernel writes. */
static smelt_status fill(const struct attention *a, smelt_array *array, double value) {
    return array->size ? array_fill_on(array, a->apply.stream, value) : SMELT_OK;
}

/* Each part of the keys by threadgroups of its own; JOIN then adds the parts. */
static smelt_status attend_by_parts(struct attention *a, smelt_array *out, smelt_array *sums) {
    smelt_array *values = NULL, *states = NULL, **x = a->arrays;
    int64_t lines = sums->size;
    if (a->size.parts == 1)
        return attention_run(a, SPLIT,
                             (smelt_array *[KERNEL_ARRAYS]){x[Q], x[K], x[V], out, NULL, sums, sums, sums});
    smelt_shape shape = {.ndim = 2, .size = {lines, (int64_t)a->size.parts * a->size.value_depth}};
    smelt_status status = create(a, &shape, SMELT_FLOAT32, &values);
    shape.size[1] = (int64_t)a->size.parts * 2;
    if (status == SMELT_OK) status = create(a, &shape, SMELT_FLOAT32, &states);
    if (status == SMELT_OK)
        status = attention_run(
            a, SPLIT, (smelt_array *[KERNEL_ARRAYS]){x[Q], x[K], x[V], out, NULL, sums, values, states});
    if (status == SMELT_OK)
        status =
            attention_run(a, JOIN, (smelt_array *[KERNEL_ARRAYS]){values, states, NULL, out, NULL, sums});
    smelt_array_release(values);
    smelt_array_release(states);
    return status;
}

static smelt_status attend(struct attention *a, smelt_array *out, smelt_array *sums) {
    if (!out->size) return fill(a, sums, -INFINITY);
    bool parts = a->size.keys && attention_choose_parts(a);
    enum attention_kernel kernel = FORWARD;
    if (parts)
        kernel = SPLIT;
    else if (program_is_host(a->call.device))
        kernel = a->size.rows <= HOST_FEW_ROWS ? ON_HOST_FEW : ON_HOST;
    else if (attention_is_by_warpgroups(a))
        kernel = BY_WARPGROUPS;
    if (!attention_is_placed(kernel)) TRY(attention_make_dense(a));
    if (parts) return attend_by_parts(a, out, sums);
    if (a->size.keys)
        return attention_run(
            a, kernel,
            (smelt_array *[KERNEL_ARRAYS]){a->arrays[Q], a->arrays[K], a->arrays[V], out, NULL, sums});
    if (a->arrays[SINKS])
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "attention: k has no rows; with sinks, expected at least 1");
    TRY(fill(a, out, 0));
    return fill(a, sums, -INFINITY);
}

static smelt_shape shape_of_sums(const struct attention *a) {
    return (smelt_shape){.ndim = 3, .size = {a->batches, a->size.heads, a->size.rows}};
}

static smelt_shape shape_of_results(const struct attention *a) {
    smelt_shape shape = shape_of_sums(a);
    shape.size[shape.ndim++] = a->size.value_depth;
    return shape;
}

/* Strides of the results, which the kernels of the forward pass find in a->size, too. */
static void place_results(struct attention *a, int64_t strides[SMELT_MAX_DIMENSIONS]) {
    const smelt_shape shape = shape_of_results(a),
                      by_rows = {
                          .ndim = 4,
                          .size = {a->batches, a->size.rows, a->size.heads, a->size.value_depth},
                      };
    shape_strides(a->rows_first ? &by_rows : &shape, strides);
    if (a->rows_first) {
        int64_t row = strides[1];
        strides[1] = strides[2], strides[2] = row;
    }
    a->size.result.batch = strides[0], a->size.result.head = strides[1], a->size.result.row = strides[2];
}

/* The result, followed in its memory by the sums of its rows, which all kernels write: on a GPU, allocating
 * a second block takes the host as long as a launch. `sums` needs no release. */
static smelt_status create_joined(const struct attention *a, const int64_t strides[SMELT_MAX_DIMENSIONS],
                                  smelt_array **out, smelt_array *sums) {
    const smelt_shape results = shape_of_results(a), rows = shape_of_sums(a);
    const int64_t width = (int64_t)smelt_dtype_bytes(a->dtype), row_count = shape_product(&rows);
    smelt_array *block;
    int64_t size;
    TRY(shape_check("attention", a->dtype, &results, &size));
    if (size > INT64_MAX / 16) return fail_out_of_memory((size_t)size);
    int64_t bytes = (size * width + SUMS_ALIGNMENT - 1) / SUMS_ALIGNMENT * SUMS_ALIGNMENT;
    smelt_shape whole = {.ndim = 1, .size = {(bytes + row_count * (int64_t)sizeof(float)) / width}};
    TRY(create(a, &whole, a->dtype, &block));
    smelt_status status = smelt_array_view(block, results, strides, 0, out);
    *sums = (smelt_array){.references = 1,
                          .dtype = SMELT_FLOAT32,
                          .shape = rows,
                          .size = row_count,
                          .data = block->data + bytes,
                          .memory = block->memory};
    shape_strides(&rows, sums->strides);
    smelt_array_release(block);
    return status;
}

static smelt_status create_both(const struct attention *a, const int64_t strides[SMELT_MAX_DIMENSIONS],
                                smelt_array **out, smelt_array **sums) {
    const smelt_shape results = shape_of_results(a), rows = shape_of_sums(a);
    smelt_array *block;
    TRY(create(a, &results, a->dtype, &block));
    smelt_status status = smelt_array_view(block, results, strides, 0, out);
    smelt_array_release(block);
    TRY(status);
    status = create(a, &rows, SMELT_FLOAT32, sums);
    if (status != SMELT_OK) smelt_array_release(*out);
    return status;
}

smelt_status smelt_attention(const smelt_attention_desc *desc, smelt_array **out, smelt_array **logsumexp) {
    struct attention a = {0};
    smelt_array joined, *made, *sums = &joined;
    int64_t strides[SMELT_MAX_DIMENSIONS];
    if (!out) return fail(SMELT_ERROR_INVALID_ARGUMENT, "attention: out is NULL");
    smelt_status status = attention_begin(desc, &a);
    if (status == SMELT_OK) {
        place_results(&a, strides);
        status =
            logsumexp ? create_both(&a, strides, &made, &sums) : create_joined(&a, strides, &made, &joined);
    }
    if (status == SMELT_OK) {
        status = attend(&a, made, sums);
        if (status != SMELT_OK) {
            smelt_array_release(made);
            if (logsumexp) smelt_array_release(sums);
        }
    }
    attention_end(&a);
    if (status != SMELT_OK) return status;
    *out = made;
    if (logsumexp) *logsumexp = sums;
    return SMELT_OK;
}

/* By blocks of keys and, in passes of their own, of rows. */
static smelt_status derive_twice(struct attention *a, smelt_array *gradients[3]) {
    smelt_array *dots, **x = a->arrays;
    TRY(create(a, &x[SUMS]->shape, SMELT_FLOAT32, &dots));
    smelt_status status = attention_run(a, DOTS, (smelt_array *[KERNEL_ARRAYS]){x[OUT], x[G], NULL, dots});
    if (status == SMELT_OK)
        status = attention_run(
            a, BY_Q,
            (smelt_array *[KERNEL_ARRAYS]){x[Q], x[K], x[V], gradients[Q], NULL, x[SUMS], dots, x[G]});
    if (status == SMELT_OK)
        status = attention_run(a, BY_KV,
                               (smelt_array *[KERNEL_ARRAYS]){x[Q], x[K], x[V], gradients[K], NULL, x[SUMS],
                                                              dots, x[G], gradients[V]});
    smelt_array_release(dots);
    return status;
}

/* By blocks of keys alone, which add to sums by q. */
static smelt_status derive_by_warpgroups(struct attention *a, smelt_array *gradients[3]) {
    smelt_array *notes = NULL, *sums = NULL, **x = a->arrays;
    int rows, keys;
    attention_choose_tile(a, VJP_BY_WARPGROUPS, &rows, &keys);
    int64_t row_blocks = attention_round_up(a->size.rows, rows) / rows,
            heads = (int64_t)a->batches * a->size.heads;
    smelt_shape note_shape = {.ndim = 2, .size = {heads * row_blocks * rows, 2}};
    smelt_shape sum_shape = {.ndim = 2, .size = {heads * row_blocks, VJP_BLOCK_SUMS}};
    smelt_status status = create(a, &note_shape, SMELT_FLOAT32, &notes);
    if (status == SMELT_OK) status = create(a, &sum_shape, SMELT_FLOAT32, &sums);
    if (status == SMELT_OK)
        status = attention_run(
            a, VJP_NOTES, (smelt_array *[KERNEL_ARRAYS]){x[OUT], x[G], NULL, notes, NULL, x[SUMS], sums});
    if (status == SMELT_OK)
        status = attention_run(a, VJP_BY_WARPGROUPS,
                               (smelt_array *[KERNEL_ARRAYS]){x[Q], x[K], x[V], gradients[K], NULL, notes,
                                                              sums, x[G], gradients[V]});
    if (status == SMELT_OK)
        status = attention_run(a, VJP_ROUND, (smelt_array *[KERNEL_ARRAYS]){sums, NULL, NULL, gradients[Q]});
    smelt_array_release(notes);
    smelt_array_release(sums);
    return status;
}

static smelt_status derive(struct attention *a, smelt_array *gradients[3]) {
    if (!a->arrays[OUT]->size || !a->size.keys) {
        for (int i = 0; i < 3; i++) TRY(fill(a, gradients[i], 0));
        return SMELT_OK;
    }
    return attention_is_by_warpgroups(a) ? derive_by_warpgroups(a, gradients) : derive_twice(a, gradients);
}

smelt_status smelt_attention_vjp(const smelt_attention_desc *desc, smelt_array *out, smelt_array *logsumexp,
                                 smelt_array *cotangent, smelt_array *gradients[3]) {
    struct attention a = {0};
    smelt_array *made[3] = {0};
    if (!gradients || !out || !logsumexp || !cotangent)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "attention: %s is NULL",
                    !gradients   ? "gradients"
                    : !out       ? "out"
                    : !logsumexp ? "logsumexp"
                                 : "cotangent");
    a.arrays[OUT] = out, a.arrays[SUMS] = logsumexp, a.arrays[G] = cotangent;
    smelt_status status = attention_begin(desc, &a);
    if (status == SMELT_OK && a.mask == MASK_SUMS)
        status = fail(SMELT_ERROR_UNSUPPORTED,
                      "attention: bias_lines and bias_columns have no derivative; use a mask");
    for (int i = Q; i <= V && status == SMELT_OK; i++)
        status = create(&a, &a.arrays[i]->shape, a.dtype, &made[i]);
    if (status == SMELT_OK) status = derive(&a, made);
    attention_end(&a);
    for (int i = 0; i < 3; i++)
        if (status == SMELT_OK)
            gradients[i] = made[i];
        else
            smelt_array_release(made[i]);
    return status;
}
