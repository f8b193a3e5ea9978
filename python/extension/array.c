/* smelt.array: a handle on a smelt_array, which never changes its shape, dtype or memory. */
#include "extension.h"
#include "operations.h"

#include <structmember.h>

struct array_object {
    PyObject_HEAD smelt_array *array;
    PyObject *weak_references;
};

static PyTypeObject *array_type;

static smelt_array *held(PyObject *self) {
    return ((struct array_object *)self)->array;
}

smelt_array *array_of(PyObject *o) {
    return Py_TYPE(o) == array_type ? held(o) : NULL;
}

PyObject *array_wrap(smelt_array *array) {
    struct array_object *o = PyObject_GC_New(struct array_object, array_type);
    if (!o) {
        smelt_array_release(array);
        return NULL;
    }
    o->array = array;
    o->weak_references = NULL;
    PyObject_GC_Track(o);
    return (PyObject *)o;
}

void array_replace(PyObject *o, smelt_array *array) {
    smelt_array *before = held(o);
    ((struct array_object *)o)->array = smelt_array_retain(array);
    smelt_array_release(before);
}

static int traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static void deallocate(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (((struct array_object *)self)->weak_references) PyObject_ClearWeakRefs(self);
    smelt_array_release(held(self));
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

/* ---- Where it lies. */

bool array_on_host(smelt_array *array, smelt_array **host) {
    smelt_status status;
    if (strcmp(smelt_array_device(array), "cpu") == 0) {
        *host = smelt_array_retain(array);
        return true;
    }
    if (!array_wait(array)) return false;
    Py_BEGIN_ALLOW_THREADS status = smelt_array_to(array, "cpu", NULL, host);
    Py_END_ALLOW_THREADS if (status != SMELT_OK) raise_status(status);
    return status == SMELT_OK;
}

/* Releases the GIL: copies may be long. */
static PyObject *convert(smelt_array *array, smelt_dtype dtype) {
    smelt_array *made;
    smelt_status status;
    Py_BEGIN_ALLOW_THREADS status = smelt_array_convert(array, dtype, &made);
    Py_END_ALLOW_THREADS return status == SMELT_OK ? array_wrap(made) : raise_status(status);
}

static PyObject *to(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"device", NULL};
    const char *device;
    smelt_array *made;
    smelt_status status;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "s:to", names, &device)) return NULL;
    Py_BEGIN_ALLOW_THREADS status = smelt_array_to(held(self), device, NULL, &made);
    Py_END_ALLOW_THREADS if (status != SMELT_OK) return raise_status(status);
    if (made != held(self)) return array_wrap(made);
    smelt_array_release(made);
    return Py_NewRef(self);
}

/* ---- Making one. */

/* Converts `data` to an array; *shared: over memory that is not its own. */
static bool take(PyObject *data, smelt_dtype dtype, const char *what, smelt_array **array, bool *shared) {
    enum array_kind kind;
    *shared = false;
    if (PyList_Check(data) || PyTuple_Check(data) || PyBool_Check(data) || PyLong_Check(data) ||
        PyFloat_Check(data) || PyComplex_Check(data)) {
        *array = array_of_values(data, dtype);
        return *array != NULL;
    }
    *shared = true;
    return array_import(data, what, array, &kind);
}

/* smelt.array(): unrequested double precision becomes single, as for lists of floats. */
static PyObject *new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"data", "dtype", NULL};
    PyObject *data, *dtype_name = Py_None;
    smelt_dtype dtype = SMELT_NO_DTYPE;
    smelt_array *array;
    bool shared;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O:array", names, &data, &dtype_name))
        return NULL;
    if (dtype_name != Py_None && !dtype_of_object(dtype_name, "smelt.array: dtype", &dtype)) return NULL;
    if (!take(data, dtype, "smelt.array", &array, &shared)) return NULL;
    smelt_dtype given = smelt_array_dtype(array);
    if (!dtype) dtype = given == SMELT_FLOAT64 && !array_of(data) ? SMELT_FLOAT32 : given;
    if (!shared && given == dtype) return array_wrap(array);
    PyObject *made = convert(array, dtype);
    smelt_array_release(array);
    return made;
}

static PyObject *astype(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"dtype", NULL};
    PyObject *name;
    smelt_dtype dtype;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O:astype", names, &name)) return NULL;
    if (!dtype_of_object(name, "astype: dtype", &dtype)) return NULL;
    return dtype == smelt_array_dtype(held(self)) ? Py_NewRef(self) : convert(held(self), dtype);
}

static PyObject *view(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"dtype", NULL};
    PyObject *name;
    smelt_dtype dtype;
    smelt_array *made, *base = held(self);
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O:view", names, &name)) return NULL;
    if (!dtype_of_object(name, "view: dtype", &dtype)) return NULL;
    if (strcmp(smelt_array_device(base), "graph") == 0) {
        smelt_apply_desc desc = {.operation = SMELT_OPERATION_VIEW, .inputs = {base}, .dtype = dtype};
        smelt_array_retain(base); /* apply_operation releases it */
        return apply_operation(&desc);
    }
    smelt_status status = smelt_array_reinterpret(base, dtype, &made);
    if (status != SMELT_OK) return raise_status(status);
    if (tape_note("array.view", &base, 1, &made, 1)) return array_export(made, KIND_SMELT);
    smelt_array_release(made);
    return NULL;
}

static PyObject *copy(PyObject *self, PyObject *unused) {
    (void)unused;
    return convert(held(self), smelt_array_dtype(held(self)));
}

/* Arrays are compared by identity, not by contents. */
static Py_hash_t hash(PyObject *self) {
    return (Py_hash_t)((uintptr_t)self >> 4);
}

#define KEYWORDS (METH_VARARGS | METH_KEYWORDS)
#define METHOD(function) (PyCFunction)(void (*)(void))(function)

static PyMethodDef own_methods[] = {
    {"item", array_item, METH_VARARGS,
     "item($self, /)\n--\n\nThe one element as a Python bool, int, float or complex. ValueError if there are "
     "more, "
     "or none."},
    {"tolist", array_to_list, METH_NOARGS,
     "tolist($self, /)\n--\n\nThe elements as Python numbers in nested lists; of a 0-d array its number."},
    {"astype", METHOD(astype), KEYWORDS,
     "astype($self, /, dtype)\n--\n\nThe array as another dtype: floats round to nearest even, to integers "
     "they "
     "truncate and "
     "saturate,\nintegers wrap. Returns the array itself if it has that dtype."},
    {"view", METHOD(view), KEYWORDS,
     "view($self, /, dtype)\n--\n\nThe array's bytes as another dtype, not copied: the last dimension has as "
     "many more or fewer\nelements. ValueError where that is not a dense row of whole elements."},
    {"to", METHOD(to), KEYWORDS,
     "to($self, /, device)\n--\n\nThe array on a device, 'cpu' or 'cuda:0': itself if it is there, else a "
     "copy. "
     "smelt.NoDeviceError if there is none."},
    {"__dlpack__", METHOD(array_to_capsule), KEYWORDS,
     "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\nThe array as "
     "a DLPack "
     "capsule."},
    {"__dlpack_device__", array_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\nDLPack's numbers of the device: (1, 0) is the host's memory, (2, n) "
     "GPU n."},
    {"__copy__", copy, METH_NOARGS, NULL},
    {"__deepcopy__", copy, METH_O, NULL},
    {0}};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct array_object, weak_references), READONLY, NULL}, {0}};

/* ---- The type. */

static PyMethodDef methods[160];

static PyType_Slot own_slots[] = {
    {Py_tp_doc,
     "array(data, dtype=None)\n--\n\nAn array in its own memory on the host; to(device) copies it to a GPU."
     "\n\n"
     "data: a number, numbers in nested lists or tuples, or any array: "
     "NumPy's, torch's, JAX's, CuPy's, MLX's, an object with\n__dlpack__ or a buffer. dtype:"
     " any dtype; by default that of data, "
     "but float32 instead of float64, and "
     "for\nPython's numbers bool, int32, float32 or complex64. TypeError for anything else;"
     " ValueError for lists "
     "of\ndifferent lengths and integers that do not fit.\n\nThe elements are "
     "shared, not copied, with views (a[1:]), "
     "NumPy (np.asarray) and DLPack: writes there\nare visible here."},
    {Py_tp_new, new},
    {Py_tp_dealloc, deallocate},
    {Py_tp_traverse, traverse},
    {Py_tp_repr, array_repr},
    {Py_tp_hash, hash},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {Py_mp_subscript, array_subscript},
    {Py_sq_item, array_sequence_item},
    {0}};

/* Appends the entries of `from` to `to`; replaces existing ones. */
static void add_slots(PyType_Slot *to, int *count, const PyType_Slot *from) {
    for (; from->slot; from++) {
        int i = 0;
        while (i < *count && to[i].slot != from->slot) i++;
        if (i == *count) ++*count;
        to[i] = *from;
    }
}

static void add_methods(PyMethodDef *to, int *count, const PyMethodDef *from) {
    for (; from->ml_name; from++) {
        int i = 0;
        while (i < *count && strcmp(to[i].ml_name, from->ml_name) != 0) i++;
        if (i == *count) ++*count;
        to[i] = *from;
    }
}

int array_init(PyObject *module) {
    PyType_Slot slots[96] = {{0}};
    int slot_count = 0, method_count = 0;
    add_methods(methods, &method_count, own_methods);
    add_methods(methods, &method_count, array_data_methods);
    add_methods(methods, &method_count, array_number_methods);
    add_methods(methods, &method_count, array_operator_methods);
    add_slots(slots, &slot_count, own_slots);
    add_slots(slots, &slot_count, array_data_slots);
    add_slots(slots, &slot_count, array_number_slots);
    add_slots(slots, &slot_count, array_operator_slots);
    PyType_Spec spec = {.name = "smelt.array",
                        .basicsize = sizeof(struct array_object),
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
                        .slots = slots};
    array_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return array_type ? PyModule_AddObjectRef(module, "array", (PyObject *)array_type) : -1;
}
