/* Lists of arrays, and exceptions of Python functions that smelt calls. */
#include "operations.h"

static _Thread_local PyObject *kept_type, *kept_value, *kept_traceback;

smelt_status exception_keep(void) {
    Py_XDECREF(kept_type);
    Py_XDECREF(kept_value);
    Py_XDECREF(kept_traceback);
    PyErr_Fetch(&kept_type, &kept_value, &kept_traceback);
    return SMELT_ERROR_INVALID_ARGUMENT;
}

PyObject *exception_raise_kept(smelt_status status) {
    if (!kept_type) return raise_status(status);
    PyErr_Restore(kept_type, kept_value, kept_traceback);
    kept_type = kept_value = kept_traceback = NULL;
    return NULL;
}

/* ---- Lists of arrays. */

#define MOST_ARRAYS 4096

bool arrays_take(PyObject *list, const char *what, bool optional, struct arrays *arrays) {
    Py_ssize_t count = PyList_Check(list) ? PyList_Size(list) : -1;
    *arrays = (struct arrays){0};
    if (count < 0 || count > MOST_ARRAYS) {
        PyErr_Format(PyExc_TypeError, "%s: expected a list of at most %d smelt.array", what, MOST_ARRAYS);
        return false;
    }
    arrays->items = calloc((size_t)count + 1, sizeof *arrays->items);
    if (!arrays->items) {
        PyErr_NoMemory();
        return false;
    }
    arrays->count = (int)count;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *o = PyList_GetItem(list, i);
        arrays->items[i] = array_of(o);
        if (arrays->items[i] || (optional && o == Py_None)) continue;
        PyErr_Format(PyExc_TypeError, "%s: number %zd is a %R; expected a smelt.array", what, i,
                     (PyObject *)Py_TYPE(o));
        free(arrays->items);
        arrays->items = NULL;
        return false;
    }
    return true;
}

PyObject *arrays_list(smelt_array *const *items, int count) {
    PyObject *list = PyList_New(count);
    for (int i = 0; i < count && list; i++) {
        PyObject *o = items[i] ? array_wrap(smelt_array_retain(items[i])) : Py_NewRef(Py_None);
        if (!o || PyList_SetItem(list, i, o) < 0) Py_CLEAR(list);
    }
    return list;
}

PyObject *arrays_list_taking(smelt_array **items, int count) {
    PyObject *list = PyList_New(count);
    for (int i = 0; i < count; i++) {
        PyObject *o = list ? array_wrap(items[i]) : NULL;
        if (!list)
            smelt_array_release(items[i]);
        else if (!o || PyList_SetItem(list, i, o) < 0)
            Py_CLEAR(list);
    }
    return list;
}
