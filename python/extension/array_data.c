/* The elements of smelt.array for others: pickles, the buffer protocol, NumPy. */
#include "extension.h"

/* ---- Pickles: dtype, shape and the bytes in row-major order, in the host's memory. */

static PyObject *reduce(PyObject *self, PyObject *unused) {
    smelt_array *host, *dense;
    (void)unused;
    if (!array_on_host(array_of(self), &host)) return NULL;
    smelt_status status = smelt_array_contiguous(host, &dense);
    smelt_array_release(host);
    if (status != SMELT_OK) return raise_status(status);
    size_t bytes = (size_t)smelt_array_size(dense) * smelt_dtype_bytes(smelt_array_dtype(dense));
    PyObject *made = PyObject_GetAttrString((PyObject *)Py_TYPE(self), "_from_bytes");
    if (made)
        made =
            Py_BuildValue("N(sNy#)", made, smelt_dtype_name(smelt_array_dtype(dense)),
                          array_shape_tuple(dense), bytes ? smelt_array_data(dense) : "", (Py_ssize_t)bytes);
    smelt_array_release(dense);
    return made;
}

static PyObject *from_bytes(PyObject *type, PyObject *arguments) {
    const char *name, *data;
    PyObject *sizes;
    Py_ssize_t length;
    smelt_dtype dtype;
    smelt_shape shape = {0};
    smelt_array *array;
    (void)type;
    if (!PyArg_ParseTuple(arguments, "sO!y#:_from_bytes", &name, &PyTuple_Type, &sizes, &data, &length))
        return NULL;
    smelt_status status = smelt_dtype_from_name(name, &dtype);
    if (status != SMELT_OK) return raise_status(status);
    Py_ssize_t ndim = PyTuple_Size(sizes), elements = 1;
    bool whole = ndim <= SMELT_MAX_DIMENSIONS;
    shape.ndim = whole ? (int)ndim : 0;
    for (int d = 0; d < shape.ndim; d++) {
        shape.size[d] = PyLong_AsLongLong(PyTuple_GetItem(sizes, d));
        if (shape.size[d] == -1 && PyErr_Occurred()) return NULL;
        whole = whole && shape.size[d] >= 0 && !__builtin_mul_overflow(elements, shape.size[d], &elements);
    }
    if (!whole || __builtin_mul_overflow(elements, (Py_ssize_t)smelt_dtype_bytes(dtype), &elements) ||
        elements != length) {
        PyErr_SetString(PyExc_ValueError, "smelt.array: the pickle's bytes do not match its shape");
        return NULL;
    }
    status = smelt_array_from_values(dtype, shape, data, &array);
    return status == SMELT_OK ? array_wrap(array) : raise_status(status);
}

/* ---- The buffer protocol. */

/* struct's letters; bfloat16 has none. */
static const char *buffer_format(smelt_dtype dtype) {
    static const char *const formats[] = {
        [SMELT_BOOL] = "?",       [SMELT_UINT8] = "B",   [SMELT_UINT16] = "H",  [SMELT_UINT32] = "I",
        [SMELT_UINT64] = "Q",     [SMELT_INT8] = "b",    [SMELT_INT16] = "h",   [SMELT_INT32] = "i",
        [SMELT_INT64] = "q",      [SMELT_FLOAT16] = "e", [SMELT_BFLOAT16] = "", [SMELT_FLOAT32] = "f",
        [SMELT_COMPLEX64] = "Zf", [SMELT_FLOAT64] = "d"};
    return formats[dtype];
}

static int refuse_buffer(Py_buffer *view, const char *why) {
    view->obj = NULL;
    PyErr_SetString(PyExc_BufferError, why);
    return -1;
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags) {
    const smelt_array *array = array_of(self);
    smelt_shape shape = smelt_array_shape(array);
    smelt_dtype dtype = smelt_array_dtype(array);
    const char *format = buffer_format(dtype);
    Py_ssize_t bytes = (Py_ssize_t)smelt_dtype_bytes(dtype);
    if (strcmp(smelt_array_device(array), "cpu") != 0)
        return refuse_buffer(view, "smelt.array: an array on a device has no buffer; use a.to('cpu')");
    if (!*format && flags & PyBUF_FORMAT)
        return refuse_buffer(view, "smelt.array: buffers have no format for bfloat16");
    if (!smelt_array_is_contiguous(array) && (flags & PyBUF_STRIDES) != PyBUF_STRIDES)
        return refuse_buffer(view, "smelt.array: it is not contiguous");
    if (flags & (PyBUF_C_CONTIGUOUS | PyBUF_F_CONTIGUOUS | PyBUF_ANY_CONTIGUOUS) & ~PyBUF_STRIDES) {
        bool row = flags & ~PyBUF_STRIDES & (PyBUF_C_CONTIGUOUS | PyBUF_ANY_CONTIGUOUS);
        bool good = smelt_array_is_contiguous(array) && (row || shape.ndim < 2);
        if (!good) return refuse_buffer(view, "smelt.array: it is not contiguous in the requested order");
    }
    Py_ssize_t *sizes = malloc(2 * sizeof *sizes * (size_t)(shape.ndim + 1));
    if (!sizes) {
        view->obj = NULL;
        PyErr_NoMemory();
        return -1;
    }
    Py_ssize_t *strides = sizes + shape.ndim;
    for (int d = 0; d < shape.ndim; d++) {
        sizes[d] = shape.size[d];
        strides[d] = smelt_array_strides(array)[d] * bytes;
    }
    *view = (Py_buffer){.buf = smelt_array_data(array),
                        .obj = Py_NewRef(self),
                        .len = smelt_array_size(array) * bytes,
                        .itemsize = bytes,
                        .format = flags & PyBUF_FORMAT ? (char *)format : NULL,
                        .ndim = shape.ndim,
                        .shape = flags & PyBUF_ND ? sizes : NULL,
                        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? strides : NULL,
                        .internal = sizes};
    return 0;
}

static void release_buffer(PyObject *self, Py_buffer *view) {
    (void)self;
    free(view->internal);
}

/* ---- NumPy. */

static PyObject *as_numpy(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copying = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|OO:__array__", names, &dtype, &copying))
        return NULL;
    int must = copying == Py_None ? 0 : PyObject_IsTrue(copying);
    if (must < 0) return NULL;
    bool never = copying != Py_None && !must;
    if (never && strcmp(smelt_array_device(array_of(self)), "cpu") != 0) {
        PyErr_SetString(PyExc_ValueError, "smelt.array: it is on a device; NumPy needs a copy");
        return NULL;
    }
    PyObject *made = array_export(smelt_array_retain(array_of(self)), KIND_NUMPY);
    if (made && dtype != Py_None) {
        PyObject *other = PyObject_CallMethod(made, "astype", "O", dtype);
        Py_DECREF(made);
        made = other;
    }
    if (made && must) {
        PyObject *other = PyObject_CallMethod(made, "copy", NULL);
        Py_DECREF(made);
        made = other;
    }
    return made;
}

/* ---- Methods and slots. */

#define KEYWORDS (METH_VARARGS | METH_KEYWORDS)
#define METHOD(function) (PyCFunction)(void (*)(void))(function)

PyMethodDef array_data_methods[] = {
    {"__array__", METHOD(as_numpy), KEYWORDS,
     "__array__($self, /, dtype=None, copy=None)\n--\n\nThe array as a NumPy array."},
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {"_from_bytes", from_bytes, METH_VARARGS | METH_STATIC, NULL},
    {0}};

PyType_Slot array_data_slots[] = {{Py_bf_getbuffer, get_buffer}, {Py_bf_releasebuffer, release_buffer}, {0}};
