/* Statuses as Python exceptions. */
#include "extension.h"

PyObject *raise_status(smelt_status status) {
    PyObject *type = PyExc_RuntimeError;
    if (status == SMELT_ERROR_INVALID_ARGUMENT || status == SMELT_ERROR_LIMIT || status == SMELT_ERROR_FORMAT)
        type = PyExc_ValueError;
    PyErr_SetString(type, smelt_error());
    return NULL;
}

int errors_init(PyObject *module) {
    (void)module;
    return 0;
}
