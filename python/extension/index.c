/* a[i, j:k, ..., None] as views. */
#include "extension.h"

struct view {
    smelt_shape shape;
    int64_t strides[SMELT_MAX_DIMENSIONS];
    int64_t offset;
};

static PyObject *make_view(smelt_array *array, const struct view *view) {
    smelt_array *made;
    smelt_status status = smelt_array_view(array, view->shape, view->strides, view->offset, &made);
    return status == SMELT_OK ? array_wrap(made) : raise_status(status);
}

static bool add_dimension(struct view *view, int64_t size, int64_t stride) {
    if (view->shape.ndim == SMELT_MAX_DIMENSIONS) {
        PyErr_Format(PyExc_IndexError, "smelt.array: the result has more than %d dimensions",
                     SMELT_MAX_DIMENSIONS);
        return false;
    }
    view->strides[view->shape.ndim] = stride;
    view->shape.size[view->shape.ndim++] = size;
    return true;
}

static bool index_one(struct view *view, PyObject *key, int dimension, int64_t size, int64_t stride) {
    Py_ssize_t i = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (i == -1 && PyErr_Occurred()) return false;
    if (i < -size || i >= size) {
        PyErr_Format(PyExc_IndexError, "smelt.array: index %zd is out of range for dimension %d of size %lld",
                     i, dimension, (long long)size);
        return false;
    }
    view->offset += (i < 0 ? i + size : i) * stride;
    return true;
}

static bool index_slice(struct view *view, PyObject *key, int64_t size, int64_t stride) {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(key, &start, &stop, &step) < 0) return false;
    Py_ssize_t count = PySlice_AdjustIndices(size, &start, &stop, step);
    if (count) view->offset += start * stride;
    return add_dimension(view, count, stride * step);
}

/* The number of dimensions that a key takes; -1 for an invalid one. */
static int takes(PyObject *key) {
    if (key == Py_None || key == Py_Ellipsis) return 0;
    if (PySlice_Check(key)) return 1;
    return PyIndex_Check(key) && !PyBool_Check(key) ? 1 : -1;
}

PyObject *array_subscript(PyObject *self, PyObject *keys) {
    smelt_array *array = array_of(self);
    smelt_shape shape = smelt_array_shape(array);
    const int64_t *strides = smelt_array_strides(array);
    bool tuple = PyTuple_Check(keys);
    Py_ssize_t count = tuple ? PyTuple_Size(keys) : 1;
    struct view view = {0};
    int taken = 0, at = 0;
    bool ellipsis = false;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *key = tuple ? PyTuple_GetItem(keys, i) : keys;
        int dimensions = takes(key);
        if (dimensions < 0)
            return PyErr_Format(PyExc_TypeError,
                                "smelt.array: %R is not an index; expected int, slice, None or ...", key);
        if (key == Py_Ellipsis && ellipsis)
            return PyErr_Format(PyExc_IndexError, "smelt.array: more than one ... among the indices");
        ellipsis |= key == Py_Ellipsis;
        taken += dimensions;
    }
    if (taken > shape.ndim)
        return PyErr_Format(PyExc_IndexError, "smelt.array: %d indices for an array of %d dimensions", taken,
                            shape.ndim);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *key = tuple ? PyTuple_GetItem(keys, i) : keys;
        bool good = true;
        if (key == Py_None) {
            good = add_dimension(&view, 1, 0);
        } else if (key == Py_Ellipsis) {
            for (int left = shape.ndim - taken; left > 0 && good; left--, at++)
                good = add_dimension(&view, shape.size[at], strides[at]);
        } else if (PySlice_Check(key)) {
            good = index_slice(&view, key, shape.size[at], strides[at]);
            at++;
        } else {
            good = index_one(&view, key, at, shape.size[at], strides[at]);
            at++;
        }
        if (!good) return NULL;
    }
    for (; at < shape.ndim; at++)
        if (!add_dimension(&view, shape.size[at], strides[at])) return NULL;
    return make_view(array, &view);
}

PyObject *array_sequence_item(PyObject *self, Py_ssize_t i) {
    PyObject *key = PyLong_FromSsize_t(i);
    PyObject *view = NULL;
    if (key && !smelt_array_shape(array_of(self)).ndim)
        PyErr_SetString(PyExc_TypeError, "smelt.array: a 0-d array has no elements to go through");
    else if (key)
        view = array_subscript(self, key);
    Py_XDECREF(key);
    return view;
}
