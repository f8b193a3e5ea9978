/* Arrays on devices that are called by name. */
#include "array/array.h"
#include "device/device.h"

smelt_status smelt_array_create_on(const char *name, smelt_dtype dtype, smelt_shape shape,
                                   smelt_array **array) {
    const struct device *device;
    if (!array) return fail(SMELT_ERROR_INVALID_ARGUMENT, "array: the address for the new array is NULL");
    TRY(device_find(name, &device));
    if (!device->space) return smelt_array_create(dtype, shape, array);
    return device->space->create(device->space, NULL, dtype, &shape, array);
}

smelt_status smelt_array_from_device_memory(const char *name, smelt_dtype dtype, smelt_shape shape,
                                            const int64_t *strides, void *data,
                                            void (*release)(void *context), void *context,
                                            smelt_array **array) {
    const struct device *device;
    smelt_array *made;
    if (!array)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "array from device memory: the address for the new array is NULL");
    TRY(device_find(name, &device));
    TRY(array_borrow("array from device memory", dtype, &shape, strides, data, release, context, &made));
    smelt_status status = device->space ? device->space->adopt(device->space, made->memory) : SMELT_OK;
    if (status != SMELT_OK) {
        /* The caller keeps its memory. */
        made->memory->release = NULL;
        smelt_array_release(made);
        return status;
    }
    *array = made;
    return SMELT_OK;
}

smelt_status smelt_array_to(smelt_array *array, const char *name, smelt_stream *stream,
                            smelt_array **result) {
    const struct device *device;
    if (!array || !result)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "array to: %s is NULL", array ? "result" : "array");
    TRY(device_find(name, &device));
    if (device->space != array->memory->space) return array_move(array, device->space, stream, result);
    *result = smelt_array_retain(array);
    return SMELT_OK;
}
