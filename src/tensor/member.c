/* Tensors as members of a kernel's structures: the class in prelude/metal_tensor, written by the host. */
#include "base/error.h"
#include "tensor/tensor.h"

#include <string.h>

static void put(unsigned char **to, int64_t value, size_t bytes) {
    memcpy(*to, &value, bytes); /* the low bytes come first */
    *to += bytes;
}

smelt_status smelt_tensor_member(const smelt_tensor *tensor, size_t index_bytes, void *bytes, size_t size) {
    if (!tensor || !bytes)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "tensor member: %s is NULL", tensor ? "bytes" : "tensor");
    if (index_bytes != 1 && index_bytes != 2 && index_bytes != 4 && index_bytes != 8)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "tensor member: index_bytes is %zu, expected 1, 2, 4 or 8",
                    index_bytes);
    size_t rank = (size_t)tensor->ndim, extents = (index_bytes * rank + 7) / 8 * 8;
    size_t wanted = 24 + 16 * rank + extents;
    if (size != wanted)
        return fail(
            SMELT_ERROR_INVALID_ARGUMENT,
            "tensor member: size is %zu; a tensor of %d dimensions with indexes of %zu bytes takes %zu", size,
            tensor->ndim, index_bytes, wanted);
    const struct tensor_plane *data = &tensor->planes[SMELT_PLANE_DATA],
                              *scales = &tensor->planes[SMELT_PLANE_SCALES];
    int64_t most = INT64_MAX >> (64 - 8 * index_bytes);
    unsigned char *to = bytes;
    memset(bytes, 0, size);
    put(&to, (int64_t)(intptr_t)smelt_array_data(data->array), 8);
    for (size_t d = 0; d < rank; d++) {
        if (data->extents[d] > most)
            return fail(SMELT_ERROR_LIMIT,
                        "tensor member: dimension %zu (0 is the innermost) is %lld; an index of %zu bytes "
                        "holds at most %lld",
                        d, (long long)data->extents[d], index_bytes, (long long)most);
        put(&to, data->extents[d], index_bytes);
    }
    to = (unsigned char *)bytes + 8 + extents;
    for (size_t d = 0; d < rank; d++) put(&to, data->strides[d], 8);
    put(&to, 0, 8); /* the origin */
    put(&to, scales->element ? (int64_t)(intptr_t)smelt_array_data(scales->array) : 0, 8);
    for (size_t d = 0; d < rank; d++) put(&to, scales->element ? scales->strides[d] : 0, 8);
    return SMELT_OK;
}
