/* Searches of smelt.autotune: smelt_tune over functions of Python. */
#include "extension.h"

#include <smelt/tune.h>

#include <stdio.h>

struct search {
    PyObject *run, *check, *progress; /* check and progress may be None */
    bool stopped;                     /* an exception is pending that is not a candidate's */
    char error[1000];                 /* of the last run */
};

/* Keeps the exception's type and first line as the candidate's error. Ctrl-C, exit and their like end the
 * search. */
static smelt_status take_exception(struct search *search) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) {
        search->stopped = true;
        return SMELT_ERROR_INTERRUPTED;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *name = PyObject_GetAttrString(type, "__name__"), *text = value ? PyObject_Str(value) : NULL;
    const char *n = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL,
               *t = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    snprintf(search->error, sizeof search->error, "%s: %.*s", n ? n : "Exception",
             t ? (int)strcspn(t, "\n") : 0, t ? t : "");
    PyErr_Clear();
    Py_XDECREF(name);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return SMELT_ERROR_INTERNAL;
}

static smelt_status run(int index, void *context) {
    struct search *search = context;
    if (search->stopped) return SMELT_ERROR_INTERRUPTED;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *result = PyObject_CallFunction(search->run, "i", index);
    smelt_status status = result ? SMELT_OK : take_exception(search);
    Py_XDECREF(result);
    PyGILState_Release(state);
    return status;
}

static bool check(int index, void *context) {
    struct search *search = context;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *result = PyObject_CallFunction(search->check, "i", index);
    int right = result ? PyObject_IsTrue(result) : -1;
    if (right < 0) (void)take_exception(search);
    Py_XDECREF(result);
    PyGILState_Release(state);
    return right == 1;
}

static const char *error(void *context) {
    return ((struct search *)context)->error;
}

static void progress(const smelt_tune_progress *now, void *context) {
    struct search *search = context;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *result =
        search->stopped ? NULL
                        : PyObject_CallFunction(search->progress, "siizd", now->candidate, now->tried,
                                                now->count, now->note, now->best ? now->best_seconds : 0.0);
    if (!result && !search->stopped) search->stopped = true;
    Py_XDECREF(result);
    PyGILState_Release(state);
}

/* The candidates' words; NULL with an exception. They live as long as the list. */
static const char **words_of(PyObject *list, int *count) {
    Py_ssize_t size = PyList_Size(list);
    const char **words = size < 0 ? NULL : calloc((size_t)size + 1, sizeof *words);
    if (size >= 0 && !words) PyErr_NoMemory();
    for (Py_ssize_t i = 0; words && i < size; i++) {
        words[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), NULL);
        if (words[i]) continue;
        free(words);
        return NULL;
    }
    *count = (int)size;
    return words;
}

static PyObject *tune(PyObject *self, PyObject *arguments) {
    PyObject *candidates;
    struct search search = {.stopped = false};
    smelt_tune_desc desc = {.run = run, .error = error, .context = &search};
    smelt_tune_result result;
    smelt_status status;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "sssO!OOOd:tune", &desc.name, &desc.key, &desc.device, &PyList_Type,
                          &candidates, &search.run, &search.check, &search.progress, &desc.budget))
        return NULL;
    desc.candidates = words_of(candidates, &desc.count);
    if (!desc.candidates) return NULL;
    if (search.check != Py_None) desc.check = check;
    if (search.progress != Py_None) desc.progress = progress;
    Py_BEGIN_ALLOW_THREADS status = smelt_tune(&desc, &result);
    Py_END_ALLOW_THREADS free((void *)desc.candidates);
    if (PyErr_Occurred()) return NULL;
    if (status != SMELT_OK) return raise_status(status);
    return Py_BuildValue("(idO)", result.index, result.seconds, result.stored ? Py_True : Py_False);
}

static PyMethodDef functions[] = {
    {"tune", tune, METH_VARARGS,
     "tune(name, key, device, candidates, run, check, progress, budget, /)\n--\n\n"
     "smelt_tune: (index, seconds, stored). run(index) does the job once, check(index) tells whether its "
     "result is right, progress(candidate, tried, count, note, best_seconds) is called for each candidate; "
     "the last two may be None."},
    {0}};

int tune_init(PyObject *module) {
    return PyModule_AddFunctions(module, functions);
}
