/* The gated delta rule, for smelt.operations.sequence: arrays that it has converted. */
#include "operations.h"

#include <smelt/nn.h>

static PyObject *gated_delta(PyObject *self, PyObject *arguments) {
    PyObject *objects[6], *pair = NULL;
    smelt_gated_delta_desc desc = {0};
    smelt_array **const arrays[6] = {&desc.q, &desc.k, &desc.v, &desc.g, &desc.beta, &desc.initial}, *made[2];
    smelt_status status;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "OOOOOOdi:gated_delta", &objects[0], &objects[1], &objects[2],
                          &objects[3], &objects[4], &objects[5], &desc.scale, &desc.chunk))
        return NULL;
    for (int i = 0; i < 6; i++) {
        if ((i == 5 && objects[i] == Py_None) || (*arrays[i] = array_of(objects[i]))) continue;
        return PyErr_Format(PyExc_TypeError, "gated_delta: argument %d is not a smelt.array", i);
    }
    Py_BEGIN_ALLOW_THREADS status = smelt_gated_delta(&desc, &made[0], &made[1]);
    Py_END_ALLOW_THREADS if (status != SMELT_OK) return raise_status(status);
    PyObject *out = array_wrap(made[0]), *states = array_wrap(made[1]);
    if (out && states) pair = PyTuple_Pack(2, out, states);
    Py_XDECREF(out);
    Py_XDECREF(states);
    return pair;
}

static PyMethodDef functions[] = {{"gated_delta", gated_delta, METH_VARARGS,
                                   "gated_delta(q, k, v, g, beta, initial, scale, chunk, /)\n--\n\nThe "
                                   "results and the states: smelt_gated_delta. "
                                   "initial may be None; scale 0 and chunk 0 are the defaults."},
                                  {0}};

int delta_init(PyObject *module) {
    return PyModule_AddFunctions(module, functions);
}
