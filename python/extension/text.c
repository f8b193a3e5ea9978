/* smelt.array as text: NumPy's, which wraps lines and leaves out the middle of large arrays. */
#include "extension.h"

/* bfloat16 prints as the float32 that it is. */
static PyObject *printable(smelt_array *array) {
    smelt_array *wide;
    if (smelt_array_dtype(array) != SMELT_BFLOAT16)
        return array_export(smelt_array_retain(array), KIND_NUMPY);
    smelt_status status = smelt_array_convert(array, SMELT_FLOAT32, &wide);
    return status == SMELT_OK ? array_export(wide, KIND_NUMPY) : raise_status(status);
}

/* A value of a graph has no elements to show. */
static PyObject *value_repr(PyObject *self, const char *dtype) {
    PyObject *shape = PyObject_GetAttrString(self, "shape");
    PyObject *text = shape ? PyUnicode_FromFormat("value(%R, dtype=%s)", shape, dtype) : NULL;
    Py_XDECREF(shape);
    return text;
}

PyObject *array_repr(PyObject *self) {
    smelt_array *array = array_of(self);
    const char *dtype = smelt_dtype_name(smelt_array_dtype(array));
    if (strcmp(smelt_array_device(array), "graph") == 0) return value_repr(self, dtype);
    PyObject *numpy = PyImport_ImportModule("numpy"), *elements = NULL, *text = NULL, *result = NULL;
    PyObject *print = numpy ? PyObject_GetAttrString(numpy, "array2string") : NULL;
    PyObject *options = print ? Py_BuildValue("{s:s,s:s}", "separator", ", ", "prefix", "array(") : NULL;
    if (options) elements = printable(array);
    PyObject *arguments = elements ? PyTuple_Pack(1, elements) : NULL;
    if (arguments) text = PyObject_Call(print, arguments, options);
    if (text) result = PyUnicode_FromFormat("array(%U, dtype=%s)", text, dtype);
    Py_XDECREF(text);
    Py_XDECREF(arguments);
    Py_XDECREF(elements);
    Py_XDECREF(options);
    Py_XDECREF(print);
    Py_XDECREF(numpy);
    return result;
}
