/* NumPy's arrays. They are read by the array interface's struct, which is cheap and describes every dtype,
 * and created over an object that exports our memory as bytes. */
#include "interop.h"

/* ---- Reading. The struct as NumPy's documentation of the array interface describes it. */

struct array_interface {
    int two;
    int ndim;
    char kind;
    int itemsize;
    int flags;
    Py_ssize_t *shape, *strides;
    void *data;
    PyObject *descriptor;
};
enum { INTERFACE_NATIVE = 0x200, INTERFACE_WRITABLE = 0x400 };

/* A dtype that NumPy does not have as a number has a name: ml_dtypes' bfloat16. */
static bool dtype_by_name(PyObject *o, char kind, const char *what, smelt_dtype *dtype) {
    PyObject *given = PyObject_GetAttr(o, interned.dtype);
    if (!given) return false;
    bool found = kind == 'V' && dtype_of_object(given, what, dtype);
    PyErr_Clear();
    if (!found)
        PyErr_Format(PyExc_TypeError, "%s: dtype %S is not supported; %s", what, given,
                     kind == 'c'   ? "cast it with .astype(np.complex64)"
                     : kind == 'f' ? "cast it with .astype(np.float32)"
                                   : "expected numbers or bool");
    Py_DECREF(given);
    return found;
}

/* The capsule stays as long as the array: that of a NumPy scalar owns a copy of the number. */
static bool import_by_interface(PyObject *o, const struct request *request, smelt_array **array) {
    PyObject *capsule = PyObject_GetAttr(o, interned.array_struct);
    const struct array_interface *interface = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    struct source source;
    bool good = interface && memory_dimensions(interface->ndim, request->what);
    if (good) {
        source.dtype = memory_dtype(interface->kind, interface->itemsize);
        good = source.dtype || dtype_by_name(o, interface->kind, request->what, &source.dtype);
    }
    if (good) {
        source.shape.ndim = interface->ndim;
        for (int d = 0; d < interface->ndim; d++) {
            source.shape.size[d] = interface->shape[d];
            source.strides[d] = interface->strides[d];
        }
        source.data = interface->data;
        source.swapped = !(interface->flags & INTERFACE_NATIVE);
        source.readonly = !(interface->flags & INTERFACE_WRITABLE);
        source.release = memory_drop_object;
        source.context = Py_NewRef(capsule);
        good = memory_import(&source, request, array);
    }
    Py_XDECREF(capsule);
    return good;
}

/* ---- Reading in place, in a third of the time: an array of numbers as modules that are compiled with
 * NumPy's headers read it. Its layout is part of NumPy's binary interface, and is compared with the array
 * interface before its first use. */

struct array_fields {
    PyObject_HEAD char *data;
    int ndim;
    Py_ssize_t *shape, *strides;
    PyObject *base;
    const struct dtype_fields *dtype;
    int flags; /* INTERFACE_WRITABLE means the same here */
};
struct dtype_fields {
    PyObject_HEAD PyTypeObject *scalar;
    char kind, type, byte_order, own_flags;
    int number;
};

/* By NumPy's number of a dtype; `long` has 8 bytes. */
static const smelt_dtype numbered[] = {
    [0] = SMELT_BOOL,     [1] = SMELT_INT8,       [2] = SMELT_UINT8,   [3] = SMELT_INT16,
    [4] = SMELT_UINT16,   [5] = SMELT_INT32,      [6] = SMELT_UINT32,  [7] = SMELT_INT64,
    [8] = SMELT_UINT64,   [9] = SMELT_INT64,      [10] = SMELT_UINT64, [11] = SMELT_FLOAT32,
    [12] = SMELT_FLOAT64, [14] = SMELT_COMPLEX64, [23] = SMELT_FLOAT16};

static PyObject *ndarray; /* NumPy's type, once it is needed */

static bool find_ndarray(void) {
    PyObject *numpy = ndarray ? NULL : PyImport_ImportModule("numpy");
    if (numpy) ndarray = PyObject_GetAttrString(numpy, "ndarray");
    Py_XDECREF(numpy);
    return ndarray != NULL;
}

/* False for what the array interface must describe: other dtypes, and the other byte order. */
static bool read_in_place(const struct array_fields *fields, struct source *source) {
    const struct dtype_fields *dtype = fields->dtype;
    int number = dtype->number, ndim = fields->ndim;
    bool known = number >= 0 && number < (int)(sizeof numbered / sizeof *numbered) && numbered[number];
    if (!known || (dtype->byte_order != '=' && dtype->byte_order != '|')) return false;
    if (ndim < 0 || ndim > SMELT_MAX_DIMENSIONS) return false;
    source->dtype = numbered[number];
    source->shape.ndim = ndim;
    for (int d = 0; d < ndim; d++) {
        source->shape.size[d] = fields->shape[d];
        source->strides[d] = fields->strides[d];
    }
    source->data = fields->data;
    source->swapped = false;
    source->readonly = !(fields->flags & INTERFACE_WRITABLE);
    return true;
}

/* Whether both ways say the same of an array. */
static bool same_of(PyObject *o) {
    PyObject *capsule = PyObject_GetAttr(o, interned.array_struct);
    const struct array_interface *interface = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    const struct array_fields *fields = (const struct array_fields *)o;
    bool same = interface && fields->data == interface->data && fields->ndim == interface->ndim &&
                fields->dtype->kind == interface->kind &&
                (fields->flags & INTERFACE_WRITABLE) == (interface->flags & INTERFACE_WRITABLE) &&
                (fields->dtype->byte_order == '>') == !(interface->flags & INTERFACE_NATIVE);
    int number = same ? fields->dtype->number : -1;
    same = same && number >= 0 && number < (int)(sizeof numbered / sizeof *numbered) &&
           numbered[number] == memory_dtype(interface->kind, interface->itemsize);
    for (int d = 0; same && d < interface->ndim; d++)
        same = fields->shape[d] == interface->shape[d] && fields->strides[d] == interface->strides[d];
    Py_XDECREF(capsule);
    return same;
}

/* Compares arrays of all dtypes, with strides, read-only and of the other byte order. */
static bool layout_is_known(void) {
    static int known = -1;
    static const char *const names[] = {"?", "b", "B", "h", "H", "i", "I",   "l",  "L",
                                        "q", "Q", "f", "d", "F", "e", ">i2", ">f8"};
    if (known >= 0) return known;
    known = find_ndarray();
    for (size_t i = 0; i < sizeof names / sizeof *names && known; i++) {
        PyObject *whole = PyObject_CallFunction(ndarray, "((ii)s)", 3, 5, names[i]);
        PyObject *part = whole ? PyObject_GetAttrString(whole, "T") : NULL;
        PyObject *done = part ? PyObject_CallMethod(part, "setflags", "i", 0) : NULL;
        known = done && same_of(whole) && same_of(part);
        Py_XDECREF(done);
        Py_XDECREF(part);
        Py_XDECREF(whole);
    }
    PyErr_Clear();
    return known;
}

bool numpy_import(PyObject *o, const struct request *request, smelt_array **array) {
    struct source source;
    if (!layout_is_known() || !Py_IS_TYPE(o, (PyTypeObject *)ndarray) ||
        !read_in_place((const struct array_fields *)o, &source))
        return import_by_interface(o, request, array);
    source.release = memory_drop_object;
    source.context = Py_NewRef(o);
    return memory_import(&source, request, array);
}

/* ---- Making. */

/* The bytes from an array's lowest element to its highest, for NumPy to apply its own strides to. */
struct bytes_object {
    PyObject_HEAD smelt_array *array;
    char *low;
    Py_ssize_t bytes;
};
static PyTypeObject *bytes_type;

static int get_bytes(PyObject *self, Py_buffer *view, int flags) {
    struct bytes_object *o = (struct bytes_object *)self;
    return PyBuffer_FillInfo(view, self, o->low, o->bytes, 0, flags);
}

static void drop_bytes(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    smelt_array_release(((struct bytes_object *)self)->array);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* *offset: from the lowest byte to element (0, …). */
static PyObject *bytes_of(smelt_array *array, int64_t *offset) {
    struct bytes_object *o = PyObject_New(struct bytes_object, bytes_type);
    if (!o) {
        smelt_array_release(array);
        return NULL;
    }
    smelt_shape shape = smelt_array_shape(array);
    int64_t size = smelt_array_size(array), low = 0, high = 0,
            width = (int64_t)smelt_dtype_bytes(smelt_array_dtype(array));
    for (int d = 0; d < shape.ndim && size; d++) {
        int64_t reach = (shape.size[d] - 1) * smelt_array_strides(array)[d];
        *(reach < 0 ? &low : &high) += reach;
    }
    *offset = -low * width;
    o->array = array;
    o->low = size ? (char *)smelt_array_data(array) - *offset : (char *)"";
    o->bytes = size ? (high - low + 1) * width : 0;
    return (PyObject *)o;
}

/* The sizes, or the strides in bytes, as a tuple. */
static PyObject *tuple_of(const int64_t *values, int count, int64_t scale) {
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; i < count && tuple; i++) {
        PyObject *value = PyLong_FromLongLong(values[i] * scale);
        if (!value || PyTuple_SetItem(tuple, i, value) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *make_strided(PyObject *shape, PyObject *dtype, PyObject *bytes, int64_t offset,
                              const smelt_array *array) {
    smelt_shape sizes = smelt_array_shape(array);
    PyObject *strides = tuple_of(smelt_array_strides(array), sizes.ndim,
                                 (int64_t)smelt_dtype_bytes(smelt_array_dtype(array)));
    PyObject *start = strides ? PyLong_FromLongLong(offset) : NULL;
    PyObject *made =
        start ? PyObject_CallFunctionObjArgs(ndarray, shape, dtype, bytes, start, strides, NULL) : NULL;
    Py_XDECREF(start);
    Py_XDECREF(strides);
    return made;
}

PyObject *numpy_export(smelt_array *array) {
    smelt_array *host;
    bool good = array_on_host(array, &host);
    smelt_array_release(array);
    if (!good) return NULL;
    smelt_shape shape = smelt_array_shape(host);
    PyObject *dtype = find_ndarray() ? dtype_numpy(smelt_array_dtype(host)) : NULL;
    int64_t offset;
    PyObject *sizes = dtype ? tuple_of(shape.size, shape.ndim, 1) : NULL;
    if (!sizes) {
        smelt_array_release(host);
        return NULL;
    }
    PyObject *bytes = bytes_of(host, &offset), *made = NULL;
    if (bytes && smelt_array_is_contiguous(host))
        made = PyObject_CallFunctionObjArgs(ndarray, sizes, dtype, bytes, NULL);
    else if (bytes)
        made = make_strided(sizes, dtype, bytes, offset, host);
    Py_XDECREF(bytes);
    Py_DECREF(sizes);
    return made;
}

static PyType_Slot slots[] = {{Py_bf_getbuffer, get_bytes}, {Py_tp_dealloc, drop_bytes}, {0}};
static PyType_Spec spec = {.name = "smelt._Bytes",
                           .basicsize = sizeof(struct bytes_object),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           .slots = slots};

int numpy_init(PyObject *module) {
    bytes_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return bytes_type ? 0 : -1;
}
