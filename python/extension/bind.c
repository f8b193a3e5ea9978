/* Kernels with everything bound: a call only launches. */
#include "call.h"

struct bound {
    PyObject_HEAD struct kernel *kernel;
    smelt_launch *launch;
    smelt_run_desc *desc; /* sizes and device, for last_run; its arrays are the launch's */
    char device[32];
    PyObject *out; /* tuple of the objects written into, or NULL */
    enum array_kind kind;
    bool enqueues; /* a launch is compiled and not waited for: no signal needs to end it */
};

static PyTypeObject *bound_type;

struct preparing {
    smelt_kernel *handle;
    smelt_run_desc *desc;
    smelt_launch **launch;
};

static smelt_status prepare(void *context, smelt_interrupt *interrupt) {
    struct preparing *preparing = context;
    smelt_run_desc *desc = preparing->desc;
    desc->interrupt = interrupt;
    smelt_status status = smelt_kernel_prepare(preparing->handle, desc, preparing->launch);
    desc->interrupt = NULL;
    return status;
}

static PyObject *make_bound(struct call *call) {
    struct kernel *kernel = call->kernel;
    smelt_launch *launch = NULL;
    bool raised;
    struct preparing preparing = {kernel_handle(kernel, call->strided), &call->desc, &launch};
    if (!preparing.handle) return NULL;
    smelt_status status = call_watched(prepare, &preparing, false, &raised);
    if (raised) return NULL;
    if (status != SMELT_OK) return raise_status(status);
    allocfunc allocate = (allocfunc)PyType_GetSlot(bound_type, Py_tp_alloc);
    struct bound *bound = (struct bound *)allocate(bound_type, 0);
    if (!bound) {
        smelt_launch_release(launch);
        return NULL;
    }
    Py_INCREF((PyObject *)kernel);
    bound->kernel = kernel;
    bound->launch = launch;
    bound->kind = call->kind;
    bound->enqueues = strncmp(call->device, "cuda", 4) == 0 && !(call->desc.timeout > 0);
    memcpy(bound->device, call->device, sizeof bound->device);
    bound->desc = malloc(sizeof *bound->desc);
    if (bound->desc) {
        memcpy(bound->desc->grid, call->desc.grid, sizeof call->desc.grid);
        memcpy(bound->desc->threadgroup, call->desc.threadgroup, sizeof call->desc.threadgroup);
        bound->desc->device = bound->device;
    }
    if (call->out) bound->out = PySequence_Tuple(call->out);
    if (!bound->desc || (call->out && !bound->out)) {
        if (!bound->desc) PyErr_NoMemory();
        Py_CLEAR(bound);
    }
    return (PyObject *)bound;
}

PyObject *kernel_bind(PyObject *self, PyObject *arguments, PyObject *keywords) {
    struct kernel *kernel = (struct kernel *)self;
    PyObject *values[KEYWORD_COUNT], *result = NULL;
    struct call call;
    if (!call_keywords(kernel, arguments, keywords, values)) return NULL;
    if (call_open(&call, kernel, values, true)) result = make_bound(&call);
    call_close(&call);
    return result ? result : errors_locate_of(self);
}

static void dealloc(PyObject *self) {
    struct bound *bound = (struct bound *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    smelt_launch_release(bound->launch);
    free(bound->desc);
    Py_XDECREF((PyObject *)bound->kernel);
    Py_XDECREF(bound->out);
    release(self);
    Py_DECREF(type);
}

/* ---- Launching. */

/* The replacements of one call, with references. */
struct replaced {
    smelt_array *inputs[SMELT_MAX_ARGUMENTS], *into[SMELT_MAX_ARGUMENTS];
    int input_count, into_count;
};

static bool import_inputs(const struct bound *bound, PyObject *arguments, struct replaced *replaced) {
    const struct kernel *kernel = bound->kernel;
    Py_ssize_t given = PyTuple_Size(arguments);
    if (given != kernel->input_count) {
        PyErr_Format(PyExc_TypeError,
                     "kernel '%s' is bound: its call takes no inputs or all %d; %zd were given", kernel->text,
                     kernel->input_count, given);
        return false;
    }
    for (int i = 0; i < given; i++) {
        enum array_kind kind;
        const char *what = label_of(kernel, LABEL_INPUT, i);
        if (!array_import(PyTuple_GetItem(arguments, i), what, &replaced->inputs[i], &kind)) return false;
        replaced->input_count = i + 1;
    }
    return true;
}

static bool import_out(const struct bound *bound, PyObject *out, struct replaced *replaced) {
    const struct kernel *kernel = bound->kernel;
    if (!is_list(out) || length_of(out) != kernel->output_count) {
        PyErr_Format(PyExc_TypeError, "kernel '%s': out is %R; expected a list of %d arrays, one per output",
                     kernel->text, out, kernel->output_count);
        return false;
    }
    for (int i = 0; i < kernel->output_count; i++) {
        enum array_kind kind;
        const char *what = label_of(kernel, LABEL_OUT, i);
        if (!array_import_for_writing(item_of(out, i), what, &replaced->into[i], &kind)) return false;
        replaced->into_count = i + 1;
    }
    return true;
}

struct running {
    smelt_launch *launch;
    smelt_launch_desc desc;
    smelt_array **outputs;
};

static smelt_status launch(void *context, smelt_interrupt *interrupt) {
    struct running *running = context;
    running->desc.interrupt = interrupt;
    return smelt_launch_run(running->launch, &running->desc, running->outputs);
}

static PyObject *run(struct bound *bound, struct running *running, PyObject *out) {
    smelt_array *outputs[SMELT_MAX_ARGUMENTS];
    smelt_run_info info;
    bool raised = false, gpu = bound->device[0] == 'c' && bound->device[1] == 'u';
    int count = bound->kernel->output_count;
    running->launch = bound->launch;
    running->outputs = out ? NULL : outputs;
    if (!gpu) running->desc.info = &info;
    smelt_status status = bound->enqueues ? call_without_gil(launch, running, NULL)
                                          : call_watched(launch, running, out != NULL, &raised);
    if (raised) return NULL;
    if (status != SMELT_OK) {
        raise_status(status);
        return errors_locate_of((PyObject *)bound->kernel);
    }
    kernel_note(bound->kernel, bound->desc, running->desc.info);
    if (!out) {
        smelt_array *const *inputs = running->desc.inputs ? running->desc.inputs : bound->desc->inputs;
        return call_note(bound->kernel, inputs, outputs) ? call_results(outputs, count, bound->kind, NULL)
                                                         : NULL;
    }
    PyObject *list = PyList_New(count);
    for (int i = 0; i < count && list; i++) {
        PyObject *item = item_of(out, i);
        Py_INCREF(item);
        PyList_SetItem(list, i, item);
    }
    return list;
}

static PyObject *call_bound(PyObject *self, PyObject *arguments, PyObject *keywords) {
    struct bound *bound = (struct bound *)self;
    struct replaced replaced; /* not initialised: it is large */
    struct running running = {.outputs = NULL};
    PyObject *key, *value, *out = bound->out, *result = NULL;
    smelt_stream *stream = NULL;
    Py_ssize_t position = 0;
    replaced.input_count = replaced.into_count = 0;
    bool good = PyTuple_Size(arguments) == 0 || import_inputs(bound, arguments, &replaced);
    while (good && keywords && PyDict_Next(keywords, &position, &key, &value)) {
        if (value == Py_None) continue;
        if (PyUnicode_CompareWithASCIIString(key, "out") == 0) {
            good = import_out(bound, value, &replaced);
            out = value;
        } else if (PyUnicode_CompareWithASCIIString(key, "stream") == 0 && !stream) {
            good = stream_of(value, bound->kernel->text, bound->device, &stream);
        } else {
            PyErr_Format(PyExc_TypeError,
                         "kernel '%s' is bound: its call has no argument %R; expected one of: inputs by "
                         "position, out, "
                         "stream",
                         bound->kernel->text, key);
            good = false;
        }
    }
    if (good) {
        if (replaced.input_count) running.desc.inputs = replaced.inputs;
        if (replaced.into_count) running.desc.into = replaced.into;
        running.desc.stream = stream;
        result = run(bound, &running, out);
    }
    for (int i = 0; i < replaced.input_count; i++) smelt_array_release(replaced.inputs[i]);
    for (int i = 0; i < replaced.into_count; i++) smelt_array_release(replaced.into[i]);
    smelt_stream_release(stream);
    return result;
}

static PyObject *get_kernel(PyObject *self, void *closure) {
    (void)closure;
    PyObject *kernel = (PyObject *)((struct bound *)self)->kernel;
    Py_INCREF((PyObject *)kernel);
    return kernel;
}

static PyObject *repr(PyObject *self) {
    const struct bound *bound = (const struct bound *)self;
    const int64_t *g = bound->desc->grid, *t = bound->desc->threadgroup;
    return PyUnicode_FromFormat(
        "<smelt.BoundKernel '%s' on %s, grid (%lld, %lld, %lld), threadgroup (%lld, %lld, %lld)>",
        bound->kernel->text, bound->device, (long long)g[0], (long long)g[1], (long long)g[2],
        (long long)t[0], (long long)t[1], (long long)t[2]);
}

static PyObject *forget(PyObject *self, PyObject *unused) {
    (void)unused;
    smelt_status status = smelt_launch_forget(((struct bound *)self)->launch);
    if (status != SMELT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"_forget", forget, METH_NOARGS,
     "_forget($self)\n--\n\nReleases the inputs: from now on, each call must give its own."},
    {0}};

static PyGetSetDef getters[] = {{"kernel", get_kernel, NULL, "The kernel that is bound.", NULL}, {0}};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc},
    {Py_tp_call, call_bound},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_repr, repr},
    {Py_tp_doc,
     "A kernel with its arguments, from Kernel.bind(). bound() launches and returns a list of the outputs; "
     "bound(a, b) does so with other inputs of the same dtypes and shapes, bound(out=[…]) writes into "
     "other arrays, bound(stream=…) works on another stream."},
    {0}};
static PyType_Spec spec = {.name = "smelt._smelt.BoundKernel",
                           .basicsize = sizeof(struct bound),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           .slots = slots};

int bind_init(PyObject *module) {
    bound_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return bound_type ? PyModule_AddObjectRef(module, "BoundKernel", (PyObject *)bound_type) : -1;
}
