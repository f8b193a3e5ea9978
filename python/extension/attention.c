/* Attention and its derivative, for smelt.operations.attention: arrays that it has checked. */
#include "operations.h"

#include <math.h>

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

/* *kind: that of q. After an error, the caller releases the arrays that are set. */
static bool import_all(PyObject *const *objects, smelt_array **arrays, enum array_kind *kind) {
    static const char *const names[7] = {
        "attention: q",     "attention: k",          "attention: v",           "attention: mask",
        "attention: sinks", "attention: bias_lines", "attention: bias_columns"};
    for (int i = 0; i < 7; i++) {
        enum array_kind other;
        if (i > 2 && objects[i] == Py_None) continue;
        if (!array_import(objects[i], names[i], &arrays[i], i ? &other : kind)) return false;
    }
    return true;
}

/* The number, or 1/√(elements of a head) for None. False with an exception. */
static bool read_scale(PyObject *o, const smelt_array *q, double *scale) {
    smelt_shape shape = smelt_array_shape(q);
    *scale =
        o == Py_None ? 1 / sqrt(shape.ndim ? (double)shape.size[shape.ndim - 1] : 1) : PyFloat_AsDouble(o);
    return !PyErr_Occurred();
}

/* For arrays of any library, on its current stream. No smelt.array is created for them. Takes an
 * array of arguments instead of a tuple, since reading arguments is much of the time of a call on few
 * elements. */
static PyObject *attention_of(PyObject *self, PyObject *const *objects, Py_ssize_t count) {
    PyObject *result = NULL;
    enum array_kind kind;
    smelt_attention_desc desc = {0};
    smelt_array *arrays[7] = {0}, *made[2] = {0};
    smelt_status status;
    (void)self;
    if (count != 10)
        return PyErr_Format(PyExc_TypeError, "attention_of: got %zd arguments, expected 10", count);
    int causal = PyObject_IsTrue(objects[8]), with_sums = PyObject_IsTrue(objects[9]);
    if (causal < 0 || with_sums < 0) return NULL;
    if (!import_all(objects, arrays, &kind) || !read_scale(objects[7], arrays[0], &desc.scale) ||
        !stream_of_kind(kind, smelt_array_device(arrays[0]), &desc.stream))
        goto end;
    desc.q = arrays[0], desc.k = arrays[1], desc.v = arrays[2], desc.mask = arrays[3], desc.sinks = arrays[4];
    desc.bias_lines = arrays[5], desc.bias_columns = arrays[6];
    desc.causal = causal;
    desc.rows_first = true;
    Py_BEGIN_ALLOW_THREADS status = smelt_attention(&desc, &made[0], with_sums ? &made[1] : NULL);
    Py_END_ALLOW_THREADS if (status != SMELT_OK) {
        raise_status(status);
        goto end;
    }
    PyObject *out = array_export(made[0], kind), *sums = with_sums ? array_export(made[1], kind) : NULL;
    if (with_sums && out && sums) result = PyTuple_Pack(2, out, sums);
    if (!with_sums) result = Py_XNewRef(out);
    Py_XDECREF(out);
    Py_XDECREF(sums);
end:
    smelt_stream_release(desc.stream);
    for (int i = 0; i < 7; i++) smelt_array_release(arrays[i]);
    return result;
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
    {"attention_of", (PyCFunction)(void (*)(void))attention_of, METH_FASTCALL,
     "attention_of(q, k, v, mask, sinks, bias_lines, bias_columns, scale, causal, with_sums, /)\n--\n\nThe "
     "result, an array of the library of q, whose rows lie in memory as (B, T_q, N_q, D_v); with_sums: a "
     "pair of "
     "it and the logarithms of its rows' sums. scale None: 1/sqrt(elements of a head)."},
    {"attention_vjp", attention_vjp, METH_VARARGS,
     "attention_vjp(q, k, v, mask, sinks, scale, causal, out, logsumexp, cotangent, /)\n--\n\nThe gradients "
     "by "
     "q, k and v: smelt_attention_vjp."},
    {0}};

int attention_init(PyObject *module) {
    return PyModule_AddFunctions(module, functions);
}
