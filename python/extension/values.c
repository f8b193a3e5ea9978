/* Python's numbers as arrays, and the elements of arrays as Python's numbers. */
#include "extension.h"

/* ---- Numbers in nested lists become an array in two rounds: what they are, and their values. */

/* What holds a number, each what those before it hold too. */
enum rank { RANK_NONE, RANK_BOOL, RANK_INTEGER, RANK_FLOAT, RANK_COMPLEX };

struct values {
    smelt_shape shape;
    enum rank rank;     /* of all leaves */
    smelt_dtype dtype;  /* of the leaves that are arrays: the first's … */
    bool several;       /* … and there are others */
    smelt_dtype stored; /* as what the second round writes */
    char *next;
};

static enum rank rank_of_dtype(smelt_dtype dtype) {
    if (dtype == SMELT_BOOL) return RANK_BOOL;
    if (dtype <= SMELT_INT64) return RANK_INTEGER;
    return dtype == SMELT_COMPLEX64 ? RANK_COMPLEX : RANK_FLOAT;
}

static enum rank rank_of_number(PyObject *o) {
    if (PyBool_Check(o)) return RANK_BOOL;
    if (PyLong_Check(o)) return RANK_INTEGER;
    if (PyFloat_Check(o)) return RANK_FLOAT;
    return PyComplex_Check(o) ? RANK_COMPLEX : RANK_NONE;
}

static bool is_sequence(PyObject *o) {
    return PyList_Check(o) || PyTuple_Check(o);
}

/* Borrowed; NULL with an exception if the list has become shorter meanwhile. */
static PyObject *element(PyObject *sequence, Py_ssize_t i) {
    return PyList_Check(sequence) ? PyList_GetItem(sequence, i) : PyTuple_GetItem(sequence, i);
}

/* The dimension `depth` has `size`, here as everywhere else. */
static bool same_size(struct values *values, int depth, int64_t size, bool first) {
    if (first && depth == SMELT_MAX_DIMENSIONS) {
        PyErr_Format(PyExc_ValueError, "smelt.array: lists are nested more than %d deep",
                     SMELT_MAX_DIMENSIONS);
        return false;
    }
    if (first) {
        values->shape.size[depth] = size;
        values->shape.ndim = depth + 1;
        return true;
    }
    if (depth < values->shape.ndim && values->shape.size[depth] == size) return true;
    PyErr_Format(PyExc_ValueError,
                 "smelt.array: the lists at depth %d differ in length; expected one shape for all", depth);
    return false;
}

static bool leaf_depth(struct values *values, int depth, bool first) {
    if (first || depth == values->shape.ndim) return true;
    PyErr_Format(PyExc_ValueError, "smelt.array: depth %d has both lists and numbers", depth);
    return false;
}

static bool measure_array(struct values *values, PyObject *o, int depth, bool first) {
    smelt_array *array;
    enum array_kind kind;
    if (!array_import(o, "smelt.array: an element", &array, &kind)) return false;
    smelt_dtype dtype = smelt_array_dtype(array);
    smelt_shape shape = smelt_array_shape(array);
    smelt_array_release(array);
    if (rank_of_dtype(dtype) > values->rank) values->rank = rank_of_dtype(dtype);
    if (!values->dtype) values->dtype = dtype;
    if (values->dtype != dtype) values->several = true;
    for (int d = 0; d < shape.ndim; d++)
        if (!same_size(values, depth + d, shape.size[d], first)) return false;
    return leaf_depth(values, depth + shape.ndim, first);
}

static bool measure(struct values *values, PyObject *o, int depth, bool first) {
    enum rank rank = rank_of_number(o);
    if (rank) {
        if (rank > values->rank) values->rank = rank;
        return leaf_depth(values, depth, first);
    }
    if (!is_sequence(o)) return measure_array(values, o, depth, first);
    Py_ssize_t size = PySequence_Size(o);
    if (size < 0 || !same_size(values, depth, size, first)) return false;
    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *inner = element(o, i);
        if (!inner || !measure(values, inner, depth + 1, first && i == 0)) return false;
    }
    return true;
}

/* The dtype of the result where none was asked for: that of arrays among the leaves, if it holds the rest. */
static bool natural_dtype(const struct values *values, smelt_dtype *dtype) {
    static const smelt_dtype by_rank[] = {[RANK_NONE] = SMELT_FLOAT32,
                                          [RANK_BOOL] = SMELT_BOOL,
                                          [RANK_INTEGER] = SMELT_INT32,
                                          [RANK_FLOAT] = SMELT_FLOAT32,
                                          [RANK_COMPLEX] = SMELT_COMPLEX64};
    *dtype = by_rank[values->rank];
    if (values->several) {
        PyErr_SetString(PyExc_ValueError,
                        "smelt.array: the arrays in the list have different dtypes; give dtype=");
        return false;
    }
    if (values->dtype && rank_of_dtype(values->dtype) == values->rank) *dtype = values->dtype;
    return true;
}

/* What holds all values exactly until they are converted to `dtype`; that itself for integers, whose range is
 * checked. */
static smelt_dtype stored_dtype(enum rank rank, smelt_dtype dtype) {
    enum rank wanted = rank_of_dtype(dtype);
    if (rank == RANK_COMPLEX || wanted == RANK_COMPLEX) return SMELT_COMPLEX64;
    if (rank == RANK_FLOAT || wanted == RANK_FLOAT) return SMELT_FLOAT64;
    return wanted == RANK_BOOL && rank == RANK_INTEGER ? SMELT_INT64 : dtype;
}

/* An integer in the bytes of `dtype`. */
static bool store_integer(smelt_dtype dtype, char *to, PyObject *o) {
    size_t bytes = smelt_dtype_bytes(dtype);
    bool has_sign = dtype >= SMELT_INT8;
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
    unsigned long long bits = (unsigned long long)value;
    bool fits = !overflow;
    if (overflow > 0 && dtype == SMELT_UINT64) {
        bits = PyLong_AsUnsignedLongLong(o);
        fits = !PyErr_Occurred();
        PyErr_Clear();
    } else if (fits && has_sign && bytes < 8) {
        long long limit = 1LL << (8 * bytes - 1);
        fits = value >= -limit && value < limit;
    } else if (fits && !has_sign) {
        fits = value >= 0 && (bytes == 8 || value < 1LL << (8 * bytes));
    }
    if (!fits) {
        PyErr_Format(PyExc_ValueError, "smelt.array: %R does not fit in %s; give a wider dtype=", o,
                     smelt_dtype_name(dtype));
        return false;
    }
    memcpy(to, &bits, bytes); /* little endian */
    return true;
}

static bool store_number(smelt_dtype dtype, char *to, PyObject *o) {
    if (dtype == SMELT_BOOL) {
        *to = o == Py_True;
    } else if (dtype == SMELT_FLOAT64) {
        double value = PyFloat_AsDouble(o);
        if (value == -1 && PyErr_Occurred()) return false;
        memcpy(to, &value, sizeof value);
    } else if (dtype == SMELT_COMPLEX64) {
        float parts[] = {(float)PyComplex_RealAsDouble(o), (float)PyComplex_ImagAsDouble(o)};
        if (PyErr_Occurred()) return false;
        memcpy(to, parts, sizeof parts);
    } else {
        return store_integer(dtype, to, o);
    }
    return true;
}

static bool store_array(struct values *values, PyObject *o, int64_t expected) {
    smelt_array *array, *host, *dense;
    enum array_kind kind;
    if (!array_import(o, "smelt.array: an element", &array, &kind)) return false;
    bool good = array_on_host(array, &host);
    smelt_array_release(array);
    if (!good) return false;
    smelt_status status = smelt_array_convert(host, values->stored, &dense);
    smelt_array_release(host);
    if (status != SMELT_OK) return raise_status(status) != NULL;
    size_t bytes = (size_t)expected * smelt_dtype_bytes(values->stored);
    good = smelt_array_size(dense) == expected;
    if (good) memcpy(values->next, smelt_array_data(dense), bytes);
    if (!good) PyErr_SetString(PyExc_RuntimeError, "smelt.array: the lists changed while they were read");
    values->next += bytes;
    smelt_array_release(dense);
    return good;
}

/* `expected`: how many elements there are in `o`. */
static bool store(struct values *values, PyObject *o, int depth, int64_t expected) {
    if (rank_of_number(o)) {
        if (!store_number(values->stored, values->next, o)) return false;
        values->next += smelt_dtype_bytes(values->stored);
        return true;
    }
    if (!is_sequence(o)) return store_array(values, o, expected);
    int64_t size = depth < values->shape.ndim ? values->shape.size[depth] : -1;
    if (size != PySequence_Size(o)) {
        PyErr_SetString(PyExc_RuntimeError, "smelt.array: the lists changed while they were read");
        return false;
    }
    for (int64_t i = 0; i < size; i++) {
        PyObject *inner = element(o, i);
        if (!inner || !store(values, inner, depth + 1, expected / size)) return false;
    }
    return true;
}

smelt_array *array_of_values(PyObject *o, smelt_dtype dtype) {
    struct values values = {0};
    smelt_array *array = NULL, *converted = NULL;
    if (!measure(&values, o, 0, true) || (!dtype && !natural_dtype(&values, &dtype))) return NULL;
    if (values.rank == RANK_COMPLEX && rank_of_dtype(dtype) != RANK_COMPLEX) {
        PyErr_Format(PyExc_TypeError, "smelt.array: complex numbers cannot become %s",
                     smelt_dtype_name(dtype));
        return NULL;
    }
    values.stored = stored_dtype(values.rank, dtype);
    smelt_status status = smelt_array_create(values.stored, values.shape, &array);
    if (status != SMELT_OK) {
        raise_status(status);
        return NULL;
    }
    values.next = smelt_array_data(array);
    bool stored = store(&values, o, 0, smelt_array_size(array));
    if (stored && values.stored == dtype) return array;
    if (stored && (status = smelt_array_convert(array, dtype, &converted)) != SMELT_OK) raise_status(status);
    smelt_array_release(array);
    return converted;
}

/* ---- Elements as numbers. */

#define INTEGERS(X)     \
    X(UINT8, uint8_t)   \
    X(UINT16, uint16_t) \
    X(UINT32, uint32_t) X(INT8, int8_t) X(INT16, int16_t) X(INT32, int32_t) X(INT64, int64_t)

PyObject *value_at(smelt_dtype dtype, const void *address) {
    switch (dtype) {
#define INTEGER(upper, type)                   \
    case SMELT_##upper: {                      \
        type value;                            \
        memcpy(&value, address, sizeof value); \
        return PyLong_FromLongLong(value);     \
    }
        INTEGERS(INTEGER)
#undef INTEGER
    case SMELT_UINT64: {
        uint64_t value;
        memcpy(&value, address, sizeof value);
        return PyLong_FromUnsignedLongLong(value);
    }
    case SMELT_BOOL:
        return PyBool_FromLong(*(const char *)address != 0);
    case SMELT_FLOAT32: {
        float value;
        memcpy(&value, address, sizeof value);
        return PyFloat_FromDouble(value);
    }
    case SMELT_COMPLEX64: {
        float value[2];
        memcpy(value, address, sizeof value);
        return PyComplex_FromDoubles(value[0], value[1]);
    }
    default: {
        double value;
        memcpy(&value, address, sizeof value);
        return PyFloat_FromDouble(value);
    }
    }
}

/* In the host's memory, row-contiguous, of a dtype that value_at reads. False with an exception. */
static bool readable(smelt_array *array, smelt_array **result) {
    smelt_array *host;
    smelt_dtype dtype = smelt_array_dtype(array);
    if (!array_on_host(array, &host)) return false;
    bool narrow = dtype == SMELT_FLOAT16 || dtype == SMELT_BFLOAT16;
    smelt_status status =
        narrow ? smelt_array_convert(host, SMELT_FLOAT32, result) : smelt_array_contiguous(host, result);
    smelt_array_release(host);
    if (status != SMELT_OK) raise_status(status);
    return status == SMELT_OK;
}

PyObject *array_item(PyObject *self, PyObject *arguments) {
    smelt_array *array = array_of(self), *host;
    if (!PyArg_ParseTuple(arguments, ":item")) return NULL;
    if (smelt_array_size(array) != 1)
        return PyErr_Format(PyExc_ValueError,
                            "smelt.array: it has %lld elements; only an array of one element is a number",
                            (long long)smelt_array_size(array));
    if (!readable(array, &host)) return NULL;
    PyObject *value = value_at(smelt_array_dtype(host), smelt_array_data(host));
    smelt_array_release(host);
    return value;
}

/* The elements from dimension `depth` on, from *at, which goes past them. */
static PyObject *list_of(smelt_dtype dtype, const smelt_shape *shape, int depth, const char **at) {
    if (depth == shape->ndim) {
        PyObject *value = value_at(dtype, *at);
        *at += smelt_dtype_bytes(dtype);
        return value;
    }
    PyObject *list = PyList_New(shape->size[depth]);
    for (int64_t i = 0; i < shape->size[depth] && list; i++) {
        PyObject *inner = list_of(dtype, shape, depth + 1, at);
        if (!inner || PyList_SetItem(list, i, inner) < 0) Py_CLEAR(list);
    }
    return list;
}

PyObject *array_to_list(PyObject *self, PyObject *unused) {
    smelt_array *host;
    (void)unused;
    if (!readable(array_of(self), &host)) return NULL;
    smelt_shape shape = smelt_array_shape(host);
    const char *at = smelt_array_data(host);
    PyObject *list = list_of(smelt_array_dtype(host), &shape, 0, &at);
    smelt_array_release(host);
    return list;
}
