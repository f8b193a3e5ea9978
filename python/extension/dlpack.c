/* DLPack's capsules: o.__dlpack__() of others, and smelt.array's. */
#include "interop.h"

#include <smelt/dlpack.h>

#define VERSIONED "dltensor_versioned"
#define UNVERSIONED "dltensor"

/* ---- What goes wrong. */

void dlpack_failed(smelt_status status, const char *what) {
    char message[1024];
    PyOS_snprintf(message, sizeof message, "%s", smelt_error());
    PyErr_Format(status == SMELT_ERROR_UNSUPPORTED ? PyExc_TypeError : PyExc_ValueError, "%s: %s", what,
                 message);
}

void dlpack_read_only(const char *what) {
    PyErr_Format(PyExc_ValueError,
                 "%s: the array given is read-only; expected one that can be written in place", what);
}

/* The first line of a library's message, which may continue with its stack. */
static PyObject *first_line(PyObject *exception) {
    PyObject *text = PyObject_Str(exception), *end = PyUnicode_FromString("\n");
    PyObject *parts = text && end ? PyUnicode_Partition(text, end) : NULL;
    PyObject *line = parts ? Py_NewRef(PyTuple_GetItem(parts, 0)) : NULL;
    Py_XDECREF(parts);
    Py_XDECREF(end);
    Py_XDECREF(text);
    return line;
}

void dlpack_refused(const char *what, PyObject *o) {
    PyObject *type, *cause, *traceback, *value;
    PyErr_Fetch(&type, &cause, &traceback);
    PyErr_NormalizeException(&type, &cause, &traceback);
    /* KeyboardInterrupt and MemoryError stay unchanged. */
    bool plain = PyErr_GivenExceptionMatches(type, PyExc_Exception) &&
                 !PyErr_GivenExceptionMatches(type, PyExc_MemoryError);
    PyObject *name = plain ? PyType_GetQualName(Py_TYPE(o)) : NULL, *line = name ? first_line(cause) : NULL;
    if (line) PyErr_Format(PyExc_TypeError, "%s: this %U does not expose its memory: %U", what, name, line);
    Py_XDECREF(line);
    Py_XDECREF(name);
    if (!line) {
        PyErr_Restore(type, cause, traceback);
        return;
    }
    Py_DECREF(type);
    Py_XDECREF(traceback);
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyException_SetCause(value, cause); /* takes it */
    PyErr_Restore(type, value, traceback);
}

/* ---- Capsules of others. */

/* Takes the tensor out of a capsule, which is then consumed; not on failure. */
static bool take(PyObject *capsule, smelt_stream *stream, const struct request *request,
                 smelt_array **array) {
    uint64_t flags = 0;
    smelt_status status;
    bool versioned = PyCapsule_IsValid(capsule, VERSIONED);
    if (!versioned && !PyCapsule_IsValid(capsule, UNVERSIONED)) {
        PyErr_Format(PyExc_TypeError,
                     "%s: its __dlpack__() returned %R, expected a capsule called '%s' or '%s'",
                     request->what, capsule, VERSIONED, UNVERSIONED);
        return false;
    }
    if (versioned)
        status = smelt_array_from_dlpack(PyCapsule_GetPointer(capsule, VERSIONED), stream, &flags, array);
    else
        status =
            smelt_array_from_dlpack_unversioned(PyCapsule_GetPointer(capsule, UNVERSIONED), stream, array);
    if (status != SMELT_OK) {
        dlpack_failed(status, request->what);
        return false;
    }
    PyCapsule_SetName(capsule, versioned ? "used_" VERSIONED : "used_" UNVERSIONED);
    if (!(request->writing && flags & SMELT_DLPACK_READ_ONLY)) return true;
    smelt_array_release(*array);
    dlpack_read_only(request->what);
    return false;
}

/* o.__dlpack__(stream=…, max_version=(1, 1)); libraries without versions are called without it.
 * `stream` may be NULL. */
static PyObject *ask(PyObject *o, PyObject *stream) {
    PyObject *method = PyObject_GetAttr(o, interned.dlpack);
    PyObject *keywords = method ? Py_BuildValue("{s:(ii)}", "max_version", 1, 1) : NULL;
    PyObject *capsule = NULL;
    if (keywords && (!stream || PyDict_SetItemString(keywords, "stream", stream) == 0))
        capsule = PyObject_Call(method, interned.empty_tuple, keywords);
    if (!capsule && keywords && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        if (PyDict_DelItemString(keywords, "max_version") == 0)
            capsule = PyObject_Call(method, interned.empty_tuple, keywords);
    }
    Py_XDECREF(keywords);
    Py_XDECREF(method);
    return capsule;
}

static bool device_of(PyObject *o, int *type, int *number) {
    PyObject *pair = PyObject_CallMethodObjArgs(o, interned.dlpack_device, NULL);
    bool good = pair && PyTuple_Check(pair) && PyTuple_Size(pair) == 2;
    if (good) {
        *type = (int)PyLong_AsLong(PyTuple_GetItem(pair, 0));
        *number = (int)PyLong_AsLong(PyTuple_GetItem(pair, 1));
        good = !PyErr_Occurred();
    } else if (pair) {
        PyErr_SetString(PyExc_TypeError, "__dlpack_device__() did not return a pair of numbers");
    }
    Py_XDECREF(pair);
    return good;
}

/* A library with a known current stream need not wait: uses of the memory follow that stream. Others make our
 * default stream wait for theirs. *number: passed to the producer; -1: nothing to do. */
static PyObject *stream_for(enum array_kind kind, const char *device, smelt_stream **stream) {
    smelt_stream *usual;
    if (!stream_of_kind(kind, device, stream)) return NULL;
    if (*stream) return PyLong_FromLong(-1);
    smelt_status status = smelt_stream_default(device, &usual);
    if (status != SMELT_OK) return raise_status(status);
    PyObject *native = PyLong_FromVoidPtr(smelt_stream_native(usual));
    smelt_stream_release(usual);
    return native;
}

bool dlpack_import(PyObject *o, enum array_kind kind, const struct request *request, smelt_array **array) {
    int type, number;
    char device[24];
    smelt_stream *stream = NULL;
    PyObject *told = NULL;
    if (!device_of(o, &type, &number)) {
        dlpack_refused(request->what, o);
        return false;
    }
    if (type == DLPACK_CUDA || type == DLPACK_CUDA_MANAGED) {
        PyOS_snprintf(device, sizeof device, "cuda:%d", number);
        told = stream_for(kind, device, &stream);
        if (!told) return false;
    }
    PyObject *capsule = ask(o, told);
    Py_XDECREF(told);
    bool good = capsule && take(capsule, stream, request, array);
    if (!capsule) dlpack_refused(request->what, o);
    Py_XDECREF(capsule);
    smelt_stream_release(stream);
    return good;
}

/* ---- Capsules of ours. */

static void drop_versioned(PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, VERSIONED)) smelt_dlpack_delete(PyCapsule_GetPointer(capsule, VERSIONED));
}

static void drop_unversioned(PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, UNVERSIONED))
        smelt_dlpack_delete_unversioned(PyCapsule_GetPointer(capsule, UNVERSIONED));
}

static PyObject *make_capsule(smelt_array *array, smelt_stream *stream, bool versioned, bool copied) {
    struct DLManagedTensorVersioned *tensor;
    struct DLManagedTensor *unversioned;
    PyObject *capsule;
    smelt_status status =
        versioned ? smelt_array_to_dlpack(array, stream, copied ? SMELT_DLPACK_COPIED : 0, &tensor)
                  : smelt_array_to_dlpack_unversioned(array, stream, &unversioned);
    if (status != SMELT_OK) return raise_status(status);
    if (versioned) {
        capsule = PyCapsule_New(tensor, VERSIONED, drop_versioned);
        if (!capsule) smelt_dlpack_delete(tensor);
    } else {
        capsule = PyCapsule_New(unversioned, UNVERSIONED, drop_unversioned);
        if (!capsule) smelt_dlpack_delete_unversioned(unversioned);
    }
    return capsule;
}

/* The consumer's stream, in the standard's numbers for CUDA: None and 1 the legacy default stream, 2 the
 * thread's own, -1 no ordering, others a handle. */
static bool consumer_stream(PyObject *o, const char *device, smelt_stream **stream) {
    *stream = NULL;
    bool host = strcmp(device, "cpu") == 0;
    if (o == Py_None && host) return true;
    long long number = o == Py_None ? 1 : PyLong_AsLongLong(o);
    if (number == -1 && PyErr_Occurred()) return false;
    if (number == -1) return true;
    if (host || number <= 0) {
        PyErr_Format(PyExc_ValueError, "__dlpack__: stream is %lld, expected %s", number,
                     host ? "None for an array in the host's memory" : "None, -1, 1, 2 or a stream's handle");
        return false;
    }
    /* The legacy default stream has two handles, 1 and NULL: libraries use the latter. */
    return stream_of_native(device, number == 1 ? NULL : (void *)(intptr_t)number, stream);
}

/* The array on the consumer's device. *copied: it is not our own memory. */
static bool place(smelt_array *array, PyObject *wanted, PyObject *copy, smelt_array **placed, bool *copied) {
    int type, number, must = copy == Py_None ? 0 : PyObject_IsTrue(copy);
    int32_t own_type, own_number;
    smelt_status status = smelt_dlpack_device(smelt_array_device(array), &own_type, &own_number);
    if (must < 0) return false;
    if (status != SMELT_OK) return raise_status(status);
    if (wanted == Py_None) {
        type = own_type;
        number = own_number;
    } else if (!PyArg_ParseTuple(wanted, "ii", &type, &number)) {
        return false;
    }
    *copied = type != own_type || number != own_number;
    if (*copied && (type != DLPACK_CPU || (copy != Py_None && !must))) {
        PyErr_Format(PyExc_BufferError,
                     "__dlpack__: the array is on device (%d, %d) and cannot be exported to (%d, %d)%s",
                     (int)own_type, (int)own_number, type, number,
                     type == DLPACK_CPU ? " without a copy" : "");
        return false;
    }
    if (*copied) return array_on_host(array, placed);
    *copied = must;
    *placed = array;
    if (!must) {
        smelt_array_retain(array);
        return true;
    }
    Py_BEGIN_ALLOW_THREADS status = smelt_array_convert(array, smelt_array_dtype(array), placed);
    Py_END_ALLOW_THREADS if (status != SMELT_OK) raise_status(status);
    return status == SMELT_OK;
}

PyObject *array_to_capsule(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    smelt_array *array = NULL;
    smelt_stream *consumer;
    bool copied = false;
    int major = 0, minor = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$OOOO:__dlpack__", names, &stream, &version,
                                     &device, &copy))
        return NULL;
    if (version != Py_None && !PyArg_ParseTuple(version, "ii", &major, &minor)) return NULL;
    if (!consumer_stream(stream, smelt_array_device(array_of(self)), &consumer)) return NULL;
    PyObject *capsule = NULL;
    if (place(array_of(self), device, copy, &array, &copied)) {
        bool host = strcmp(smelt_array_device(array), "cpu") == 0;
        capsule = make_capsule(array, host ? NULL : consumer, major >= 1, copied);
        smelt_array_release(array);
    }
    smelt_stream_release(consumer);
    return capsule;
}

PyObject *array_dlpack_device(PyObject *self, PyObject *unused) {
    int32_t type, number;
    (void)unused;
    smelt_status status = smelt_dlpack_device(smelt_array_device(array_of(self)), &type, &number);
    return status == SMELT_OK ? Py_BuildValue("(ii)", (int)type, (int)number) : raise_status(status);
}
