/* Any object as an array, and arrays as the kind of object that came in. */
#include "interop.h"

/* ---- What an object is, by its type. */

/* How its elements are had. */
enum way { WAY_NONE, WAY_SMELT, WAY_NUMBER, WAY_NUMPY, WAY_BUFFER, WAY_MASKED };

/* kind * 16 + way, for types that came before. */
static struct pointer_table types;

static int as(enum array_kind kind, enum way way) {
    return (int)kind * 16 + (int)way;
}

/* Is it an instance of module.name? Only if the module has been imported; leaves no exception. */
static bool is_instance(PyObject *o, const char *module_name, const char *name) {
    PyObject *key = PyUnicode_FromString(module_name);
    PyObject *module = key ? PyImport_GetModule(key) : NULL;
    PyObject *class = module ? PyObject_GetAttrString(module, name) : NULL;
    bool result = class && PyObject_IsInstance(o, class) == 1;
    PyErr_Clear();
    Py_XDECREF(class);
    Py_XDECREF(module);
    Py_XDECREF(key);
    return result;
}

static int classify(PyObject *o) {
    if (array_of(o)) return as(KIND_SMELT, WAY_SMELT);
    /* np.float64 is a Python float, and is taken for one. */
    if (PyBool_Check(o) || PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o))
        return as(KIND_SCALAR, WAY_NUMBER);
    if (is_instance(o, "numpy.ma", "MaskedArray")) return as(KIND_NUMPY, WAY_MASKED);
    if (is_instance(o, "numpy", "ndarray") || is_instance(o, "numpy", "generic"))
        return as(KIND_NUMPY, WAY_NUMPY);
    if (PyObject_CheckBuffer(o)) return as(KIND_OTHER, WAY_BUFFER);
    return as(KIND_OTHER, WAY_NONE);
}

static int type_of(PyObject *o) {
    PyObject *type = (PyObject *)Py_TYPE(o);
    int value;
    if (pointer_find(&types, type, &value)) return value;
    value = classify(o);
    if (value % 16 != WAY_NONE) pointer_add(&types, type, value);
    return value;
}

/* ---- Importing. */

static bool import_number(PyObject *o, const struct request *request, smelt_array **array) {
    if (request->writing) {
        PyErr_Format(PyExc_TypeError, "%s: the kernel writes it; expected an array, not a number",
                     request->what);
        return false;
    }
    *array = array_of_values(o, SMELT_NO_DTYPE);
    return *array != NULL;
}

static bool refuse(PyObject *o, const char *what) {
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(o), "__name__");
    if (!name) return false;
    bool list = PyList_Check(o) || PyTuple_Check(o);
    PyErr_Format(PyExc_TypeError,
                 "%s: expected an array (NumPy's, torch's, JAX's, CuPy's, MLX's, smelt.array, or what has "
                 "__dlpack__ or "
                 "a buffer) or a number, got %U%s",
                 what, name, list ? "; smelt.array() makes an array of it" : "");
    Py_DECREF(name);
    return false;
}

static bool import(PyObject *o, const struct request *request, smelt_array **array, enum array_kind *kind) {
    int type = type_of(o);
    *kind = (enum array_kind)(type / 16);
    switch ((enum way)(type % 16)) {
    case WAY_SMELT:
        *array = smelt_array_retain(array_of(o));
        return true;
    case WAY_NUMBER:
        return import_number(o, request, array);
    case WAY_NUMPY:
        return numpy_import(o, request, array);
    case WAY_BUFFER:
        return buffer_import(o, request, array);
    case WAY_MASKED:
        PyErr_Format(PyExc_TypeError, "%s: it is a masked array; fill in its gaps with .filled(value)",
                     request->what);
        return false;
    case WAY_NONE:
        break;
    }
    return refuse(o, request->what);
}

bool array_import(PyObject *o, const char *what, smelt_array **array, enum array_kind *kind) {
    return import(o, &(struct request){.what = what}, array, kind);
}

bool array_import_for_writing(PyObject *o, const char *what, smelt_array **array, enum array_kind *kind) {
    return import(o, &(struct request){.what = what, .writing = true}, array, kind);
}

/* ---- Exporting. */

PyObject *array_export(smelt_array *array, enum array_kind kind) {
    switch (kind) {
    case KIND_NUMPY:
        return numpy_export(array);
    default:
        return array_wrap(array);
    }
}

int interop_init(PyObject *module) {
    return numpy_init(module);
}
