/* smelt.Dtype: the objects that name element types, and other names of them. */
#include "extension.h"

#include <string.h>

struct dtype_object {
    PyObject_HEAD smelt_dtype dtype;
};

#define DTYPE_COUNT (SMELT_FLOAT64 + 1)
static PyTypeObject *dtype_type;
static PyObject *objects[DTYPE_COUNT];

PyObject *dtype_object(smelt_dtype dtype) {
    return objects[dtype];
}

static smelt_dtype dtype_in(PyObject *self) {
    return ((struct dtype_object *)self)->dtype;
}

/* ---- What names a dtype. */

/* Cache of objects that name a dtype: most are looked up repeatedly. */
static struct pointer_table known;

/* False if the name is unknown, without an exception. */
static bool dtype_of_name(PyObject *name, smelt_dtype *dtype) {
    Py_ssize_t length;
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, &length) : NULL;
    if (!text) {
        PyErr_Clear();
        return false;
    }
    if (strncmp(text, "torch.", 6) == 0)
        text += 6;
    else if (strncmp(text, "mlx.core.", 9) == 0)
        text += 9;
    for (smelt_dtype d = SMELT_BOOL; d < DTYPE_COUNT; d++) {
        if (strcmp(text, smelt_dtype_name(d)) != 0) continue;
        *dtype = d;
        return true;
    }
    return false;
}

/* The attribute, or NULL without an exception. */
static PyObject *attribute(PyObject *o, const char *name) {
    PyObject *value = PyObject_GetAttrString(o, name);
    if (!value) PyErr_Clear();
    return value;
}

/* A dtype object of NumPy, and of what follows it, has a name; torch's and MLX's are known by their text
 * ("torch.float32"). */
static bool dtype_of_instance(PyObject *o, smelt_dtype *dtype) {
    PyObject *text = attribute(o, "name");
    if (!text || !PyUnicode_Check(text)) {
        Py_XDECREF(text);
        PyObject *module = attribute((PyObject *)Py_TYPE(o), "__module__");
        bool trusted = module && PyUnicode_Check(module) &&
                       (PyUnicode_CompareWithASCIIString(module, "torch") == 0 ||
                        PyUnicode_CompareWithASCIIString(module, "mlx.core") == 0);
        text = trusted ? PyObject_Str(o) : NULL;
        Py_XDECREF(module);
    }
    bool found = text && dtype_of_name(text, dtype);
    PyErr_Clear();
    Py_XDECREF(text);
    return found;
}

/* NumPy recognises its own, ml_dtypes' and JAX's scalar types; without NumPy there are none. */
static bool dtype_of_type(PyObject *o, smelt_dtype *dtype) {
    PyObject *numpy = PyImport_GetModule(interned.numpy);
    PyObject *made = numpy ? PyObject_CallMethod(numpy, "dtype", "O", o) : NULL;
    bool found = made && dtype_of_instance(made, dtype);
    PyErr_Clear();
    Py_XDECREF(made);
    Py_XDECREF(numpy);
    return found;
}

static bool find_dtype(PyObject *o, smelt_dtype *dtype) {
    int value;
    if (Py_TYPE(o) == dtype_type) {
        *dtype = dtype_in(o);
        return true;
    }
    if (pointer_find(&known, o, &value)) {
        *dtype = (smelt_dtype)value;
        return true;
    }
    if (PyUnicode_Check(o)) return dtype_of_name(o, dtype);
    if (!(PyType_Check(o) ? dtype_of_type(o, dtype) : dtype_of_instance(o, dtype))) return false;
    pointer_add(&known, o, (int)*dtype);
    return true;
}

bool dtype_of_object(PyObject *o, const char *what, smelt_dtype *dtype) {
    if (find_dtype(o, dtype)) return true;
    PyErr_Format(
        PyExc_TypeError,
        "%s: %R is not a supported dtype; expected smelt's, NumPy's or torch's bool, uint8 to uint64, "
        "int8 to int64, float16, bfloat16, float32, complex64 or float64",
        what, o);
    return false;
}

/* ---- The type. */

static PyObject *repr(PyObject *self) {
    return PyUnicode_FromFormat("smelt.%s", smelt_dtype_name(dtype_in(self)));
}

static PyObject *get_name(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(smelt_dtype_name(dtype_in(self)));
}

static PyObject *get_size(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromSize_t(smelt_dtype_bytes(dtype_in(self)));
}

/* The hash of the name, which it equals. */
static Py_hash_t hash(PyObject *self) {
    PyObject *name = get_name(self, NULL);
    Py_hash_t value = name ? PyObject_Hash(name) : -1;
    Py_XDECREF(name);
    return value;
}

static PyObject *compare(PyObject *self, PyObject *other, int operation) {
    smelt_dtype dtype;
    if (operation != Py_EQ && operation != Py_NE) Py_RETURN_NOTIMPLEMENTED;
    if (!find_dtype(other, &dtype)) Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((dtype == dtype_in(self)) == (operation == Py_EQ));
}

static PyObject *reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    return Py_BuildValue("O(s)", dtype_type, smelt_dtype_name(dtype_in(self)));
}

static PyObject *new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"dtype", NULL};
    PyObject *o;
    smelt_dtype dtype;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O:Dtype", names, &o)) return NULL;
    return dtype_of_object(o, "smelt.Dtype", &dtype) ? Py_NewRef(objects[dtype]) : NULL;
}

PyObject *dtype_numpy(smelt_dtype dtype) {
    static PyObject *cache[DTYPE_COUNT];
    if (cache[dtype]) return cache[dtype];
    PyObject *module = PyImport_ImportModule(dtype == SMELT_BFLOAT16 ? "ml_dtypes" : "numpy");
    if (!module && dtype == SMELT_BFLOAT16 && PyErr_ExceptionMatches(PyExc_ImportError)) {
        PyErr_Clear();
        return dtype_numpy(SMELT_UINT16);
    }
    PyObject *scalar = NULL, *numpy = NULL;
    if (dtype == SMELT_BFLOAT16 && module)
        scalar = PyObject_GetAttrString(module, "bfloat16");
    else if (module)
        scalar = PyUnicode_FromString(smelt_dtype_name(dtype));
    if (scalar) numpy = PyImport_ImportModule("numpy");
    if (numpy) cache[dtype] = PyObject_CallMethod(numpy, "dtype", "O", scalar);
    Py_XDECREF(numpy);
    Py_XDECREF(scalar);
    Py_XDECREF(module);
    return cache[dtype];
}

static PyObject *get_numpy(PyObject *self, void *unused) {
    (void)unused;
    return Py_XNewRef(dtype_numpy(dtype_in(self)));
}

static PyGetSetDef properties[] = {
    {"name", get_name, NULL, "Its name: 'float32'.", NULL},
    {"size", get_size, NULL, "Bytes of one element.", NULL},
    {"itemsize", get_size, NULL, "Bytes of one element.", NULL},
    {"dtype", get_numpy, NULL,
     "The NumPy dtype of these elements, so that NumPy takes a smelt.Dtype for one. bfloat16 is ml_dtypes', "
     "or "
     "uint16 where that is not installed.",
     NULL},
    {"__numpy_dtype__", get_numpy, NULL, "As dtype, for NumPy 2.4 and later.", NULL},
    {0}};

static PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, NULL}, {0}};

static PyType_Slot slots[] = {{Py_tp_doc,
                               "Dtype(dtype)\n--\n\nAn element type: smelt.float32 and its like, one object "
                               "each. dtype: an object that names one: NumPy's,\n"
                               "torch's, JAX's or MLX's dtypes, float, int, bool, complex, "
                               "'float32'. Equal to what names "
                               "the same type;\nits hash is its name's. TypeError for what names none."},
                              {Py_tp_new, new},
                              {Py_tp_repr, repr},
                              {Py_tp_hash, hash},
                              {Py_tp_richcompare, compare},
                              {Py_tp_getset, properties},
                              {Py_tp_methods, methods},
                              {0}};
static PyType_Spec spec = {.name = "smelt.Dtype",
                           .basicsize = sizeof(struct dtype_object),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
                           .slots = slots};

int dtype_init(PyObject *module) {
    dtype_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    if (!dtype_type || PyModule_AddObjectRef(module, "Dtype", (PyObject *)dtype_type) < 0) return -1;
    for (smelt_dtype d = SMELT_BOOL; d < DTYPE_COUNT; d++) {
        struct dtype_object *o = PyObject_New(struct dtype_object, dtype_type);
        if (!o) return -1;
        o->dtype = d;
        objects[d] = (PyObject *)o;
        /* smelt.bool would hide Python's bool after `from smelt import *`. */
        if (PyModule_AddObjectRef(module, d == SMELT_BOOL ? "bool_" : smelt_dtype_name(d), objects[d]) < 0)
            return -1;
    }
    pointer_add(&known, (PyObject *)&PyFloat_Type, SMELT_FLOAT32);
    pointer_add(&known, (PyObject *)&PyLong_Type, SMELT_INT32);
    pointer_add(&known, (PyObject *)&PyBool_Type, SMELT_BOOL);
    pointer_add(&known, (PyObject *)&PyComplex_Type, SMELT_COMPLEX64);
    return 0;
}
