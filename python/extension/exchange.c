/* DLPack's C exchange: libraries that have it (torch since 2.10) pass tensors through a table of functions,
 * in a tenth of the time of their __dlpack__. */
#include "interop.h"

#include <smelt/dlpack.h>

/* The table as DLPack 1.3 lays it out; major versions may change it. */
struct exchange {
    uint32_t major, minor;
    struct exchange *previous; /* an older version of the table, or NULL */
    int (*allocate)(void *prototype, struct DLManagedTensorVersioned **tensor, void *context,
                    void (*error)(void *context, const char *kind, const char *message));
    int (*from_object)(void *object, struct DLManagedTensorVersioned **tensor);
    int (*to_object)(struct DLManagedTensorVersioned *tensor, void **object);
    int (*view_object)(void *object, void *tensor);
    int (*current_stream)(int32_t type, int32_t number, void **stream);
};

#define MOST_EXCHANGES 8
static const struct exchange *exchanges[MOST_EXCHANGES];
static int exchange_count;

static const struct exchange *usable(const struct exchange *exchange) {
    while (exchange && exchange->major != 1) exchange = exchange->previous;
    bool whole = exchange && exchange->from_object && exchange->to_object && exchange->current_stream;
    return whole ? exchange : NULL;
}

int exchange_of_type(PyObject *type) {
    PyObject *capsule = PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
    bool named = capsule && PyCapsule_IsValid(capsule, "dlpack_exchange_api");
    const struct exchange *found =
        named ? usable(PyCapsule_GetPointer(capsule, "dlpack_exchange_api")) : NULL;
    PyErr_Clear();
    Py_XDECREF(capsule); /* the table stays as long as the process */
    int i = 0;
    while (i < exchange_count && exchanges[i] != found) i++;
    if (!found || i == MOST_EXCHANGES) return -1;
    if (i == exchange_count) exchanges[exchange_count++] = found;
    return i;
}

bool exchange_stream(int index, int32_t number, void **native) {
    return exchanges[index]->current_stream(DLPACK_CUDA, number, native) == 0;
}

/* The library's current stream on a tensor's device, with a reference; NULL in the host's memory. */
static bool stream_at(int index, int32_t type, int32_t number, smelt_stream **stream) {
    char device[16];
    void *native;
    *stream = NULL;
    if (type != DLPACK_CUDA && type != DLPACK_CUDA_MANAGED) return true;
    if (number >= 0 && number < 10)
        memcpy(device, (const char[]){'c', 'u', 'd', 'a', ':', (char)('0' + number), 0}, 7);
    else
        PyOS_snprintf(device, sizeof device, "cuda:%d", (int)number);
    return exchange_stream(index, number, &native) && stream_of_native(device, native, stream);
}

bool exchange_import(int index, PyObject *o, const struct request *request, smelt_array **array) {
    struct DLManagedTensorVersioned *tensor;
    smelt_stream *stream;
    uint64_t flags;
    int32_t type, number;
    if (exchanges[index]->from_object(o, &tensor) != 0) {
        dlpack_refused(request->what, o);
        return false;
    }
    smelt_dlpack_tensor_device(tensor, &type, &number);
    smelt_status status = SMELT_OK;
    bool good = stream_at(index, type, number, &stream);
    if (good) {
        status = smelt_array_from_dlpack(tensor, stream, &flags, array);
        good = status == SMELT_OK;
        if (!good) dlpack_failed(status, request->what);
    }
    smelt_stream_release(stream);
    if (!good) {
        smelt_dlpack_delete(tensor);
        return false;
    }
    if (!request->writing || !(flags & SMELT_DLPACK_READ_ONLY)) return true;
    smelt_array_release(*array);
    dlpack_read_only(request->what);
    return false;
}

PyObject *exchange_export(int index, smelt_array *array) {
    struct DLManagedTensorVersioned *tensor = NULL;
    smelt_stream *stream = NULL;
    int32_t type, number;
    void *object = NULL;
    smelt_status status = smelt_dlpack_device(smelt_array_device(array), &type, &number);
    if (status == SMELT_OK && stream_at(index, type, number, &stream))
        status = smelt_array_to_dlpack(array, stream, 0, &tensor);
    smelt_stream_release(stream);
    smelt_array_release(array);
    if (status != SMELT_OK) return raise_status(status);
    if (!tensor || exchanges[index]->to_object(tensor, &object) != 0) return NULL;
    return object;
}
