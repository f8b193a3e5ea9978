/* Numbers as the bytes of a parameter. */
#include "function.h"

/* The range of the integers of a dtype; false for other dtypes. */
static bool integer_range(smelt_dtype dtype, int64_t *low, uint64_t *high) {
    int bits = (int)(8 * smelt_dtype_bytes(dtype));
    bool is_signed = dtype >= SMELT_INT8 && dtype <= SMELT_INT64;
    if (dtype < SMELT_UINT8 || dtype > SMELT_INT64) return false;
    *low = is_signed ? -(int64_t)((UINT64_C(1) << (bits - 1)) - 1) - 1 : 0;
    *high = is_signed ? (UINT64_C(1) << (bits - 1)) - 1 : bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    return true;
}

static bool fail_number(PyObject *o, const char *what, const smelt_parameter *parameter,
                        const char *expected) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "%s is %R; %s %s", what, o, smelt_dtype_name(parameter->dtype), expected);
    return false;
}

/* One number as 8 bytes at most. */
static bool store(PyObject *o, const char *what, const smelt_parameter *parameter, char *to) {
    int64_t low;
    uint64_t high;
    smelt_dtype dtype = parameter->dtype;
    if (dtype == SMELT_BOOL) {
        int truth = PyObject_IsTrue(o);
        if (truth < 0) return fail_number(o, what, parameter, "takes True or False");
        *to = (char)truth;
        return true;
    }
    if (integer_range(dtype, &low, &high)) {
        PyObject *number = PyIndex_Check(o) ? PyNumber_Index(o) : NULL;
        if (!number) return fail_number(o, what, parameter, "takes an integer");
        int overflow;
        long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
        unsigned long long wide =
            overflow > 0 ? PyLong_AsUnsignedLongLong(number) : (unsigned long long)value;
        bool fits = overflow >= 0 && !PyErr_Occurred() && (overflow > 0 || value >= low) &&
                    (overflow == 0 && value < 0 ? true : wide <= high);
        PyErr_Clear();
        Py_DECREF(number);
        if (!fits)
            PyErr_Format(PyExc_ValueError, "%s is %R, which does not fit in %s", what, o,
                         smelt_dtype_name(dtype));
        memcpy(to, &wide, smelt_dtype_bytes(dtype));
        return fits;
    }
    double value = PyFloat_AsDouble(o);
    if (value == -1 && PyErr_Occurred()) return fail_number(o, what, parameter, "takes a number");
    if (dtype == SMELT_FLOAT32) {
        float rounded = (float)value;
        memcpy(to, &rounded, sizeof rounded);
        return true;
    }
    smelt_array *from = NULL, *converted = NULL;
    smelt_status status = smelt_array_from_values(SMELT_FLOAT64, (smelt_shape){0}, &value, &from);
    if (status == SMELT_OK) status = smelt_array_convert(from, dtype, &converted);
    if (status == SMELT_OK) memcpy(to, smelt_array_data(converted), smelt_dtype_bytes(dtype));
    smelt_array_release(converted);
    smelt_array_release(from);
    if (status != SMELT_OK) raise_status(status);
    return status == SMELT_OK;
}

/* The numbers of nested lists in sequence; a new list, or NULL with an exception. */
static bool flatten(PyObject *o, PyObject *flat) {
    if (!is_list(o)) return PyList_Append(flat, o) == 0;
    /* A list may contain itself. */
    if (Py_EnterRecursiveCall(" in a list of numbers")) return false;
    bool good = true;
    for (Py_ssize_t i = 0; i < length_of(o) && good; i++) good = flatten(item_of(o, i), flat);
    Py_LeaveRecursiveCall();
    return good;
}

void *bytes_of_numbers(PyObject *o, const char *what, const smelt_parameter *parameter, size_t *size) {
    PyObject *flat = is_list(o) ? PyList_New(0) : NULL;
    char *bytes = NULL;
    if (is_list(o) && (!flat || !flatten(o, flat))) goto end;
    Py_ssize_t count = flat ? PyList_Size(flat) : 1,
               components = parameter->components > 1 ? parameter->components : 1;
    if (parameter->dtype == SMELT_NO_DTYPE) {
        PyErr_Format(PyExc_TypeError,
                     "%s is a structure of %zu bytes; expected bytes, as from struct.pack(), "
                     "or a NumPy structured array",
                     what, parameter->bytes);
        goto end;
    }
    if (count == 0 || count % components || (!parameter->pointer && count != components)) {
        PyErr_Format(PyExc_ValueError, "%s has %zd numbers; expected %s%zd", what, count,
                     parameter->pointer ? "a multiple of " : "", components);
        goto end;
    }
    *size = (size_t)(count / components) * parameter->bytes;
    bytes = calloc(1, *size + 8);
    if (!bytes) PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count && bytes; i++) {
        size_t at = (size_t)(i / components) * parameter->bytes +
                    (size_t)(i % components) * smelt_dtype_bytes(parameter->dtype);
        if (store(flat ? PyList_GetItem(flat, i) : o, what, parameter, bytes + at)) continue;
        free(bytes);
        bytes = NULL;
    }
end:
    Py_XDECREF(flat);
    return bytes;
}
