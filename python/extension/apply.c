/* Operations on arrays: smelt_apply by name, for the functions of smelt.operations and the operators. */
#include "call.h"
#include "operations.h"

static PyObject *python_operations;

PyObject *python_operation(const char *name) {
    if (!python_operations) python_operations = PyImport_ImportModule("smelt.operations");
    return python_operations ? PyObject_GetAttrString(python_operations, name) : NULL;
}

/* ---- Inputs. */

/* Python numbers are weak: they take the dtype of the other operand. */
static smelt_array *weak_number(PyObject *o) {
    double real;
    int64_t integer;
    bool boolean;
    const void *value = &real;
    smelt_dtype dtype = SMELT_FLOAT64;
    if (PyBool_Check(o)) {
        boolean = o == Py_True;
        value = &boolean;
        dtype = SMELT_BOOL;
    } else if (PyLong_Check(o)) {
        integer = PyLong_AsLongLong(o);
        if (integer == -1 && PyErr_Occurred()) return NULL;
        value = &integer;
        dtype = SMELT_INT64;
    } else {
        real = PyFloat_AsDouble(o);
        if (real == -1 && PyErr_Occurred()) return NULL;
    }
    smelt_array *array = NULL;
    smelt_status status = smelt_array_from_values(dtype, (smelt_shape){0}, value, &array);
    if (status != SMELT_OK) raise_status(status);
    return array;
}

bool operation_input(PyObject *o, const char *what, smelt_array **array, bool *weak) {
    *weak = false;
    if ((*array = array_of(o))) {
        smelt_array_retain(*array);
        return true;
    }
    if (PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o)) {
        *weak = true;
        return (*array = weak_number(o)) != NULL;
    }
    if (PyList_Check(o) || PyTuple_Check(o)) return (*array = array_of_values(o, SMELT_NO_DTYPE)) != NULL;
    enum array_kind kind;
    return array_import(o, what, array, &kind);
}

void release_inputs(smelt_apply_desc *desc) {
    for (int i = 0; i < SMELT_MAX_ARGUMENTS && desc->inputs[i]; i++) smelt_array_release(desc->inputs[i]);
}

PyObject *apply_operation(smelt_apply_desc *desc) {
    smelt_array *result = NULL;
    smelt_status status;
    Py_BEGIN_ALLOW_THREADS status = smelt_apply(desc, &result);
    Py_END_ALLOW_THREADS release_inputs(desc);
    return status == SMELT_OK ? array_wrap(result) : raise_status(status);
}

/* ---- Attributes. */

/* A tuple of the items of a sequence, or of one value. */
static PyObject *tuple_of(PyObject *value) {
    bool text = PyUnicode_Check(value) || PyBytes_Check(value);
    Py_ssize_t size = !text && PySequence_Check(value) ? PySequence_Size(value) : -1;
    PyErr_Clear(); /* an array without dimensions has no length */
    return size < 0 ? PyTuple_Pack(1, value) : PySequence_Tuple(value);
}

static bool integers(const char *operation, PyObject *value, const char *name, int64_t *to, int most,
                     int *count) {
    PyObject *items = tuple_of(value);
    if (!items) return false;
    Py_ssize_t size = PyTuple_Size(items);
    bool good = size <= most;
    if (!good)
        PyErr_Format(PyExc_ValueError, "%s: %s has %zd numbers; at most %d are allowed", operation, name,
                     size, most);
    for (Py_ssize_t i = 0; i < size && good; i++) {
        good = integer_of(PyTuple_GetItem(items, i), &to[i]);
        if (!good)
            PyErr_Format(PyExc_TypeError, "%s: %s is %R; expected %s", operation, name, value,
                         most == 1 ? "a whole number" : "a whole number or several");
    }
    *count = (int)size;
    Py_DECREF(items);
    return good;
}

static bool set_axes(const char *operation, smelt_apply_desc *desc, PyObject *value) {
    int64_t axes[2 * SMELT_MAX_DIMENSIONS] = {0};
    int count = 0;
    if (!integers(operation, value, "axis", axes, 2 * SMELT_MAX_DIMENSIONS, &count)) return false;
    for (int i = 0; i < count; i++) {
        if (axes[i] != (int)axes[i]) {
            PyErr_Format(PyExc_ValueError, "%s: axis %lld is out of range", operation, (long long)axes[i]);
            return false;
        }
        desc->axes[i] = (int)axes[i];
    }
    desc->axis_count = count;
    desc->no_axes = count == 0;
    return true;
}

static bool set_numbers(const char *operation, smelt_apply_desc *desc, PyObject *value) {
    PyObject *items = PySequence_Tuple(value);
    if (!items) return false;
    bool good = PyTuple_Size(items) <= 3;
    if (!good) PyErr_Format(PyExc_ValueError, "%s: numbers: at most 3 are allowed", operation);
    for (Py_ssize_t i = 0; i < PyTuple_Size(items) && good; i++) {
        PyObject *item = PyTuple_GetItem(items, i);
        desc->numbers[i] = PyFloat_AsDouble(item);
        good = !(desc->numbers[i] == -1 && PyErr_Occurred());
        if (!good && PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError, "%s: %R is not a number", operation, item);
    }
    Py_DECREF(items);
    return good;
}

static bool set_flag(bool *flag, PyObject *value) {
    int truth = PyObject_IsTrue(value);
    *flag = truth > 0;
    return truth >= 0;
}

/* `device`: the caller keeps the string. *torch: whether the result is a tensor of torch, computed on torch's
 * current stream. */
static bool set_attribute(const char *operation, smelt_apply_desc *desc, bool *torch, const char *name,
                          PyObject *value) {
    int count;
    if (strcmp(name, "torch") == 0) return set_flag(torch, value);
    if (strcmp(name, "dtype") == 0) return dtype_of_object(value, "dtype", &desc->dtype);
    if (strcmp(name, "axes") == 0) return set_axes(operation, desc, value);
    if (strcmp(name, "keepdims") == 0) return set_flag(&desc->keepdims, value);
    if (strcmp(name, "reverse") == 0) return set_flag(&desc->reverse, value);
    if (strcmp(name, "exclusive") == 0) return set_flag(&desc->exclusive, value);
    if (strcmp(name, "equal_nan") == 0) return set_flag(&desc->equal_nan, value);
    if (strcmp(name, "numbers") == 0) return set_numbers(operation, desc, value);
    if (strcmp(name, "shape") == 0)
        return integers(operation, value, "shape", desc->shape.size, SMELT_MAX_DIMENSIONS, &desc->shape.ndim);
    if (strcmp(name, "starts") == 0)
        return integers(operation, value, "starts", desc->starts, SMELT_MAX_DIMENSIONS, &count);
    if (strcmp(name, "stops") == 0)
        return integers(operation, value, "stops", desc->stops, SMELT_MAX_DIMENSIONS, &count);
    if (strcmp(name, "steps") == 0)
        return integers(operation, value, "steps", desc->steps, SMELT_MAX_DIMENSIONS, &count);
    if (strcmp(name, "offset") == 0) return integers(operation, value, "offset", &desc->offset, 1, &count);
    if (strcmp(name, "algorithm") == 0)
        return (desc->algorithm = PyUnicode_AsUTF8AndSize(value, NULL)) != NULL;
    if (strcmp(name, "device") == 0) return (desc->device = PyUnicode_AsUTF8AndSize(value, NULL)) != NULL;
    PyErr_Format(PyExc_TypeError, "apply: attribute '%s' is unknown", name);
    return false;
}

static PyObject *apply_for_torch(smelt_apply_desc *desc) {
    smelt_array *result;
    smelt_status status;
    if (desc->inputs[0] && !stream_of_kind(KIND_TORCH, smelt_array_device(desc->inputs[0]), &desc->stream)) {
        release_inputs(desc);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS status = smelt_apply(desc, &result);
    Py_END_ALLOW_THREADS release_inputs(desc);
    smelt_stream_release(desc->stream);
    return status == SMELT_OK ? array_export(result, KIND_TORCH) : raise_status(status);
}

/* apply(name, inputs, **attributes): attributes that are None count as not given. */
static PyObject *apply(PyObject *self, PyObject *arguments, PyObject *keywords) {
    const char *name;
    PyObject *inputs;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "sO!:apply", &name, &PyTuple_Type, &inputs)) return NULL;
    smelt_apply_desc desc = {.operation = smelt_operation_from_name(name)};
    if (!desc.operation) return PyErr_Format(PyExc_ValueError, "apply: operation '%s' is unknown", name);
    Py_ssize_t count = PyTuple_Size(inputs), at = 0;
    if (count >= SMELT_MAX_ARGUMENTS)
        return PyErr_Format(PyExc_ValueError, "%s: %zd arrays; at most %d are allowed", name, count,
                            SMELT_MAX_ARGUMENTS - 1);
    PyObject *key, *value;
    bool torch = false;
    while (keywords && PyDict_Next(keywords, &at, &key, &value)) {
        const char *attribute = PyUnicode_AsUTF8AndSize(key, NULL);
        if (!attribute || (value != Py_None && !set_attribute(name, &desc, &torch, attribute, value)))
            return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        bool weak;
        if (!operation_input(PyTuple_GetItem(inputs, i), name, &desc.inputs[i], &weak)) {
            desc.inputs[i] = NULL;
            release_inputs(&desc);
            return NULL;
        }
        desc.weak |= (uint64_t)weak << i;
    }
    return torch ? apply_for_torch(&desc) : apply_operation(&desc);
}

static PyObject *random_array(PyObject *self, PyObject *arguments) {
    const char *kind;
    PyObject *dtype_name, *sizes;
    unsigned long long seed;
    smelt_dtype dtype;
    smelt_shape shape = {0};
    smelt_array *array = NULL;
    smelt_status status;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "sOOK:random_array", &kind, &dtype_name, &sizes, &seed)) return NULL;
    if (!dtype_of_object(dtype_name, "dtype", &dtype)) return NULL;
    if (!integers("random", sizes, "shape", shape.size, SMELT_MAX_DIMENSIONS, &shape.ndim)) return NULL;
    bool normal = strcmp(kind, "normal") == 0;
    Py_BEGIN_ALLOW_THREADS status = normal ? smelt_array_normal(dtype, shape, seed, &array)
                                           : smelt_array_uniform(dtype, shape, seed, &array);
    Py_END_ALLOW_THREADS return status == SMELT_OK ? array_wrap(array) : raise_status(status);
}

static PyMethodDef functions[] = {{"apply", (PyCFunction)(void (*)(void))apply, METH_VARARGS | METH_KEYWORDS,
                                   "apply(name, inputs, /, **attributes)\n--\n\nOne operation of "
                                   "docs/operations.md on a tuple of arrays and "
                                   "numbers.\nAttributes: dtype, axes, keepdims, reverse, exclusive, "
                                   "equal_nan, shape, starts, stops, steps, "
                                   "offset, numbers, device."},
                                  {"random_array", random_array, METH_VARARGS,
                                   "random_array(kind, dtype, shape, seed, /)\n--\n\nAn array of kind "
                                   "'uniform' or 'normal' from a seed, on the "
                                   "host: smelt_array_uniform, smelt_array_normal."},
                                  {0}};

int apply_init(PyObject *module) {
    return PyModule_AddFunctions(module, functions);
}
