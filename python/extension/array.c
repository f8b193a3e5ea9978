/* smelt.array: a handle on a smelt_array, which never changes its shape, dtype or memory. */
#include "extension.h"
#include "operations.h"

#include <structmember.h>

struct array_object {
    PyObject_HEAD smelt_array *array;
    PyObject *weak_references;
};

static PyTypeObject *array_type;

static smelt_array *held(PyObject *self) {
    return ((struct array_object *)self)->array;
}

smelt_array *array_of(PyObject *o) {
    return Py_TYPE(o) == array_type ? held(o) : NULL;
}

PyObject *array_wrap(smelt_array *array) {
    struct array_object *o = PyObject_GC_New(struct array_object, array_type);
    if (!o) {
        smelt_array_release(array);
        return NULL;
    }
    o->array = array;
    o->weak_references = NULL;
    PyObject_GC_Track(o);
    return (PyObject *)o;
}

void array_replace(PyObject *o, smelt_array *array) {
    smelt_array *before = held(o);
    ((struct array_object *)o)->array = smelt_array_retain(array);
    smelt_array_release(before);
}

static int traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static void deallocate(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (((struct array_object *)self)->weak_references) PyObject_ClearWeakRefs(self);
    smelt_array_release(held(self));
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

/* ---- Where it lies. */

bool array_on_host(smelt_array *array, smelt_array **host) {
    smelt_status status;
    if (strcmp(smelt_array_device(array), "cpu") == 0) {
        *host = smelt_array_retain(array);
        return true;
    }
    if (!array_wait(array)) return false;
    Py_BEGIN_ALLOW_THREADS status = smelt_array_to(array, "cpu", NULL, host);
    Py_END_ALLOW_THREADS if (status != SMELT_OK) raise_status(status);
    return status == SMELT_OK;
}

/* Releases the GIL: copies may be long. */
static PyObject *convert(smelt_array *array, smelt_dtype dtype) {
    smelt_array *made;
    smelt_status status;
    Py_BEGIN_ALLOW_THREADS status = smelt_array_convert(array, dtype, &made);
    Py_END_ALLOW_THREADS return status == SMELT_OK ? array_wrap(made) : raise_status(status);
}

static PyObject *to(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"device", NULL};
    const char *device;
    smelt_array *made;
    smelt_status status;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "s:to", names, &device)) return NULL;
    Py_BEGIN_ALLOW_THREADS status = smelt_array_to(held(self), device, NULL, &made);
    Py_END_ALLOW_THREADS if (status != SMELT_OK) return raise_status(status);
    if (made != held(self)) return array_wrap(made);
    smelt_array_release(made);
    return Py_NewRef(self);
}

/* ---- Making one. */

/* Converts `data` to an array; *shared: over memory that is not its own. */
static bool take(PyObject *data, smelt_dtype dtype, const char *what, smelt_array **array, bool *shared) {
    enum array_kind kind;
    *shared = false;
    if (PyList_Check(data) || PyTuple_Check(data) || PyBool_Check(data) || PyLong_Check(data) ||
        PyFloat_Check(data) || PyComplex_Check(data)) {
        *array = array_of_values(data, dtype);
        return *array != NULL;
    }
    *shared = true;
    return array_import(data, what, array, &kind);
}

/* smelt.array(): unrequested double precision becomes single, as for lists of floats. */
static PyObject *new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"data", "dtype", NULL};
    PyObject *data, *dtype_name = Py_None;
    smelt_dtype dtype = SMELT_NO_DTYPE;
    smelt_array *array;
    bool shared;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O:array", names, &data, &dtype_name))
        return NULL;
    if (dtype_name != Py_None && !dtype_of_object(dtype_name, "smelt.array: dtype", &dtype)) return NULL;
    if (!take(data, dtype, "smelt.array", &array, &shared)) return NULL;
    smelt_dtype given = smelt_array_dtype(array);
    if (!dtype) dtype = given == SMELT_FLOAT64 && !array_of(data) ? SMELT_FLOAT32 : given;
    if (!shared && given == dtype) return array_wrap(array);
    PyObject *made = convert(array, dtype);
    smelt_array_release(array);
    return made;
}

static PyObject *astype(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"dtype", NULL};
    PyObject *name;
    smelt_dtype dtype;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O:astype", names, &name)) return NULL;
    if (!dtype_of_object(name, "astype: dtype", &dtype)) return NULL;
    return dtype == smelt_array_dtype(held(self)) ? Py_NewRef(self) : convert(held(self), dtype);
}

static PyObject *view(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"dtype", NULL};
    PyObject *name;
    smelt_dtype dtype;
    smelt_array *made, *base = held(self);
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O:view", names, &name)) return NULL;
    if (!dtype_of_object(name, "view: dtype", &dtype)) return NULL;
    if (strcmp(smelt_array_device(base), "graph") == 0) {
        smelt_apply_desc desc = {.operation = SMELT_OPERATION_VIEW, .inputs = {base}, .dtype = dtype};
        smelt_array_retain(base); /* apply_operation releases it */
        return apply_operation(&desc);
    }
    smelt_status status = smelt_array_reinterpret(base, dtype, &made);
    if (status != SMELT_OK) return raise_status(status);
    if (tape_note("array.view", &base, 1, &made, 1)) return array_export(made, KIND_SMELT);
    smelt_array_release(made);
    return NULL;
}

static PyObject *copy(PyObject *self, PyObject *unused) {
    (void)unused;
    return convert(held(self), smelt_array_dtype(held(self)));
}

/* ---- Pickles: dtype, shape and the bytes in row-major order, in the host's memory. */

static PyObject *shape_tuple(const smelt_array *array) {
    smelt_shape shape = smelt_array_shape(array);
    PyObject *tuple = PyTuple_New(shape.ndim);
    for (int d = 0; d < shape.ndim && tuple; d++) {
        PyObject *size = PyLong_FromLongLong(shape.size[d]);
        if (!size || PyTuple_SetItem(tuple, d, size) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *reduce(PyObject *self, PyObject *unused) {
    smelt_array *host, *dense;
    (void)unused;
    if (!array_on_host(held(self), &host)) return NULL;
    smelt_status status = smelt_array_contiguous(host, &dense);
    smelt_array_release(host);
    if (status != SMELT_OK) return raise_status(status);
    size_t bytes = (size_t)smelt_array_size(dense) * smelt_dtype_bytes(smelt_array_dtype(dense));
    PyObject *made = PyObject_GetAttrString((PyObject *)array_type, "_from_bytes");
    if (made)
        made = Py_BuildValue("N(sNy#)", made, smelt_dtype_name(smelt_array_dtype(dense)), shape_tuple(dense),
                             bytes ? smelt_array_data(dense) : "", (Py_ssize_t)bytes);
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
    const smelt_array *array = held(self);
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
    if (never && strcmp(smelt_array_device(held(self)), "cpu") != 0) {
        PyErr_SetString(PyExc_ValueError, "smelt.array: it is on a device; NumPy needs a copy");
        return NULL;
    }
    PyObject *made = array_export(smelt_array_retain(held(self)), KIND_NUMPY);
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

/* ---- Numbers. */

static Py_ssize_t length(PyObject *self) {
    smelt_shape shape = smelt_array_shape(held(self));
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
    smelt_dtype dtype = smelt_array_dtype(held(self));
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
    PyObject *value = smelt_array_shape(held(self)).ndim ? PyObject_Str(self) : item(self);
    PyObject *result = value ? PyObject_Format(value, specification) : NULL;
    Py_XDECREF(value);
    return result;
}

/* Arrays are compared by identity, not by contents. */
static Py_hash_t hash(PyObject *self) {
    return (Py_hash_t)((uintptr_t)self >> 4);
}

/* ---- Properties. */

static PyObject *get_shape(PyObject *self, void *unused) {
    (void)unused;
    return shape_tuple(held(self));
}

static PyObject *get_strides(PyObject *self, void *unused) {
    (void)unused;
    int ndim = smelt_array_shape(held(self)).ndim;
    int64_t bytes = (int64_t)smelt_dtype_bytes(smelt_array_dtype(held(self)));
    PyObject *tuple = PyTuple_New(ndim);
    for (int d = 0; d < ndim && tuple; d++) {
        PyObject *stride = PyLong_FromLongLong(smelt_array_strides(held(self))[d] * bytes);
        if (!stride || PyTuple_SetItem(tuple, d, stride) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *get_dtype(PyObject *self, void *unused) {
    (void)unused;
    return Py_NewRef(dtype_object(smelt_array_dtype(held(self))));
}

static PyObject *get_ndim(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(smelt_array_shape(held(self)).ndim);
}

static PyObject *get_size(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLongLong(smelt_array_size(held(self)));
}

static PyObject *get_itemsize(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromSize_t(smelt_dtype_bytes(smelt_array_dtype(held(self))));
}

static PyObject *get_nbytes(PyObject *self, void *unused) {
    (void)unused;
    size_t bytes = smelt_dtype_bytes(smelt_array_dtype(held(self)));
    return PyLong_FromLongLong(smelt_array_size(held(self)) * (int64_t)bytes);
}

static PyObject *get_device(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(smelt_array_device(held(self)));
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

#define KEYWORDS (METH_VARARGS | METH_KEYWORDS)
#define METHOD(function) (PyCFunction)(void (*)(void))(function)

static PyMethodDef own_methods[] = {
    {"item", array_item, METH_VARARGS,
     "item($self, /)\n--\n\nThe one element as a Python bool, int, float or complex. ValueError if there are "
     "more, "
     "or none."},
    {"tolist", array_to_list, METH_NOARGS,
     "tolist($self, /)\n--\n\nThe elements as Python numbers in nested lists; of a 0-d array its number."},
    {"astype", METHOD(astype), KEYWORDS,
     "astype($self, /, dtype)\n--\n\nThe array as another dtype: floats round to nearest even, to integers "
     "they "
     "truncate and "
     "saturate,\nintegers wrap. Returns the array itself if it has that dtype."},
    {"view", METHOD(view), KEYWORDS,
     "view($self, /, dtype)\n--\n\nThe array's bytes as another dtype, not copied: the last dimension has as "
     "many more or fewer\nelements. ValueError where that is not a dense row of whole elements."},
    {"to", METHOD(to), KEYWORDS,
     "to($self, /, device)\n--\n\nThe array on a device, 'cpu' or 'cuda:0': itself if it is there, else a "
     "copy. "
     "smelt.NoDeviceError if there is none."},
    {"__array__", METHOD(as_numpy), KEYWORDS,
     "__array__($self, /, dtype=None, copy=None)\n--\n\nThe array as a NumPy array."},
    {"__dlpack__", METHOD(array_to_capsule), KEYWORDS,
     "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\nThe array as "
     "a DLPack "
     "capsule."},
    {"__dlpack_device__", array_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\nDLPack's numbers of the device: (1, 0) is the host's memory, (2, n) "
     "GPU n."},
    {"__complex__", as_complex, METH_NOARGS, NULL},
    {"__format__", format, METH_O, NULL},
    {"__copy__", copy, METH_NOARGS, NULL},
    {"__deepcopy__", copy, METH_O, NULL},
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {"_from_bytes", from_bytes, METH_VARARGS | METH_STATIC, NULL},
    {0}};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct array_object, weak_references), READONLY, NULL}, {0}};

/* ---- The type. */

static PyMethodDef methods[160];

static PyType_Slot own_slots[] = {
    {Py_tp_doc,
     "array(data, dtype=None)\n--\n\nAn array in its own memory on the host; to(device) copies it to a GPU."
     "\n\n"
     "data: a number, numbers in nested lists or tuples, or any array: "
     "NumPy's, torch's, JAX's, CuPy's, MLX's, an object with\n__dlpack__ or a buffer. dtype:"
     " any dtype; by default that of data, "
     "but float32 instead of float64, and "
     "for\nPython's numbers bool, int32, float32 or complex64. TypeError for anything else;"
     " ValueError for lists "
     "of\ndifferent lengths and integers that do not fit.\n\nThe elements are "
     "shared, not copied, with views (a[1:]), "
     "NumPy (np.asarray) and DLPack: writes there\nare visible here."},
    {Py_tp_new, new},
    {Py_tp_dealloc, deallocate},
    {Py_tp_traverse, traverse},
    {Py_tp_repr, array_repr},
    {Py_tp_hash, hash},
    {Py_tp_getset, properties},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {Py_bf_getbuffer, get_buffer},
    {Py_bf_releasebuffer, release_buffer},
    {Py_mp_length, length},
    {Py_mp_subscript, array_subscript},
    {Py_sq_length, length},
    {Py_sq_item, array_sequence_item},
    {Py_nb_bool, is_true},
    {Py_nb_float, as_float},
    {Py_nb_int, as_int},
    {Py_nb_index, as_index},
    {0}};

/* Appends the entries of `from` to `to`; replaces existing ones. */
static void add_slots(PyType_Slot *to, int *count, const PyType_Slot *from) {
    for (; from->slot; from++) {
        int i = 0;
        while (i < *count && to[i].slot != from->slot) i++;
        if (i == *count) ++*count;
        to[i] = *from;
    }
}

static void add_methods(PyMethodDef *to, int *count, const PyMethodDef *from) {
    for (; from->ml_name; from++) {
        int i = 0;
        while (i < *count && strcmp(to[i].ml_name, from->ml_name) != 0) i++;
        if (i == *count) ++*count;
        to[i] = *from;
    }
}

int array_init(PyObject *module) {
    PyType_Slot slots[96] = {{0}};
    int slot_count = 0, method_count = 0;
    add_methods(methods, &method_count, own_methods);
    add_methods(methods, &method_count, array_operator_methods);
    add_slots(slots, &slot_count, own_slots);
    add_slots(slots, &slot_count, array_operator_slots);
    PyType_Spec spec = {.name = "smelt.array",
                        .basicsize = sizeof(struct array_object),
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
                        .slots = slots};
    array_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return array_type ? PyModule_AddObjectRef(module, "array", (PyObject *)array_type) : -1;
}
