/* Files of arrays: the functions that smelt.safetensors is built on. */
#include "call.h"

#include <smelt/safetensors.h>

static PyObject *entry_tuple(const smelt_safetensors_entry *entry) {
    return Py_BuildValue("ssNN", entry->name, smelt_element_name(entry->element),
                         tensor_tuple(entry->shape.size, entry->shape.ndim),
                         array_wrap(smelt_array_retain(entry->array)));
}

static PyObject *load(PyObject *self, PyObject *path) {
    const char *name = tensor_string(path, "safetensors.load: path");
    smelt_safetensors *file;
    smelt_status status;
    (void)self;
    if (!name) return NULL;
    Py_BEGIN_ALLOW_THREADS status = smelt_safetensors_open(name, &file);
    Py_END_ALLOW_THREADS if (status != SMELT_OK) return raise_status(status);
    PyObject *list = PyList_New(0), *metadata = PyDict_New();
    for (int i = 0; i < smelt_safetensors_count(file) && list; i++) {
        smelt_safetensors_entry entry;
        PyObject *one = smelt_safetensors_at(file, i, &entry) == SMELT_OK ? entry_tuple(&entry) : NULL;
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    for (int i = 0; i < smelt_safetensors_metadata_count(file) && metadata; i++) {
        PyObject *value = PyUnicode_FromString(smelt_safetensors_metadata_value(file, i));
        if (!value || PyDict_SetItemString(metadata, smelt_safetensors_metadata_key(file, i), value) < 0)
            Py_CLEAR(metadata);
        Py_XDECREF(value);
    }
    smelt_safetensors_release(file);
    if (list && metadata) return Py_BuildValue("NN", list, metadata);
    Py_XDECREF(list);
    Py_XDECREF(metadata);
    return NULL;
}

/* _safetensors_tensor(path, name) */
static PyObject *load_scaled(PyObject *self, PyObject *arguments) {
    const char *path, *name;
    smelt_safetensors *file;
    smelt_tensor *tensor;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "ss:tensor", &path, &name)) return NULL;
    smelt_status status;
    Py_BEGIN_ALLOW_THREADS status = smelt_safetensors_open(path, &file);
    if (status == SMELT_OK) {
        status = smelt_safetensors_tensor(file, name, &tensor);
        smelt_safetensors_release(file);
    }
    Py_END_ALLOW_THREADS return status == SMELT_OK ? tensor_wrap(tensor) : raise_status(status);
}

struct saving {
    smelt_safetensors_entry *entries;
    const char **metadata;
    Py_ssize_t count, pairs;
};

/* (name, element or None, array) */
static bool read_entry(PyObject *o, smelt_safetensors_entry *entry) {
    PyObject *dtype, *array;
    enum array_kind kind;
    if (!PyArg_ParseTuple(o, "sOO", &entry->name, &dtype, &array)) return false;
    if (dtype != Py_None && !tensor_element(dtype, "safetensors: element", &entry->element)) return false;
    return array_import(array, entry->name, &entry->array, &kind);
}

static bool read_saving(PyObject *entries, PyObject *metadata, struct saving *s) {
    s->count = PyList_Size(entries);
    s->pairs = PyList_Size(metadata);
    if (s->count < 0 || s->pairs < 0) return false;
    s->entries = calloc((size_t)s->count + 1, sizeof *s->entries);
    s->metadata = calloc(2 * (size_t)s->pairs + 1, sizeof *s->metadata);
    if (!s->entries || !s->metadata) return PyErr_NoMemory() != NULL;
    for (Py_ssize_t i = 0; i < s->count; i++)
        if (!read_entry(PyList_GetItem(entries, i), &s->entries[i])) return false;
    for (Py_ssize_t i = 0; i < s->pairs; i++)
        if (!PyArg_ParseTuple(PyList_GetItem(metadata, i), "ss", &s->metadata[2 * i],
                              &s->metadata[2 * i + 1]))
            return false;
    return true;
}

/* _safetensors_save(path, [(name, element or None, array)], [(key, value)]) */
static PyObject *save(PyObject *self, PyObject *arguments) {
    const char *path;
    PyObject *entries, *metadata, *result = NULL;
    struct saving s = {0};
    (void)self;
    if (!PyArg_ParseTuple(arguments, "sO!O!:save", &path, &PyList_Type, &entries, &PyList_Type, &metadata))
        return NULL;
    if (read_saving(entries, metadata, &s)) {
        smelt_status status;
        Py_BEGIN_ALLOW_THREADS status =
            smelt_safetensors_write(path, s.entries, (int)s.count, s.metadata, (int)s.pairs);
        Py_END_ALLOW_THREADS result = status == SMELT_OK ? Py_NewRef(Py_None) : raise_status(status);
    }
    for (Py_ssize_t i = 0; s.entries && i < s.count; i++) smelt_array_release(s.entries[i].array);
    free(s.entries);
    free(s.metadata);
    return result;
}

static PyMethodDef functions[] = {{"_safetensors_load", load, METH_O, NULL},
                                  {"_safetensors_tensor", load_scaled, METH_VARARGS, NULL},
                                  {"_safetensors_save", save, METH_VARARGS, NULL},
                                  {0}};

int safetensors_init(PyObject *module) {
    return PyModule_AddFunctions(module, functions);
}
