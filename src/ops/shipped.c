/* smelt/shipped.h: operations by name, each one call of smelt_apply. */
#include "smelt/shipped.h"
#include "base/reserved.h"
#include "ops/expression.h"

/* A NULL among the inputs ends their list: smelt_apply then says how many it expected. */
#define APPLY(result, ...) smelt_apply(&(smelt_apply_desc){__VA_ARGS__}, result)
#define ALONG(axis) .axes = {axis}, .axis_count = 1

/* ---- Networks. */

smelt_status smelt_softmax(smelt_array *x, int axis, smelt_array **result) {
    return APPLY(result, .operation = SMELT_OPERATION_SOFTMAX, .inputs = {x}, ALONG(axis));
}

smelt_status smelt_log_softmax(smelt_array *x, int axis, smelt_array **result) {
    return APPLY(result, .operation = SMELT_OPERATION_LOG_SOFTMAX, .inputs = {x}, ALONG(axis));
}

smelt_status smelt_layer_norm(smelt_array *x, smelt_array *weight, smelt_array *bias, double eps,
                              smelt_array **result) {
    struct expression e = {0};
    smelt_array *normal = expr_apply(&e, &(smelt_apply_desc){.operation = SMELT_OPERATION_LAYER_NORM,
                                                             .inputs = {x, weight, weight ? bias : NULL},
                                                             .numbers = {eps}});
    if (bias && !weight) normal = expr_binary(&e, SMELT_OPERATION_ADD, normal, bias);
    return expr_close(&e, normal, result);
}

smelt_status smelt_rms_norm(smelt_array *x, smelt_array *weight, double eps, smelt_array **result) {
    return APPLY(result, .operation = SMELT_OPERATION_RMS_NORM, .inputs = {x, weight}, .numbers = {eps});
}

smelt_status smelt_rope(const smelt_rope_desc *desc, smelt_array **result) {
    const int32_t zero = 0;
    smelt_array *offset;
    if (!desc) return fail(SMELT_ERROR_INVALID_ARGUMENT, "rope: desc is NULL");
    TRY(reserved_check(smelt_rope_desc, desc));
    if (desc->offset)
        offset = smelt_array_retain(desc->offset);
    else
        TRY(smelt_array_from_values(SMELT_INT32, (smelt_shape){.ndim = 0}, &zero, &offset));
    smelt_status status =
        APPLY(result, .operation = SMELT_OPERATION_ROPE, .inputs = {desc->x, offset, desc->frequencies},
              .starts = {desc->dims, desc->traditional},
              .numbers = {desc->base, desc->scale == 0 ? 1 : desc->scale});
    smelt_array_release(offset);
    return status;
}

smelt_status smelt_convolve(const smelt_convolve_desc *desc, smelt_array **result) {
    if (!desc) return fail(SMELT_ERROR_INVALID_ARGUMENT, "convolve: desc is NULL");
    TRY(reserved_check(smelt_convolve_desc, desc));
    smelt_apply_desc apply_desc = {.operation = SMELT_OPERATION_CONV_GENERAL,
                                   .inputs = {desc->x, desc->weight},
                                   .offset = desc->groups,
                                   .reverse = desc->flip};
    int spatial = desc->x && desc->x->shape.ndim > 2 ? desc->x->shape.ndim - 2 : 1;
    if (spatial > 3) spatial = 3; /* which the operation refuses */
    apply_desc.shape.ndim = apply_desc.axis_count = spatial;
    for (int d = 0; d < spatial; d++) {
        apply_desc.steps[d] = desc->stride[d];
        apply_desc.starts[d] = desc->before[d];
        apply_desc.stops[d] = desc->after[d];
        apply_desc.shape.size[d] = desc->dilation[d] ? desc->dilation[d] : 1;
        apply_desc.axes[d] = desc->input_dilation[d] ? (int)desc->input_dilation[d] : 1;
    }
    return smelt_apply(&apply_desc, result);
}

smelt_status smelt_sample_grid(smelt_array *x, smelt_array *grid, bool nearest, bool border,
                               bool align_corners, smelt_array **result) {
    return APPLY(result, .operation = SMELT_OPERATION_GRID_SAMPLE, .inputs = {x, grid},
                 .starts = {nearest, border, align_corners});
}

smelt_status smelt_chunk_inverse(smelt_array *x, smelt_array **result) {
    return APPLY(result, .operation = SMELT_OPERATION_CHUNK_INVERSE, .inputs = {x});
}

/* ---- Rows. */

#define CUMULATIVE(upper, lower)                                                               \
    smelt_status smelt_##lower(smelt_array *x, int axis, bool reverse, smelt_array **result) { \
        return APPLY(result, .operation = SMELT_OPERATION_##upper, .inputs = {x}, ALONG(axis), \
                     .reverse = reverse);                                                      \
    }
CUMULATIVE(CUMSUM, cumsum)
CUMULATIVE(CUMPROD, cumprod)
CUMULATIVE(CUMMAX, cummax)
CUMULATIVE(CUMMIN, cummin)

smelt_status smelt_sort(smelt_array *x, int axis, smelt_array **result) {
    return APPLY(result, .operation = SMELT_OPERATION_SORT, .inputs = {x}, ALONG(axis));
}

smelt_status smelt_argsort(smelt_array *x, int axis, smelt_array **result) {
    return APPLY(result, .operation = SMELT_OPERATION_ARGSORT, .inputs = {x}, ALONG(axis));
}

smelt_status smelt_topk(smelt_array *x, int64_t k, int axis, smelt_array **result) {
    struct expression e = {0};
    int place = x && axis < 0 ? axis + x->shape.ndim : axis;
    smelt_array *sorted =
        expr_apply(&e, &(smelt_apply_desc){.operation = SMELT_OPERATION_SORT, .inputs = {x}, ALONG(axis)});
    if (sorted && (k < 1 || k > sorted->shape.size[place]))
        e.status = fail(SMELT_ERROR_INVALID_ARGUMENT, "topk: k is %lld; expected 1 to %lld", (long long)k,
                        (long long)sorted->shape.size[place]);
    smelt_apply_desc slice = {.operation = SMELT_OPERATION_SLICE, .inputs = {sorted}};
    for (int d = 0; sorted && d < sorted->shape.ndim; d++)
        slice.stops[d] = sorted->shape.size[d], slice.steps[d] = 1;
    if (sorted) slice.starts[place] = sorted->shape.size[place] - k;
    return expr_close(&e, expr_apply(&e, &slice), result);
}

/* ---- Signals. */

smelt_status smelt_fft(smelt_array *x, int64_t n, int axis, bool inverse, smelt_array **result) {
    return APPLY(result, .operation = SMELT_OPERATION_FFT, .inputs = {x}, ALONG(axis), .offset = n,
                 .reverse = inverse);
}

smelt_status smelt_rfft(smelt_array *x, int64_t n, int axis, smelt_array **result) {
    return APPLY(result, .operation = SMELT_OPERATION_RFFT, .inputs = {x}, ALONG(axis), .offset = n);
}

smelt_status smelt_irfft(smelt_array *x, int64_t n, int axis, smelt_array **result) {
    return APPLY(result, .operation = SMELT_OPERATION_IRFFT, .inputs = {x}, ALONG(axis), .offset = n);
}

smelt_status smelt_hadamard_transform(smelt_array *x, double scale, smelt_array **result) {
    return APPLY(result, .operation = SMELT_OPERATION_HADAMARD_TRANSFORM, .inputs = {x}, .numbers = {scale});
}

/* ---- Packed numbers. */

smelt_status smelt_dequantize(smelt_array *w, smelt_array *scales, smelt_array *biases, int bits,
                              int group_size, smelt_quantized_mode mode, smelt_dtype dtype,
                              smelt_array **result) {
    return APPLY(result, .operation = SMELT_OPERATION_DEQUANTIZE, .inputs = {w, scales, biases},
                 .starts = {bits, group_size, mode}, .dtype = dtype);
}

/* ---- Random numbers. */

smelt_status smelt_random_key(uint64_t seed, smelt_array **key) {
    const uint32_t words[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    return smelt_array_from_values(SMELT_UINT32, (smelt_shape){1, {2}}, words, key);
}

smelt_status smelt_random_split(smelt_array *key, int64_t count, smelt_array **keys) {
    return APPLY(keys, .operation = SMELT_OPERATION_RANDOM_SPLIT, .inputs = {key}, .offset = count);
}

#define OF_KEY(name) \
    .operation = SMELT_OPERATION_RANDOM_##name, .inputs = {key}, .dtype = dtype, .shape = shape

smelt_status smelt_random_bits(smelt_array *key, smelt_dtype dtype, smelt_shape shape, smelt_array **result) {
    return APPLY(result, OF_KEY(BITS));
}

smelt_status smelt_random_uniform(smelt_array *key, smelt_dtype dtype, smelt_shape shape, double low,
                                  double high, smelt_array **result) {
    if (!(low < high)) /* both 0 mean 0 and 1 in smelt_apply */
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "random_uniform: low is %g and high is %g; expected low < high", low, high);
    return APPLY(result, OF_KEY(UNIFORM), .numbers = {low, high});
}

smelt_status smelt_random_integers(smelt_array *key, smelt_dtype dtype, smelt_shape shape, int64_t low,
                                   int64_t high, smelt_array **result) {
    return APPLY(result, OF_KEY(INTEGERS), .starts = {low}, .stops = {high});
}

smelt_status smelt_random_normal(smelt_array *key, smelt_dtype dtype, smelt_shape shape,
                                 smelt_array **result) {
    return APPLY(result, OF_KEY(NORMAL));
}

smelt_status smelt_random_gumbel(smelt_array *key, smelt_dtype dtype, smelt_shape shape,
                                 smelt_array **result) {
    return APPLY(result, OF_KEY(GUMBEL));
}

smelt_status smelt_random_truncated_normal(smelt_array *key, smelt_array *lower, smelt_array *upper,
                                           smelt_dtype dtype, smelt_shape shape, smelt_array **result) {
    return APPLY(result, .operation = SMELT_OPERATION_RANDOM_TRUNCATED_NORMAL, .inputs = {key, lower, upper},
                 .dtype = dtype, .shape = shape);
}

smelt_status smelt_random_bernoulli(smelt_array *key, smelt_array *p, smelt_shape shape,
                                    smelt_array **result) {
    return APPLY(result, .operation = SMELT_OPERATION_RANDOM_BERNOULLI, .inputs = {key, p}, .shape = shape);
}

smelt_status smelt_random_categorical(smelt_array *key, smelt_array *logits, int axis, int64_t samples,
                                      smelt_array **result) {
    return APPLY(result, .operation = SMELT_OPERATION_RANDOM_CATEGORICAL, .inputs = {key, logits},
                 ALONG(axis), .offset = samples);
}

smelt_status smelt_random_permutation(smelt_array *key, int64_t count, smelt_array **result) {
    return APPLY(result, .operation = SMELT_OPERATION_RANDOM_PERMUTATION, .inputs = {key}, .offset = count);
}
