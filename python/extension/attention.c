/* Attention and its derivative, for smelt.operations.attention: arrays that it has checked. */
#include "operations.h"

/* q, k, v, mask or None, sinks or None, scale, causal. False with an exception. */
static bool read_desc(PyObject *const *objects, double scale, int causal, smelt_attention_desc *desc) {
    smelt_array **const arrays[5] = {&desc->q, &desc->k, &desc->v, &desc->mask, &desc->sinks};
    desc->scale = scale;
    desc->causal = causal;
    for (int i = 0; i < 5; i++) {
        bool none = i > 2 && objects[i] == Py_None;
        if (none || (*arrays[i] = array_of(objects[i]))) continue;
        PyErr_Format(PyExc_TypeError, "attention: argument %d is not a smelt.array", i);
        return false;
    }
    return true;
}

static PyObject *wrap_all(smelt_array **arrays, int count) {
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; i < count; i++) {
        PyObject *array = tuple ? array_wrap(arrays[i]) : NULL;
        if (!tuple) smelt_array_release(arrays[i]);
        if (!array || PyTuple_SetItem(tuple, i, array) < 0) {
            Py_XDECREF(tuple);
            tuple = NULL;
        }
    }
    return tuple;
}

static PyObject *attention(PyObject *self, PyObject *arguments) {
    PyObject *objects[5];
    double scale;
    int causal;
    smelt_attention_desc desc = {0};
    smelt_array *made[2];
    smelt_status status;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "OOOOOdp:attention", &objects[0], &objects[1], &objects[2], &objects[3],
                          &objects[4], &scale, &causal) ||
        !read_desc(objects, scale, causal, &desc))
        return NULL;
    Py_BEGIN_ALLOW_THREADS status = smelt_attention(&desc, &made[0], &made[1]);
    Py_END_ALLOW_THREADS return status == SMELT_OK ? wrap_all(made, 2) : raise_status(status);
}

static PyObject *attention_vjp(PyObject *self, PyObject *arguments) {
    PyObject *objects[5], *more[3];
    double scale;
    int causal;
    smelt_attention_desc desc = {0};
    smelt_array *made[3], *given[3];
    smelt_status status;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "OOOOOdpOOO:attention_vjp", &objects[0], &objects[1], &objects[2],
                          &objects[3], &objects[4], &scale, &causal, &more[0], &more[1], &more[2]) ||
        !read_desc(objects, scale, causal, &desc))
        return NULL;
    for (int i = 0; i < 3; i++)
        if (!(given[i] = array_of(more[i])))
            return PyErr_Format(PyExc_TypeError, "attention_vjp: argument %d is not a smelt.array", i + 7);
    Py_BEGIN_ALLOW_THREADS status = smelt_attention_vjp(&desc, given[0], given[1], given[2], made);
    Py_END_ALLOW_THREADS return status == SMELT_OK ? wrap_all(made, 3) : raise_status(status);
}

static PyMethodDef functions[] = {
    {"attention", attention, METH_VARARGS,
     "attention(q, k, v, mask, sinks, scale, causal, /)\n--\n\nThe result and the logarithms of its rows' "
     "sums: smelt_attention. mask and sinks may be None."},
    {"attention_vjp", attention_vjp, METH_VARARGS,
     "attention_vjp(q, k, v, mask, sinks, scale, causal, out, logsumexp, cotangent, /)\n--\n\nThe gradients "
     "by "
     "q, k and v: smelt_attention_vjp."},
    {0}};

int attention_init(PyObject *module) {
    return PyModule_AddFunctions(module, functions);
}
