/* smelt.Tensor: a handle on a smelt_tensor. */
#include "call.h"

struct tensor_object {
    PyObject_HEAD smelt_tensor *tensor;
};

static PyTypeObject *tensor_type;

smelt_tensor *tensor_of(PyObject *o) {
    return Py_TYPE(o) == tensor_type ? ((struct tensor_object *)o)->tensor : NULL;
}

PyObject *tensor_wrap(smelt_tensor *tensor) {
    allocfunc allocate = (allocfunc)PyType_GetSlot(tensor_type, Py_tp_alloc);
    struct tensor_object *o = (struct tensor_object *)allocate(tensor_type, 0);
    if (o)
        o->tensor = tensor;
    else
        smelt_tensor_release(tensor);
    return (PyObject *)o;
}

static void dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    smelt_tensor_release(((struct tensor_object *)self)->tensor);
    release(self);
    Py_DECREF(type);
}

/* ---- Arguments. */

const char *tensor_string(PyObject *o, const char *what) {
    Py_ssize_t size;
    const char *string = PyUnicode_AsUTF8AndSize(o, &size);
    if (!string || strlen(string) == (size_t)size) return string;
    PyErr_Format(PyExc_ValueError, "%s is %R, which has a null character", what, o);
    return NULL;
}

bool tensor_element(PyObject *o, const char *what, int *element) {
    const char *name = PyUnicode_Check(o) ? tensor_string(o, what) : NULL;
    smelt_dtype dtype;
    if (name && smelt_element_from_name(name, element) == SMELT_OK) return true;
    if (PyErr_Occurred()) return false;
    if (name) return raise_status(SMELT_ERROR_INVALID_ARGUMENT) != NULL;
    if (!dtype_of_object(o, what, &dtype)) return false;
    *element = (int)dtype;
    return true;
}

/* Whole numbers, one per dimension; *count is set if it is 0. */
static bool sizes_of(PyObject *o, const char *what, int64_t *sizes, int *count) {
    Py_ssize_t length = is_list(o) ? length_of(o) : -1;
    bool good = length >= 1 && length <= SMELT_MAX_DIMENSIONS && (!*count || length == *count);
    for (Py_ssize_t d = 0; d < length && good; d++) good = integer_of(item_of(o, d), &sizes[d]);
    if (good && !*count) *count = (int)length;
    if (good || PyErr_Occurred()) return good;
    if (*count)
        PyErr_Format(PyExc_TypeError, "%s is %R; expected %d whole number%s", what, o, *count,
                     *count == 1 ? "" : "s");
    else
        PyErr_Format(PyExc_TypeError, "%s is %R; expected 1 to %d whole numbers", what, o,
                     SMELT_MAX_DIMENSIONS);
    return false;
}

/* (dtype, blocks) */
static bool plane_desc_of(PyObject *o, const char *what, int ndim, smelt_tensor_plane_desc *desc) {
    if (o == Py_None) return true;
    if (!is_list(o) || length_of(o) != 2) {
        PyErr_Format(PyExc_TypeError,
                     "%s is %R; expected a pair of a dtype and a block, as ('ue8m0', (32, 1))", what, o);
        return false;
    }
    if (!tensor_element(item_of(o, 0), what, &desc->element) ||
        !sizes_of(item_of(o, 1), what, desc->block, &ndim))
        return false;
    for (int d = 0; d < ndim; d++)
        if (desc->block[d] < 1) {
            PyErr_Format(PyExc_ValueError, "%s is %R: size %lld of its block is less than 1", what, o,
                         (long long)desc->block[d]);
            return false;
        }
    return true;
}

static bool usage_of(PyObject *o, unsigned *usage) {
    static const struct {
        const char *name;
        unsigned bit;
    } names[] = {{"compute", SMELT_TENSOR_COMPUTE},
                 {"render", SMELT_TENSOR_RENDER},
                 {"machine_learning", SMELT_TENSOR_MACHINE_LEARNING}};
    bool one = PyUnicode_Check(o);
    if (o == Py_None) return true;
    Py_ssize_t count = one ? 1 : is_list(o) ? length_of(o) : 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *word = one ? o : item_of(o, i);
        unsigned bit = 0;
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (PyUnicode_Check(word) && PyUnicode_CompareWithASCIIString(word, names[k].name) == 0)
                bit = names[k].bit;
        *usage |= bit;
        if (!bit) count = 0;
    }
    if (count) return true;
    PyErr_Format(PyExc_ValueError,
                 "Tensor: usage is %R; expected 'compute', 'render', 'machine_learning' or several", o);
    return false;
}

static bool plane_of(const char *name, smelt_tensor_plane *plane) {
    static const char *const names[] = {"data", "scales", "biases"};
    for (int p = 0; p < SMELT_PLANE_COUNT; p++)
        if (strcmp(name, names[p]) == 0) {
            *plane = (smelt_tensor_plane)p;
            return true;
        }
    PyErr_Format(PyExc_ValueError, "Tensor: plane is '%s'; expected 'data', 'scales' or 'biases'", name);
    return false;
}

PyObject *tensor_tuple(const int64_t *numbers, int count) {
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; i < count && tuple; i++) {
        PyObject *number = PyLong_FromLongLong(numbers[i]);
        if (!number || PyTuple_SetItem(tuple, i, number) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

/* ---- Making one. */

static PyObject *new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"dimensions", "dtype", "strides", "usage", "scales", "biases", "device", NULL};
    PyObject *dimensions, *dtype, *strides = Py_None, *usage = Py_None, *scales = Py_None, *biases = Py_None;
    smelt_tensor_desc desc;
    smelt_tensor *tensor;
    smelt_status status;
    memset(&desc, 0, sizeof desc);
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO|$OOOOz:Tensor", names, &dimensions, &dtype,
                                     &strides, &usage, &scales, &biases, &desc.device))
        return NULL;
    if (!tensor_element(dtype, "Tensor: dtype", &desc.element) ||
        !sizes_of(dimensions, "Tensor: dimensions", desc.dimensions, &desc.ndim) ||
        (strides != Py_None && !sizes_of(strides, "Tensor: strides", desc.strides, &desc.ndim)) ||
        !usage_of(usage, &desc.usage) || !plane_desc_of(scales, "Tensor: scales", desc.ndim, &desc.scales) ||
        !plane_desc_of(biases, "Tensor: biases", desc.ndim, &desc.biases))
        return NULL;
    Py_BEGIN_ALLOW_THREADS status = smelt_tensor_create(&desc, &tensor);
    Py_END_ALLOW_THREADS return status == SMELT_OK ? tensor_wrap(tensor) : raise_status(status);
}

static PyObject *from_array(PyObject *type, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"array", "dtype", NULL};
    PyObject *o, *dtype = Py_None;
    smelt_array *array;
    smelt_tensor *tensor;
    int element = 0;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O:from_array", names, &o, &dtype)) return NULL;
    if (dtype != Py_None && !tensor_element(dtype, "Tensor.from_array: dtype", &element)) return NULL;
    if (!array_share(o, "Tensor.from_array", Py_None, &array)) return NULL;
    smelt_status status = smelt_tensor_from_array(array, element, &tensor);
    smelt_array_release(array);
    return status == SMELT_OK ? tensor_wrap(tensor) : raise_status(status);
}

static PyObject *error_dictionary(const smelt_quantise_error *e) {
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:d,s:L,s:d,s:d,s:d}", "count", (long long)e->count, "not_finite",
                         (long long)e->not_finite, "flushed", (long long)e->flushed, "saturated",
                         (long long)e->saturated, "largest", e->largest, "at", (long long)e->at, "mean",
                         e->mean, "root_mean_square", e->root_mean_square, "signal_to_noise",
                         e->signal_to_noise);
}

static PyObject *member(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"index_bytes", NULL};
    int index_bytes = 4;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|i:member", names, &index_bytes)) return NULL;
    if (index_bytes != 1 && index_bytes != 2 && index_bytes != 4 && index_bytes != 8)
        return PyErr_Format(PyExc_ValueError, "Tensor.member: index_bytes is %d, expected 1, 2, 4 or 8",
                            index_bytes);
    smelt_tensor_desc desc;
    smelt_status status = smelt_tensor_describe(tensor_of(self), &desc);
    unsigned char bytes[24 + 24 * SMELT_MAX_DIMENSIONS];
    Py_ssize_t size = 24 + 16 * desc.ndim + (index_bytes * desc.ndim + 7) / 8 * 8;
    if (status == SMELT_OK)
        status = smelt_tensor_member(tensor_of(self), (size_t)index_bytes, bytes, (size_t)size);
    return status == SMELT_OK ? PyBytes_FromStringAndSize((char *)bytes, size) : raise_status(status);
}

static PyObject *quantise(PyObject *type, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"array", "dtype", "group", "scales", NULL};
    PyObject *o, *dtype, *group = NULL, *scales = Py_None;
    smelt_quantise_desc desc;
    smelt_quantise_error error;
    smelt_array *array;
    smelt_tensor *tensor;
    enum array_kind kind;
    smelt_status status;
    memset(&desc, 0, sizeof desc);
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO|OO:quantise", names, &o, &dtype, &group,
                                     &scales))
        return NULL;
    if (!tensor_element(dtype, "Tensor.quantise: dtype", &desc.element)) return NULL;
    if (scales != Py_None && !dtype_of_object(scales, "Tensor.quantise: scales", &desc.scales)) return NULL;
    if (group && !integer_of(group, &desc.group)) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "Tensor.quantise: group is %R; expected a whole number", group);
        return NULL;
    }
    if (!array_import(o, "Tensor.quantise", &array, &kind)) return NULL;
    Py_BEGIN_ALLOW_THREADS status = smelt_tensor_quantise(array, &desc, &tensor, &error);
    Py_END_ALLOW_THREADS smelt_array_release(array);
    if (status != SMELT_OK) return raise_status(status);
    PyObject *made = tensor_wrap(tensor), *dictionary = made ? error_dictionary(&error) : NULL;
    return dictionary ? Py_BuildValue("NN", made, dictionary) : (Py_XDECREF(made), NULL);
}

/* ---- Contents. */

static PyObject *array_of_plane(PyObject *self, PyObject *arguments) {
    const char *name = "data";
    smelt_tensor_plane plane;
    smelt_array *array;
    if (!PyArg_ParseTuple(arguments, "|s:array", &name) || !plane_of(name, &plane)) return NULL;
    smelt_status status = smelt_tensor_array(tensor_of(self), plane, &array);
    return status == SMELT_OK ? array_wrap(array) : raise_status(status);
}

static PyObject *dequantise(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"dtype", NULL};
    PyObject *name = Py_None;
    smelt_dtype dtype = SMELT_NO_DTYPE;
    smelt_array *array;
    smelt_status status;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O:dequantise", names, &name)) return NULL;
    if (name != Py_None && !dtype_of_object(name, "Tensor.dequantise: dtype", &dtype)) return NULL;
    Py_BEGIN_ALLOW_THREADS status = smelt_tensor_dequantise(tensor_of(self), dtype, &array);
    Py_END_ALLOW_THREADS return status == SMELT_OK ? array_wrap(array) : raise_status(status);
}

/* Extents of a plane in its elements, and how many of them a unit of its array has. */
static bool extents_of(const smelt_tensor *tensor, smelt_tensor_plane plane, smelt_tensor_desc *desc,
                       int64_t *extents, int64_t *in_unit) {
    smelt_status status = smelt_tensor_describe(tensor, desc);
    if (status != SMELT_OK) return raise_status(status) != NULL;
    const smelt_tensor_plane_desc *extra = plane == SMELT_PLANE_SCALES ? &desc->scales : &desc->biases;
    int element = plane == SMELT_PLANE_DATA ? desc->element : extra->element;
    for (int d = 0; d < desc->ndim; d++)
        extents[d] = plane == SMELT_PLANE_DATA || !element ? desc->dimensions[d]
                                                           : desc->dimensions[d] / extra->block[d];
    *in_unit = element >= (int)SMELT_INT4 ? 8 / smelt_element_bits(element) : 1;
    return true;
}

/* A slice of a plane, and the shape and dtype of an array that holds it. */
static bool slice_of(PyObject *self, const char *name, PyObject *origin, PyObject *size,
                     smelt_tensor_slice *slice, smelt_shape *shape, smelt_dtype *dtype) {
    smelt_tensor_desc desc;
    smelt_array *view;
    int64_t extents[SMELT_MAX_DIMENSIONS] = {0}, in_unit = 1;
    memset(slice, 0, sizeof *slice);
    if (!plane_of(name, &slice->plane)) return false;
    smelt_status status = smelt_tensor_array(tensor_of(self), slice->plane, &view);
    if (status != SMELT_OK) return raise_status(status) != NULL;
    *dtype = smelt_array_dtype(view);
    smelt_array_release(view);
    if (!extents_of(tensor_of(self), slice->plane, &desc, extents, &in_unit)) return false;
    if (origin != Py_None && !sizes_of(origin, "Tensor: origin", slice->origin, &desc.ndim)) return false;
    for (int d = 0; d < desc.ndim; d++)
        slice->size[d] = slice->origin[d] < 0 ? extents[d] : extents[d] - slice->origin[d];
    if (size != Py_None && !sizes_of(size, "Tensor: size", slice->size, &desc.ndim)) return false;
    shape->ndim = desc.ndim;
    for (int d = 0; d < desc.ndim; d++) {
        /* No memory is allocated for what the plane does not have: reading it says so. */
        if (slice->size[d] > extents[d])
            return raise_status(smelt_tensor_read_slice(tensor_of(self), slice, &(char){0}, 1)) != NULL;
        int64_t units = slice->size[d] / (d ? 1 : in_unit);
        shape->size[desc.ndim - 1 - d] = units > 0 ? units : 0;
    }
    return true;
}

static size_t bytes_of(const smelt_array *array) {
    return (size_t)smelt_array_size(array) * smelt_dtype_bytes(smelt_array_dtype(array));
}

static PyObject *read_slice(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"plane", "origin", "size", NULL};
    const char *plane = "data";
    PyObject *origin = Py_None, *size = Py_None;
    smelt_tensor_slice slice;
    smelt_shape shape;
    smelt_dtype dtype;
    smelt_array *array;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|sOO:read", names, &plane, &origin, &size))
        return NULL;
    if (!slice_of(self, plane, origin, size, &slice, &shape, &dtype)) return NULL;
    smelt_status status = smelt_array_create(dtype, shape, &array);
    if (status != SMELT_OK) return raise_status(status);
    Py_BEGIN_ALLOW_THREADS status =
        smelt_tensor_read_slice(tensor_of(self), &slice, smelt_array_data(array), bytes_of(array));
    Py_END_ALLOW_THREADS if (status == SMELT_OK) return array_wrap(array);
    smelt_array_release(array);
    return raise_status(status);
}

/* A row-contiguous array on the host of the dtype that the plane's memory has. */
static smelt_array *values_for(PyObject *values, smelt_dtype dtype) {
    smelt_array *given, *host, *dense;
    enum array_kind kind;
    if (!array_import(values, "Tensor.write", &given, &kind)) return NULL;
    bool good = smelt_array_dtype(given) == dtype;
    if (!good)
        PyErr_Format(PyExc_ValueError, "Tensor.write: the values are of %s; expected %s",
                     smelt_dtype_name(smelt_array_dtype(given)), smelt_dtype_name(dtype));
    good = good && array_on_host(given, &host);
    smelt_array_release(given);
    if (!good) return NULL;
    smelt_status status = smelt_array_contiguous(host, &dense);
    smelt_array_release(host);
    return status == SMELT_OK ? dense : (raise_status(status), NULL);
}

static bool same_shape(const smelt_array *array, const smelt_shape *wanted) {
    smelt_shape shape = smelt_array_shape(array);
    bool same = shape.ndim == wanted->ndim;
    for (int d = 0; d < shape.ndim && same; d++) same = shape.size[d] == wanted->size[d];
    if (same) return true;
    PyObject *found = tensor_tuple(shape.size, shape.ndim),
             *expected = tensor_tuple(wanted->size, wanted->ndim);
    if (found && expected)
        PyErr_Format(PyExc_ValueError, "Tensor.write: the values have shape %R; expected %R", found,
                     expected);
    Py_XDECREF(found);
    Py_XDECREF(expected);
    return false;
}

static PyObject *write_slice(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"values", "plane", "origin", "size", NULL};
    const char *plane = "data";
    PyObject *values, *origin = Py_None, *size = Py_None;
    smelt_tensor_slice slice;
    smelt_shape shape;
    smelt_dtype dtype;
    smelt_status status;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|sOO:write", names, &values, &plane, &origin,
                                     &size))
        return NULL;
    if (!slice_of(self, plane, origin, size, &slice, &shape, &dtype)) return NULL;
    smelt_array *array = values_for(values, dtype);
    if (!array) return NULL;
    if (!same_shape(array, &shape)) {
        smelt_array_release(array);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS status =
        smelt_tensor_write_slice(tensor_of(self), &slice, smelt_array_data(array), bytes_of(array));
    Py_END_ALLOW_THREADS smelt_array_release(array);
    return status == SMELT_OK ? Py_NewRef(Py_None) : raise_status(status);
}

/* ---- Properties. */

enum { DIMENSIONS, STRIDES, DTYPE, NDIM, DEVICE, SCALES, BIASES, USAGE };

static PyObject *plane_pair(const smelt_tensor_plane_desc *desc, int ndim) {
    if (!desc->element) Py_RETURN_NONE;
    return Py_BuildValue("sN", smelt_element_name(desc->element), tensor_tuple(desc->block, ndim));
}

static PyObject *usage_tuple(unsigned usage) {
    static const char *const names[] = {"compute", "render", "machine_learning"};
    PyObject *list = PyList_New(0), *tuple;
    for (int i = 0; i < 3 && list; i++) {
        PyObject *word = usage >> i & 1 ? PyUnicode_FromString(names[i]) : NULL;
        if (word && PyList_Append(list, word) < 0) Py_CLEAR(list);
        Py_XDECREF(word);
    }
    tuple = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return tuple;
}

static PyObject *get(PyObject *self, void *closure) {
    smelt_tensor_desc desc;
    smelt_status status = smelt_tensor_describe(tensor_of(self), &desc);
    if (status != SMELT_OK) return raise_status(status);
    switch ((int)(intptr_t)closure) {
    case DIMENSIONS:
        return tensor_tuple(desc.dimensions, desc.ndim);
    case STRIDES:
        return tensor_tuple(desc.strides, desc.ndim);
    case DTYPE:
        return PyUnicode_FromString(smelt_element_name(desc.element));
    case NDIM:
        return PyLong_FromLong(desc.ndim);
    case DEVICE:
        return PyUnicode_FromString(desc.device);
    case SCALES:
        return plane_pair(&desc.scales, desc.ndim);
    case BIASES:
        return plane_pair(&desc.biases, desc.ndim);
    default:
        return usage_tuple(desc.usage);
    }
}

static PyObject *repr(PyObject *self) {
    smelt_tensor_desc desc;
    (void)smelt_tensor_describe(tensor_of(self), &desc);
    PyObject *dimensions = tensor_tuple(desc.dimensions, desc.ndim);
    if (!dimensions) return NULL;
    PyObject *text =
        PyUnicode_FromFormat("<smelt.Tensor %R of %s%s%s on %s>", dimensions,
                             smelt_element_name(desc.element), desc.scales.element ? ", scales of " : "",
                             desc.scales.element ? smelt_element_name(desc.scales.element) : "", desc.device);
    Py_DECREF(dimensions);
    return text;
}

/* ---- The type. */

#define GETTER(name, which, text) {name, get, NULL, text, (void *)(intptr_t)(which)}
static PyGetSetDef getters[] = {
    GETTER("dimensions", DIMENSIONS, "The dimensions, the innermost first."),
    GETTER("strides", STRIDES, "The strides in elements, the innermost dimension's first."),
    GETTER("dtype", DTYPE, "The name of the elements' type: 'float16', 'fp8_e4m3'."),
    GETTER("ndim", NDIM, "The number of dimensions."),
    GETTER("device", DEVICE, "The device that holds its memory."),
    GETTER("scales", SCALES, "The scales' type and block, ('ue8m0', (32, 1)), or None."),
    GETTER("biases", BIASES, "The biases' type and block, or None."),
    GETTER("usage", USAGE, "What it is for: ('compute',)."),
    {0}};
#define KEYWORDS(function) (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS
static PyMethodDef methods[] = {
    {"from_array", (PyCFunction)(void (*)(void))from_array, METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "from_array(array, dtype=None)\n--\n\nA tensor over an array's memory, or a copy if that is read-only: "
     "an "
     "array of shape (R, C) has the dimensions (C, R). dtype: of the elements, where an array of uint8 holds "
     "the bytes of a packed format."},
    {"quantise", (PyCFunction)(void (*)(void))quantise, METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "quantise(array, dtype, group=0, scales=None)\n--\n\nA tensor with the array's values rounded to "
     "'fp8_e4m3', "
     "'fp8_e5m2' or 'fp4_e2m1' with scales of ue8m0 (OCP's microscaling formats), to 'uint2', 'uint4' or "
     "'uint8' with scales "
     "and biases as MLX's quantize, or to 'int2', 'int4' or 'int8' with scales; and a dict with the error. "
     "group: how many "
     "elements of the last dimension share a scale (32; of integers 64). scales: of integers, the dtype of "
     "scales and "
     "biases (float32)."},
    {"dequantise", KEYWORDS(dequantise),
     "dequantise($self, dtype=None)\n--\n\nThe values as a new array (float32): data times scale, plus "
     "bias."},
    {"array", array_of_plane, METH_VARARGS,
     "array($self, plane='data', /)\n--\n\nA view of a plane ('data', 'scales', 'biases') as an array, the "
     "outermost dimension "
     "first; of packed formats, the bytes."},
    {"member", KEYWORDS(member),
     "member($self, index_bytes=4)\n--\n\nThe bytes that a kernel's structure of arguments holds where it "
     "has the tensor as a "
     "member, with extents whose index type has so many bytes. Keep the tensor until the launch has "
     "ended."},
    {"read", KEYWORDS(read_slice),
     "read($self, plane='data', origin=None, size=None)\n--\n\nA copy of a part of a plane. origin and size "
     "count elements of "
     "the plane, the innermost dimension first; by default all that follows the origin."},
    {"write", KEYWORDS(write_slice),
     "write($self, values, plane='data', origin=None, size=None)\n--\n\nWrites a part of a plane, as `read` "
     "returns it."},
    {0}};

static PyType_Slot slots[] = {
    {Py_tp_new, new},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_repr, repr},
    {Py_tp_doc,
     "Tensor(dimensions, dtype, *, strides=None, usage=None, scales=None, biases=None, device=None)\n--\n\n"
     "A tensor for a kernel's argument of type `tensor`: zeros of the given dimensions, the innermost first. "
     "dtype: "
     "that of an array, or 'int4', 'uint4', 'int2', 'uint2', 'fp4_e2m1', 'fp8_e4m3', 'fp8_e5m2', 'ue8m0'. "
     "scales, biases: a dtype and the elements per value in each dimension, ('ue8m0', (32, 1)). usage: "
     "'compute', "
     "'render', 'machine_learning' or several. ValueError states the rule of Metal that is not met."},
    {0}};
static PyType_Spec spec = {.name = "smelt._smelt.Tensor",
                           .basicsize = sizeof(struct tensor_object),
                           .flags = Py_TPFLAGS_DEFAULT,
                           .slots = slots};

int tensor_init(PyObject *module) {
    tensor_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    if (!tensor_type || PyModule_AddObjectRef(module, "Tensor", (PyObject *)tensor_type) < 0) return -1;
    return 0;
}
