/* A call of a function of a library: its arguments by index or name, sizes and options, and the launch. */
#include "function.h"

/* One call; to be closed also after a failure. */
struct dispatch {
    struct function *function;
    smelt_dispatch_desc desc;            /* its arrays with references */
    PyObject *values[SMELT_MAX_BUFFERS]; /* by buffer index, borrowed */
    void *bytes[SMELT_MAX_BUFFERS];
    char device[32];
    PyObject *kept[3];
    enum array_kind kind; /* of the first array that is not a NumPy array */
};

static bool fail_argument(const struct function *function, const char *message, PyObject *o) {
    PyErr_Format(PyExc_TypeError, "kernel '%s': %s, got %R", function->text, message, o);
    return false;
}

/* ---- Parameters. */

static bool is_number(PyObject *o) {
    return PyLong_Check(o) || PyFloat_Check(o) || PyBytes_Check(o) || is_list(o) || o == Py_None;
}

/* A function, and the launch whose code has its parameters. */
struct query {
    struct function *function;
    smelt_dispatch_desc *desc;
};

static smelt_status query_parameters(void *context, smelt_interrupt *interrupt) {
    const struct query *query = context;
    struct function *function = query->function;
    int count = 0;
    query->desc->interrupt = interrupt;
    smelt_status status = smelt_function_parameters(function->handle, query->desc, function->parameters,
                                                    MOST_PARAMETERS, &count);
    query->desc->interrupt = NULL;
    if (status == SMELT_OK) function->parameter_count = count < MOST_PARAMETERS ? count : MOST_PARAMETERS;
    return status;
}

/* As the argument will probably be bound: numbers have 4 bytes. Sizes up to 8 bytes are of one class. The
 * bytes are not read. */
static void guess_buffer(PyObject *value, smelt_buffer *buffer) {
    static const int32_t number;
    enum array_kind kind;
    if (tensor_of(value)) {
        buffer->tensor = smelt_tensor_retain(tensor_of(value));
    } else if (!is_number(value)) {
        if (!array_import(value, "argument", &buffer->array, &kind)) buffer->array = NULL;
    } else if (value != Py_None) {
        Py_ssize_t count = PyBytes_Check(value) ? PyBytes_Size(value) : is_list(value) ? length_of(value) : 1;
        buffer->bytes = &number;
        buffer->size = (size_t)count * (PyBytes_Check(value) ? 1 : sizeof number);
    }
    PyErr_Clear();
}

static void guess_buffers(struct dispatch *dispatch) {
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++)
        if (dispatch->values[i]) guess_buffer(dispatch->values[i], &dispatch->desc.buffers[i]);
}

static void unbind(smelt_buffer *buffer) {
    smelt_array_release(buffer->array);
    smelt_tensor_release(buffer->tensor);
    memset(buffer, 0, sizeof *buffer);
}

static void unbind_all(struct dispatch *dispatch) {
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) unbind(&dispatch->desc.buffers[i]);
}

bool function_query_parameters(struct function *function, smelt_dispatch_desc *desc) {
    struct query query = {function, desc};
    bool raised;
    if (function->parameter_count >= 0) return true;
    smelt_status status = call_watched(query_parameters, &query, false, &raised);
    if (!raised && status != SMELT_OK) raise_status(status);
    return !raised && status == SMELT_OK;
}

/* Of several at one index that function constants select from, the one that the code uses. */
static const smelt_parameter *find_parameter(const struct function *function, bool threadgroup, int index,
                                             PyObject *name) {
    const smelt_parameter *found = NULL;
    for (int i = 0; i < function->parameter_count; i++) {
        const smelt_parameter *parameter = &function->parameters[i];
        if (parameter->threadgroup != threadgroup || (found && (found->used || !parameter->used))) continue;
        if (name ? PyUnicode_CompareWithASCIIString(name, parameter->name) == 0 : parameter->index == index)
            found = parameter;
    }
    return found;
}

/* "out (0), a (1)" of the buffers, or of the missing ones. */
static void list_buffers(const struct dispatch *dispatch, bool missing, char *text, size_t size) {
    const struct function *function = dispatch->function;
    size_t length = 0;
    *text = 0;
    for (int i = 0; i < function->parameter_count && length < size; i++) {
        const smelt_parameter *parameter = &function->parameters[i];
        if (parameter->threadgroup || parameter->index < 0 || parameter->index >= SMELT_MAX_BUFFERS) continue;
        if (missing && (!parameter->used || dispatch->values[parameter->index])) continue;
        length += (size_t)PyOS_snprintf(text + length, size - length, "%s%.60s (buffer %d)",
                                        length ? ", " : "", parameter->name, parameter->index);
    }
}

/* ---- Options: the keywords that are not names of parameters. */

enum { THREADS, GROUPS, GROUP_SIZE, MEMORY, DEVICE, STREAM, TIMEOUT, PROFILE, CASTS, CHECK, OPTION_COUNT };
static const char *const option_names[OPTION_COUNT] = {
    "threads", "groups",  "group_size", "threadgroup_memory", "device",
    "stream",  "timeout", "profile",    "arg_casts",          "check"};

/* For those who know metal_kernel's names. */
static const char *size_hint(PyObject *key) {
    bool known = PyUnicode_CompareWithASCIIString(key, "grid") == 0 ||
                 PyUnicode_CompareWithASCIIString(key, "threadgroup") == 0;
    return known ? "; the sizes of a launch are threads= (or groups=) and group_size=" : "";
}

static int option_of(PyObject *key) {
    for (int i = 0; i < OPTION_COUNT; i++)
        if (PyUnicode_CompareWithASCIIString(key, option_names[i]) == 0) return i;
    return -1;
}

/* ---- Sizes. */

bool function_size(const struct function *function, PyObject *o, const char *name, int64_t sizes[3]) {
    if (!PyLong_Check(o)) return triple_of(o, function->text, name, sizes);
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

/* Whether `o` is a NumPy structured array, or a record of one: its dtype has fields. */
static bool has_fields(PyObject *o) {
    PyObject *dtype = PyObject_GetAttrString(o, "dtype"), *fields = NULL;
    if (dtype) fields = PyObject_GetAttrString(dtype, "fields");
    bool any = fields && fields != Py_None;
    Py_XDECREF(fields);
    Py_XDECREF(dtype);
    PyErr_Clear();
    return any;
}

/* Whether the fields of a structured array have the machine's byte order. */
static bool has_native_fields(PyObject *o) {
    PyObject *dtype = PyObject_GetAttrString(o, "dtype"), *native = NULL;
    if (dtype) native = PyObject_GetAttrString(dtype, "isnative");
    bool good = native && native != Py_False;
    Py_XDECREF(native);
    Py_XDECREF(dtype);
    PyErr_Clear();
    return good;
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
        if (!is_number(PyTuple_GetItem(arguments, i))) first = PyTuple_GetItem(arguments, i);
    while (!first && keywords && PyDict_Next(keywords, &position, &key, &value))
        if (option_of(key) < 0 && !is_number(value)) first = value;
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

static bool read_sizes(struct dispatch *dispatch, PyObject *arguments, PyObject *keywords,
                       PyObject *const *options) {
    PyObject *threads = options[THREADS], *groups = options[GROUPS], *group_size = options[GROUP_SIZE];
    const struct function *function = dispatch->function;
    smelt_dispatch_desc *desc = &dispatch->desc;
    if (threads && groups)
        return fail_argument(function, "threads and groups are both given; expected one of them", groups);
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
    char what[300];
    PyOS_snprintf(what, sizeof what, "kernel '%.150s': argument %d ('%.80s')", dispatch->function->text,
                  parameter->index, parameter->name);
    if (tensor_of(o)) {
        buffer->tensor = smelt_tensor_retain(tensor_of(o));
        return true;
    }
    if (!is_number(o) && is_one(parameter) && has_no_dimensions(o)) {
        PyObject *item = PyObject_CallMethod(o, "item", NULL);
        bool good = item && bind_value(dispatch, item, parameter);
        Py_XDECREF(item);
        return good;
    }
    if (!is_number(o) && parameter->dtype == SMELT_NO_DTYPE && has_fields(o)) {
        PyObject *bytes = bytes_of_records(o, what, parameter);
        bool good = bytes && bind_array(dispatch, bytes, what, parameter);
        Py_XDECREF(bytes);
        return good;
    }
    if (!is_number(o)) return bind_array(dispatch, o, what, parameter);
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

static bool bind_all(struct dispatch *dispatch) {
    const struct function *function = dispatch->function;
    char names[1000];
    if (!check_indices(function)) return false;
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) {
        PyObject *value = dispatch->values[i];
        if (!value) continue;
        const smelt_parameter *parameter = find_parameter(function, false, i, NULL);
        if (!parameter) {
            list_buffers(dispatch, false, names, sizeof names);
            PyErr_Format(PyExc_TypeError, "kernel '%s' has no buffer %d; expected %s%s", function->text, i,
                         *names ? "one of: " : "none", names);
            return false;
        }
        if (bind_value(dispatch, value, parameter)) continue;
        if (parameter->used || !PyErr_ExceptionMatches(PyExc_Exception) ||
            PyErr_ExceptionMatches(PyExc_MemoryError))
            return false;
        /* The code that the parameters were learnt from does not need it; that of another shape may. */
        PyErr_Clear();
        unbind(&dispatch->desc.buffers[i]);
    }
    list_buffers(dispatch, true, names, sizeof names);
    if (!*names) return true;
    PyErr_Format(PyExc_TypeError, "kernel '%s': arguments are missing: %s", function->text, names);
    return false;
}

/* Accepts an index that the function lacks, as Metal does: hosts set sizes for all kernels. */
static bool set_memory(struct dispatch *dispatch, PyObject *key, PyObject *bytes) {
    const struct function *function = dispatch->function;
    int64_t index = -1, size;
    if (PyUnicode_Check(key)) {
        const smelt_parameter *parameter = find_parameter(function, true, 0, key);
        if (parameter) index = parameter->index;
    } else if (!integer_of(key, &index)) {
        index = -1;
    }
    if (index < 0 || index >= SMELT_MAX_BUFFERS)
        return fail_argument(function, "threadgroup_memory: expected an index or name of the function", key);
    if (!integer_of(bytes, &size) || size < 0)
        return fail_argument(function, "threadgroup_memory: expected a number of bytes", bytes);
    dispatch->desc.threadgroup_memory[index] = (size_t)size;
    return true;
}

static bool read_memory(struct dispatch *dispatch, PyObject *o) {
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

/* ---- Keywords. */

static bool text_of(struct dispatch *dispatch, PyObject *o, int slot, const char **text) {
    dispatch->kept[slot] = PyObject_Str(o);
    *text = dispatch->kept[slot] ? PyUnicode_AsUTF8AndSize(dispatch->kept[slot], NULL) : NULL;
    return *text != NULL;
}

/* Positional arguments by index. */
static bool read_positional(struct dispatch *dispatch, PyObject *arguments) {
    Py_ssize_t count = PyTuple_Size(arguments);
    if (count > SMELT_MAX_BUFFERS) {
        PyErr_Format(PyExc_TypeError, "kernel '%s': %zd arguments were given, expected at most %d",
                     dispatch->function->text, count, SMELT_MAX_BUFFERS);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *value = PyTuple_GetItem(arguments, i);
        dispatch->values[i] = value == Py_None ? NULL : value;
    }
    return true;
}

/* Others by the names of parameters; the parameters are known. */
static bool read_named(struct dispatch *dispatch, PyObject *keywords) {
    const struct function *function = dispatch->function;
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (keywords && PyDict_Next(keywords, &position, &key, &value)) {
        if (option_of(key) >= 0 || value == Py_None) continue;
        const smelt_parameter *parameter = find_parameter(function, false, 0, key);
        if (parameter && (parameter->index < 0 || parameter->index >= SMELT_MAX_BUFFERS)) {
            PyErr_Format(PyExc_ValueError, "kernel '%s': argument %R has buffer index %d, expected 0 to %d",
                         function->text, key, parameter->index, SMELT_MAX_BUFFERS - 1);
            return false;
        }
        if (!parameter) {
            char names[1000];
            list_buffers(dispatch, false, names, sizeof names);
            PyErr_Format(PyExc_TypeError, "kernel '%s' has no argument %R; expected one of: %s%s",
                         function->text, key, names, size_hint(key));
            return false;
        }
        if (dispatch->values[parameter->index]) {
            PyErr_Format(PyExc_TypeError, "kernel '%s': argument %R is also given by position",
                         function->text, key);
            return false;
        }
        dispatch->values[parameter->index] = value;
    }
    return true;
}

/* The device of a buffer's memory; NULL: it has none. */
static const char *place_of(const smelt_buffer *buffer) {
    smelt_tensor_desc desc;
    if (buffer->tensor && smelt_tensor_describe(buffer->tensor, &desc) == SMELT_OK) return desc.device;
    return buffer->array ? smelt_array_device(buffer->array) : NULL;
}

static bool choose_device(struct dispatch *dispatch, PyObject *device) {
    const char *name = "cpu";
    for (int i = SMELT_MAX_BUFFERS - 1; i >= 0; i--) {
        const char *place = place_of(&dispatch->desc.buffers[i]);
        if (place && strcmp(place, "cpu") != 0) name = place;
    }
    if (device && !text_of(dispatch, device, 0, &name)) return false;
    PyOS_snprintf(dispatch->device, sizeof dispatch->device, "%.28s%s", name,
                  strcmp(name, "cuda") == 0 ? ":0" : "");
    dispatch->desc.device = dispatch->device;
    return true;
}

/* The first call compiles code to learn the parameters. Which code a launch needs depends on the device, and
 * on which arguments are small and on the host. Both are guessed, so that the launch needs the same code. */
static bool learn_parameters(struct dispatch *dispatch, PyObject *device) {
    if (dispatch->function->parameter_count >= 0) return true;
    guess_buffers(dispatch);
    bool good =
        choose_device(dispatch, device) && function_query_parameters(dispatch->function, &dispatch->desc);
    unbind_all(dispatch);
    return good;
}

static bool choose_stream(struct dispatch *dispatch, PyObject *stream) {
    if (!stream) return stream_of_kind(dispatch->kind, dispatch->device, &dispatch->desc.stream);
    char what[300];
    PyOS_snprintf(what, sizeof what, "kernel '%.200s'", dispatch->function->text);
    return stream_of(stream, what, dispatch->device, &dispatch->desc.stream);
}

static bool open_dispatch(struct dispatch *dispatch, PyObject *arguments, PyObject *keywords) {
    PyObject *options[OPTION_COUNT] = {0}, *key, *value;
    Py_ssize_t position = 0;
    smelt_dispatch_desc *desc = &dispatch->desc;
    while (keywords && PyDict_Next(keywords, &position, &key, &value)) {
        int option = option_of(key);
        if (option >= 0 && value != Py_None) options[option] = value;
    }
    if (options[PROFILE] && !text_of(dispatch, options[PROFILE], 1, &desc->profile)) return false;
    if (options[TIMEOUT]) desc->timeout = PyFloat_AsDouble(options[TIMEOUT]);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return fail_argument(dispatch->function, "timeout: expected a number of seconds", options[TIMEOUT]);
    }
    if (options[CHECK]) desc->check = PyObject_IsTrue(options[CHECK]) == 1;
    /* A string names what else to look for. */
    if (desc->check && PyUnicode_Check(options[CHECK]) && !text_of(dispatch, options[CHECK], 2, &desc->also))
        return false;
    if (PyErr_Occurred()) return false;
    if (!read_positional(dispatch, arguments) || !read_sizes(dispatch, arguments, keywords, options))
        return false;
    if (!learn_parameters(dispatch, options[DEVICE])) return false;
    Py_CLEAR(dispatch->kept[0]);
    if (!read_named(dispatch, keywords)) return false;
    return bind_all(dispatch) && read_memory(dispatch, options[MEMORY]) &&
           choose_device(dispatch, options[DEVICE]) && choose_stream(dispatch, options[STREAM]);
}

static void close_dispatch(struct dispatch *dispatch) {
    unbind_all(dispatch);
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) free(dispatch->bytes[i]);
    smelt_stream_release(dispatch->desc.stream);
    Py_XDECREF(dispatch->kept[0]);
    Py_XDECREF(dispatch->kept[1]);
    Py_XDECREF(dispatch->kept[2]);
}

static smelt_status launch(void *context, smelt_interrupt *interrupt) {
    struct dispatch *dispatch = context;
    dispatch->desc.interrupt = interrupt;
    return smelt_function_run(dispatch->function->handle, &dispatch->desc);
}

PyObject *function_call(PyObject *self, PyObject *arguments, PyObject *keywords) {
    struct function *function = (struct function *)self;
    struct dispatch dispatch;
    smelt_run_info info;
    bool raised = true;
    smelt_status status = SMELT_OK;
    memset(&dispatch, 0, sizeof dispatch);
    dispatch.function = function;
    dispatch.kind = KIND_SCALAR;
    if (open_dispatch(&dispatch, arguments, keywords)) {
        bool gpu = strncmp(dispatch.device, "cuda", 4) == 0;
        if (!gpu) dispatch.desc.info = &info;
        if (gpu) dispatch.desc.timeout = limits_timeout(dispatch.desc.timeout);
        status = call_watched(launch, &dispatch, true, &raised);
        if (!raised && status != SMELT_OK) {
            raise_status(status);
            raised = true;
        }
    }
    if (!raised) {
        function->ran = true;
        function->timed = dispatch.desc.info != NULL;
        if (function->timed) {
            function->last = info;
        } else {
            memset(&function->last, 0, sizeof function->last);
            memcpy(function->last.device, dispatch.device, sizeof function->last.device);
            for (int d = 0; d < 3; d++) {
                int64_t group = dispatch.desc.threadgroup[d] > 0 ? dispatch.desc.threadgroup[d] : 1;
                int64_t groups = dispatch.desc.groups[d],
                        threads = groups ? groups * group : dispatch.desc.grid[d];
                function->last.threads_per_group[d] = (uint32_t)group;
                function->last.threads[d] = (uint64_t)threads;
                function->last.groups[d] = (uint64_t)((threads + group - 1) / group);
            }
        }
    }
    close_dispatch(&dispatch);
    if (raised) return errors_locate(function->origin);
    Py_RETURN_NONE;
}
