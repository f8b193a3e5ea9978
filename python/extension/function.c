/* smelt.Function, a function of a library: its attributes and methods. function_call.c calls it. */
#include "dispatch.h"

#include <stddef.h>
#include <structmember.h>

static PyTypeObject *function_type;

PyObject *function_wrap(smelt_function *handle, const char *name, PyObject *origin) {
    allocfunc allocate = (allocfunc)PyType_GetSlot(function_type, Py_tp_alloc);
    struct function *function = (struct function *)allocate(function_type, 0);
    if (!function) {
        smelt_function_release(handle);
        return NULL;
    }
    function->handle = handle;
    Py_XINCREF(function->origin = origin);
    function->parameter_count = -1;
    function->name = PyUnicode_FromString(name);
    function->text = function->name ? PyUnicode_AsUTF8AndSize(function->name, NULL) : NULL;
    if (!function->text) Py_CLEAR(function);
    return (PyObject *)function;
}

static void dealloc(PyObject *self) {
    struct function *function = (struct function *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    smelt_function_release(function->handle);
    for (int i = 0; i < MOST_PARAMETERS; i++) free(function->labels[i]);
    Py_XDECREF(function->name);
    Py_XDECREF(function->origin);
    release(self);
    Py_DECREF(type);
}

static PyObject *get_last(PyObject *self, void *closure) {
    const struct function *function = (const struct function *)self;
    (void)closure;
    if (!function->ran) Py_RETURN_NONE;
    return info_dictionary(&function->last, function->timed);
}

static PyObject *get_parameters(PyObject *self, void *closure) {
    struct function *function = (struct function *)self;
    smelt_dispatch_desc desc;
    (void)closure;
    memset(&desc, 0, sizeof desc);
    desc.grid[0] = desc.threadgroup[0] = 256;
    if (!function_query_parameters(function, &desc)) return errors_locate(function->origin);
    PyObject *list = PyTuple_New(function->parameter_count);
    for (int i = 0; i < function->parameter_count && list; i++) {
        const smelt_parameter *p = &function->parameters[i];
        PyObject *dtype = p->dtype == SMELT_NO_DTYPE ? Py_None : dtype_object(p->dtype);
        PyObject *one = Py_BuildValue(
            "{s:s,s:i,s:O,s:O,s:O,s:O,s:i,s:K,s:O,s:i,s:z,s:z}", "name", p->name, "index", p->index,
            "threadgroup", p->threadgroup ? Py_True : Py_False, "pointer", p->pointer ? Py_True : Py_False,
            "writable", p->writable ? Py_True : Py_False, "dtype", dtype, "components", p->components,
            "bytes", (unsigned long long)p->bytes, "used", p->used ? Py_True : Py_False, "rank", p->rank,
            "element", p->element ? smelt_element_name(p->element) : NULL, "scales",
            p->scales ? smelt_element_name(p->scales) : NULL);
        if (!one || PyTuple_SetItem(list, i, one) < 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *show(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"stage", "device", "threads", "group_size", NULL};
    static const char *const stages[] = {"source", "rewritten", "ir",   "asm",     "simd",
                                         "why",    "ptx",       "time", "warnings"};
    enum { STAGE_COUNT = sizeof stages / sizeof *stages };
    struct function *function = (struct function *)self;
    const char *stage = "asm", *device = NULL;
    PyObject *threads = NULL, *group = NULL;
    smelt_dispatch_desc desc;
    char *text = NULL;
    memset(&desc, 0, sizeof desc);
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|szOO:show", names, &stage, &device, &threads,
                                     &group))
        return NULL;
    if (threads && threads != Py_None && !function_size(function, threads, "threads", desc.grid)) return NULL;
    if (group && group != Py_None && !function_size(function, group, "group_size", desc.threadgroup))
        return NULL;
    int which = 0;
    while (which < STAGE_COUNT && strcmp(stages[which], stage) != 0) which++;
    if (which == STAGE_COUNT) {
        PyErr_Format(PyExc_ValueError,
                     "kernel '%s': stage is '%s'; expected source, rewritten, ir, simd, why, asm, ptx, "
                     "time or warnings",
                     function->text, stage);
        return NULL;
    }
    desc.device = device;
    smelt_status status;
    Py_BEGIN_ALLOW_THREADS status =
        smelt_function_show_run(function->handle, &desc, (smelt_stage)which, &text);
    Py_END_ALLOW_THREADS if (status != SMELT_OK) {
        raise_status(status);
        return errors_locate(function->origin);
    }
    PyObject *result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    smelt_free(text);
    return result;
}

static PyObject *repr(PyObject *self) {
    return PyUnicode_FromFormat("<smelt.Function '%s'>", ((struct function *)self)->text);
}

static PyGetSetDef getters[] = {
    {"last_run", get_last, NULL, "The latest launch, as Kernel.last_run but as a dict, or None.", NULL},
    {"parameters", get_parameters, NULL,
     "The parameters that are bound: dicts of name, index, threadgroup, pointer, "
     "writable, dtype (None: a structure), "
     "components, bytes, used, and of tensors rank, element, scales. Compiles the function if it was not.",
     NULL},
    {0}};
static PyMemberDef members[] = {
    {"name", T_OBJECT_EX, offsetof(struct function, name), READONLY, "Its host name."}, {0}};
static smelt_status wait_for_best(void *context, smelt_interrupt *interrupt) {
    return smelt_function_wait(context, interrupt);
}

static PyObject *function_wait(PyObject *self, PyObject *unused) {
    struct function *function = (struct function *)self;
    bool raised;
    (void)unused;
    smelt_status status = call_watched(wait_for_best, function->handle, false, &raised);
    if (raised) return NULL;
    if (status == SMELT_OK) Py_RETURN_NONE;
    raise_status(status);
    return errors_locate(function->origin);
}

static PyMethodDef methods[] = {
    {"wait", function_wait, METH_NOARGS,
     "wait($self)\n--\n\nWaits for the best code of all launches so far, as Kernel.wait."},
    {"show", (PyCFunction)(void (*)(void))show, METH_VARARGS | METH_KEYWORDS,
     "show($self, stage='asm', device=None, threads=None, group_size=None)\n--\n\nThe "
     "text of one stage: 'source', 'rewritten', "
     "'ir', 'simd', 'why', 'asm', 'ptx'."},
    {0}};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc},
    {Py_tp_call, function_call},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, getters},
    {Py_tp_repr, repr},
    {Py_tp_doc,
     "A kernel function of a library. f(a, b, 3, threads=n, "
     "group_size=256) binds its arguments to buffers 0, 1, 2 … (None "
     "leaves one out), or by the names of parameters (f(out=c, n=3)), "
     "and runs it; buffers that are not const are written "
     "in place, and nothing is returned.\n\n"
     "Arguments: row-contiguous arrays (those that are written must be "
     "writable), numbers and lists of numbers, which "
     "become the parameter's type (a TypeError or ValueError where that "
     "loses anything but a float's precision), and "
     "bytes for structures. An array's dtype is the parameter's; "
     "integers may differ in sign, char * takes any as bytes, complex64 "
     "is taken for float2, and "
     "uint8 (a.view('uint8')) for the bytes of any type. A parameter of type tensor takes a smelt.Tensor, or "
     "an array whose last dimension is dense.\n\n"
     "threads: how many run, in up to 3 dimensions; by default one for "
     "each element of the first array. groups: instead, "
     "how many threadgroups. group_size: threads of a threadgroup; by "
     "default up to 256. threadgroup_memory: bytes, by "
     "index or name ({0: 1024}); indices that the function does not "
     "have are ignored. device, stream, timeout, profile: as "
     "of Kernel. arg_casts: taken and not needed."},
    {0}};
static PyType_Spec spec = {.name = "smelt._smelt.Function",
                           .basicsize = sizeof(struct function),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           .slots = slots};

int function_init(PyObject *module) {
    if (dispatch_init() < 0) return -1;
    function_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return function_type ? PyModule_AddObjectRef(module, "Function", (PyObject *)function_type) : -1;
}
