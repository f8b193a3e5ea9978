/* smelt.array as a number where it has one element, and its properties. */
#include "extension.h"

/* ---- Numbers. */

static Py_ssize_t length(PyObject *self) {
    smelt_shape shape = smelt_array_shape(array_of(self));
    if (shape.ndim) return shape.size[0];
    PyErr_SetString(PyExc_TypeError, "smelt.array: a 0-d array has no length");
    return -1;
}

static PyObject *item(PyObject *self) {
    return array_item(self, interned.empty_tuple);
}

static int is_true(PyObject *self) {
    PyObject *value = item(self);
    int result = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    return result;
}

static PyObject *as_float(PyObject *self) {
    PyObject *value = item(self), *result = value ? PyNumber_Float(value) : NULL;
    Py_XDECREF(value);
    return result;
}

static PyObject *as_int(PyObject *self) {
    PyObject *value = item(self), *result = value ? PyNumber_Long(value) : NULL;
    Py_XDECREF(value);
    return result;
}

static PyObject *as_index(PyObject *self) {
    smelt_dtype dtype = smelt_array_dtype(array_of(self));
    if (dtype >= SMELT_UINT8 && dtype <= SMELT_INT64) return item(self);
    return PyErr_Format(PyExc_TypeError, "smelt.array: %s is not an index; expected an array of one integer",
                        smelt_dtype_name(dtype));
}

static PyObject *as_complex(PyObject *self, PyObject *unused) {
    (void)unused;
    PyObject *value = item(self);
    PyObject *result = value ? PyObject_CallFunctionObjArgs((PyObject *)&PyComplex_Type, value, NULL) : NULL;
    Py_XDECREF(value);
    return result;
}

/* One element formats as its number, the rest as text. */
static PyObject *format(PyObject *self, PyObject *specification) {
    PyObject *value = smelt_array_shape(array_of(self)).ndim ? PyObject_Str(self) : item(self);
    PyObject *result = value ? PyObject_Format(value, specification) : NULL;
    Py_XDECREF(value);
    return result;
}

/* ---- Properties. */

PyObject *array_shape_tuple(const smelt_array *array) {
    smelt_shape shape = smelt_array_shape(array);
    PyObject *tuple = PyTuple_New(shape.ndim);
    for (int d = 0; d < shape.ndim && tuple; d++) {
        PyObject *size = PyLong_FromLongLong(shape.size[d]);
        if (!size || PyTuple_SetItem(tuple, d, size) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *get_shape(PyObject *self, void *unused) {
    (void)unused;
    return array_shape_tuple(array_of(self));
}

static PyObject *get_strides(PyObject *self, void *unused) {
    (void)unused;
    int ndim = smelt_array_shape(array_of(self)).ndim;
    int64_t bytes = (int64_t)smelt_dtype_bytes(smelt_array_dtype(array_of(self)));
    PyObject *tuple = PyTuple_New(ndim);
    for (int d = 0; d < ndim && tuple; d++) {
        PyObject *stride = PyLong_FromLongLong(smelt_array_strides(array_of(self))[d] * bytes);
        if (!stride || PyTuple_SetItem(tuple, d, stride) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *get_dtype(PyObject *self, void *unused) {
    (void)unused;
    return Py_NewRef(dtype_object(smelt_array_dtype(array_of(self))));
}

static PyObject *get_ndim(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(smelt_array_shape(array_of(self)).ndim);
}

static PyObject *get_size(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLongLong(smelt_array_size(array_of(self)));
}

static PyObject *get_itemsize(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromSize_t(smelt_dtype_bytes(smelt_array_dtype(array_of(self))));
}

static PyObject *get_nbytes(PyObject *self, void *unused) {
    (void)unused;
    size_t bytes = smelt_dtype_bytes(smelt_array_dtype(array_of(self)));
    return PyLong_FromLongLong(smelt_array_size(array_of(self)) * (int64_t)bytes);
}

static PyObject *get_device(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(smelt_array_device(array_of(self)));
}

/* NumPy leaves operators with its arrays to those of higher priority. */
static PyObject *get_priority(PyObject *self, void *unused) {
    (void)self;
    (void)unused;
    return PyFloat_FromDouble(1000);
}

static PyObject *get_transposed(PyObject *self, void *unused) {
    (void)unused;
    return PyObject_CallMethod(self, "transpose", NULL);
}

/* Programs for graphs of other libraries tell values from tensors. */
static PyObject *get_itself(PyObject *self, void *unused) {
    (void)unused;
    return Py_NewRef(self);
}

static PyGetSetDef properties[] = {
    {"T", get_transposed, NULL, "The array with its dimensions reversed.", NULL},
    {"__array_priority__", get_priority, NULL, NULL, NULL},
    {"shape", get_shape, NULL, "The sizes: a tuple of int.", NULL},
    {"strides", get_strides, NULL, "Bytes from one element to the next along each dimension, as NumPy's.",
     NULL},
    {"dtype", get_dtype, NULL, "The element type: smelt.float32 …", NULL},
    {"ndim", get_ndim, NULL, "The number of dimensions.", NULL},
    {"size", get_size, NULL, "The number of elements.", NULL},
    {"itemsize", get_itemsize, NULL, "Bytes of one element.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements.", NULL},
    {"tensor", get_itself, NULL, "The array itself: for values of graphs.", NULL},
    {"device", get_device, NULL, "Its device: 'cpu', 'cuda:0'.", NULL},
    {0}};

/* ---- Methods and slots. */

PyMethodDef array_number_methods[] = {
    {"__complex__", as_complex, METH_NOARGS, NULL}, {"__format__", format, METH_O, NULL}, {0}};

PyType_Slot array_number_slots[] = {
    {Py_tp_getset, properties}, {Py_mp_length, length}, {Py_sq_length, length},  {Py_nb_bool, is_true},
    {Py_nb_float, as_float},    {Py_nb_int, as_int},    {Py_nb_index, as_index}, {0}};
