/* torch's tensors: by DLPack's exchange where torch has it (2.10 and later), else by __dlpack__. */
#include "interop.h"

static PyObject *torch; /* the module, once it is needed */

/* The index of torch's exchange; -1: it has none. */
static int exchange(void) {
    static int found = -2;
    if (found > -2) return found;
    if (!torch && !(torch = PyImport_ImportModule("torch"))) return -1;
    PyObject *class = PyObject_GetAttrString(torch, "Tensor");
    found = class ? exchange_of_type(class) : -1;
    Py_XDECREF(class);
    return found;
}

static bool answers_yes(PyObject *o, PyObject *method) {
    PyObject *answer = PyObject_CallMethodObjArgs(o, method, NULL);
    bool yes = answer == Py_True;
    if (!answer) PyErr_Clear();
    Py_XDECREF(answer);
    return yes;
}

/* What takes part in gradients would lose them without a word. */
static bool loses_gradients(PyObject *o) {
    PyObject *needs = PyObject_GetAttr(o, interned.requires_grad);
    if (!needs) PyErr_Clear();
    Py_XDECREF(needs);
    if (needs != Py_True) return false;
    PyObject *enabled = PyObject_CallMethod(torch, "is_grad_enabled", NULL);
    PyErr_Clear();
    Py_XDECREF(enabled);
    return enabled == Py_True;
}

/* Sparse, nested and the like have no one piece of memory: that is said in place of what torch says. */
static void explain_layout(PyObject *o, const char *what) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *layout = PyObject_GetAttrString(o, "layout"), *text = layout ? PyObject_Str(layout) : NULL;
    PyErr_Clear();
    if (text && PyUnicode_CompareWithASCIIString(text, "torch.strided") != 0) {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
        PyErr_Format(PyExc_TypeError,
                     "%s: the tensor's layout is %U; expected a dense one, such as x.to_dense()", what, text);
    } else {
        PyErr_Restore(type, value, traceback);
    }
    Py_XDECREF(text);
    Py_XDECREF(layout);
}

static bool import(PyObject *o, const struct request *request, smelt_array **array) {
    int index = exchange();
    bool good =
        index >= 0 ? exchange_import(index, o, request, array) : dlpack_import(o, KIND_TORCH, request, array);
    if (!good) explain_layout(o, request->what);
    return good;
}

/* A view whose elements torch conjugates or negates when it reads them: its memory holds something else. */
static bool import_resolved(PyObject *o, const char *method, const struct request *request,
                            smelt_array **array) {
    if (request->writing) {
        PyErr_Format(
            PyExc_ValueError,
            "%s: the tensor is a view that torch conjugates or negates; expected one that can be written in "
            "place",
            request->what);
        return false;
    }
    PyObject *resolved = PyObject_CallMethod(o, method, NULL);
    bool good = resolved && import(resolved, request, array);
    Py_XDECREF(resolved);
    return good;
}

bool torch_import(PyObject *o, const struct request *request, smelt_array **array) {
    if (!torch && !(torch = PyImport_ImportModule("torch"))) return false;
    if (loses_gradients(o)) {
        PyErr_Format(PyExc_TypeError,
                     "%s: the tensor requires a gradient, which kernels do not propagate; pass x.detach(), "
                     "or see smelt.torch",
                     request->what);
        return false;
    }
    /* The exchange passes a conjugated tensor as it is, and only complex ones are asked: it takes time. */
    bool late = exchange() >= 0;
    if (!late && answers_yes(o, interned.is_conj)) return import_resolved(o, "resolve_conj", request, array);
    if (answers_yes(o, interned.is_neg)) return import_resolved(o, "resolve_neg", request, array);
    if (!import(o, request, array)) return false;
    if (!late || smelt_array_dtype(*array) != SMELT_COMPLEX64 || !answers_yes(o, interned.is_conj))
        return true;
    smelt_array_release(*array);
    return import_resolved(o, "resolve_conj", request, array);
}

PyObject *torch_export(smelt_array *array) {
    int index = exchange();
    return index >= 0 ? exchange_export(index, array)
                      : interop_by_function(array, false, "torch", "from_dlpack");
}
