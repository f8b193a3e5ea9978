/* The operators of smelt.array, and the methods that need operations. */
#include "operations.h"

/* ---- Operators. */

static bool is_operand(PyObject *o) {
    return array_of(o) || PyBool_Check(o) || PyLong_Check(o) || PyFloat_Check(o) || PyObject_CheckBuffer(o) ||
           PyObject_HasAttr(o, interned.dlpack);
}

static PyObject *binary(PyObject *left, PyObject *right, smelt_operation operation) {
    if (!is_operand(left) || !is_operand(right)) return Py_NewRef(Py_NotImplemented);
    smelt_apply_desc desc = {.operation = operation};
    const char *name = smelt_operation_name(operation);
    bool weak_left = false, weak_right = false;
    bool good = operation_input(left, name, &desc.inputs[0], &weak_left);
    if (!good) desc.inputs[0] = NULL;
    if (good && !operation_input(right, name, &desc.inputs[1], &weak_right)) {
        desc.inputs[1] = NULL;
        good = false;
    }
    if (!good) {
        release_inputs(&desc);
        return NULL;
    }
    desc.weak = (uint64_t)weak_left | (uint64_t)weak_right << 1;
    return apply_operation(&desc);
}

static PyObject *unary(PyObject *self, smelt_operation operation) {
    smelt_apply_desc desc = {.operation = operation, .inputs = {smelt_array_retain(array_of(self))}};
    return apply_operation(&desc);
}

#define BINARY_OPERATORS(X)       \
    X(add, ADD)                   \
    X(subtract, SUBTRACT)         \
    X(multiply, MULTIPLY)         \
    X(true_divide, DIVIDE)        \
    X(floor_divide, FLOOR_DIVIDE) \
    X(remainder, REMAINDER)       \
    X(matrix_multiply, MATMUL)    \
    X(and, BITWISE_AND)           \
    X(or, BITWISE_OR)             \
    X(xor, BITWISE_XOR)           \
    X(lshift, LEFT_SHIFT)         \
    X(rshift, RIGHT_SHIFT)

#define DEFINE_BINARY(slot, operation)                            \
    static PyObject *nb_##slot(PyObject *left, PyObject *right) { \
        return binary(left, right, SMELT_OPERATION_##operation);  \
    }
BINARY_OPERATORS(DEFINE_BINARY)

static PyObject *nb_power(PyObject *left, PyObject *right, PyObject *modulus) {
    if (modulus != Py_None) return Py_NewRef(Py_NotImplemented);
    return binary(left, right, SMELT_OPERATION_POWER);
}

static PyObject *nb_negative(PyObject *self) {
    return unary(self, SMELT_OPERATION_NEGATIVE);
}

static PyObject *nb_positive(PyObject *self) {
    return Py_NewRef(self);
}

static PyObject *nb_absolute(PyObject *self) {
    return unary(self, SMELT_OPERATION_ABS);
}

static PyObject *nb_invert(PyObject *self) {
    bool boolean = smelt_array_dtype(array_of(self)) == SMELT_BOOL;
    return unary(self, boolean ? SMELT_OPERATION_LOGICAL_NOT : SMELT_OPERATION_BITWISE_INVERT);
}

static PyObject *compare(PyObject *left, PyObject *right, int how) {
    static const smelt_operation operations[] = {
        [Py_LT] = SMELT_OPERATION_LESS,    [Py_LE] = SMELT_OPERATION_LESS_EQUAL,
        [Py_EQ] = SMELT_OPERATION_EQUAL,   [Py_NE] = SMELT_OPERATION_NOT_EQUAL,
        [Py_GT] = SMELT_OPERATION_GREATER, [Py_GE] = SMELT_OPERATION_GREATER_EQUAL};
    return binary(left, right, operations[how]);
}

/* ---- Indices. What a tape does not track is viewed; the rest goes through operations. */

static bool is_plain(PyObject *key) {
    return key == Py_None || key == Py_Ellipsis || PySlice_Check(key) ||
           (PyLong_Check(key) && !PyBool_Check(key));
}

static bool is_plain_key(PyObject *key) {
    if (!PyTuple_Check(key)) return is_plain(key);
    for (Py_ssize_t i = 0; i < PyTuple_Size(key); i++)
        if (!is_plain(PyTuple_GetItem(key, i))) return false;
    return true;
}

static PyObject *call_operation(const char *name, PyObject *arguments, PyObject *keywords) {
    PyObject *function = arguments ? python_operation(name) : NULL;
    PyObject *result = function ? PyObject_Call(function, arguments, keywords) : NULL;
    Py_XDECREF(function);
    Py_XDECREF(arguments);
    return result;
}

/* A tape tracks it, or it is a value of a graph: what is done with it must be an operation. */
static bool is_described(PyObject *self) {
    smelt_array *array = array_of(self);
    return smelt_tape_tracks(NULL, array) || strcmp(smelt_array_device(array), "graph") == 0;
}

static PyObject *subscript(PyObject *self, PyObject *key) {
    if (is_plain_key(key) && !is_described(self)) return array_subscript(self, key);
    return call_operation("getitem", PyTuple_Pack(2, self, key), NULL);
}

/* a[key] = value: the array object refers to another array, like a Python name; other references keep the
 * former one. */
static int assign(PyObject *self, PyObject *key, PyObject *value) {
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "smelt.array: elements cannot be deleted");
        return -1;
    }
    PyObject *made = call_operation("setitem", PyTuple_Pack(3, self, key, value), NULL);
    smelt_array *array = made ? array_of(made) : NULL;
    if (array) array_replace(self, array);
    Py_XDECREF(made);
    return array ? 0 : -1;
}

static PyObject *sequence_item(PyObject *self, Py_ssize_t i) {
    if (!is_described(self)) return array_sequence_item(self, i);
    PyObject *key = PyLong_FromSsize_t(i);
    PyObject *item = key ? subscript(self, key) : NULL;
    Py_XDECREF(key);
    return item;
}

PyType_Slot array_operator_slots[] = {
#define SLOT(slot, operation) {Py_nb_##slot, nb_##slot},
    BINARY_OPERATORS(SLOT)
#undef SLOT
        {Py_nb_power, nb_power},
    {Py_nb_negative, nb_negative},
    {Py_nb_positive, nb_positive},
    {Py_nb_absolute, nb_absolute},
    {Py_nb_invert, nb_invert},
    {Py_tp_richcompare, compare},
    {Py_mp_subscript, subscript},
    {Py_mp_ass_subscript, assign},
    {Py_sq_item, sequence_item},
    {0}};

/* ---- Methods: the functions of smelt.operations, of the array itself. */

static PyObject *method(PyObject *self, PyObject *arguments, PyObject *keywords, const char *name) {
    Py_ssize_t count = PyTuple_Size(arguments);
    PyObject *all = PyTuple_New(count + 1);
    if (!all || PyTuple_SetItem(all, 0, Py_NewRef(self)) < 0) return NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        if (PyTuple_SetItem(all, i + 1, Py_NewRef(PyTuple_GetItem(arguments, i))) < 0) return NULL;
    return call_operation(name, all, keywords);
}

/* clang-format off */
#define METHODS(X)                                                                                        \
    X(abs) X(square) X(sqrt) X(rsqrt) X(reciprocal) X(exp) X(log) X(log2) X(log10) X(log1p) X(sin) X(cos) \
    X(round) X(conj) X(astype) X(sum) X(prod) X(mean) X(var) X(std) X(max) X(min) X(all) X(any)           \
    X(logsumexp) X(argmax) X(argmin) X(cumsum) X(cumprod) X(cummax) X(cummin) X(flatten) X(squeeze)       \
    X(swapaxes) X(moveaxis) X(split) X(maximum) X(minimum) X(diagonal)
/* clang-format on */

/* These also take separate sizes or axes: a.reshape(2, 3). */
#define SPREAD_METHODS(X) X(reshape) X(transpose)

#define DEFINE_METHOD(name)                                                                   \
    static PyObject *method_##name(PyObject *self, PyObject *arguments, PyObject *keywords) { \
        return method(self, arguments, keywords, #name);                                      \
    }
METHODS(DEFINE_METHOD)

#define DEFINE_SPREAD(name)                                                                   \
    static PyObject *method_##name(PyObject *self, PyObject *arguments, PyObject *keywords) { \
        if (PyTuple_Size(arguments) < 1 || !PyLong_Check(PyTuple_GetItem(arguments, 0)))      \
            return method(self, arguments, keywords, #name);                                  \
        return call_operation(#name, PyTuple_Pack(2, self, arguments), keywords);             \
    }
SPREAD_METHODS(DEFINE_SPREAD)

PyMethodDef array_operator_methods[] = {
#define METHOD(name)                                                                  \
    {#name, (PyCFunction)(void (*)(void))method_##name, METH_VARARGS | METH_KEYWORDS, \
     #name "(...): smelt." #name " of this array."},
    METHODS(METHOD) SPREAD_METHODS(METHOD)
#undef METHOD
        {0}};
