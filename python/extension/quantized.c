/* Products with packed matrices: for smelt.operations.quantised, of arrays that it has checked, and for
 * tensors of torch. */
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

/* Words of torch are int32, as torch computes little with uint32. The caller releases *words. */
static bool import_words(PyObject *o, smelt_array **words) {
    enum array_kind kind;
    smelt_array *array;
    if (!array_import(o, "quantized_matmul: w", &array, &kind)) return false;
    smelt_status status = smelt_array_reinterpret(array, SMELT_UINT32, words);
    smelt_array_release(array);
    if (status != SMELT_OK) raise_status(status);
    return status == SMELT_OK;
}

/* For arrays of any library, on its current stream. No smelt.array is created for them. */
static PyObject *quantized_matmul_of(PyObject *self, PyObject *arguments) {
    static const char *const names[4] = {"quantized_matmul: x", NULL, "quantized_matmul: scales",
                                         "quantized_matmul: biases"};
    PyObject *objects[4], *result = NULL;
    int mode;
    enum array_kind kind = KIND_OTHER, other;
    smelt_quantized_matmul_desc desc = {0};
    smelt_array *arrays[4] = {0}, *made;
    smelt_status status;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "OOOOiii:quantized_matmul_of", &objects[0], &objects[1], &objects[2],
                          &objects[3], &desc.bits, &desc.group_size, &mode))
        return NULL;
    for (int i = 0; i < 4; i++) {
        if (i == 3 && objects[i] == Py_None) continue;
        bool good = i == 1 ? import_words(objects[i], &arrays[i])
                           : array_import(objects[i], names[i], &arrays[i], i ? &other : &kind);
        if (!good) goto end;
    }
    if (!stream_of_kind(kind, smelt_array_device(arrays[0]), &desc.stream)) goto end;
    desc.x = arrays[0], desc.w = arrays[1], desc.scales = arrays[2], desc.biases = arrays[3];
    desc.mode = (smelt_quantized_mode)mode;
    Py_BEGIN_ALLOW_THREADS status = smelt_quantized_matmul(&desc, &made);
    Py_END_ALLOW_THREADS result = status == SMELT_OK ? array_export(made, kind) : raise_status(status);
end:
    smelt_stream_release(desc.stream);
    for (int i = 0; i < 4; i++) smelt_array_release(arrays[i]);
    return result;
}

static PyMethodDef functions[] = {
    {"quantized_matmul", quantized_matmul, METH_VARARGS,
     "quantized_matmul(x, w, scales, biases, bits, group_size, mode, /)\n--\n\nThe product: "
     "smelt_quantized_matmul. biases may be None; mode is its number."},
    {"quantized_matmul_of", quantized_matmul_of, METH_VARARGS,
     "quantized_matmul_of(x, w, scales, biases, bits, group_size, mode, /)\n--\n\nThe product, an array of "
     "x's library. The words of w may be int32."},
    {0}};

int quantized_init(PyObject *module) {
    return PyModule_AddFunctions(module, functions);
}
