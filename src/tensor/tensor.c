/* Tensors: checked against Metal's rules, then planes as views of arrays. */
#include "tensor/tensor.h"
#include "array/format.h"
#include "base/reserved.h"

#include <stdlib.h>
#include <string.h>

#define FORMAT_ALIGNMENT 128 /* bytes: strides and offsets of packed formats */
#define FORMAT_MULTIPLE 32   /* elements: dimension 0 of packed formats */
#define ML_ALIGNMENT 64      /* bytes: strides[1] for machine learning */

static const char *const plane_names[] = {"data", "scales", "biases"};

static int64_t round_up(int64_t value, int64_t step) {
    return (value + step - 1) / step * step;
}

/* ---- The description. */

static smelt_status check_dimensions(const smelt_tensor_desc *desc) {
    if (!smelt_element_bits(desc->element))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "tensor: element is %d; expected one of %s", desc->element,
                    element_list().text);
    if (desc->ndim < 1 || desc->ndim > SMELT_MAX_DIMENSIONS)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "tensor: ndim is %d; expected 1 to %d", desc->ndim,
                    SMELT_MAX_DIMENSIONS);
    for (int d = 0; d < desc->ndim; d++)
        if (desc->dimensions[d] < 1)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "tensor: dimension %d is %lld; expected at least 1", d,
                        (long long)desc->dimensions[d]);
    if (element_is_packed(desc->element) && desc->dimensions[0] % FORMAT_MULTIPLE)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "tensor: dimension 0 of a tensor of %s is %lld; expected a multiple of %d",
                    smelt_element_name(desc->element), (long long)desc->dimensions[0], FORMAT_MULTIPLE);
    unsigned all = SMELT_TENSOR_COMPUTE | SMELT_TENSOR_RENDER | SMELT_TENSOR_MACHINE_LEARNING;
    if (desc->usage & ~all)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "tensor: usage is 0x%x; expected SMELT_TENSOR_ bits (0x%x)",
                    desc->usage, all);
    return SMELT_OK;
}

/* Sets strides; LIMIT if the plane's bits overflow. `padded`: rows begin at multiples of the alignment that
 * formats, or machine learning, require. */
static smelt_status default_strides(int ndim, int64_t alignment, struct tensor_plane *plane) {
    int64_t bits = smelt_element_bits(plane->element), step = alignment * 8 / bits, next = 1;
    for (int d = 0; d < ndim; d++) {
        plane->strides[d] = next;
        if (__builtin_mul_overflow(next, plane->extents[d], &next) || next > INT64_MAX / 64 - step)
            return fail(SMELT_ERROR_LIMIT, "tensor: dimensions have more bytes than 64 bits count");
        if (d == 0 && step > 1) next = round_up(next, step);
    }
    return SMELT_OK;
}

static smelt_status check_stride_rules(const smelt_tensor_desc *desc, const struct tensor_plane *plane) {
    int64_t bits = smelt_element_bits(plane->element);
    bool packed = element_is_packed(plane->element), learning = desc->usage & SMELT_TENSOR_MACHINE_LEARNING;
    for (int d = 1; d < desc->ndim; d++) {
        long long stride = plane->strides[d], bytes = stride * bits / 8;
        if (packed && (stride * bits) % (8 * FORMAT_ALIGNMENT))
            return fail(
                SMELT_ERROR_INVALID_ARGUMENT,
                "tensor: stride %d is %lld elements of %s, %lld bytes; expected a multiple of %d bytes", d,
                stride, smelt_element_name(plane->element), bytes, FORMAT_ALIGNMENT);
        if (learning && d == 1 && bytes % ML_ALIGNMENT)
            return fail(
                SMELT_ERROR_INVALID_ARGUMENT,
                "tensor: stride 1 is %lld bytes; for machine learning, expected a multiple of %d bytes",
                bytes, ML_ALIGNMENT);
        if (learning && d > 1 && stride != plane->strides[d - 1] * plane->extents[d - 1])
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "tensor: stride %d is %lld; for machine learning, expected %lld: packed", d, stride,
                        (long long)(plane->strides[d - 1] * plane->extents[d - 1]));
    }
    return SMELT_OK;
}

static smelt_status given_strides(const smelt_tensor_desc *desc, struct tensor_plane *plane) {
    int64_t least = 1;
    for (int d = 0; d < desc->ndim; d++) {
        int64_t stride = plane->strides[d] = desc->strides[d];
        if (d == 0 && stride != 1)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "tensor: stride 0 is %lld; expected 1",
                        (long long)stride);
        if (stride < least)
            return fail(
                SMELT_ERROR_INVALID_ARGUMENT,
                "tensor: stride %d is %lld elements; expected at least %lld, what the dimensions before "
                "it take",
                d, (long long)stride, (long long)least);
        if (__builtin_mul_overflow(stride, plane->extents[d], &least) || least > INT64_MAX / 64)
            return fail(SMELT_ERROR_LIMIT, "tensor: strides reach more bytes than 64 bits count");
    }
    return check_stride_rules(desc, plane);
}

static smelt_status lay_out_data(const smelt_tensor_desc *desc, struct tensor_plane *plane) {
    bool given = false, learning = desc->usage & SMELT_TENSOR_MACHINE_LEARNING;
    plane->element = desc->element;
    for (int d = 0; d < desc->ndim; d++) {
        plane->extents[d] = desc->dimensions[d];
        plane->block[d] = 1;
        given |= desc->strides[d] != 0;
    }
    if (given) return given_strides(desc, plane);
    int64_t alignment = element_is_packed(desc->element) ? FORMAT_ALIGNMENT : learning ? ML_ALIGNMENT : 0;
    return default_strides(desc->ndim, desc->ndim > 1 ? alignment : 0, plane);
}

static smelt_status lay_out_plane(const smelt_tensor_desc *desc, const char *name,
                                  const smelt_tensor_plane_desc *wanted, struct tensor_plane *plane) {
    TRY(reserved_check(smelt_tensor_plane_desc, wanted));
    if (!wanted->element) return SMELT_OK;
    if (!smelt_element_bits(wanted->element) || smelt_element_bits(wanted->element) < 8)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "tensor: the element of %s is %d ('%s'); expected one of at least 8 bits", name,
                    wanted->element, smelt_element_name(wanted->element));
    plane->element = wanted->element;
    for (int d = 0; d < desc->ndim; d++) {
        int64_t block = plane->block[d] = wanted->block[d] ? wanted->block[d] : 1;
        if (block < 1)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "tensor: the block of %s in dimension %d is %lld; expected at least 1, or 0 for 1",
                        name, d, (long long)block);
        if (desc->dimensions[d] % block)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "tensor: dimension %d is %lld; expected a multiple of its block of %s, %lld", d,
                        (long long)desc->dimensions[d], name, (long long)block);
        plane->extents[d] = desc->dimensions[d] / block;
    }
    return default_strides(desc->ndim, 0, plane);
}

/* ---- Memory. */

static int64_t bytes_of(int ndim, const struct tensor_plane *plane) {
    int64_t last = 0;
    for (int d = 0; d < ndim; d++) last += (plane->extents[d] - 1) * plane->strides[d];
    return ((last + 1) * smelt_element_bits(plane->element) + 7) / 8;
}

static smelt_status check_offset(const smelt_tensor_desc *desc, const char *name,
                                 const struct tensor_plane *plane, int64_t offset) {
    int64_t step =
        element_is_packed(plane->element) ? FORMAT_ALIGNMENT : smelt_element_bits(plane->element) / 8;
    if (offset < 0 || offset % step)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "tensor: the offset of %s is %lld bytes; for %s, expected a multiple of %lld bytes", name,
                    (long long)offset, smelt_element_name(plane->element), (long long)step);
    if ((desc->usage & SMELT_TENSOR_MACHINE_LEARNING) && offset)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "tensor: the offset of %s is %lld bytes; for machine learning, expected 0", name,
                    (long long)offset);
    return SMELT_OK;
}

static smelt_status new_memory(const smelt_tensor_desc *desc, int64_t bytes, smelt_array **memory) {
    TRY(smelt_array_create_on(desc->device, SMELT_UINT8, (smelt_shape){1, {bytes}}, memory));
    smelt_status status = smelt_array_fill(*memory, 0);
    if (status != SMELT_OK) smelt_array_release(*memory);
    return status;
}

/* The caller's memory from the offset on, as bytes. */
static smelt_status given_memory(const smelt_tensor_desc *desc, const char *name,
                                 const struct tensor_plane *plane, const smelt_array *from, int64_t offset,
                                 int64_t bytes, smelt_array **memory) {
    TRY(check_offset(desc, name, plane, offset));
    if (!smelt_array_is_contiguous(from))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "tensor: the memory of %s is not row-contiguous", name);
    int64_t size = from->size * (int64_t)smelt_dtype_bytes(from->dtype);
    if (offset > size || bytes > size - offset)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "tensor: the memory of %s has %lld bytes from its offset on; expected %lld", name,
                    (long long)(offset > size ? 0 : size - offset), (long long)bytes);
    memory_retain(from->memory);
    *memory =
        array_over(from->memory, SMELT_UINT8, &(smelt_shape){1, {bytes}}, NULL, bytes, from->data + offset);
    return *memory ? SMELT_OK : fail_out_of_memory(sizeof **memory);
}

/* The view of the memory as an array, the outermost dimension first. */
static smelt_status view_of(int ndim, const struct tensor_plane *plane, smelt_array *memory,
                            smelt_array **view) {
    bool packed = element_is_packed(plane->element);
    int64_t bits = smelt_element_bits(plane->element), strides[SMELT_MAX_DIMENSIONS], size = 1;
    smelt_shape shape = {.ndim = ndim};
    for (int d = 0; d < ndim; d++) {
        int axis = ndim - 1 - d;
        shape.size[axis] = packed && d == 0 ? plane->extents[d] * bits / 8 : plane->extents[d];
        strides[axis] = packed && d > 0 ? plane->strides[d] * bits / 8 : plane->strides[d];
        size *= shape.size[axis];
    }
    memory_retain(memory->memory);
    *view = array_over(memory->memory, packed ? SMELT_UINT8 : (smelt_dtype)plane->element, &shape, strides,
                       size, memory->data);
    return *view ? SMELT_OK : fail_out_of_memory(sizeof **view);
}

static smelt_status allocate(const smelt_tensor_desc *desc, const char *name, smelt_array *from,
                             int64_t offset, struct tensor_plane *plane) {
    smelt_array *memory;
    int64_t bytes = bytes_of(desc->ndim, plane);
    if (from)
        TRY(given_memory(desc, name, plane, from, offset, bytes, &memory));
    else
        TRY(new_memory(desc, bytes, &memory));
    smelt_status status = view_of(desc->ndim, plane, memory, &plane->array);
    smelt_array_release(memory);
    return status;
}

static smelt_status fill_tensor(const smelt_tensor_desc *desc, smelt_tensor *tensor) {
    struct tensor_plane *planes = tensor->planes;
    TRY(lay_out_data(desc, &planes[SMELT_PLANE_DATA]));
    TRY(lay_out_plane(desc, "scales", &desc->scales, &planes[SMELT_PLANE_SCALES]));
    TRY(lay_out_plane(desc, "biases", &desc->biases, &planes[SMELT_PLANE_BIASES]));
    TRY(allocate(desc, "data", desc->memory, desc->offset, &planes[SMELT_PLANE_DATA]));
    if (desc->scales.element)
        TRY(allocate(desc, "scales", desc->scales.memory, desc->scales.offset, &planes[SMELT_PLANE_SCALES]));
    if (desc->biases.element)
        TRY(allocate(desc, "biases", desc->biases.memory, desc->biases.offset, &planes[SMELT_PLANE_BIASES]));
    return SMELT_OK;
}

/* ---- Objects. */

smelt_status smelt_tensor_create(const smelt_tensor_desc *desc, smelt_tensor **tensor) {
    if (!desc || !tensor)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "tensor: %s is NULL", desc ? "tensor" : "desc");
    TRY(reserved_check(smelt_tensor_desc, desc));
    TRY(check_dimensions(desc));
    smelt_tensor *out = calloc(1, sizeof *out);
    if (!out) return fail_out_of_memory(sizeof *out);
    atomic_init(&out->references, 1);
    out->ndim = desc->ndim;
    out->usage = desc->usage ? desc->usage : SMELT_TENSOR_COMPUTE;
    smelt_status status = fill_tensor(desc, out);
    if (status != SMELT_OK) {
        smelt_tensor_release(out);
        return status;
    }
    *tensor = out;
    return SMELT_OK;
}

smelt_tensor *smelt_tensor_retain(smelt_tensor *tensor) {
    if (tensor) atomic_fetch_add(&tensor->references, 1);
    return tensor;
}

void smelt_tensor_release(smelt_tensor *tensor) {
    if (!tensor || atomic_fetch_sub(&tensor->references, 1) != 1) return;
    for (int p = 0; p < SMELT_PLANE_COUNT; p++) smelt_array_release(tensor->planes[p].array);
    free(tensor);
}

static void describe_plane(const struct tensor_plane *plane, smelt_tensor_plane_desc *out) {
    out->element = plane->element;
    memcpy(out->block, plane->block, sizeof out->block);
    out->memory = plane->array;
}

smelt_status smelt_tensor_describe(const smelt_tensor *tensor, smelt_tensor_desc *desc) {
    if (!tensor || !desc)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "tensor describe: %s is NULL", tensor ? "desc" : "tensor");
    const struct tensor_plane *data = &tensor->planes[SMELT_PLANE_DATA];
    *desc = (smelt_tensor_desc){.element = data->element,
                                .ndim = tensor->ndim,
                                .usage = tensor->usage,
                                .device = smelt_array_device(data->array),
                                .memory = data->array};
    memcpy(desc->dimensions, data->extents, sizeof desc->dimensions);
    memcpy(desc->strides, data->strides, sizeof desc->strides);
    describe_plane(&tensor->planes[SMELT_PLANE_SCALES], &desc->scales);
    describe_plane(&tensor->planes[SMELT_PLANE_BIASES], &desc->biases);
    return SMELT_OK;
}

static smelt_status find_plane(const char *what, const smelt_tensor *tensor, int plane,
                               const struct tensor_plane **out) {
    if (!tensor) return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: tensor is NULL", what);
    if (plane < 0 || plane >= SMELT_PLANE_COUNT)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: plane is %d; expected 0 to %d", what, plane,
                    SMELT_PLANE_COUNT - 1);
    *out = &tensor->planes[plane];
    return (*out)->element
               ? SMELT_OK
               : fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: the tensor has no %s", what, plane_names[plane]);
}

smelt_status smelt_tensor_array(const smelt_tensor *tensor, smelt_tensor_plane plane, smelt_array **array) {
    const struct tensor_plane *found;
    TRY(find_plane("tensor array", tensor, (int)plane, &found));
    if (!array) return fail(SMELT_ERROR_INVALID_ARGUMENT, "tensor array: array is NULL");
    *array = smelt_array_retain(found->array);
    return SMELT_OK;
}

smelt_status smelt_tensor_from_array(smelt_array *array, int element, smelt_tensor **tensor) {
    if (!array || !tensor)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "tensor from array: %s is NULL",
                    array ? "tensor" : "array");
    if (!element) element = (int)array->dtype;
    bool packed = element_is_packed(element);
    if (packed ? array->dtype != SMELT_UINT8 : element != (int)array->dtype)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "tensor from array: element is %s and the array's dtype %s; expected %s",
                    smelt_element_name(element), smelt_dtype_name(array->dtype),
                    packed ? "an array of uint8" : "the same");
    int64_t in_byte = packed ? 8 / smelt_element_bits(element) : 1;
    smelt_tensor_desc desc = {.element = element, .ndim = array->shape.ndim};
    for (int d = 0; d < desc.ndim; d++) {
        int axis = desc.ndim - 1 - d;
        if (__builtin_mul_overflow(array->shape.size[axis], d == 0 ? in_byte : 1, &desc.dimensions[d]))
            return fail(SMELT_ERROR_LIMIT,
                        "tensor from array: dimension %d has more elements than 64 bits count", d);
        desc.strides[d] =
            array->shape.size[axis] == 1 && d == 0 ? 1 : array->strides[axis] * (d == 0 ? 1 : in_byte);
    }
    /* Strides that are all 0 would stand for packed ones. */
    if (desc.ndim && array->size && !desc.strides[0])
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "tensor: stride 0 is 0; expected 1");
    /* The bytes from the first element on, as far as the tensor reaches. */
    char *low;
    size_t span = array_span(array, &low);
    memory_retain(array->memory);
    smelt_array *bytes = array_over(array->memory, SMELT_UINT8, &(smelt_shape){1, {(int64_t)span}}, NULL,
                                    (int64_t)span, array->data);
    if (!bytes) return fail_out_of_memory(sizeof *bytes);
    desc.memory = bytes;
    smelt_status status = smelt_tensor_create(&desc, tensor);
    smelt_array_release(bytes);
    return status;
}

/* ---- Slices. */

struct sliced {
    smelt_array *inside; /* the part of the plane */
    smelt_array *host;   /* the host's memory, of the same shape */
};

/* A number of elements as one of units that arrays have: bytes of packed formats. */
static smelt_status to_units(const struct tensor_plane *plane, const char *what, int d, int64_t elements,
                             int64_t *units) {
    int64_t bits = smelt_element_bits(plane->element),
            in_unit = element_is_packed(plane->element) ? 8 / bits : 1;
    if (elements % in_unit)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "tensor slice: %s %d is %lld; for %s, expected a multiple of %lld, whole bytes", what, d,
                    (long long)elements, smelt_element_name(plane->element), (long long)in_unit);
    *units = elements / in_unit;
    return SMELT_OK;
}

static smelt_status check_slice(int ndim, const struct tensor_plane *plane, const smelt_tensor_slice *slice) {
    for (int d = 0; d < ndim; d++)
        if (slice->origin[d] < 0 || slice->size[d] < 1 || slice->origin[d] > plane->extents[d] ||
            slice->size[d] > plane->extents[d] - slice->origin[d])
            return fail(
                SMELT_ERROR_INVALID_ARGUMENT,
                "tensor slice: dimension %d begins at %lld and has %lld elements; expected a part of the "
                "plane's %lld",
                d, (long long)slice->origin[d], (long long)slice->size[d], (long long)plane->extents[d]);
    return SMELT_OK;
}

/* Shapes and strides of both sides in units, the outermost dimension first; the host's last unit's end. */
static smelt_status place_slice(int ndim, const struct tensor_plane *plane, const smelt_tensor_slice *slice,
                                smelt_shape *shape, int64_t *strides, int64_t *offset, int64_t *reach) {
    bool given = false;
    for (int d = 0; d < ndim; d++) given |= slice->strides[d] != 0;
    int64_t packed = 1;
    *shape = (smelt_shape){.ndim = ndim};
    *offset = *reach = 0;
    for (int d = 0; d < ndim; d++) {
        int axis = ndim - 1 - d;
        int64_t origin = slice->origin[d], size = slice->size[d], stride = given ? slice->strides[d] : packed;
        if (stride < 0 || (d == 0 && stride != 1))
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "tensor slice: stride %d is %lld; expected %s", d,
                        (long long)stride, d ? "0 or more" : "1");
        if (d == 0) {
            TRY(to_units(plane, "the origin of dimension", d, origin, &origin));
            TRY(to_units(plane, "the size of dimension", d, size, &size));
        } else if (given) {
            TRY(to_units(plane, "stride", d, stride, &stride));
        }
        shape->size[axis] = size;
        strides[axis] = stride;
        *offset += origin * plane->array->strides[axis];
        int64_t span;
        if (__builtin_mul_overflow(size - 1, stride, &span) || __builtin_add_overflow(*reach, span, reach))
            return fail(SMELT_ERROR_LIMIT, "tensor slice: strides reach more bytes than 64 bits count");
        packed *= size;
    }
    return SMELT_OK;
}

/* That the host has one place per element: sorted by their strides, dimensions do not reach into the next. */
static smelt_status check_places(int ndim, const smelt_tensor_slice *slice) {
    bool given = false, done[SMELT_MAX_DIMENSIONS] = {false};
    int64_t taken = 1;
    for (int d = 0; d < ndim; d++) given |= slice->strides[d] != 0, done[d] = slice->size[d] == 1;
    for (int round = 0; round < ndim && given; round++) {
        int next = -1;
        for (int d = 0; d < ndim; d++)
            if (!done[d] && (next < 0 || slice->strides[d] < slice->strides[next])) next = d;
        if (next < 0) return SMELT_OK;
        if (slice->strides[next] < taken)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "tensor read: stride %d is %lld; expected at least %lld, what other dimensions take",
                        next, (long long)slice->strides[next], (long long)taken);
        taken = slice->strides[next] * slice->size[next];
        done[next] = true;
    }
    return SMELT_OK;
}

static smelt_status open_slice(const char *what, const smelt_tensor *tensor, const smelt_tensor_slice *slice,
                               void *bytes, size_t room, struct sliced *out) {
    const struct tensor_plane *plane;
    smelt_tensor_slice whole = {.plane = SMELT_PLANE_DATA};
    TRY(find_plane(what, tensor, slice ? (int)slice->plane : SMELT_PLANE_DATA, &plane));
    if (!bytes) return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: bytes is NULL", what);
    if (slice) TRY(reserved_check(smelt_tensor_slice, slice));
    if (!slice) {
        memcpy(whole.size, plane->extents, sizeof whole.size);
        slice = &whole;
    }
    smelt_shape shape;
    int64_t strides[SMELT_MAX_DIMENSIONS], offset, reach,
        width = (int64_t)smelt_dtype_bytes(plane->array->dtype);
    TRY(check_slice(tensor->ndim, plane, slice));
    TRY(place_slice(tensor->ndim, plane, slice, &shape, strides, &offset, &reach));
    if (reach >= INT64_MAX / width || (size_t)((reach + 1) * width) > room)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: there is room for %zu bytes; expected %lld", what,
                    room, (long long)((reach + 1) * width));
    TRY(smelt_array_view(plane->array, shape, plane->array->strides, offset, &out->inside));
    smelt_status status =
        smelt_array_from_memory(plane->array->dtype, shape, strides, bytes, NULL, NULL, &out->host);
    if (status != SMELT_OK) smelt_array_release(out->inside);
    return status;
}

static void close_slice(struct sliced *sliced) {
    smelt_array_release(sliced->inside);
    smelt_array_release(sliced->host);
}

smelt_status smelt_tensor_read_slice(const smelt_tensor *tensor, const smelt_tensor_slice *slice, void *bytes,
                                     size_t size) {
    struct sliced sliced;
    TRY(open_slice("tensor read", tensor, slice, bytes, size, &sliced));
    smelt_status status = slice ? check_places(tensor->ndim, slice) : SMELT_OK;
    if (status == SMELT_OK) status = smelt_array_copy(sliced.host, sliced.inside);
    close_slice(&sliced);
    return status;
}

smelt_status smelt_tensor_write_slice(smelt_tensor *tensor, const smelt_tensor_slice *slice,
                                      const void *bytes, size_t size) {
    struct sliced sliced;
    TRY(open_slice("tensor write", tensor, slice, (void *)bytes, size, &sliced));
    smelt_status status = smelt_array_copy(sliced.inside, sliced.host);
    close_slice(&sliced);
    return status;
}
