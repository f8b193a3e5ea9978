/* The parameters of a function of a library, as its code has them, and keywords that are not parameters. */
#include "dispatch.h"

bool dispatch_fail_argument(const struct function *function, const char *message, PyObject *o) {
    PyErr_Format(PyExc_TypeError, "kernel '%s': %s, got %R", function->text, message, o);
    return false;
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
    } else if (!dispatch_is_number(value)) {
        if (!array_import(value, "argument", &buffer->array, &kind)) buffer->array = NULL;
    } else if (value != Py_None) {
        Py_ssize_t count = PyBytes_Check(value) ? PyBytes_Size(value) : is_list(value) ? length_of(value) : 1;
        buffer->bytes = &number;
        buffer->size = (size_t)count * (PyBytes_Check(value) ? 1 : sizeof number);
    }
    PyErr_Clear();
}

void dispatch_guess_buffers(struct dispatch *dispatch) {
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++)
        if (dispatch->values[i]) guess_buffer(dispatch->values[i], &dispatch->desc.buffers[i]);
}

void dispatch_unbind(smelt_buffer *buffer) {
    smelt_array_release(buffer->array);
    smelt_tensor_release(buffer->tensor);
    memset(buffer, 0, sizeof *buffer);
}

void dispatch_unbind_all(struct dispatch *dispatch) {
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) {
        smelt_buffer *buffer = &dispatch->desc.buffers[i];
        if (buffer->array || buffer->tensor || buffer->bytes) dispatch_unbind(buffer);
    }
}

bool function_query_parameters(struct function *function, smelt_dispatch_desc *desc) {
    struct query query = {function, desc};
    bool raised;
    if (function->parameter_count >= 0) return true;
    smelt_status status = call_watched(query_parameters, &query, false, &raised);
    if (!raised && status != SMELT_OK) raise_status(status);
    return !raised && status == SMELT_OK;
}

const smelt_parameter *dispatch_find_parameter(const struct function *function, bool threadgroup, int index,
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

void dispatch_list_buffers(const struct dispatch *dispatch, bool missing, char *text, size_t size) {
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

static const char *const option_names[OPTION_COUNT] = {
    "threads", "groups",  "group_size", "threadgroup_memory", "device",
    "stream",  "timeout", "profile",    "arg_casts",          "check"};

static PyObject *options_interned[OPTION_COUNT];

int dispatch_option(PyObject *key) {
    for (int i = 0; i < OPTION_COUNT; i++)
        if (key == options_interned[i]) return i;
    for (int i = 0; i < OPTION_COUNT; i++)
        if (PyUnicode_CompareWithASCIIString(key, option_names[i]) == 0) return i;
    return -1;
}

int dispatch_init(void) {
    for (int i = 0; i < OPTION_COUNT; i++)
        if (!(options_interned[i] = PyUnicode_InternFromString(option_names[i]))) return -1;
    return 0;
}

const char *dispatch_label(struct function *function, const smelt_parameter *parameter) {
    char **label = &function->labels[parameter - function->parameters];
    if (!*label) {
        char text[300];
        PyOS_snprintf(text, sizeof text, "kernel '%.150s': argument %d ('%.80s')", function->text,
                      parameter->index, parameter->name);
        *label = strdup(text);
    }
    return *label ? *label : function->text;
}
