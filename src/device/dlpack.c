/* Arrays from and to DLPack's tensors. */
#include "smelt/dlpack.h"
#include "array/array.h"
#include "device/dlpack_layout.h"
#include "array/dtype.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_MAJOR 1
#define VERSION_MINOR 1

/* ---- Element types. */

#define TYPE_TABLE(X)            \
    X(BOOL, kDLBool, 8)          \
    X(UINT8, kDLUInt, 8)         \
    X(UINT16, kDLUInt, 16)       \
    X(UINT32, kDLUInt, 32)       \
    X(UINT64, kDLUInt, 64)       \
    X(INT8, kDLInt, 8)           \
    X(INT16, kDLInt, 16)         \
    X(INT32, kDLInt, 32)         \
    X(INT64, kDLInt, 64)         \
    X(FLOAT16, kDLFloat, 16)     \
    X(BFLOAT16, kDLBfloat, 16)   \
    X(FLOAT32, kDLFloat, 32)     \
    X(COMPLEX64, kDLComplex, 64) \
    X(FLOAT64, kDLFloat, 64)

static const DLDataType types[] = {
#define TYPE_ENTRY(name, code, bits) [SMELT_##name] = {code, bits, 1},
    TYPE_TABLE(TYPE_ENTRY)
#undef TYPE_ENTRY
};

static smelt_dtype dtype_of(DLDataType type) {
    for (smelt_dtype d = SMELT_BOOL; d <= SMELT_FLOAT64; d++)
        if (types[d].code == type.code && types[d].bits == type.bits && type.lanes == 1) return d;
    return SMELT_NO_DTYPE;
}

static smelt_status refuse_type(DLDataType type) {
    static const char *const names[] = {"int", "uint", "float", "opaque handle", "bfloat", "complex", "bool"};
    static const char *const small[] = {"float8_e3m4",     "float8_e4m3",     "float8_e4m3b11fnuz",
                                        "float8_e4m3fn",   "float8_e4m3fnuz", "float8_e5m2",
                                        "float8_e5m2fnuz", "float8_e8m0fnu",  "float6_e2m3fn",
                                        "float6_e3m2fn",   "float4_e2m1fn"};
    const size_t known = sizeof names / sizeof *names;
    char text[64];
    if (type.code < known)
        snprintf(text, sizeof text, "%s%u", names[type.code], type.bits);
    else if (type.code < known + sizeof small / sizeof *small)
        snprintf(text, sizeof text, "%s", small[type.code - known]);
    else
        snprintf(text, sizeof text, "code %u of %u bits", type.code, type.bits);
    if (type.lanes != 1)
        snprintf(text + strlen(text), sizeof text - strlen(text), " in %u lanes", type.lanes);
    return fail(SMELT_ERROR_UNSUPPORTED,
                "DLPack tensor: dtype %s is not supported; expected bool, uint8 to uint64, int8 to int64, "
                "float16, bfloat16, float32, complex64 or float64, one lane each",
                text);
}

/* ---- From a tensor. */

/* "cpu", "cuda:N". */
static smelt_status device_of(DLDevice device, char *name, size_t size) {
    switch (device.device_type) {
    case kDLCPU:
    case kDLCUDAHost:
        memcpy(name, "cpu", sizeof "cpu");
        return SMELT_OK;
    case kDLCUDA:
    case kDLCUDAManaged:
        if (device.device_id >= 0 && device.device_id < 10) /* at once, as every import does it */
            memcpy(name, (const char[]){'c', 'u', 'd', 'a', ':', (char)('0' + device.device_id), 0}, 7);
        else
            snprintf(name, size, "cuda:%d", (int)device.device_id);
        return SMELT_OK;
    default:
        return fail(SMELT_ERROR_UNSUPPORTED,
                    "DLPack tensor: it is on a device of type %d, number %d; expected the host's memory or a "
                    "CUDA GPU's",
                    (int)device.device_type, (int)device.device_id);
    }
}

static smelt_status shape_of(const DLTensor *tensor, smelt_shape *shape) {
    if (tensor->ndim < 0 || tensor->ndim > SMELT_MAX_DIMENSIONS)
        return fail(tensor->ndim < 0 ? SMELT_ERROR_INVALID_ARGUMENT : SMELT_ERROR_LIMIT,
                    "DLPack tensor: it has %d dimensions, expected 0 to %d", (int)tensor->ndim,
                    SMELT_MAX_DIMENSIONS);
    if (tensor->ndim && !tensor->shape)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "DLPack tensor: it has %d dimensions and no shape",
                    (int)tensor->ndim);
    shape->ndim = tensor->ndim;
    for (int d = 0; d < tensor->ndim; d++) shape->size[d] = tensor->shape[d];
    return SMELT_OK;
}

/* `release(context)` gives the tensor back. */
static smelt_status import(const DLTensor *tensor, smelt_stream *stream, void (*release)(void *),
                           void *context, smelt_array **array) {
    char device[32];
    smelt_shape shape;
    smelt_array *made;
    smelt_dtype dtype = dtype_of(tensor->dtype);
    if (!dtype) return refuse_type(tensor->dtype);
    TRY(device_of(tensor->device, device, sizeof device));
    TRY(shape_of(tensor, &shape));
    char *data = tensor->data ? (char *)tensor->data + tensor->byte_offset : NULL;
    size_t alignment = smelt_dtype_bytes(dtype) / (dtype == SMELT_COMPLEX64 ? 2 : 1);
    if ((uintptr_t)data % alignment)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "DLPack tensor: its elements at %p are not aligned to %zu bytes", (void *)data,
                    alignment);
    TRY(smelt_array_from_device_memory(device, dtype, shape, tensor->strides, data, release, context, &made));
    const struct memory_space *space = made->memory->space;
    smelt_status status = space ? space->order(made->memory, stream, stream != NULL) : SMELT_OK;
    if (status != SMELT_OK) {
        made->memory->release = NULL; /* the caller keeps the tensor */
        smelt_array_release(made);
        return status;
    }
    *array = made;
    return SMELT_OK;
}

static void release_versioned(void *context) {
    smelt_dlpack_delete(context);
}

static void release_unversioned(void *context) {
    smelt_dlpack_delete_unversioned(context);
}

smelt_status smelt_array_from_dlpack(struct DLManagedTensorVersioned *tensor, smelt_stream *stream,
                                     uint64_t *flags, smelt_array **array) {
    if (!tensor || !array)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "array from DLPack: %s is NULL",
                    tensor ? "the address for the new array" : "tensor");
    if (tensor->version.major != VERSION_MAJOR)
        return fail(SMELT_ERROR_FORMAT, "DLPack tensor: its version is %u.%u, expected %d.x",
                    (unsigned)tensor->version.major, (unsigned)tensor->version.minor, VERSION_MAJOR);
    uint64_t given = tensor->flags;
    TRY(import(&tensor->dl_tensor, stream, release_versioned, tensor, array));
    if (flags) *flags = given;
    return SMELT_OK;
}

smelt_status smelt_array_from_dlpack_unversioned(struct DLManagedTensor *tensor, smelt_stream *stream,
                                                 smelt_array **array) {
    if (!tensor || !array)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "array from DLPack: %s is NULL",
                    tensor ? "the address for the new array" : "tensor");
    return import(&tensor->dl_tensor, stream, release_unversioned, tensor, array);
}

/* ---- To a tensor. */

/* The parts of a tensor of ours, in one block. */
struct exported {
    union {
        struct DLManagedTensorVersioned versioned;
        struct DLManagedTensor unversioned;
    } tensor; /* first: the deleter receives its address */
    smelt_array *array;
    int64_t sizes[]; /* the shape, and the strides */
};

static void drop(struct exported *exported) {
    smelt_array_release(exported->array);
    free(exported);
}

static void delete_versioned(struct DLManagedTensorVersioned *self) {
    drop((struct exported *)self);
}

static void delete_unversioned(struct DLManagedTensor *self) {
    drop((struct exported *)self);
}

static smelt_status export(smelt_array *array, smelt_stream *stream, struct exported **result,
                           DLTensor *tensor) {
    if (!array || !result)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "array to DLPack: %s is NULL",
                    array ? "the address for the tensor" : "array");
    int ndim = array->shape.ndim;
    const struct memory_space *space = array->memory->space;
    DLDevice device;
    TRY(smelt_dlpack_device(smelt_array_device(array), &device.device_type, &device.device_id));
    if (space) TRY(space->order(array->memory, stream, false));
    struct exported *made = malloc(sizeof *made + 2 * (size_t)ndim * sizeof *made->sizes);
    if (!made) return fail_out_of_memory(sizeof *made);
    made->array = smelt_array_retain(array);
    memcpy(made->sizes, array->shape.size, (size_t)ndim * sizeof *made->sizes);
    memcpy(made->sizes + ndim, array->strides, (size_t)ndim * sizeof *made->sizes);
    *tensor = (DLTensor){.data = array->size ? array->data : NULL,
                         .device = device,
                         .ndim = ndim,
                         .dtype = types[array->dtype],
                         .shape = made->sizes,
                         .strides = made->sizes + ndim};
    *result = made;
    return SMELT_OK;
}

smelt_status smelt_array_to_dlpack(smelt_array *array, smelt_stream *stream, uint64_t flags,
                                   struct DLManagedTensorVersioned **tensor) {
    struct exported *made = NULL;
    DLTensor content;
    TRY(export(array, stream, tensor ? &made : NULL, &content));
    made->tensor.versioned = (struct DLManagedTensorVersioned){.version = {VERSION_MAJOR, VERSION_MINOR},
                                                               .deleter = delete_versioned,
                                                               .flags = flags,
                                                               .dl_tensor = content};
    *tensor = &made->tensor.versioned;
    return SMELT_OK;
}

smelt_status smelt_array_to_dlpack_unversioned(smelt_array *array, smelt_stream *stream,
                                               struct DLManagedTensor **tensor) {
    struct exported *made = NULL;
    DLTensor content;
    TRY(export(array, stream, tensor ? &made : NULL, &content));
    made->tensor.unversioned = (struct DLManagedTensor){.dl_tensor = content, .deleter = delete_unversioned};
    *tensor = &made->tensor.unversioned;
    return SMELT_OK;
}

/* ---- Small things. */

void smelt_dlpack_delete(struct DLManagedTensorVersioned *tensor) {
    if (tensor && tensor->deleter) tensor->deleter(tensor);
}

void smelt_dlpack_delete_unversioned(struct DLManagedTensor *tensor) {
    if (tensor && tensor->deleter) tensor->deleter(tensor);
}

void smelt_dlpack_tensor_device(const struct DLManagedTensorVersioned *tensor, int32_t *type,
                                int32_t *number) {
    *type = tensor->dl_tensor.device.device_type;
    *number = tensor->dl_tensor.device.device_id;
}

/* "cuda" and "cuda:N". */
static bool is_cuda(const char *device, int32_t *number) {
    char *end;
    *number = 0;
    if (strncmp(device, "cuda", 4) != 0 || !device[4]) return strcmp(device, "cuda") == 0;
    if (device[4] != ':' || !isdigit((unsigned char)device[5])) return false;
    if (!device[6]) {
        *number = device[5] - '0';
        return true;
    }
    long ordinal = strtol(device + 5, &end, 10);
    *number = (int32_t)ordinal;
    return !*end && ordinal <= INT32_MAX;
}

smelt_status smelt_dlpack_device(const char *device, int32_t *type, int32_t *number) {
    int32_t ordinal;
    if (!device || !type || !number)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "DLPack device: %s is NULL",
                    !device ? "device"
                    : !type ? "type"
                            : "number");
    bool cuda = is_cuda(device, &ordinal);
    if (!cuda && strcmp(device, "cpu") != 0 && strcmp(device, "cpu-scalar") != 0)
        return fail(SMELT_ERROR_NO_DEVICE,
                    "DLPack device: '%s' is not a device; expected 'cpu', 'cuda' or 'cuda:N'", device);
    *type = cuda ? kDLCUDA : kDLCPU;
    *number = ordinal;
    return SMELT_OK;
}
