/* A call of a function of a library: its keywords, and the launch. */
#include "dispatch.h"

/* For those who know metal_kernel's names. */
static const char *size_hint(PyObject *key) {
    bool known = PyUnicode_CompareWithASCIIString(key, "grid") == 0 ||
                 PyUnicode_CompareWithASCIIString(key, "threadgroup") == 0;
    return known ? "; the sizes of a launch are threads= (or groups=) and group_size=" : "";
}

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
        if (dispatch_option(key) >= 0 || value == Py_None) continue;
        const smelt_parameter *parameter = dispatch_find_parameter(function, false, 0, key);
        if (parameter && (parameter->index < 0 || parameter->index >= SMELT_MAX_BUFFERS)) {
            PyErr_Format(PyExc_ValueError, "kernel '%s': argument %R has buffer index %d, expected 0 to %d",
                         function->text, key, parameter->index, SMELT_MAX_BUFFERS - 1);
            return false;
        }
        if (!parameter) {
            char names[1000];
            dispatch_list_buffers(dispatch, false, names, sizeof names);
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
    if (strcmp(name, "cuda") == 0) name = "cuda:0";
    size_t length = strnlen(name, sizeof dispatch->device - 1);
    memcpy(dispatch->device, name, length);
    dispatch->device[length] = 0;
    dispatch->desc.device = dispatch->device;
    return true;
}

/* The first call compiles code to learn the parameters. Which code a launch needs depends on the device, and
 * on which arguments are small and on the host. Both are guessed, so that the launch needs the same code. */
static bool learn_parameters(struct dispatch *dispatch, PyObject *device) {
    if (dispatch->function->parameter_count >= 0) return true;
    dispatch_guess_buffers(dispatch);
    bool good =
        choose_device(dispatch, device) && function_query_parameters(dispatch->function, &dispatch->desc);
    dispatch_unbind_all(dispatch);
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
        int option = dispatch_option(key);
        if (option >= 0 && value != Py_None) options[option] = value;
    }
    if (options[PROFILE] && !text_of(dispatch, options[PROFILE], 1, &desc->profile)) return false;
    if (options[TIMEOUT]) desc->timeout = PyFloat_AsDouble(options[TIMEOUT]);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return dispatch_fail_argument(dispatch->function, "timeout: expected a number of seconds",
                                      options[TIMEOUT]);
    }
    if (options[CHECK]) desc->check = PyObject_IsTrue(options[CHECK]) == 1;
    /* A string names what else to look for. */
    if (desc->check && PyUnicode_Check(options[CHECK]) && !text_of(dispatch, options[CHECK], 2, &desc->also))
        return false;
    if (PyErr_Occurred()) return false;
    if (!read_positional(dispatch, arguments) || !dispatch_read_sizes(dispatch, arguments, keywords, options))
        return false;
    if (!learn_parameters(dispatch, options[DEVICE])) return false;
    Py_CLEAR(dispatch->kept[0]);
    if (!read_named(dispatch, keywords)) return false;
    return dispatch_bind_all(dispatch) && dispatch_read_memory(dispatch, options[MEMORY]) &&
           choose_device(dispatch, options[DEVICE]) && choose_stream(dispatch, options[STREAM]);
}

static void close_dispatch(struct dispatch *dispatch) {
    dispatch_unbind_all(dispatch);
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
        bool enqueues = gpu && !(dispatch.desc.timeout > 0);
        status = (enqueues ? call_enqueuing : call_watched)(launch, &dispatch, true, &raised);
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
