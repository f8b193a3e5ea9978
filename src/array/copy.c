/* Fills, copies and conversions between strided arrays. */
#include "array/array.h"
#include "array/dtype.h"

smelt_status smelt_array_fill(smelt_array *array, double value) {
    if (!array) return fail(SMELT_ERROR_INVALID_ARGUMENT, "fill: array is NULL");
    size_t bytes = smelt_dtype_bytes(array->dtype);
    char pattern[16];
    element_store(array->dtype, pattern, element_of_real(value));
    if (smelt_array_is_contiguous(array)) {
        for (int64_t i = 0; i < array->size; i++) memcpy(array->data + (size_t)i * bytes, pattern, bytes);
        return SMELT_OK;
    }
    for (struct walk w = walk_begin(&array->shape, array->strides); w.left > 0; walk_next(&w))
        memcpy(array->data + w.offset * (int64_t)bytes, pattern, bytes);
    return SMELT_OK;
}

smelt_status smelt_array_copy(smelt_array *to, const smelt_array *from) {
    if (!to || !from) return fail(SMELT_ERROR_INVALID_ARGUMENT, "copy: %s is NULL", to ? "from" : "to");
    bool equal = to->shape.ndim == from->shape.ndim;
    for (int d = 0; equal && d < to->shape.ndim; d++) equal = to->shape.size[d] == from->shape.size[d];
    if (!equal)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "copy: shape %s cannot be copied into shape %s",
                    shape_print(&from->shape).text, shape_print(&to->shape).text);
    int64_t to_bytes = (int64_t)smelt_dtype_bytes(to->dtype), from_bytes = (int64_t)smelt_dtype_bytes(from->dtype);
    if (to->dtype == from->dtype && smelt_array_is_contiguous(to) && smelt_array_is_contiguous(from)) {
        if (to->size) memcpy(to->data, from->data, (size_t)(to->size * to_bytes));
        return SMELT_OK;
    }
    struct walk target = walk_begin(&to->shape, to->strides);
    struct walk source = walk_begin(&from->shape, from->strides);
    for (; target.left > 0; walk_next(&target), walk_next(&source)) {
        char *into = to->data + target.offset * to_bytes;
        const char *out_of = from->data + source.offset * from_bytes;
        if (to->dtype == from->dtype)
            memcpy(into, out_of, (size_t)to_bytes);
        else
            element_store(to->dtype, into, element_load(from->dtype, out_of));
    }
    return SMELT_OK;
}

smelt_status smelt_array_convert(const smelt_array *array, smelt_dtype dtype, smelt_array **result) {
    if (!array) return fail(SMELT_ERROR_INVALID_ARGUMENT, "convert: array is NULL");
    smelt_array *made;
    TRY(smelt_array_create(dtype, array->shape, &made));
    smelt_status status = smelt_array_copy(made, array);
    if (status != SMELT_OK) {
        smelt_array_release(made);
        return status;
    }
    *result = made;
    return SMELT_OK;
}

smelt_status smelt_array_contiguous(smelt_array *array, smelt_array **result) {
    if (!array) return fail(SMELT_ERROR_INVALID_ARGUMENT, "contiguous: array is NULL");
    if (!smelt_array_is_contiguous(array)) return smelt_array_convert(array, array->dtype, result);
    *result = smelt_array_retain(array);
    return SMELT_OK;
}
