/* The module smelt._smelt. */
#include "call.h"
#include "operations.h"

#include <unistd.h>

static PyObject *devices(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    PyObject *list = PyList_New(0);
    const char *reason, *name;
    for (int i = 0; list && (name = smelt_device_name(i, &reason)); i++) {
        if (*reason) continue;
        PyObject *string = PyUnicode_FromString(name);
        if (!string || PyList_Append(list, string) < 0) Py_CLEAR(list);
        Py_XDECREF(string);
    }
    return list;
}

static PyObject *wait_for(PyObject *self, PyObject *device) {
    const char *name = PyUnicode_AsUTF8AndSize(device, NULL);
    smelt_status status;
    (void)self;
    if (!name) return NULL;
    if (strncmp(name, "cuda", 4) != 0) return Py_NewRef(Py_None); /* CPUs have no pending work */
    Py_BEGIN_ALLOW_THREADS status = smelt_device_wait(name);
    Py_END_ALLOW_THREADS return status == SMELT_OK ? Py_NewRef(Py_None) : raise_status(status);
}

static PyObject *trace_start(PyObject *self, PyObject *path) {
    const char *name = PyUnicode_AsUTF8AndSize(path, NULL);
    (void)self;
    if (!name) return NULL;
    smelt_status status = smelt_trace_start(name);
    return status == SMELT_OK ? Py_NewRef(Py_None) : raise_status(status);
}

static PyObject *trace_stop(PyObject *self, PyObject *unused) {
    smelt_status status;
    (void)self;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS status = smelt_trace_stop();
    Py_END_ALLOW_THREADS return status == SMELT_OK ? Py_NewRef(Py_None) : raise_status(status);
}

static PyObject *findings(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    return errors_findings();
}

static PyMethodDef functions[] = {
    {"trace_start", trace_start, METH_O, "trace_start(path, /)\n--\n\nsmelt_trace_start: records what runs."},
    {"trace_stop", trace_stop, METH_NOARGS, "trace_stop()\n--\n\nsmelt_trace_stop: writes the file."},

    {"findings", findings, METH_NOARGS,
     "findings()\n--\n\nWhat the calling thread's last checked run found, also advice, which is no error: a "
     "list "
     "of smelt.Finding."},
    {"wait", wait_for, METH_O, "wait(device, /)\n--\n\nWaits for all that is under way on a device."},
    {"devices", devices, METH_NOARGS,
     "devices()\n--\n\nThe names of the devices of this machine that can run kernels: "
     "['cpu', 'cpu-scalar', 'cuda:0']."},
    {0}};

static int execute(PyObject *module) {
    if (isatty(STDERR_FILENO)) smelt_set_progress(smelt_progress_on_terminal, NULL);
    if (PyModule_AddStringConstant(module, "__version__", smelt_version()) < 0) return -1;
    if (interned_init() < 0 || errors_init(module) < 0 || dtype_init(module) < 0) return -1;
    if (array_init(module) < 0 || machine_init(module) < 0) return -1;
    if (interop_init(module) < 0 || interrupt_init(module) < 0 || limits_init(module) < 0) return -1;
    if (kernel_init(module) < 0 || bind_init(module) < 0) return -1;
    if (library_init(module) < 0 || tensor_init(module) < 0 || safetensors_init(module) < 0) return -1;
    if (graph_init(module) < 0 || registered_init(module) < 0 || guard_init(module) < 0 ||
        linalg_init(module) < 0)
        return -1;
    if (attention_init(module) < 0 || delta_init(module) < 0 || quantized_init(module) < 0 ||
        jax_init(module) < 0)
        return -1;
    return apply_init(module) < 0 || tune_init(module) < 0 ? -1 : tape_init(module);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)execute}, {0}};
static PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                 .m_name = "smelt._smelt",
                                 .m_doc = "The public C API of libsmelt, bound.",
                                 .m_methods = functions,
                                 .m_slots = slots};

PyMODINIT_FUNC PyInit__smelt(void) {
    return PyModuleDef_Init(&definition);
}
