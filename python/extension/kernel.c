/* Kernels from bodies: construction, attributes, calls. */
#include "function.h"

#include <stddef.h>
#include <structmember.h>

/* ---- Construction. */

/* Fills a list of the descriptor from a tuple of str. */
static bool names_of(PyObject *o, const char *what, int most, const char **names, PyObject **kept,
                     int *count) {
    if (PyUnicode_Check(o) || !PySequence_Check(o)) {
        PyObject *name = type_name(o);
        if (name) PyErr_Format(PyExc_TypeError, "%s is %R (%U); expected a list of strings", what, o, name);
        Py_XDECREF(name);
        return false;
    }
    PyObject *items = *kept = PySequence_Tuple(o);
    if (!items) return false;
    Py_ssize_t length = PyTuple_Size(items);
    if (length > most) {
        PyErr_Format(PyExc_ValueError, "%s has %zd names; at most %d are allowed", what, length, most);
        return false;
    }
    for (int i = 0; i < length; i++) {
        PyObject *item = PyTuple_GetItem(items, i);
        names[i] = PyUnicode_Check(item) ? PyUnicode_AsUTF8AndSize(item, NULL) : NULL;
        if (names[i]) continue;
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "%s[%d] is %R; expected a string", what, i, item);
        return false;
    }
    *count = (int)length;
    return true;
}

static bool atomic_of(struct kernel *kernel, PyObject *o) {
    kernel->atomic_outputs = is_list(o) ? PySequence_Tuple(o) : PyBool_FromLong(PyObject_IsTrue(o));
    if (!kernel->atomic_outputs || PyErr_Occurred()) return false;
    if (!is_list(o)) {
        kernel->desc.atomic_outputs = kernel->atomic_outputs == Py_True;
        return true;
    }
    if (PyTuple_Size(kernel->atomic_outputs) != kernel->output_count) {
        PyErr_Format(PyExc_ValueError,
                     "kernel '%s': atomic_outputs has length %zd, expected %d, one per output", kernel->text,
                     PyTuple_Size(kernel->atomic_outputs), kernel->output_count);
        return false;
    }
    for (int i = 0; i < kernel->output_count; i++) {
        int atomic = PyObject_IsTrue(PyTuple_GetItem(kernel->atomic_outputs, i));
        if (atomic < 0) return false;
        kernel->desc.atomic_output[i] = atomic;
    }
    return true;
}

static bool text_in(PyObject *o, const char *what, const char **text) {
    if (!PyUnicode_Check(o)) {
        PyObject *name = type_name(o);
        if (name)
            PyErr_Format(PyExc_TypeError, "metal_kernel: %s is %R (%U); expected a string", what, o, name);
        Py_XDECREF(name);
        return false;
    }
    Py_ssize_t size;
    *text = PyUnicode_AsUTF8AndSize(o, &size);
    if (!*text) {
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "metal_kernel: %s has a lone surrogate, which is not a character",
                     what);
        return false;
    }
    if (strlen(*text) == (size_t)size) return true;
    PyErr_Format(PyExc_ValueError, "metal_kernel: %s has a null character at %zd", what,
                 (Py_ssize_t)strlen(*text));
    return false;
}

/* (name, input_names, output_names, source, header, strided, atomic_outputs, math, metal_version,
 * include_paths, share) from smelt/kernel.py, which sets defaults. `share`: a kernel of the same description,
 * or None. */
static PyObject *new_kernel(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    PyObject *name, *inputs, *outputs, *source, *header, *atomic, *paths, *share;
    int strided, math, version, path_count = 0;
    if (keywords && PyDict_Size(keywords) > 0) {
        PyErr_SetString(PyExc_TypeError, "kernels are created by smelt.metal_kernel()");
        return NULL;
    }
    if (!PyArg_ParseTuple(arguments, "OOOOOpOiiOO", &name, &inputs, &outputs, &source, &header, &strided,
                          &atomic, &math, &version, &paths, &share))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct kernel *kernel = (struct kernel *)allocate(type, 0);
    if (!kernel) return NULL;
    smelt_kernel_desc *desc = &kernel->desc;
    char what[300];
    bool good = text_in(name, "name", &desc->name) && text_in(source, "source", &desc->source) &&
                text_in(header, "header", &desc->header);
    Py_INCREF(kernel->name = name);
    Py_INCREF(kernel->source = source);
    Py_INCREF(kernel->header = header);
    kernel->text = desc->name;
    if (good) {
        PyOS_snprintf(what, sizeof what, "kernel '%.200s': input_names", desc->name);
        good = names_of(inputs, what, SMELT_MAX_ARGUMENTS, desc->inputs, &kernel->input_names,
                        &kernel->input_count);
    }
    if (good) {
        PyOS_snprintf(what, sizeof what, "kernel '%.200s': output_names", desc->name);
        good = names_of(outputs, what, SMELT_MAX_ARGUMENTS, desc->outputs, &kernel->output_names,
                        &kernel->output_count);
    }
    if (good) {
        PyOS_snprintf(what, sizeof what, "kernel '%.200s': include_paths", desc->name);
        good = names_of(paths, what, SMELT_MAX_INCLUDE_PATHS, desc->include_paths, &kernel->include_paths,
                        &path_count) &&
               atomic_of(kernel, atomic);
    }
    desc->strided = strided;
    desc->math = (smelt_math_mode)math;
    desc->metal_version = version;
    if (good && share != Py_None) {
        struct kernel *other = (struct kernel *)share;
        for (int i = 0; i < 2; i++) kernel->handles[i] = smelt_kernel_retain(other->handles[i]);
    }
    if (good && !labels_make(kernel)) {
        PyErr_NoMemory();
        good = false;
    }
    if (good && !kernel_handle(kernel, strided)) good = false;
    if (!good) Py_CLEAR(kernel);
    return (PyObject *)kernel;
}

smelt_kernel *kernel_handle(struct kernel *kernel, bool strided) {
    if (kernel->handles[strided]) return kernel->handles[strided];
    smelt_kernel_desc desc = kernel->desc;
    desc.strided = strided;
    smelt_status status = smelt_kernel_create(&desc, &kernel->handles[strided]);
    return status == SMELT_OK ? kernel->handles[strided] : (smelt_kernel *)raise_status(status);
}

static void dealloc(PyObject *self) {
    struct kernel *kernel = (struct kernel *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    for (int i = 0; i < 2; i++) smelt_kernel_release(kernel->handles[i]);
    labels_free(kernel);
    Py_XDECREF(kernel->name);
    Py_XDECREF(kernel->source);
    Py_XDECREF(kernel->header);
    Py_XDECREF(kernel->input_names);
    Py_XDECREF(kernel->output_names);
    Py_XDECREF(kernel->include_paths);
    Py_XDECREF(kernel->atomic_outputs);
    release(self);
    Py_DECREF(type);
}

/* ---- Calls. */

void kernel_note(struct kernel *kernel, const smelt_run_desc *desc, const smelt_run_info *info) {
    smelt_run_info *last = &kernel->last;
    kernel->ran = true;
    kernel->timed = info != NULL;
    if (info) {
        *last = *info;
        return;
    }
    memset(last, 0, sizeof *last);
    memcpy(last->device, desc->device, strnlen(desc->device, sizeof last->device - 1));
    for (int d = 0; d < 3; d++) {
        int64_t grid = desc->grid[d], group = desc->threadgroup[d] < grid ? desc->threadgroup[d] : grid;
        last->threads[d] = (uint64_t)grid;
        last->threads_per_group[d] = (uint32_t)group;
        last->groups[d] = (uint64_t)((grid + group - 1) / group);
    }
}

static PyObject *show_stage(struct call *call, smelt_stage stage) {
    smelt_kernel *handle = kernel_handle(call->kernel, call->strided);
    if (!handle) return NULL;
    smelt_status status;
    char *text = NULL;
    Py_BEGIN_ALLOW_THREADS status = smelt_kernel_show(handle, &call->desc, stage, &text);
    Py_END_ALLOW_THREADS if (status != SMELT_OK) return raise_status(status);
    PyObject *result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    smelt_free(text);
    return result;
}

/* The generated text and the sizes of the launch, to Python's standard output. */
static bool print_verbose(struct call *call) {
    const smelt_run_desc *desc = &call->desc;
    PyObject *out = PySys_GetObject("stdout"), *source, *text = NULL;
    if (!out || out == Py_None) return true;
    source = show_stage(call, SMELT_STAGE_SOURCE);
    if (!source) return false;
    smelt_run_info saved = call->kernel->last;
    bool ran = call->kernel->ran, timed = call->kernel->timed;
    kernel_note(call->kernel, desc, NULL);
    smelt_run_info sizes = call->kernel->last;
    call->kernel->last = saved;
    call->kernel->ran = ran;
    call->kernel->timed = timed;
    const uint64_t *n = sizes.threads, *g = sizes.groups;
    const uint32_t *t = sizes.threads_per_group;
    text = PyUnicode_FromFormat(
        "The source of kernel '%s':\n```\n%U\n```\n"
        "On %s: %llu x %llu x %llu threads, in %llu x %llu x %llu threadgroups of at most %u x "
        "%u x %u threads.\n",
        call->kernel->text, source, sizes.device, (unsigned long long)n[0], (unsigned long long)n[1],
        (unsigned long long)n[2], (unsigned long long)g[0], (unsigned long long)g[1],
        (unsigned long long)g[2], (unsigned)t[0], (unsigned)t[1], (unsigned)t[2]);
    bool good = text && PyFile_WriteObject(text, out, Py_PRINT_RAW) == 0;
    Py_XDECREF(text);
    Py_DECREF(source);
    return good;
}

struct launching {
    smelt_kernel *handle;
    smelt_run_desc *desc;
    smelt_array **outputs;
};

static smelt_status launch(void *context, smelt_interrupt *interrupt) {
    struct launching *launching = context;
    launching->desc->interrupt = interrupt;
    return smelt_kernel_run(launching->handle, launching->desc, launching->outputs);
}

static PyObject *run(struct call *call) {
    struct kernel *kernel = call->kernel;
    smelt_kernel *handle = kernel_handle(kernel, call->strided);
    smelt_array *outputs[SMELT_MAX_ARGUMENTS];
    smelt_run_info info;
    bool raised, gpu = strncmp(call->device, "cuda", 4) == 0;
    if (!handle || (call->verbose && !print_verbose(call))) return NULL;
    if (!gpu) call->desc.info = &info;
    if (gpu) call->desc.timeout = limits_timeout(call->desc.timeout);
    struct launching launching = {handle, &call->desc, outputs};
    /* A launch into the caller's arrays cannot be repeated. */
    bool enqueues = gpu && !(call->desc.timeout > 0);
    smelt_status status =
        (enqueues ? call_enqueuing : call_watched)(launch, &launching, call->out != NULL, &raised);
    if (raised) return NULL;
    if (status != SMELT_OK) return raise_status(status);
    kernel_note(kernel, &call->desc, call->desc.info);
    if (!call->out && !call_note(kernel, call->desc.inputs, outputs)) return NULL;
    return call_results(outputs, kernel->output_count, call->kind, call->out);
}

/* While torch traces, its tensors have no elements, and inputs fail: smelt.torch, if loaded, returns outputs
 * without elements for them. Keeps the exception, and returns NULL, if the call failed for another reason. */
static PyObject *call_traced(PyObject *self, PyObject *keywords) {
    PyObject *type, *value, *traceback, *outputs = NULL;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *name = PyUnicode_FromString("smelt.torch");
    PyObject *module = name ? PyImport_GetModule(name) : NULL;
    if (module)
        outputs = PyObject_CallMethod(module, "_traced_call", "OO", self, keywords ? keywords : Py_None);
    bool answered = outputs != Py_None && (outputs || (module && PyErr_Occurred()));
    if (outputs == Py_None) Py_CLEAR(outputs);
    Py_XDECREF(module);
    Py_XDECREF(name);
    if (!answered) {
        PyErr_Restore(type, value, traceback);
        return NULL;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return outputs;
}

static PyObject *call_kernel(PyObject *self, PyObject *arguments, PyObject *keywords) {
    struct kernel *kernel = (struct kernel *)self;
    PyObject *values[KEYWORD_COUNT], *result = NULL;
    struct call call;
    if (!call_keywords(kernel, arguments, keywords, values)) return NULL;
    bool good = call_open(&call, kernel, values, true);
    if (good) result = run(&call);
    call_close(&call);
    if (good && !result) return errors_locate_of(self);
    return good || call.input_count == kernel->input_count ? result : call_traced(self, keywords);
}

/* ---- Looking. */

static PyObject *show(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static const struct {
        const char *name;
        smelt_stage stage;
    } stages[] = {{"source", SMELT_STAGE_SOURCE},
                  {"rewritten", SMELT_STAGE_REWRITTEN},
                  {"ir", SMELT_STAGE_IR},
                  {"simd", SMELT_STAGE_SIMD},
                  {"why", SMELT_STAGE_WHY},
                  {"asm", SMELT_STAGE_ASM},
                  {"ptx", SMELT_STAGE_PTX},
                  {"time", SMELT_STAGE_TIME},
                  {"warnings", SMELT_STAGE_WARNINGS}};
    struct kernel *kernel = (struct kernel *)self;
    PyObject *name, *values[KEYWORD_COUNT], *result = NULL, *none = PyTuple_New(0);
    struct call call;
    if (!none || !PyArg_ParseTuple(arguments, "U:show", &name)) goto end;
    int stage = -1;
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        if (PyUnicode_CompareWithASCIIString(name, stages[i].name) == 0) stage = (int)stages[i].stage;
    if (stage < 0) {
        PyErr_Format(
            PyExc_ValueError,
            "kernel '%s': stage is %R; expected \"source\", \"rewritten\", \"ir\", \"simd\", \"why\", "
            "\"asm\", \"ptx\", \"time\" or \"warnings\"",
            kernel->text, name);
        goto end;
    }
    if (!call_keywords(kernel, none, keywords, values)) goto end;
    if (call_open(&call, kernel, values, false)) result = show_stage(&call, (smelt_stage)stage);
    call_close(&call);
    if (!result) errors_locate_of(self);
end:
    Py_XDECREF(none);
    return result;
}

PyObject *info_dictionary(const smelt_run_info *i, bool timed) {
    PyObject *seconds = timed ? PyFloat_FromDouble(i->seconds) : (Py_INCREF(Py_None), Py_None);
    if (!seconds) return NULL;
    return Py_BuildValue("{s:s,s:(KKK),s:(III),s:(KKK),s:N,s:d,s:O,s:K,s:K,s:O}", "device", i->device, "grid",
                         (unsigned long long)i->threads[0], (unsigned long long)i->threads[1],
                         (unsigned long long)i->threads[2], "threadgroup", i->threads_per_group[0],
                         i->threads_per_group[1], i->threads_per_group[2], "groups",
                         (unsigned long long)i->groups[0], (unsigned long long)i->groups[1],
                         (unsigned long long)i->groups[2], "seconds", seconds, "compile_seconds",
                         i->compile_seconds, "cache_hit", i->cache_hit ? Py_True : Py_False,
                         "threadgroup_bytes", (unsigned long long)i->threadgroup_bytes, "private_bytes",
                         (unsigned long long)i->private_bytes, "quick", i->quick ? Py_True : Py_False);
}

static PyObject *get_last(PyObject *self, void *closure) {
    const struct kernel *kernel = (const struct kernel *)self;
    (void)closure;
    if (!kernel->ran) Py_RETURN_NONE;
    return info_dictionary(&kernel->last, kernel->timed);
}

static PyObject *get_contiguous(PyObject *self, void *closure) {
    (void)closure;
    return PyBool_FromLong(!((struct kernel *)self)->desc.strided);
}

static PyObject *get_math(PyObject *self, void *closure) {
    static const char *const names[] = {"safe", "relaxed", "fast"};
    (void)closure;
    return PyUnicode_FromString(names[((struct kernel *)self)->desc.math]);
}

static PyGetSetDef getters[] = {
    {"last_run", get_last, NULL, "The latest launch, as a dict; None before it.", NULL},
    {"ensure_row_contiguous", get_contiguous, NULL, "Whether inputs that are not row-contiguous are copied.",
     NULL},
    {"math_mode", get_math, NULL, "\"safe\", \"relaxed\" or \"fast\".", NULL},
    {0}};

#define MEMBER(member, text) {#member, T_OBJECT_EX, offsetof(struct kernel, member), READONLY, text}
static PyMemberDef members[] = {
    MEMBER(name, "The kernel's name; the function is custom_kernel_<name>."),
    MEMBER(source, "The body."),
    MEMBER(header, "The text before the function."),
    MEMBER(input_names, "The inputs' names, in order."),
    MEMBER(output_names, "The outputs' names, in order."),
    MEMBER(include_paths, "Where #include looks."),
    MEMBER(atomic_outputs, "Whether outputs are atomic: one bool, or one per output."),
    {"metal_version", T_INT, offsetof(struct kernel, desc) + offsetof(smelt_kernel_desc, metal_version),
     READONLY, "__METAL_VERSION__; 0: the default."},
    {0}};

static smelt_status wait_for_best(void *context, smelt_interrupt *interrupt) {
    return smelt_kernel_wait(context, interrupt);
}

static PyObject *kernel_wait(PyObject *self, PyObject *unused) {
    const struct kernel *kernel = (const struct kernel *)self;
    (void)unused;
    for (int i = 0; i < 2; i++) {
        bool raised = false;
        if (!kernel->handles[i]) continue;
        smelt_status status = call_watched(wait_for_best, kernel->handles[i], false, &raised);
        if (raised) return NULL;
        if (status != SMELT_OK) {
            raise_status(status);
            return errors_locate_of(self);
        }
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"wait", kernel_wait, METH_NOARGS,
     "wait($self)\n--\n\nWaits until the best code of all launches so far is compiled. Launches of large "
     "kernels on a CPU run quick code before that (last_run.quick), with the same results."},
    {"_show", (PyCFunction)(void (*)(void))show, METH_VARARGS | METH_KEYWORDS, NULL},
    {"_bind", (PyCFunction)(void (*)(void))kernel_bind, METH_VARARGS | METH_KEYWORDS, NULL},
    {0}};

static PyType_Slot slots[] = {{Py_tp_new, new_kernel},
                              {Py_tp_dealloc, dealloc},
                              {Py_tp_call, call_kernel},
                              {Py_tp_methods, methods},
                              {Py_tp_members, members},
                              {Py_tp_getset, getters},
                              {Py_tp_doc, "A kernel from a body, without what smelt.Kernel adds."},
                              {0}};
static PyType_Spec spec = {.name = "smelt._smelt.Kernel",
                           .basicsize = sizeof(struct kernel),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           .slots = slots};

int kernel_init(PyObject *module) {
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    int result = type ? PyModule_AddObjectRef(module, "Kernel", type) : -1;
    Py_XDECREF(type);
    return result < 0 ? -1 : call_init();
}
