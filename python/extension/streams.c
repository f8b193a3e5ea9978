/* Streams of GPUs from other libraries. */
#include "call.h"

/* Each native stream gets one cached smelt_stream: work on it is then known to be in order, without calls of
 * the driver. Libraries keep few streams and reuse them. */
#define KEPT_STREAMS 64
static struct {
    char device[32];
    void *native;
    smelt_stream *stream;
    bool lent; /* torch's memory */
} kept[KEPT_STREAMS];
static int kept_count, next_out;

/* The index of a native stream in the list; -1 with an exception. */
static int keep(const char *device, void *native) {
    int i = 0;
    while (i < kept_count && !(kept[i].native == native && strcmp(kept[i].device, device) == 0)) i++;
    if (i == kept_count) {
        smelt_stream *made;
        smelt_status status = smelt_stream_from_native(device, native, &made);
        if (status != SMELT_OK) {
            raise_status(status);
            return -1;
        }
        if (kept_count == KEPT_STREAMS) {
            i = next_out++ % KEPT_STREAMS;
            smelt_stream_release(kept[i].stream);
        } else {
            kept_count++;
        }
        PyOS_snprintf(kept[i].device, sizeof kept[i].device, "%s", device);
        kept[i].native = native;
        kept[i].stream = made;
        kept[i].lent = false;
    }
    return i;
}

bool stream_of_native(const char *device, void *native, smelt_stream **stream) {
    int i = keep(device, native);
    if (i >= 0) *stream = smelt_stream_retain(kept[i].stream);
    return i >= 0;
}

/* The attribute as an address, of an object that has it. */
static bool address_in(PyObject *o, const char *attribute, void **address) {
    PyObject *value = PyObject_GetAttrString(o, attribute);
    bool found = value && PyLong_Check(value);
    if (found) *address = PyLong_AsVoidPtr(value);
    Py_XDECREF(value);
    PyErr_Clear();
    return found;
}

/* The protocol by which CUDA libraries of Python name a stream: (version, address). */
static bool address_of_protocol(PyObject *o, void **address) {
    PyObject *pair = PyObject_CallMethod(o, "__cuda_stream__", NULL);
    bool found = pair && PyTuple_Check(pair) && PyTuple_Size(pair) == 2;
    if (found) *address = PyLong_AsVoidPtr(PyTuple_GetItem(pair, 1));
    Py_XDECREF(pair);
    found = found && !PyErr_Occurred();
    PyErr_Clear();
    return found;
}

bool stream_of(PyObject *o, const char *what, const char *device, smelt_stream **stream) {
    void *native = NULL;
    if (PyLong_Check(o) && !PyBool_Check(o)) {
        native = PyLong_AsVoidPtr(o);
        if (PyErr_Occurred()) return false;
    } else if (!address_in(o, "cuda_stream", &native) && !address_in(o, "ptr", &native) &&
               !address_of_protocol(o, &native)) {
        PyObject *name = type_name(o);
        if (name)
            PyErr_Format(PyExc_TypeError,
                         "%s: stream is %R (%U); expected a stream of torch or CuPy, an object with "
                         "__cuda_stream__, or the address of a CUstream",
                         what, o, name);
        Py_XDECREF(name);
        return false;
    }
    return stream_of_native(device, native, stream);
}

/* A function of a module that has been imported, or NULL without an exception. */
static PyObject *function_in(const char *module_name, const char *name) {
    PyObject *key = PyUnicode_FromString(module_name);
    PyObject *module = key ? PyImport_GetModule(key) : NULL;
    PyObject *function = module ? PyObject_GetAttrString(module, name) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(key);
    PyErr_Clear();
    return function;
}

static bool torch_stream(int ordinal, void **native) {
    static PyObject *current;
    if (!current) current = function_in("torch._C", "_cuda_getCurrentRawStream");
    PyObject *index = current ? PyLong_FromLong(ordinal) : NULL;
    PyObject *address = index ? PyObject_CallFunctionObjArgs(current, index, NULL) : NULL;
    bool found = address && PyLong_Check(address);
    if (found) *native = PyLong_AsVoidPtr(address);
    Py_XDECREF(address);
    Py_XDECREF(index);
    PyErr_Clear();
    return found;
}

static bool cupy_stream(void **native) {
    static PyObject *current;
    if (!current) current = function_in("cupy.cuda", "get_current_stream");
    PyObject *stream = current ? PyObject_CallFunctionObjArgs(current, NULL) : NULL;
    bool found = stream && address_in(stream, "ptr", native);
    Py_XDECREF(stream);
    PyErr_Clear();
    return found;
}

/* Memory of torch's allocator, which belongs to the graph while a stream is captured. context: the GPU's
 * ordinal, which need not be torch's current one. */
static void *take_of_torch(void *context, void *native, size_t bytes) {
    void *address = NULL;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *function = function_in("torch.cuda", "caching_allocator_alloc");
    PyObject *made = function ? PyObject_CallFunction(function, "nin", (Py_ssize_t)bytes,
                                                      (int)(intptr_t)context, (Py_ssize_t)native)
                              : NULL;
    if (made && PyLong_Check(made)) address = PyLong_AsVoidPtr(made);
    Py_XDECREF(made);
    Py_XDECREF(function);
    PyErr_Clear();
    PyGILState_Release(state);
    return address;
}

static void give_to_torch(void *context, void *address) {
    (void)context;
    if (!Py_IsInitialized()) return;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *function = function_in("torch.cuda", "caching_allocator_delete");
    PyObject *made = function ? PyObject_CallFunction(function, "n", (Py_ssize_t)address) : NULL;
    Py_XDECREF(made);
    Py_XDECREF(function);
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(state);
}

/* torch's stream, with its memory. */
static bool stream_of_torch(const char *device, int ordinal, void *native, smelt_stream **stream) {
    const smelt_stream_memory memory = {take_of_torch, give_to_torch, (void *)(intptr_t)ordinal};
    int i = keep(device, native);
    if (i < 0) return false;
    smelt_status status = kept[i].lent ? SMELT_OK : smelt_stream_set_memory(kept[i].stream, &memory);
    kept[i].lent = status == SMELT_OK;
    if (status == SMELT_OK)
        *stream = smelt_stream_retain(kept[i].stream);
    else
        raise_status(status);
    return status == SMELT_OK;
}

bool stream_of_kind(enum array_kind kind, const char *device, smelt_stream **stream) {
    void *native;
    *stream = NULL;
    if (strncmp(device, "cuda", 4) != 0) return true;
    int ordinal = device[4] == ':' ? atoi(device + 5) : 0;
    if (kind == KIND_TORCH && torch_stream(ordinal, &native))
        return stream_of_torch(device, ordinal, native, stream);
    if (kind == KIND_CUPY && cupy_stream(&native)) return stream_of_native(device, native, stream);
    return true;
}
