/* Products with packed matrices, for smelt.operations.quantised: arrays that it has checked. */
#include "operations.h"

static PyObject *quantized_matmul(PyObject *self, PyObject *arguments) {
    PyObject *objects[4];
    int bits, group_size, mode;
    smelt_array *made, *arrays[4] = {0};
    smelt_status status;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "OOOOiii:quantized_matmul", &objects[0], &objects[1], &objects[2],
                          &objects[3], &bits, &group_size, &mode))
        return NULL;
    for (int i = 0; i < 4; i++)
        if (!(i == 3 && objects[i] == Py_None) && !(arrays[i] = array_of(objects[i])))
            return PyErr_Format(PyExc_TypeError, "quantized_matmul: argument %d is not a smelt.array", i);
    smelt_quantized_matmul_desc desc = {.x = arrays[0],
                                        .w = arrays[1],
                                        .scales = arrays[2],
                                        .biases = arrays[3],
                                        .bits = bits,
                                        .group_size = group_size,
                                        .mode = (smelt_quantized_mode)mode};
    Py_BEGIN_ALLOW_THREADS status = smelt_quantized_matmul(&desc, &made);
    Py_END_ALLOW_THREADS if (status != SMELT_OK) return raise_status(status);
    PyObject *array = array_wrap(made);
    if (!array) smelt_array_release(made);
    return array;
}

static PyMethodDef functions[] = {
    {"quantized_matmul", quantized_matmul, METH_VARARGS,
     "quantized_matmul(x, w, scales, biases, bits, group_size, mode, /)\n--\n\nThe product: "
     "smelt_quantized_matmul. biases may be None; mode is its number."},
    {0}};

int quantized_init(PyObject *module) {
    return PyModule_AddFunctions(module, functions);
}
