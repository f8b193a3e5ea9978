/* Python's numbers and sequences of them, as sizes. */
#include "call.h"

PyObject *type_name(PyObject *o) {
    return PyObject_GetAttrString((PyObject *)Py_TYPE(o), "__name__");
}

bool is_list(PyObject *o) {
    return PyList_Check(o) || PyTuple_Check(o);
}

Py_ssize_t length_of(PyObject *sequence) {
    return PyTuple_Check(sequence) ? PyTuple_Size(sequence) : PyList_Size(sequence);
}

PyObject *item_of(PyObject *sequence, Py_ssize_t i) {
    return PyTuple_Check(sequence) ? PyTuple_GetItem(sequence, i) : PyList_GetItem(sequence, i);
}

static bool as_int64(PyObject *number, int64_t *value) {
    int overflow;
    long long result = PyLong_AsLongLongAndOverflow(number, &overflow);
    *value = overflow > 0 ? INT64_MAX : overflow < 0 ? INT64_MIN : result;
    return true;
}

/* NumPy's product of an empty shape is 1.0, so its whole-number floats are sizes. Python's are not. */
static bool whole_float(PyObject *o, int64_t *value) {
    double real = PyFloat_AsDouble(o);
    if (!(real >= -9e15 && real <= 9e15) || real != (double)(int64_t)real) return false;
    *value = (int64_t)real;
    return true;
}

bool integer_of(PyObject *o, int64_t *value) {
    if (PyLong_Check(o)) return as_int64(o, value);
    if (PyFloat_Check(o)) return !Py_IS_TYPE(o, &PyFloat_Type) && whole_float(o, value);
    if (PyUnicode_Check(o) || PyBytes_Check(o)) return false;
    PyObject *number = PyIndex_Check(o) ? PyNumber_Index(o) : NULL;
    if (!number) {
        /* An array of one element that has no __index__. */
        PyErr_Clear();
        number = PyObject_CallMethod(o, "item", NULL);
    }
    bool found = number && PyLong_Check(number) && !PyBool_Check(number) && as_int64(number, value);
    Py_XDECREF(number);
    PyErr_Clear();
    return found;
}

static bool fail_type(PyObject *o, const char *what, const char *expected) {
    PyObject *name = type_name(o);
    if (name) PyErr_Format(PyExc_TypeError, "%s is %R (%U); expected %s", what, o, name, expected);
    Py_XDECREF(name);
    return false;
}

/* A list or tuple with the items; a new reference. */
static PyObject *items_of(PyObject *o, const char *what, const char *expected) {
    if (is_list(o)) {
        Py_INCREF(o);
        return o;
    }
    PyObject *items =
        PyUnicode_Check(o) || PyBytes_Check(o) || !PySequence_Check(o) ? NULL : PySequence_List(o);
    if (items) return items;
    PyErr_Clear();
    fail_type(o, what, expected);
    return NULL;
}

static bool fail_size(PyObject *o, const char *kernel, const char *name, int i, PyObject *item,
                      int64_t size) {
    PyObject *type = type_name(item);
    if (type && PyLong_Check(item))
        PyErr_Format(PyExc_ValueError, "kernel '%s': %s is %R: its %c is %R, expected at %s", kernel, name, o,
                     "xyz"[i], item, size < 1 ? "least 1" : "most 4294967295");
    else if (type)
        PyErr_Format(PyExc_TypeError, "kernel '%s': %s is %R: its %c is %R (%U); expected an integer", kernel,
                     name, o, "xyz"[i], item, type);
    Py_XDECREF(type);
    return false;
}

/* The common case: a list or tuple of ints that are sizes. False, without an exception, for all others. */
static bool triple_of_ints(PyObject *o, int64_t sizes[3]) {
    Py_ssize_t count = is_list(o) ? length_of(o) : 0;
    if (count < 1 || count > 3) return false;
    sizes[1] = sizes[2] = 1;
    for (int i = 0; i < count; i++) {
        PyObject *item = item_of(o, i);
        if (!PyLong_Check(item) || !as_int64(item, &sizes[i])) return false;
        if (sizes[i] < 1 || sizes[i] == INT64_MAX) return false;
    }
    return true;
}

bool triple_of(PyObject *o, const char *kernel, const char *name, int64_t sizes[3]) {
    char what[300];
    if (triple_of_ints(o, sizes)) return true;
    PyOS_snprintf(what, sizeof what, "kernel '%.200s': %s", kernel, name);
    PyObject *items = items_of(o, what, "up to three numbers of threads, such as (256, 1, 1)");
    if (!items) return false;
    Py_ssize_t count = length_of(items);
    bool good = count >= 1 && count <= 3;
    if (!good)
        PyErr_Format(PyExc_ValueError, "kernel '%s': %s is %R, which has %zd sizes; expected 1 to 3", kernel,
                     name, o, count);
    for (int i = 0; i < 3 && good; i++) {
        sizes[i] = 1;
        if (i >= count) continue;
        PyObject *item = item_of(items, i);
        good = integer_of(item, &sizes[i]);
        if (!good) {
            fail_size(o, kernel, name, i, item, 0);
        } else if (sizes[i] < 1 || sizes[i] == INT64_MAX) { /* the latter is any larger number */
            PyObject *number = PyNumber_Index(item);
            good = number && fail_size(o, kernel, name, i, number, sizes[i]);
            Py_XDECREF(number);
        }
    }
    Py_DECREF(items);
    return good;
}

bool shape_of(PyObject *o, const char *what, smelt_shape *shape) {
    PyObject *items = items_of(o, what, "a shape, such as (4, 16)");
    if (!items) return false;
    Py_ssize_t count = length_of(items);
    bool good = count <= SMELT_MAX_DIMENSIONS;
    if (!good)
        PyErr_Format(PyExc_ValueError, "%s is %R, which has %zd dimensions; at most %d are allowed", what, o,
                     count, SMELT_MAX_DIMENSIONS);
    shape->ndim = (int)count;
    for (int i = 0; i < count && good; i++) {
        good = integer_of(item_of(items, i), &shape->size[i]);
        if (!good)
            fail_type(o, what, "a shape of integers, such as (4, 16)");
        else if (shape->size[i] < 0) {
            good = false;
            PyErr_Format(PyExc_ValueError, "%s is %R: size %lld of dimension %d is negative", what, o,
                         (long long)shape->size[i], i);
        }
    }
    Py_DECREF(items);
    return good;
}
