/* Arrays in memory that is not the host's. Bytes move as they are where both sides hold them alike; what has
 * to be gathered, scattered or converted goes through the host. */
#include "array/array.h"
#include "array/dtype.h"

/* ---- The host's image of an array: its whole span, gaps included, under the same strides. */

/* Over a row-contiguous `base` that holds exactly the span. */
static smelt_array *over_span(const smelt_array *array, smelt_array *base) {
    char *low;
    array_span(array, &low);
    smelt_array *made = array_over(base->memory, array->dtype, &array->shape, array->strides, array->size,
                                   base->memory->start + (array->data - low));
    if (made) memory_retain(base->memory);
    return made;
}

static smelt_shape span_shape(const smelt_array *array) {
    char *low;
    return (smelt_shape){1, {(int64_t)(array_span(array, &low) / smelt_dtype_bytes(array->dtype))}};
}

/* Waits for the work that writes it. */
static smelt_status download(const smelt_array *array, smelt_stream *stream, smelt_array **image) {
    smelt_array *base;
    char *low;
    size_t bytes = array_span(array, &low);
    TRY(smelt_array_create(array->dtype, span_shape(array), &base));
    smelt_status status =
        bytes ? array->memory->space->copy_out(array->memory, stream, base->data, low, bytes) : SMELT_OK;
    if (status == SMELT_OK) {
        *image = over_span(array, base);
        if (!*image) status = fail_out_of_memory(sizeof **image);
    }
    smelt_array_release(base);
    return status;
}

static smelt_status upload(smelt_array *array, smelt_stream *stream, const smelt_array *image) {
    char *low, *image_low;
    size_t bytes = array_span(array, &low);
    array_span(image, &image_low);
    return bytes ? array->memory->space->copy_in(array->memory, stream, low, image_low, bytes) : SMELT_OK;
}

/* ---- Moving. */

static smelt_status create_in(const struct memory_space *space, smelt_stream *stream, smelt_dtype dtype,
                              const smelt_shape *shape, smelt_array **array) {
    return space ? space->create(space, stream, dtype, shape, array)
                 : smelt_array_create(dtype, *shape, array);
}

/* `bytes` of an array of a device, or of the host, to the start of another's memory. */
static smelt_status copy_bytes(smelt_array *to, const smelt_array *from, const char *low, size_t bytes,
                               smelt_stream *stream) {
    const struct memory_space *target = to->memory->space, *source = from->memory->space;
    if (!bytes) return SMELT_OK;
    if (target && source)
        return target->copy_within(to->memory, stream, to->memory->start, from->memory, low, bytes);
    if (target) return target->copy_in(to->memory, stream, to->memory->start, low, bytes);
    if (source) return source->copy_out(from->memory, stream, to->memory->start, low, bytes);
    memcpy(to->memory->start, low, bytes);
    return SMELT_OK;
}

static smelt_status move_dense(const smelt_array *array, const struct memory_space *space,
                               smelt_stream *stream, smelt_array **result) {
    smelt_array *base;
    char *low;
    size_t bytes = array_span(array, &low);
    smelt_shape span = span_shape(array);
    TRY(create_in(space, stream, array->dtype, &span, &base));
    smelt_status status = copy_bytes(base, array, low, bytes, stream);
    if (status == SMELT_OK) {
        *result = over_span(array, base);
        if (!*result) status = fail_out_of_memory(sizeof **result);
    }
    smelt_array_release(base);
    return status;
}

smelt_status array_move(const smelt_array *array, const struct memory_space *space, smelt_stream *stream,
                        smelt_array **result) {
    if (array_is_dense(array)) return move_dense(array, space, stream, result);
    smelt_array *image = NULL, *dense = NULL;
    smelt_status status = SMELT_OK;
    if (array->memory->space) {
        status = download(array, space ? NULL : stream, &image);
        array = image;
    }
    if (status == SMELT_OK) status = smelt_array_convert(array, array->dtype, &dense);
    smelt_array_release(image);
    if (status != SMELT_OK) return status;
    if (!space) {
        *result = dense;
        return SMELT_OK;
    }
    status = move_dense(dense, space, stream, result);
    smelt_array_release(dense);
    return status;
}

/* ---- Fills. */

smelt_status space_fill(smelt_array *array, smelt_stream *stream, const void *pattern) {
    const struct memory_space *space = array->memory->space;
    size_t width = smelt_dtype_bytes(array->dtype);
    char *low;
    size_t bytes = array_span(array, &low);
    if (array_is_dense(array))
        return bytes ? space->fill(array->memory, stream, low, pattern, width, bytes / width) : SMELT_OK;
    /* Bytes between its elements must stay, so it is read first. */
    smelt_array *image;
    TRY(download(array, stream, &image));
    for (struct walk w = walk_begin(&image->shape, image->strides); w.left > 0; walk_next(&w))
        memcpy(image->data + w.offset * (int64_t)width, pattern, width);
    smelt_status status = upload(array, stream, image);
    smelt_array_release(image);
    return status;
}

/* ---- Copies. */

/* Two dense arrays with their elements in the same order. */
static bool same_layout(const smelt_array *a, const smelt_array *b) {
    if (a->dtype != b->dtype || !array_is_dense(a) || !array_is_dense(b)) return false;
    for (int d = 0; d < a->shape.ndim; d++)
        if (a->shape.size[d] > 1 && a->strides[d] != b->strides[d]) return false;
    return true;
}

static smelt_status copy_same(smelt_array *to, const smelt_array *from) {
    const struct memory_space *target = to->memory->space, *source = from->memory->space;
    size_t bytes = (size_t)to->size * smelt_dtype_bytes(to->dtype);
    if (target && source)
        return target->copy_within(to->memory, NULL, to->data, from->memory, from->data, bytes);
    if (target) return target->copy_in(to->memory, NULL, to->data, from->data, bytes);
    return source->copy_out(from->memory, NULL, to->data, from->data, bytes);
}

/* From an array of the host. A target with gaps is read first: they stay. */
static smelt_status scatter(smelt_array *to, const smelt_array *from) {
    smelt_array *image;
    if (!to->memory->space) return smelt_array_copy(to, from);
    if (array_is_dense(to)) {
        smelt_array *base;
        TRY(smelt_array_create(to->dtype, span_shape(to), &base));
        image = over_span(to, base);
        smelt_array_release(base);
        if (!image) return fail_out_of_memory(sizeof *image);
    } else {
        TRY(download(to, NULL, &image));
    }
    smelt_status status = smelt_array_copy(image, from);
    if (status == SMELT_OK) status = upload(to, NULL, image);
    smelt_array_release(image);
    return status;
}

smelt_status space_copy(smelt_array *to, const smelt_array *from) {
    if (!to->size) return SMELT_OK;
    if (same_layout(to, from)) return copy_same(to, from);
    if (!from->memory->space) return scatter(to, from);
    smelt_array *image;
    TRY(download(from, NULL, &image));
    smelt_status status = scatter(to, image);
    smelt_array_release(image);
    return status;
}

smelt_status space_convert(const smelt_array *array, smelt_dtype dtype, smelt_array **result) {
    const struct memory_space *space = array->memory->space;
    smelt_array *made;
    int64_t size;
    TRY(shape_check("array", dtype, &array->shape, &size));
    TRY(space->create(space, NULL, dtype, &array->shape, &made));
    smelt_status status = space_copy(made, array);
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}
