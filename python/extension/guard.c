/* smelt/guard.h, for smelt.launch: attempts, preconditions and fallbacks are Python functions. */
#include "extension.h"

#include <smelt/guard.h>

#define MOST_CODES 64

/* A guarded run of Python functions, called with the GIL. */
struct guarded {
    PyObject *attempt, *precondition, *fallback; /* the last two may be None */
    PyObject *failures;                          /* the classes of exceptions that count as failures */
    PyObject *first, *passing; /* exceptions: of the first failure; one that passes through */
    int count;
};

/* The status that an exception stands for: that of the C API, if it has one. */
static smelt_status status_of(PyObject *exception) {
    smelt_status status = SMELT_ERROR_HEALTH;
    PyObject *name = PyObject_GetAttrString(exception, "status");
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    for (int i = SMELT_ERROR_INVALID_ARGUMENT; text && i <= SMELT_ERROR_HEALTH; i++)
        if (strcmp(smelt_status_name((smelt_status)i), text) == 0) status = (smelt_status)i;
    Py_XDECREF(name);
    PyErr_Clear();
    return status == SMELT_ERROR_INVALID_ARGUMENT || status == SMELT_ERROR_INTERRUPTED ? SMELT_ERROR_HEALTH
                                                                                       : status;
}

/* Takes the current exception: a failure with its message, or INVALID_ARGUMENT, which passes through. */
static smelt_status take_exception(struct guarded *g) {
    PyObject *type, *exception, *trace;
    PyErr_Fetch(&type, &exception, &trace);
    PyErr_NormalizeException(&type, &exception, &trace);
    if (trace) PyException_SetTraceback(exception, trace);
    int fails = PyErr_GivenExceptionMatches(type, g->failures);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    if (!fails) {
        Py_XDECREF(g->passing);
        g->passing = exception;
        return SMELT_ERROR_INVALID_ARGUMENT;
    }
    PyObject *words = PyObject_Str(exception);
    const char *text = words ? PyUnicode_AsUTF8AndSize(words, NULL) : NULL;
    smelt_guard_refuse(text ? text : "a failure");
    smelt_status status = status_of(exception);
    Py_XDECREF(words);
    if (g->first)
        Py_DECREF(exception);
    else
        g->first = exception;
    return status;
}

/* A result's arrays, as many as the guard reads. */
static smelt_status take_arrays(struct guarded *g, PyObject *result, smelt_array **outputs) {
    PyObject *list = result && g->count ? PySequence_Tuple(result) : NULL;
    smelt_status status = result && (list || !g->count) ? SMELT_OK : take_exception(g);
    if (status == SMELT_OK && g->count && PyTuple_Size(list) != g->count) {
        PyErr_Format(PyExc_TypeError, "guard: %zd arrays were returned, expected %d", PyTuple_Size(list),
                     g->count);
        status = take_exception(g);
    }
    for (int i = 0; i < g->count && status == SMELT_OK; i++) {
        smelt_array *array = array_of(PyTuple_GetItem(list, i));
        if (array) {
            outputs[i] = smelt_array_retain(array);
            continue;
        }
        PyErr_Format(PyExc_TypeError, "guard: result %d is not a smelt.array", i);
        status = take_exception(g);
    }
    Py_XDECREF(list);
    Py_XDECREF(result);
    return status;
}

static smelt_status attempt(void *context, const char *device, double timeout, smelt_array **outputs) {
    struct guarded *g = context;
    return take_arrays(g, PyObject_CallFunction(g->attempt, "zd", device, timeout), outputs);
}

static smelt_status precondition(void *context) {
    struct guarded *g = context;
    PyObject *result = PyObject_CallNoArgs(g->precondition);
    if (!result) return take_exception(g);
    Py_DECREF(result);
    return SMELT_OK;
}

static smelt_status fallback(void *context, smelt_array **outputs) {
    struct guarded *g = context;
    return take_arrays(g, PyObject_CallNoArgs(g->fallback), outputs);
}

/* Codes and devices of a guard; the strings live as long as the objects. */
static bool read_lists(PyObject *codes, PyObject *devices, smelt_code own[MOST_CODES + 1],
                       smelt_guard *guard) {
    Py_ssize_t count = PyTuple_Size(codes), retries = PyTuple_Size(devices);
    if (count < 0 || retries < 0) return false;
    if (count > MOST_CODES || retries > SMELT_MAX_RETRIES) {
        PyErr_Format(PyExc_ValueError, "guard: %zd codes and %zd devices; at most %d and %d are allowed",
                     count, retries, MOST_CODES, SMELT_MAX_RETRIES);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (!PyArg_ParseTuple(PyTuple_GetItem(codes, i), "is", &own[i].code, &own[i].meaning)) return false;
    own[count] = (smelt_code){0};
    for (Py_ssize_t i = 0; i < retries; i++)
        if (!(guard->devices[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(devices, i), NULL))) return false;
    return true;
}

static PyObject *raise_outcome(struct guarded *g, smelt_status status) {
    PyObject *exception = g->passing ? g->passing : status == SMELT_ERROR_INVALID_ARGUMENT ? NULL : g->first;
    if (!exception) return raise_status(status);
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    return NULL;
}

static PyObject *guard_run(PyObject *self, PyObject *arguments) {
    struct guarded g = {0};
    PyObject *codes, *devices;
    const char *name, *device;
    int finite, flags;
    double timeout;
    smelt_code own[MOST_CODES + 1];
    smelt_guard_report report;
    smelt_array *outputs[SMELT_MAX_ARGUMENTS] = {0};
    (void)self;
    if (!PyArg_ParseTuple(arguments, "sOOOO!izdiO!pO!:guard_run", &name, &g.attempt, &g.precondition,
                          &g.fallback, &PyTuple_Type, &g.failures, &g.count, &device, &timeout, &flags,
                          &PyTuple_Type, &codes, &finite, &PyTuple_Type, &devices))
        return NULL;
    smelt_guard guard = {.name = name,
                         .timeout = timeout,
                         .flags = flags,
                         .codes = own,
                         .finite = finite,
                         .precondition = g.precondition == Py_None ? NULL : precondition,
                         .fallback = g.fallback == Py_None ? NULL : fallback,
                         .context = &g,
                         .report = &report};
    if (!read_lists(codes, devices, own, &guard)) return NULL;
    smelt_status status = smelt_guard_run(&guard, device, attempt, &g, g.count, outputs);
    PyObject *list = status == SMELT_OK ? PyTuple_New(g.count) : raise_outcome(&g, status);
    for (int i = 0; i < g.count && list; i++) {
        PyObject *array = array_wrap(outputs[i]);
        if (!array || PyTuple_SetItem(list, i, array) < 0) Py_CLEAR(list);
    }
    PyObject *first = g.first ? g.first : Py_NewRef(Py_None);
    PyObject *result = list ? Py_BuildValue("N(isOssO)", list, report.attempts, report.device,
                                            report.fell_back ? Py_True : Py_False,
                                            report.status == SMELT_OK ? "" : smelt_status_name(report.status),
                                            report.message, first)
                            : NULL;
    Py_DECREF(first);
    Py_XDECREF(g.passing);
    return result;
}

static PyObject *flags_header(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyUnicode_FromString(smelt_flags_header());
}

static PyMethodDef functions[] = {
    {"guard_run", guard_run, METH_VARARGS,
     "guard_run(name, attempt, precondition, fallback, failures, count, device, timeout, flags, codes, "
     "finite, devices, "
     "/)\n--\n\nsmelt_guard_run: the results, and the report."},
    {"flags_header", flags_header, METH_NOARGS, "flags_header()\n--\n\nsmelt_flags_header: Metal text."},
    {0}};

int guard_init(PyObject *module) {
    return PyModule_AddFunctions(module, functions);
}
