/* Arrays over the memory of Python objects. */
#include "interop.h"

/* The last reference to an array may be released on any thread, also after Python has ended. */
void memory_drop_object(void *object) {
    if (!Py_IsInitialized()) return;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)object);
    PyGILState_Release(state);
}

bool memory_dimensions(int ndim, const char *what) {
    if (ndim <= SMELT_MAX_DIMENSIONS) return true;
    PyErr_Format(PyExc_ValueError, "%s: it has %d dimensions, expected at most %d", what, ndim,
                 SMELT_MAX_DIMENSIONS);
    return false;
}

smelt_dtype memory_dtype(char kind, int bytes) {
    static const smelt_dtype integers[] = {
        [1] = SMELT_INT8, [2] = SMELT_INT16, [4] = SMELT_INT32, [8] = SMELT_INT64};
    static const smelt_dtype naturals[] = {
        [1] = SMELT_UINT8, [2] = SMELT_UINT16, [4] = SMELT_UINT32, [8] = SMELT_UINT64};
    static const smelt_dtype floats[] = {[2] = SMELT_FLOAT16, [4] = SMELT_FLOAT32, [8] = SMELT_FLOAT64};
    if (bytes < 1 || bytes > 8) return SMELT_NO_DTYPE;
    switch (kind) {
    case 'b':
        return bytes == 1 ? SMELT_BOOL : SMELT_NO_DTYPE;
    case 'i':
        return integers[bytes];
    case 'u':
        return naturals[bytes];
    case 'f':
        return floats[bytes];
    case 'c':
        return bytes == 8 ? SMELT_COMPLEX64 : SMELT_NO_DTYPE;
    default:
        return SMELT_NO_DTYPE;
    }
}

/* For the numbers of an element: complex64 has two. */
static size_t part_bytes(smelt_dtype dtype) {
    size_t bytes = smelt_dtype_bytes(dtype);
    return dtype == SMELT_COMPLEX64 ? bytes / 2 : bytes;
}

static void swap_bytes(char *element, size_t bytes) {
    for (size_t i = 0; i < bytes / 2; i++) {
        char byte = element[i];
        element[i] = element[bytes - 1 - i];
        element[bytes - 1 - i] = byte;
    }
}

static bool copy_elements(const struct source *source, smelt_array **array) {
    size_t bytes = smelt_dtype_bytes(source->dtype), part = part_bytes(source->dtype);
    int64_t index[SMELT_MAX_DIMENSIONS] = {0};
    smelt_status status = smelt_array_create(source->dtype, source->shape, array);
    if (status != SMELT_OK) return raise_status(status);
    char *to = smelt_array_data(*array);
    const char *from = source->data;
    for (int64_t left = smelt_array_size(*array); left > 0; left--, to += bytes) {
        memcpy(to, from, bytes);
        for (size_t at = 0; source->swapped && at < bytes; at += part) swap_bytes(to + at, part);
        for (int d = source->shape.ndim - 1; d >= 0; d--) {
            from += source->strides[d];
            if (++index[d] < source->shape.size[d]) break;
            from -= source->strides[d] * source->shape.size[d];
            index[d] = 0;
        }
    }
    return true;
}

/* Strides in elements; false if kernels do not support the layout. */
static bool lies_well(const struct source *source, int64_t *strides) {
    int64_t bytes = (int64_t)smelt_dtype_bytes(source->dtype);
    if (source->swapped || (uintptr_t)source->data % part_bytes(source->dtype) != 0) return false;
    for (int d = 0; d < source->shape.ndim; d++) {
        strides[d] = source->strides[d] / bytes;
        if (strides[d] * bytes != source->strides[d] && source->shape.size[d] > 1) return false;
    }
    return true;
}

bool memory_import(const struct source *source, const struct request *request, smelt_array **array) {
    int64_t strides[SMELT_MAX_DIMENSIONS];
    bool well = lies_well(source, strides), good = false;
    if (request->writing && (source->readonly || !well)) {
        PyErr_Format(PyExc_ValueError, "%s: the array given is %s; expected one that can be written in place",
                     request->what,
                     source->readonly ? "read-only"
                                      : "not aligned to its elements, or not in this machine's byte order");
    } else if (well) {
        smelt_status status = smelt_array_from_memory(source->dtype, source->shape, strides, source->data,
                                                      source->release, source->context, array);
        if (status == SMELT_OK) return true;
        raise_status(status);
    } else {
        good = copy_elements(source, array);
    }
    source->release(source->context);
    return good;
}
