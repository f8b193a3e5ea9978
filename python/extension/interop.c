/* Any object as an array, and arrays as the kind of object that came in. */
#include "interop.h"

/* ---- What an object is, by its type. */

/* How its elements are read. */
enum way {
    WAY_NONE,
    WAY_SMELT,
    WAY_NUMBER,
    WAY_NUMPY,
    WAY_BUFFER,
    WAY_DLPACK,
    WAY_EXCHANGE,
    WAY_TORCH,
    WAY_MASKED,
    WAY_TRACER,
    WAY_FAKE
};

/* The cached facts about a type, as one number: kind + 16 * way + 256 * the index of its exchange. */
static struct pointer_table types;

static int as(enum array_kind kind, enum way way) {
    return (int)kind + 16 * (int)way;
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

static bool has(PyObject *o, PyObject *name) {
    PyObject *value = PyObject_GetAttr((PyObject *)Py_TYPE(o), name);
    PyErr_Clear();
    Py_XDECREF(value);
    return value != NULL;
}

/* Objects with DLPack, from a library that results return to. */
static enum array_kind library_of(PyObject *o) {
    if (is_instance(o, "torch", "Tensor")) return KIND_TORCH;
    if (is_instance(o, "jax", "Array")) return KIND_JAX;
    if (is_instance(o, "cupy", "ndarray")) return KIND_CUPY;
    return is_instance(o, "mlx.core", "array") ? KIND_MLX : KIND_OTHER;
}

static int classify(PyObject *o) {
    if (array_of(o)) return as(KIND_SMELT, WAY_SMELT);
    /* np.float64 is a Python float, and is treated as one. */
    if (PyBool_Check(o) || PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o))
        return as(KIND_SCALAR, WAY_NUMBER);
    if (is_instance(o, "numpy.ma", "MaskedArray")) return as(KIND_NUMPY, WAY_MASKED);
    if (is_instance(o, "numpy", "ndarray") || is_instance(o, "numpy", "generic"))
        return as(KIND_NUMPY, WAY_NUMPY);
    if (is_instance(o, "jax.core", "Tracer")) return as(KIND_JAX, WAY_TRACER);
    if (is_instance(o, "torch._subclasses.fake_tensor", "FakeTensor")) return as(KIND_TORCH, WAY_FAKE);
    enum array_kind kind = library_of(o);
    if (kind == KIND_TORCH) return as(kind, WAY_TORCH);
    int exchange = exchange_of_type((PyObject *)Py_TYPE(o));
    if (exchange >= 0) return as(kind, WAY_EXCHANGE) + 256 * exchange;
    if (has(o, interned.dlpack)) return as(kind, WAY_DLPACK);
    return as(KIND_OTHER, PyObject_CheckBuffer(o) ? WAY_BUFFER : WAY_NONE);
}

static int type_of(PyObject *o) {
    PyObject *type = (PyObject *)Py_TYPE(o);
    int value;
    if (pointer_find(&types, type, &value)) return value;
    value = classify(o);
    if (value / 16 % 16 != WAY_NONE) pointer_add(&types, type, value);
    return value;
}

/* ---- Importing. */

/* Python's integers are int32, as in MLX. */
static bool fits_int32(PyObject *o, const struct request *request) {
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow && value >= INT32_MIN && value <= INT32_MAX) return true;
    PyErr_Format(PyExc_ValueError,
                 "%s: %R does not fit in int32, which Python's integers become; pass an array, such as "
                 "numpy.int64(%R)",
                 request->what, o, o);
    return false;
}

static bool import_number(PyObject *o, const struct request *request, smelt_array **array) {
    if (request->writing) {
        PyErr_Format(PyExc_TypeError, "%s: a number cannot be written in place; expected an array",
                     request->what);
        return false;
    }
    if (PyLong_Check(o) && !fits_int32(o, request)) return false;
    /* The common case, done at once; array_of_values says the same of any number. */
    float value = PyFloat_Check(o) ? (float)PyFloat_AsDouble(o) : 0;
    if (!PyFloat_Check(o) ||
        smelt_array_from_values(SMELT_FLOAT32, (smelt_shape){.ndim = 0}, &value, array) != SMELT_OK)
        *array = array_of_values(o, SMELT_NO_DTYPE);
    return *array != NULL;
}

static bool refuse(PyObject *o, const char *what) {
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(o), "__name__");
    if (!name) return false;
    bool list = PyList_Check(o) || PyTuple_Check(o);
    PyErr_Format(PyExc_TypeError,
                 "%s: expected an array (NumPy's, torch's, JAX's, CuPy's, MLX's, smelt.array, or an object "
                 "with __dlpack__ or a buffer) or a number"

                 ", got %U%s",
                 what, name, list ? "; smelt.array() converts it" : "");
    Py_DECREF(name);
    return false;
}

static bool import(PyObject *o, const struct request *request, smelt_array **array, enum array_kind *kind) {
    int type = type_of(o);
    *kind = (enum array_kind)(type % 16);
    if (request->writing && *kind == KIND_JAX) {
        PyErr_Format(PyExc_ValueError,
                     "%s: JAX's arrays are read-only; expected one that can be written in place",
                     request->what);
        return false;
    }
    switch ((enum way)(type / 16 % 16)) {
    case WAY_SMELT:
        *array = smelt_array_retain(array_of(o));
        return true;
    case WAY_NUMBER:
        return import_number(o, request, array);
    case WAY_NUMPY:
        return numpy_import(o, request, array);
    case WAY_BUFFER:
        return buffer_import(o, request, array);
    case WAY_DLPACK:
        return dlpack_import(o, *kind, request, array);
    case WAY_EXCHANGE:
        return exchange_import(type / 256, o, request, array);
    case WAY_TORCH:
        return torch_import(o, request, array);
    case WAY_FAKE:
        PyErr_Format(
            PyExc_TypeError,
            "%s: torch is tracing, and this tensor has no elements; see smelt.torch for kernels as torch's "
            "operations",
            request->what);
        return false;
    case WAY_TRACER:
        PyErr_Format(
            PyExc_TypeError,
            "%s: JAX is tracing the function, and there are no elements; call kernels outside of jax.jit, or "
            "through jax.pure_callback",
            request->what);
        return false;
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

PyObject *interop_by_function(smelt_array *array, bool numpy, const char *module_name, const char *name) {
    PyObject *given = numpy ? numpy_export(array) : array_wrap(array);
    PyObject *module = given ? PyImport_ImportModule(module_name) : NULL;
    PyObject *made = module ? PyObject_CallMethod(module, name, "O", given) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(given);
    return made;
}

/* MLX before 0.32 has no from_dlpack, and copies. */
static PyObject *mlx_export(smelt_array *array) {
    static int direct = -1;
    if (direct < 0) {
        PyObject *module = PyImport_ImportModule("mlx.core");
        if (module) direct = PyObject_HasAttrString(module, "from_dlpack");
        Py_XDECREF(module);
    }
    return interop_by_function(array, false, "mlx.core", direct == 1 ? "from_dlpack" : "array");
}

PyObject *array_export(smelt_array *array, enum array_kind kind) {
    bool host = strcmp(smelt_array_device(array), "cpu") == 0;
    switch (kind) {
    case KIND_NUMPY:
        return numpy_export(array);
    case KIND_TORCH:
        return torch_export(array);
    case KIND_JAX:
        return interop_by_function(array, false, "jax.dlpack", "from_dlpack");
    case KIND_CUPY:
        return interop_by_function(array, host, "cupy", host ? "asarray" : "from_dlpack");
    case KIND_MLX:
        return mlx_export(array);
    default:
        return array_wrap(array);
    }
}

/* ---- Functions of the module. */

bool array_share(PyObject *o, const char *what, PyObject *copy, smelt_array **array) {
    enum array_kind kind;
    bool must = copy == Py_True, never = copy == Py_False;
    if (!must && array_import_for_writing(o, what, array, &kind)) return true;
    if (never || (!must && !PyErr_ExceptionMatches(PyExc_ValueError))) return false;
    /* Copies read-only memory, and layouts that kernels cannot read. */
    smelt_array *given;
    PyErr_Clear();
    if (!array_import(o, what, &given, &kind)) return false;
    smelt_status status;
    Py_BEGIN_ALLOW_THREADS status = smelt_array_convert(given, smelt_array_dtype(given), array);
    smelt_array_release(given);
    Py_END_ALLOW_THREADS if (status != SMELT_OK) raise_status(status);
    return status == SMELT_OK;
}

static PyObject *from_dlpack(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"", "device", "copy", NULL};
    PyObject *o, *copy = Py_None;
    const char *device = NULL;
    smelt_array *array, *moved;
    smelt_status status;
    (void)self;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|$zO:from_dlpack", names, &o, &device, &copy))
        return NULL;
    if (!has(o, interned.dlpack))
        return PyErr_Format(PyExc_TypeError, "from_dlpack: expected an object with __dlpack__, got %R",
                            (PyObject *)Py_TYPE(o));
    if (!array_share(o, "from_dlpack", copy, &array)) return NULL;
    if (!device || strcmp(device, smelt_array_device(array)) == 0) return array_wrap(array);
    Py_BEGIN_ALLOW_THREADS status = smelt_array_to(array, device, NULL, &moved);
    smelt_array_release(array);
    Py_END_ALLOW_THREADS return status == SMELT_OK ? array_wrap(moved) : raise_status(status);
}

static PyObject *asarray(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"data", "dtype", "copy", NULL};
    PyObject *o, *dtype_name = Py_None, *copy = Py_None;
    smelt_dtype dtype = SMELT_NO_DTYPE;
    smelt_array *array, *converted;
    smelt_status status;
    (void)self;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|OO:asarray", names, &o, &dtype_name, &copy))
        return NULL;
    if (dtype_name != Py_None && !dtype_of_object(dtype_name, "smelt.asarray: dtype", &dtype)) return NULL;
    if (array_of(o) && copy != Py_True && (!dtype || dtype == smelt_array_dtype(array_of(o))))
        return Py_NewRef(o);
    if (PyList_Check(o) || PyTuple_Check(o) || type_of(o) / 16 % 16 == WAY_NUMBER) {
        if (copy == Py_False)
            return PyErr_Format(PyExc_ValueError,
                                "smelt.asarray: data that is not an array needs a copy, but copy is False");
        array = array_of_values(o, dtype);
        return array ? array_wrap(array) : NULL;
    }
    if (!array_share(o, "smelt.asarray", copy, &array)) return NULL;
    if (!dtype || dtype == smelt_array_dtype(array)) return array_wrap(array);
    if (copy == Py_False) {
        smelt_array_release(array);
        return PyErr_Format(PyExc_ValueError, "smelt.asarray: another dtype needs a copy, but copy is False");
    }
    Py_BEGIN_ALLOW_THREADS status = smelt_array_convert(array, dtype, &converted);
    smelt_array_release(array);
    Py_END_ALLOW_THREADS return status == SMELT_OK ? array_wrap(converted) : raise_status(status);
}

/* For tests: the object after a kernel takes and returns it. */
static PyObject *round_trip(PyObject *self, PyObject *o) {
    smelt_array *array;
    enum array_kind kind;
    (void)self;
    return array_import(o, "object", &array, &kind) ? array_export(array, kind) : NULL;
}

#define METHOD(function) (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS

static PyMethodDef functions[] = {
    {"asarray", METHOD(asarray),
     "asarray(data, dtype=None, copy=None)\n--\n\nA smelt.array over the "
     "memory of `data` where that can be: arrays of "
     "any library that are writable and of that\ndtype. Otherwise, or with "
     "copy=True, a copy; with copy=False ValueError "
     "instead. Its dtype stays unless one is given."},
    {"from_dlpack", METHOD(from_dlpack),
     "from_dlpack(x, /, *, device=None, copy=None)\n--\n\nA smelt.array over "
     "the memory of x, which has __dlpack__; as "
     "asarray. device: where it is wanted, 'cpu', 'cuda:0'."},
    {"_round_trip", round_trip, METH_O,
     "_round_trip(x, /)\n--\n\nFor tests: x after a kernel takes and returns it."},
    {0}};

int interop_init(PyObject *module) {
    return PyModule_AddFunctions(module, functions) < 0 ? -1 : numpy_init(module);
}
