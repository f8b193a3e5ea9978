/* The sizes and arguments of a call of a function of a library, converted to those of a launch. */
#include "dispatch.h"

/* ---- Sizes. */

bool function_size(const struct function *function, PyObject *o, const char *name, int64_t sizes[3]) {
    if (!PyLong_Check(o)) return triple_of(o, function->text, name, sizes);
    sizes[1] = sizes[2] = 1;
    if (integer_of(o, sizes) && sizes[0] >= 1 && sizes[0] < INT64_MAX) return true;
    PyObject *one = PyTuple_Pack(1, o);
    bool good = one && triple_of(one, function->text, name, sizes);
    Py_XDECREF(one);
    return good;
}

/* The default threads per group: 256 in rows of 32 or more, fewer for fewer threads. */
static void suggest_group(const int64_t threads[3], int64_t group[3]) {
    bool flat = threads[1] == 1 && threads[2] == 1;
    const int64_t most[3] = {flat ? 256 : 32, 8, 1};
    for (int d = 0; d < 3; d++) group[d] = threads[d] < most[d] ? threads[d] : most[d];
}

/* Whether o.dtype has an attribute of this name that is neither None nor False. */
static bool has_in_dtype(PyObject *o, const char *name) {
    PyObject *dtype = PyObject_GetAttrString(o, "dtype"), *value = NULL;
    if (dtype) value = PyObject_GetAttrString(dtype, name);
    bool found = value && value != Py_None && value != Py_False;
    Py_XDECREF(value);
    Py_XDECREF(dtype);
    PyErr_Clear();
    return found;
}

/* Whether `o` is a NumPy structured array, or a record of one: its dtype has fields. */
static bool has_fields(PyObject *o) {
    return has_in_dtype(o, "fields");
}

/* Whether the fields of a structured array have the machine's byte order. */
static bool has_native_fields(PyObject *o) {
    return has_in_dtype(o, "isnative");
}

static bool count_records(PyObject *o, int64_t *count) {
    PyObject *size = PyObject_GetAttrString(o, "size");
    bool good = size && integer_of(size, count);
    Py_XDECREF(size);
    return good;
}

static bool count_tensor(const smelt_tensor *tensor, int64_t *count) {
    smelt_tensor_desc desc;
    smelt_status status = smelt_tensor_describe(tensor, &desc);
    if (status != SMELT_OK) return raise_status(status) != NULL;
    *count = 1;
    for (int d = 0; d < desc.ndim; d++) *count *= desc.dimensions[d];
    return true;
}

/* Elements of the first argument that is an array or a tensor, by position or else by name. */
static bool count_elements(const struct function *function, PyObject *arguments, PyObject *keywords,
                           int64_t *count) {
    PyObject *key, *value, *first = NULL;
    Py_ssize_t position = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(arguments) && !first; i++)
        if (!dispatch_is_number(PyTuple_GetItem(arguments, i))) first = PyTuple_GetItem(arguments, i);
    while (!first && keywords && PyDict_Next(keywords, &position, &key, &value))
        if (dispatch_option(key) < 0 && !dispatch_is_number(value)) first = value;
    if (!first) {
        PyErr_Format(PyExc_TypeError,
                     "kernel '%s': threads or groups must be given if no argument is an array",
                     function->text);
        return false;
    }
    smelt_array *array;
    enum array_kind kind;
    if (tensor_of(first)) return count_tensor(tensor_of(first), count);
    if (has_fields(first)) return count_records(first, count);
    if (!array_import(first, function->text, &array, &kind)) return false;
    *count = smelt_array_size(array);
    smelt_array_release(array);
    return true;
}

bool dispatch_read_sizes(struct dispatch *dispatch, PyObject *arguments, PyObject *keywords,
                         PyObject *const *options) {
    PyObject *threads = options[THREADS], *groups = options[GROUPS], *group_size = options[GROUP_SIZE];
    const struct function *function = dispatch->function;
    smelt_dispatch_desc *desc = &dispatch->desc;
    if (threads && groups)
        return dispatch_fail_argument(function, "threads and groups are both given; expected one of them",
                                      groups);
    if (group_size && !function_size(function, group_size, "group_size", desc->threadgroup)) return false;
    if (groups) {
        if (!group_size) {
            PyErr_Format(PyExc_TypeError, "kernel '%s': group_size must be given with groups",
                         function->text);
            return false;
        }
        return function_size(function, groups, "groups", desc->groups);
    }
    if (threads && !function_size(function, threads, "threads", desc->grid)) return false;
    if (!threads) {
        if (!count_elements(function, arguments, keywords, &desc->grid[0])) return false;
        desc->grid[1] = desc->grid[2] = 1;
    }
    if (!group_size) suggest_group(desc->grid, desc->threadgroup);
    return true;
}

/* ---- Arguments. */

static bool fail_strided(const char *what) {
    PyErr_Format(PyExc_ValueError,
                 "%s is not row-contiguous; functions of libraries take arrays without strides", what);
    return false;
}

static bool bind_array(struct dispatch *dispatch, PyObject *o, const char *what,
                       const smelt_parameter *parameter) {
    smelt_buffer *buffer = &dispatch->desc.buffers[parameter->index];
    enum array_kind kind;
    bool good = parameter->writable ? array_import_for_writing(o, what, &buffer->array, &kind)
                                    : array_import(o, what, &buffer->array, &kind);
    if (!good) {
        buffer->array = NULL;
        return false;
    }
    if (!parameter->rank && !smelt_array_is_contiguous(buffer->array)) return fail_strided(what);
    if (smelt_parameter_check(parameter, smelt_array_dtype(buffer->array)) != SMELT_OK) {
        PyErr_Format(PyExc_ValueError, "kernel '%s': %s", dispatch->function->text, smelt_error());
        return false;
    }
    if (kind != KIND_SCALAR && (dispatch->kind == KIND_SCALAR || dispatch->kind == KIND_NUMPY))
        dispatch->kind = kind;
    return true;
}

/* A constant number: `constant uint &n`. */
static bool is_one(const smelt_parameter *parameter) {
    return !parameter->pointer && !parameter->writable && parameter->dtype != SMELT_NO_DTYPE;
}

/* NumPy's scalars, and arrays without dimensions, are numbers if the function takes a number. */
static bool has_no_dimensions(PyObject *o) {
    PyObject *ndim = PyObject_GetAttrString(o, "ndim");
    bool none = ndim && PyLong_Check(ndim) && PyLong_AsLong(ndim) == 0;
    Py_XDECREF(ndim);
    PyErr_Clear();
    return none;
}

/* A record taken from an array, or a scalar of NumPy: other than an array without dimensions, it has no
 * memory of its own to write to. */
static bool is_numpy_scalar(PyObject *o) {
    PyObject *numpy = PyImport_GetModule(interned.numpy), *generic = NULL;
    if (numpy) generic = PyObject_GetAttrString(numpy, "generic");
    bool scalar = generic && PyObject_IsInstance(o, generic) == 1;
    Py_XDECREF(generic);
    Py_XDECREF(numpy);
    PyErr_Clear();
    return scalar;
}

/* The bytes of a structured array, as an array that shares them. The size of its structures must be the
 * parameter's: NumPy packs fields, and Metal aligns them. */
static PyObject *bytes_of_records(PyObject *o, const char *what, const smelt_parameter *parameter) {
    bool one = has_no_dimensions(o);
    PyObject *item_size = PyObject_GetAttrString(o, "itemsize"), *rows = NULL, *bytes = NULL;
    Py_ssize_t size = item_size ? PyLong_AsSsize_t(item_size) : -1;
    if (size < 0) goto end;
    if (one && parameter->writable && is_numpy_scalar(o)) {
        PyErr_Format(PyExc_TypeError, "%s is one record, but the kernel writes it; expected an array", what);
        goto end;
    }
    if ((size_t)size != parameter->bytes) {
        PyErr_Format(PyExc_ValueError,
                     "%s has structures of %zd bytes, expected %zu; numpy.dtype takes the 'offsets' and the "
                     "'itemsize' of a structure",
                     what, size, parameter->bytes);
        goto end;
    }
    if (!has_native_fields(o)) {
        PyErr_Format(PyExc_ValueError, "%s has fields of the other byte order; expected little-endian ones",
                     what);
        goto end;
    }
    rows = one ? PyObject_CallMethod(o, "reshape", "i", 1) : Py_NewRef(o);
    if (rows) bytes = PyObject_CallMethod(rows, "view", "s", "uint8");
    if (rows && !bytes && PyErr_ExceptionMatches(PyExc_ValueError)) fail_strided(what);
    if (rows && !bytes && PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "%s has fields of Python objects; expected numbers", what);
end:
    Py_XDECREF(rows);
    Py_XDECREF(item_size);
    return bytes;
}

static bool bind_value(struct dispatch *dispatch, PyObject *o, const smelt_parameter *parameter) {
    smelt_buffer *buffer = &dispatch->desc.buffers[parameter->index];
    const char *what = dispatch_label(dispatch->function, parameter);
    if (tensor_of(o)) {
        buffer->tensor = smelt_tensor_retain(tensor_of(o));
        return true;
    }
    if (!dispatch_is_number(o) && is_one(parameter) && has_no_dimensions(o)) {
        PyObject *item = PyObject_CallMethod(o, "item", NULL);
        bool good = item && bind_value(dispatch, item, parameter);
        Py_XDECREF(item);
        return good;
    }
    if (!dispatch_is_number(o) && parameter->dtype == SMELT_NO_DTYPE && has_fields(o)) {
        PyObject *bytes = bytes_of_records(o, what, parameter);
        bool good = bytes && bind_array(dispatch, bytes, what, parameter);
        Py_XDECREF(bytes);
        return good;
    }
    if (!dispatch_is_number(o)) return bind_array(dispatch, o, what, parameter);
    if (parameter->writable) {
        PyErr_Format(PyExc_TypeError, "%s is %R, but the kernel writes it; expected an array", what, o);
        return false;
    }
    if (PyBytes_Check(o)) {
        char *data;
        Py_ssize_t length;
        if (PyBytes_AsStringAndSize(o, &data, &length) < 0) return false;
        buffer->bytes = data;
        buffer->size = (size_t)length;
        return true;
    }
    dispatch->bytes[parameter->index] = bytes_of_numbers(o, what, parameter, &buffer->size);
    buffer->bytes = dispatch->bytes[parameter->index];
    return buffer->bytes != NULL;
}

/* Metal has 31 places for buffers. */
static bool check_indices(const struct function *function) {
    for (int i = 0; i < function->parameter_count; i++) {
        const smelt_parameter *parameter = &function->parameters[i];
        if (parameter->index < SMELT_MAX_BUFFERS) continue;
        PyErr_Format(PyExc_ValueError, "kernel '%s': argument '%s' has %s index %d, expected 0 to %d",
                     function->text, parameter->name, parameter->threadgroup ? "threadgroup" : "buffer",
                     parameter->index, SMELT_MAX_BUFFERS - 1);
        return false;
    }
    return true;
}

bool dispatch_bind_all(struct dispatch *dispatch) {
    const struct function *function = dispatch->function;
    char names[1000];
    if (!check_indices(function)) return false;
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) {
        PyObject *value = dispatch->values[i];
        if (!value) continue;
        const smelt_parameter *parameter = dispatch_find_parameter(function, false, i, NULL);
        if (!parameter) {
            dispatch_list_buffers(dispatch, false, names, sizeof names);
            PyErr_Format(PyExc_TypeError, "kernel '%s' has no buffer %d; expected %s%s", function->text, i,
                         *names ? "one of: " : "none", names);
            return false;
        }
        if (bind_value(dispatch, value, parameter)) continue;
        if (parameter->used || !PyErr_ExceptionMatches(PyExc_Exception) ||
            PyErr_ExceptionMatches(PyExc_MemoryError))
            return false;
        /* The code that the parameters were read from does not need it; that of another shape may. */
        PyErr_Clear();
        dispatch_unbind(&dispatch->desc.buffers[i]);
    }
    dispatch_list_buffers(dispatch, true, names, sizeof names);
    if (!*names) return true;
    PyErr_Format(PyExc_TypeError, "kernel '%s': arguments are missing: %s", function->text, names);
    return false;
}

/* Accepts an index that the function lacks, as Metal does: hosts set sizes for all kernels. */
static bool set_memory(struct dispatch *dispatch, PyObject *key, PyObject *bytes) {
    const struct function *function = dispatch->function;
    int64_t index = -1, size;
    if (PyUnicode_Check(key)) {
        const smelt_parameter *parameter = dispatch_find_parameter(function, true, 0, key);
        if (parameter) index = parameter->index;
    } else if (!integer_of(key, &index)) {
        index = -1;
    }
    if (index < 0 || index >= SMELT_MAX_BUFFERS)
        return dispatch_fail_argument(function,
                                      "threadgroup_memory: expected an index or name of the function", key);
    if (!integer_of(bytes, &size) || size < 0)
        return dispatch_fail_argument(function, "threadgroup_memory: expected a number of bytes", bytes);
    dispatch->desc.threadgroup_memory[index] = (size_t)size;
    return true;
}

bool dispatch_read_memory(struct dispatch *dispatch, PyObject *o) {
    PyObject *key, *value;
    Py_ssize_t position = 0;
    if (!o) return true;
    if (PyDict_Check(o)) {
        while (PyDict_Next(o, &position, &key, &value))
            if (!set_memory(dispatch, key, value)) return false;
        return true;
    }
    Py_ssize_t count = is_list(o) ? length_of(o) : 1;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *index = PyLong_FromSsize_t(i);
        bool good = index && set_memory(dispatch, index, is_list(o) ? item_of(o, i) : o);
        Py_XDECREF(index);
        if (!good) return false;
    }
    return true;
}
