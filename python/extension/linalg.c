/* smelt/linalg.h, for smelt.linalg: arrays and options that it has checked. */
#include "operations.h"

#include <smelt/linalg.h>

/* How a function is called: with one matrix or two. */
struct function {
    const char *name;
    int inputs, outputs;
};
static const struct function table[] = {
    {"cholesky", 1, 1},         {"qr", 1, 2},    {"lu", 1, 2}, {"solve", 2, 1},
    {"triangular_solve", 2, 1}, {"lstsq", 2, 1}, {"dot", 2, 1}};
enum { CHOLESKY, QR, LU, SOLVE, TRIANGULAR_SOLVE, LSTSQ, DOT, FUNCTION_COUNT };

static smelt_status call(int which, smelt_array *a, smelt_array *b, const smelt_linalg_desc *desc,
                         bool wants_q, smelt_array *made[2]) {
    switch (which) {
    case CHOLESKY:
        return smelt_cholesky(a, desc, &made[0]);
    case QR:
        return smelt_qr(a, desc, wants_q ? &made[0] : NULL, &made[1]);
    case LU:
        return smelt_lu(a, desc, &made[0], &made[1]);
    case SOLVE:
        return smelt_solve(a, b, desc, &made[0]);
    case TRIANGULAR_SOLVE:
        return smelt_triangular_solve(a, b, desc, &made[0]);
    case LSTSQ:
        return smelt_lstsq(a, b, desc, &made[0]);
    default:
        return smelt_dot(a, b, desc, &made[0]);
    }
}

/* An array as an object, or None; takes the reference. */
static PyObject *wrap_or_none(smelt_array *array) {
    return array ? array_wrap(array) : Py_NewRef(Py_None);
}

static PyObject *linalg(PyObject *self, PyObject *arguments) {
    PyObject *a, *b;
    const char *name, *device;
    int upper, unit, transpose, right, complete, symmetric, policy, precision, wants_q, wants_flags,
        which = 0;
    smelt_linalg_report report = {0};
    smelt_linalg_desc desc = {.report = &report};
    smelt_array *made[2] = {0}, *flags = NULL, *inputs[2];
    smelt_status status;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "sOO(pppppp)ii(did)ppz:linalg", &name, &a, &b, &upper, &unit, &transpose,
                          &right, &complete, &symmetric, &policy, &precision, &desc.jitter, &desc.attempts,
                          &desc.tolerance, &wants_q, &wants_flags, &device))
        return NULL;
    while (which < FUNCTION_COUNT && strcmp(table[which].name, name) != 0) which++;
    if (which == FUNCTION_COUNT) return PyErr_Format(PyExc_ValueError, "linalg: '%s' is unknown", name);
    inputs[0] = array_of(a);
    inputs[1] = table[which].inputs > 1 ? array_of(b) : NULL;
    if (!inputs[0] || (table[which].inputs > 1 && !inputs[1]))
        return PyErr_Format(PyExc_TypeError, "linalg: argument %d is not a smelt.array", inputs[0] ? 2 : 1);
    desc.upper = upper, desc.unit = unit, desc.transpose = transpose, desc.right = right;
    desc.complete = complete, desc.symmetric = symmetric;
    desc.on_failure = (smelt_linalg_policy)policy;
    desc.precision = (smelt_linalg_precision)precision;
    desc.device = device;
    if (wants_flags) desc.flags = &flags;
    Py_BEGIN_ALLOW_THREADS status = call(which, inputs[0], inputs[1], &desc, wants_q, made);
    Py_END_ALLOW_THREADS if (status != SMELT_OK) return raise_status(status);
    return Py_BuildValue("(NN)(LLLLddiOs)N", wrap_or_none(made[0]), wrap_or_none(made[1]),
                         (long long)report.matrices, (long long)report.failed, (long long)report.matrix,
                         (long long)report.index, report.value, report.jitter, report.attempts,
                         report.fell_back ? Py_True : Py_False, report.message, wrap_or_none(flags));
}

static PyObject *linalg_residual(PyObject *self, PyObject *arguments) {
    PyObject *objects[3] = {Py_None, Py_None, Py_None};
    smelt_array *arrays[3] = {0};
    const char *name;
    int upper = 0;
    double value;
    smelt_status status;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "sp|OOO:linalg_residual", &name, &upper, &objects[0], &objects[1],
                          &objects[2]))
        return NULL;
    for (int i = 0; i < 3; i++)
        if (objects[i] != Py_None && !(arrays[i] = array_of(objects[i])))
            return PyErr_Format(PyExc_TypeError, "linalg_residual: array %d is not a smelt.array", i);
    Py_BEGIN_ALLOW_THREADS if (strcmp(name, "cholesky") == 0) status =
        smelt_cholesky_residual(arrays[0], arrays[1], upper, &value);
    else if (strcmp(name, "qr") == 0) status = smelt_qr_residual(arrays[0], arrays[1], arrays[2], &value);
    else if (strcmp(name, "orthogonality") == 0) status = smelt_orthogonality(arrays[0], &value);
    else status = smelt_lower_residual(arrays[0], &value);
    Py_END_ALLOW_THREADS return status == SMELT_OK ? PyFloat_FromDouble(value) : raise_status(status);
}

static PyMethodDef functions[] = {
    {"linalg", linalg, METH_VARARGS,
     "linalg(name, a, b, flags, policy, precision, numbers, wants_q, wants_flags, device, /)\n--\n\nA "
     "function of "
     "smelt/linalg.h: its results, its report, its flags. b, the results and the flags may be None."},
    {"linalg_residual", linalg_residual, METH_VARARGS,
     "linalg_residual(name, upper, /, *arrays)\n--\n\nA residual of smelt/linalg.h."},
    {0}};

int linalg_init(PyObject *module) {
    return PyModule_AddFunctions(module, functions);
}
