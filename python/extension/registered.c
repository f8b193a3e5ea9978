/* Registered operations whose functions are Python's, and uses of registered operations. */
#include "operations.h"

struct functions {
    PyObject *infer, *run, *vjp, *jvp; /* or NULL */
};

/* ---- Attributes. */

static bool attribute_take(PyObject *value, smelt_attribute *attribute) {
    if (PyBool_Check(value)) {
        attribute->kind = SMELT_ATTRIBUTE_BOOLEAN;
        attribute->boolean = value == Py_True;
    } else if (PyLong_Check(value)) {
        attribute->kind = SMELT_ATTRIBUTE_INTEGER;
        attribute->integer = PyLong_AsLongLong(value);
        return !(attribute->integer == -1 && PyErr_Occurred());
    } else if (PyFloat_Check(value)) {
        attribute->kind = SMELT_ATTRIBUTE_REAL;
        attribute->real = PyFloat_AsDouble(value);
    } else if (PyUnicode_Check(value)) {
        attribute->kind = SMELT_ATTRIBUTE_STRING;
        return (attribute->string = PyUnicode_AsUTF8AndSize(value, NULL)) != NULL;
    } else {
        PyErr_Format(PyExc_TypeError, "parameter '%s' is a %R; expected bool, int, float or str",
                     attribute->name, (PyObject *)Py_TYPE(value));
        return false;
    }
    return true;
}

static bool attributes_take(PyObject *parameters, smelt_attribute *attributes) {
    Py_ssize_t at = 0;
    int count = 0;
    PyObject *key, *value;
    if (parameters == Py_None) return true;
    if (!PyDict_Check(parameters) || PyDict_Size(parameters) > SMELT_MAX_ATTRIBUTES) {
        PyErr_Format(PyExc_TypeError, "parameters: expected a dict with at most %d entries",
                     SMELT_MAX_ATTRIBUTES);
        return false;
    }
    while (PyDict_Next(parameters, &at, &key, &value)) {
        attributes[count].name = PyUnicode_AsUTF8AndSize(key, NULL);
        if (!attributes[count].name || !attribute_take(value, &attributes[count])) return false;
        count++;
    }
    return true;
}

static PyObject *attributes_dict(const smelt_attribute *attributes) {
    PyObject *dict = PyDict_New();
    for (; dict && attributes->name; attributes++) {
        PyObject *value =
            attributes->kind == SMELT_ATTRIBUTE_BOOLEAN   ? PyBool_FromLong(attributes->boolean)
            : attributes->kind == SMELT_ATTRIBUTE_INTEGER ? PyLong_FromLongLong(attributes->integer)
            : attributes->kind == SMELT_ATTRIBUTE_REAL    ? PyFloat_FromDouble(attributes->real)
                                                          : PyUnicode_FromString(attributes->string);
        if (!value || PyDict_SetItemString(dict, attributes->name, value) < 0) Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

/* ---- Functions, called with lists and a dict. */

/* function(inputs, device, parameters, types[, outputs, with]): a list. */
static PyObject *call(PyObject *function, const smelt_operation_call *use, smelt_array *const *outputs,
                      smelt_array *const *with, int with_count) {
    PyObject *inputs = arrays_list(use->inputs, use->input_count);
    PyObject *parameters = attributes_dict(use->attributes);
    PyObject *types = types_list(use->types, use->output_count);
    PyObject *made = outputs ? arrays_list(outputs, use->output_count) : NULL;
    PyObject *others = outputs ? arrays_list(with, with_count) : NULL;
    PyObject *device = PyUnicode_FromString(use->device);
    PyObject *result = NULL;
    bool good = inputs && parameters && types && device && (!outputs || (made && others));
    if (good && outputs)
        result =
            PyObject_CallFunctionObjArgs(function, inputs, device, parameters, types, made, others, NULL);
    else if (good)
        result = PyObject_CallFunctionObjArgs(function, inputs, device, parameters, types, NULL);
    PyObject *all[] = {inputs, parameters, types, made, others, device};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) Py_XDECREF(all[i]);
    return result;
}

/* The arrays of a returned list, `count` of them. */
static smelt_status take_result(PyObject *result, bool optional, const smelt_operation_call *use,
                                smelt_array **made, int count) {
    struct arrays arrays = {0};
    bool good = result && arrays_take(result, use->name, optional, &arrays);
    if (good && arrays.count != count) {
        PyErr_Format(PyExc_ValueError, "%s: a function returned %d arrays; expected %d", use->name,
                     arrays.count, count);
        good = false;
    }
    for (int i = 0; i < count && good; i++) made[i] = smelt_array_retain(arrays.items[i]);
    free(arrays.items);
    Py_XDECREF(result);
    return good ? SMELT_OK : exception_keep();
}

static smelt_status infer(void *context, const smelt_operation_call *use, smelt_type *types, int *count) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *result = call(((struct functions *)context)->infer, use, NULL, NULL, 0);
    bool good = result && types_take(result, use->name, types, count);
    Py_XDECREF(result);
    smelt_status status = good ? SMELT_OK : exception_keep();
    PyGILState_Release(state);
    return status;
}

static smelt_status run(void *context, const smelt_operation_call *use, smelt_array **outputs) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *result = call(((struct functions *)context)->run, use, NULL, NULL, 0);
    smelt_status status = take_result(result, false, use, outputs, use->output_count);
    PyGILState_Release(state);
    return status;
}

static smelt_status vjp(void *context, const smelt_operation_call *use, smelt_array *const *outputs,
                        smelt_array *const *cotangents, smelt_array **gradients) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *result = call(((struct functions *)context)->vjp, use, outputs, cotangents, use->output_count);
    smelt_status status = take_result(result, true, use, gradients, use->input_count);
    PyGILState_Release(state);
    return status;
}

static smelt_status jvp(void *context, const smelt_operation_call *use, smelt_array *const *outputs,
                        smelt_array *const *tangents, smelt_array **output_tangents) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *result = call(((struct functions *)context)->jvp, use, outputs, tangents, use->input_count);
    smelt_status status = take_result(result, true, use, output_tangents, use->output_count);
    PyGILState_Release(state);
    return status;
}

static void release(void *context) {
    struct functions *functions = context;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_XDECREF(functions->infer);
    Py_XDECREF(functions->run);
    Py_XDECREF(functions->vjp);
    Py_XDECREF(functions->jvp);
    PyGILState_Release(state);
    free(functions);
}

static PyObject *optional(PyObject *o) {
    return o == Py_None ? NULL : Py_NewRef(o);
}

static PyObject *register_operation(PyObject *self, PyObject *arguments) {
    const char *name;
    PyObject *o[4];
    int opaque;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "sOOOOp:register_operation", &name, &o[0], &o[1], &o[2], &o[3], &opaque))
        return NULL;
    struct functions *functions = malloc(sizeof *functions);
    if (!functions) return PyErr_NoMemory();
    *functions = (struct functions){optional(o[0]), optional(o[1]), optional(o[2]), optional(o[3])};
    smelt_operation_desc desc = {.name = name,
                                 .infer = functions->infer ? infer : NULL,
                                 .run = functions->run ? run : NULL,
                                 .vjp = functions->vjp ? vjp : NULL,
                                 .jvp = functions->jvp ? jvp : NULL,
                                 .release = release,
                                 .context = functions,
                                 .opaque = opaque};
    smelt_status status = smelt_operation_register(&desc);
    if (status == SMELT_OK) return Py_NewRef(Py_None);
    release(functions);
    return raise_status(status);
}

/* ---- Uses. */

static PyObject *custom(PyObject *self, PyObject *arguments) {
    const char *name, *device;
    PyObject *input_list, *types, *parameters;
    struct arrays inputs = {0};
    smelt_type given[SMELT_MAX_ARGUMENTS];
    smelt_array *made[SMELT_MAX_ARGUMENTS];
    int type_count = 0, count = 0;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "sOOOz:custom", &name, &input_list, &types, &parameters, &device))
        return NULL;
    smelt_custom_desc desc = {.name = name, .device = device};
    if (types != Py_None && !types_take(types, "out_types", given, &type_count)) return NULL;
    if (!attributes_take(parameters, desc.attributes)) return NULL;
    if (!arrays_take(input_list, "values", false, &inputs)) return NULL;
    desc.inputs = inputs.items;
    desc.input_count = inputs.count;
    desc.types = types == Py_None ? NULL : given;
    desc.output_count = type_count;
    smelt_status status;
    Py_BEGIN_ALLOW_THREADS status = smelt_custom(&desc, SMELT_MAX_ARGUMENTS, made, &count);
    Py_END_ALLOW_THREADS free(inputs.items);
    return status == SMELT_OK ? arrays_list_taking(made, count) : exception_raise_kept(status);
}

static PyMethodDef functions_table[] = {
    {"register_operation", register_operation, METH_VARARGS,
     "register_operation(name, infer, run, vjp, jvp, opaque, /)\n--\n\nsmelt_operation_register: functions "
     "of "
     "(inputs, "
     "device, parameters, types), the derivatives also of outputs and cotangents or tangents; or None."},
    {"custom", custom, METH_VARARGS,
     "custom(name, values, out_types, parameters, device, /)\n--\n\nsmelt_custom: a list of arrays."},
    {0}};

int registered_init(PyObject *module) {
    return PyModule_AddFunctions(module, functions_table);
}
