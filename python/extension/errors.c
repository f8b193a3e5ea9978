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
    CHECK,
    HEALTH,
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
    [CHECK] = {"CheckError", NULL,
               "A checked run found errors in the kernel: `findings` is a list of smelt.Finding."},
    [HEALTH] = {"HealthError", NULL,
                "A kernel reports that its numbers or its input do not allow the result."},
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
    case SMELT_ERROR_CHECK:
        return classes[CHECK];
    case SMELT_ERROR_HEALTH:
        return classes[HEALTH];
    default:
        return classes[ERROR];
    }
}

/* ---- What checked runs find. */

static PyStructSequence_Field finding_fields[] = {
    {"code", "SM001 …"},
    {"kind", "out-of-bounds, race, …: docs/checking.md lists them"},
    {"message", "a sentence"},
    {"file", "of the source; empty if it is not known"},
    {"line", "from 1; 0: not known"},
    {"column", NULL},
    {"argument", "the argument or variable that it is about; empty: none"},
    {"index", "of the element there; None"},
    {"thread", "the thread's position in its threadgroup"},
    {"threadgroup", "the threadgroup's position in the grid"},
    {"other", "(file, line, column) of the other place, of a race the earlier access; None"},
    {"count", "how often it happened there"},
    {NULL, NULL}};
static PyStructSequence_Desc finding_description = {"smelt.Finding", "One finding of a checked run.",
                                                    finding_fields, 12};
static PyTypeObject *finding_type;

static PyObject *position_of(const uint32_t position[3]) {
    return Py_BuildValue("(III)", position[0], position[1], position[2]);
}

static PyObject *finding_of(const smelt_finding *f) {
    PyObject *values[12] = {PyUnicode_FromString(f->code),
                            PyUnicode_FromString(f->kind),
                            PyUnicode_DecodeUTF8(f->message, (Py_ssize_t)strlen(f->message), "replace"),
                            PyUnicode_DecodeUTF8(f->file, (Py_ssize_t)strlen(f->file), "replace"),
                            PyLong_FromLong(f->line),
                            PyLong_FromLong(f->column),
                            PyUnicode_DecodeUTF8(f->argument, (Py_ssize_t)strlen(f->argument), "replace"),
                            f->has_index ? PyLong_FromLongLong(f->index) : Py_NewRef(Py_None),
                            position_of(f->thread),
                            position_of(f->threadgroup),
                            f->other_line
                                ? Py_BuildValue("(sii)", f->other_file, f->other_line, f->other_column)
                                : Py_NewRef(Py_None),
                            PyLong_FromUnsignedLongLong(f->count)};
    PyObject *finding = PyStructSequence_New(finding_type);
    for (int i = 0; i < 12; i++) {
        if (finding && values[i])
            PyStructSequence_SetItem(finding, i, values[i]);
        else
            Py_XDECREF(values[i]);
        if (!values[i]) Py_CLEAR(finding);
    }
    return finding;
}

PyObject *errors_findings(void) {
    PyObject *list = PyList_New(0);
    smelt_finding finding;
    for (int i = 0; list && smelt_findings_get(i, &finding); i++) {
        PyObject *one = finding_of(&finding);
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static bool attach_findings(PyObject *exception) {
    PyObject *list = errors_findings();
    bool done = list && PyObject_SetAttrString(exception, "findings", list) == 0;
    Py_XDECREF(list);
    return done;
}

PyObject *raise_status(smelt_status status) {
    PyObject *class = class_of(status);
    /* The compiler quotes the user's text, which may hold any bytes. */
    const char *message = smelt_error();
    PyObject *text = PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace");
    PyObject *name = PyUnicode_FromString(smelt_status_name(status));
    PyObject *exception = text && name ? PyObject_CallFunctionObjArgs(class, text, NULL) : NULL;
    if (exception && PyObject_SetAttrString(exception, "status", name) == 0 &&
        (status != SMELT_ERROR_CHECK || attach_findings(exception)))
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
    finding_type = PyStructSequence_NewType(&finding_description);
    if (!finding_type || PyModule_AddObjectRef(module, "Finding", (PyObject *)finding_type) < 0) return -1;
    for (int i = 0; i < OWN_COUNT; i++) {
        classes[i] = make_class(i);
        if (!classes[i] || PyModule_AddObjectRef(module, own[i].name, classes[i]) < 0) return -1;
    }
    return 0;
}
