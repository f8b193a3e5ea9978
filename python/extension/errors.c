/* Statuses as Python exceptions. */
#include "extension.h"

/* smelt's own classes, created for the module under these names. A class that is also one of Python's can be
 * caught as either. */
enum {
    ERROR,
    COMPILE,
    BARRIER,
    FAULT,
    TIMEOUT,
    UNSUPPORTED,
    NO_COMPILER,
    NO_DEVICE,
    DEVICE_LOST,
    INTERRUPTED,
    OWN_COUNT
};
static const struct {
    const char *name;
    PyObject **python; /* NULL: smelt.Error alone */
    const char *doc;
} own[OWN_COUNT] = {
    [ERROR] =
        {"Error", &PyExc_RuntimeError,
         "Every failure other than bad arguments. `status` is the name of the C API's status, as it is of "
         "every exception that smelt raises for a status."},
    [COMPILE] = {"CompileError", NULL,
                 "The kernel's source does not compile; the message is the compiler's."},
    [BARRIER] = {"BarrierError", NULL, "The threads of a threadgroup did not meet at one barrier."},
    [FAULT] = {"FaultError", NULL, "The kernel accessed invalid memory."},
    [TIMEOUT] = {"TimeoutError", &PyExc_TimeoutError, "The kernel or the compiler ran longer than allowed."},
    [UNSUPPORTED] = {"UnsupportedError", &PyExc_NotImplementedError,
                     "The construct is recognised but not supported."},
    [NO_COMPILER] = {"NoCompilerError", NULL, "clang 19 or the compiler library is missing on this machine."},
    [NO_DEVICE] = {"NoDeviceError", NULL, "The device does not exist on this machine."},
    [DEVICE_LOST] = {"DeviceLostError", NULL, "The device failed: a reset or a new process is needed."},
    [INTERRUPTED] = {"InterruptedError", &PyExc_InterruptedError, "The caller interrupted the run."},
};
static PyObject *classes[OWN_COUNT];

static PyObject *class_of(smelt_status status) {
    switch (status) {
    case SMELT_ERROR_INVALID_ARGUMENT:
    case SMELT_ERROR_LIMIT:
    case SMELT_ERROR_FORMAT:
        return PyExc_ValueError;
    case SMELT_ERROR_IO:
        return PyExc_OSError;
    case SMELT_ERROR_OUT_OF_MEMORY:
        return PyExc_MemoryError;
    case SMELT_ERROR_COMPILE:
        return classes[COMPILE];
    case SMELT_ERROR_BARRIER:
        return classes[BARRIER];
    case SMELT_ERROR_FAULT:
        return classes[FAULT];
    case SMELT_ERROR_TIMEOUT:
        return classes[TIMEOUT];
    case SMELT_ERROR_UNSUPPORTED:
        return classes[UNSUPPORTED];
    case SMELT_ERROR_NO_COMPILER:
        return classes[NO_COMPILER];
    case SMELT_ERROR_NO_DEVICE:
        return classes[NO_DEVICE];
    case SMELT_ERROR_DEVICE_LOST:
        return classes[DEVICE_LOST];
    case SMELT_ERROR_INTERRUPTED:
        return classes[INTERRUPTED];
    default:
        return classes[ERROR];
    }
}

PyObject *raise_status(smelt_status status) {
    PyObject *class = class_of(status);
    /* The compiler quotes the user's text, which may hold any bytes. */
    const char *message = smelt_error();
    PyObject *text = PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace");
    PyObject *name = PyUnicode_FromString(smelt_status_name(status));
    PyObject *exception = text && name ? PyObject_CallFunctionObjArgs(class, text, NULL) : NULL;
    if (exception && PyObject_SetAttrString(exception, "status", name) == 0)
        PyErr_SetObject(class, exception);
    Py_XDECREF(exception);
    Py_XDECREF(name);
    Py_XDECREF(text);
    return NULL;
}

PyObject *errors_locate(PyObject *origin) {
    PyObject *type, *value, *traceback;
    if (!origin || origin == Py_None || !PyErr_ExceptionMatches(classes[ERROR])) return NULL;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *module = PyImport_ImportModule("smelt._origin");
    PyObject *done = module ? PyObject_CallMethod(module, "locate", "OO", origin, value) : NULL;
    PyErr_Clear();
    Py_XDECREF(module);
    Py_XDECREF(done);
    PyErr_Restore(type, value, traceback);
    return NULL;
}

PyObject *errors_locate_of(PyObject *owner) {
    PyObject *type, *value, *traceback;
    if (!PyErr_ExceptionMatches(classes[ERROR])) return NULL;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *origin = PyObject_GetAttrString(owner, "_origin");
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    errors_locate(origin);
    Py_XDECREF(origin);
    return NULL;
}

static PyObject *make_class(int which) {
    char qualified[64];
    PyObject *bases = NULL, *class = NULL;
    PyObject *python = own[which].python ? *own[which].python : NULL;
    PyOS_snprintf(qualified, sizeof qualified, "smelt.%s", own[which].name);
    if (which == ERROR)
        bases = PyTuple_Pack(1, python);
    else
        bases = python ? PyTuple_Pack(2, classes[ERROR], python) : PyTuple_Pack(1, classes[ERROR]);
    if (bases) class = PyErr_NewExceptionWithDoc(qualified, own[which].doc, bases, NULL);
    Py_XDECREF(bases);
    return class;
}

int errors_init(PyObject *module) {
    if (classes[ERROR]) {
        PyErr_SetString(PyExc_ImportError,
                        "smelt is already loaded; only one interpreter per process can load it");
        return -1;
    }
    for (int i = 0; i < OWN_COUNT; i++) {
        classes[i] = make_class(i);
        if (!classes[i] || PyModule_AddObjectRef(module, own[i].name, classes[i]) < 0) return -1;
    }
    return 0;
}
