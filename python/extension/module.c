/* The module smelt._smelt. */
#include "call.h"

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

static PyMethodDef functions[] = {{"devices", devices, METH_NOARGS,
                                   "devices()\n--\n\nThe names of the devices that kernels can run on here: "
                                   "['cpu', 'cpu-scalar', 'cuda:0']."},
                                  {0}};

static int execute(PyObject *module) {
    if (PyModule_AddStringConstant(module, "__version__", smelt_version()) < 0) return -1;
    if (interned_init() < 0 || errors_init(module) < 0 || dtype_init(module) < 0) return -1;
    if (array_init(module) < 0 || machine_init(module) < 0) return -1;
    if (interop_init(module) < 0 || interrupt_init(module) < 0) return -1;
    if (kernel_init(module) < 0 || bind_init(module) < 0) return -1;
    return library_init(module);
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
