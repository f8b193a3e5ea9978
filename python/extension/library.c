/* Whole .metal files and packages: libraries, their functions, and writing packages. */
#include "function.h"

struct library {
    PyObject_HEAD smelt_library *handle;
};

static smelt_library *handle_of(PyObject *self) {
    return ((struct library *)self)->handle;
}

/* Whether `tuple` has at most so many strings, which `strings` then points to. */
static bool strings_of(PyObject *tuple, const char *what, Py_ssize_t most, const char **strings) {
    if (PyTuple_Size(tuple) > most) {
        PyErr_Format(PyExc_ValueError, "library: %s has %zd strings; at most %zd are allowed", what,
                     PyTuple_Size(tuple), most);
        return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); i++)
        if (!(strings[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, i), NULL))) return false;
    return true;
}

/* (path, source, package, math, metal_version, include_paths, macros), from smelt/library.py. */
static PyObject *new_library(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    smelt_library_desc desc = {0};
    const char *package;
    Py_ssize_t size;
    int math, version;
    PyObject *paths, *macros;
    const char *macro_list[SMELT_MAX_ARGUMENTS] = {0};
    (void)keywords;
    if (!PyArg_ParseTuple(arguments, "zzz#iiO!O!", &desc.path, &desc.source, &package, &size, &math, &version,
                          &PyTuple_Type, &paths, &PyTuple_Type, &macros))
        return NULL;
    if (!strings_of(paths, "include_paths", SMELT_MAX_INCLUDE_PATHS, desc.include_paths) ||
        !strings_of(macros, "macros", SMELT_MAX_ARGUMENTS - 1, macro_list))
        return NULL;
    desc.macros = macro_list;
    desc.package = package;
    desc.package_size = package ? (size_t)size : 0;
    desc.math = (smelt_math_mode)math;
    desc.metal_version = version;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct library *library = (struct library *)allocate(type, 0);
    if (!library) return NULL;
    smelt_status status;
    Py_BEGIN_ALLOW_THREADS status = smelt_library_create(&desc, &library->handle);
    Py_END_ALLOW_THREADS if (status == SMELT_OK) return (PyObject *)library;
    raise_status(status);
    Py_DECREF((PyObject *)library);
    return NULL;
}

static void dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    smelt_library_release(handle_of(self));
    release(self);
    Py_DECREF(type);
}

static PyObject *get_functions(PyObject *self, void *closure) {
    (void)closure;
    int count = smelt_library_function_count(handle_of(self));
    PyObject *names = PyTuple_New(count);
    for (int i = 0; i < count && names; i++) {
        PyObject *name = PyUnicode_FromString(smelt_library_function_name(handle_of(self), i));
        if (!name || PyTuple_SetItem(names, i, name) < 0) Py_CLEAR(names);
    }
    return names;
}

/* ---- Function constants. */

static bool fail_component(PyObject *o, PyObject *key) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "function constant %R is %R; expected a number, a bool or 2 to 4 of them",
                 key, o);
    return false;
}

/* *dtype becomes uint64 for a scalar that only that type holds. */
static bool read_integer(PyObject *o, PyObject *key, int i, smelt_constant *constant, smelt_dtype *dtype) {
    int64_t *value = &constant->value.integers[i];
    if (!integer_of(o, value)) return fail_component(o, key);
    if (*value != INT64_MAX && *value != INT64_MIN) return true;
    int overflow = 0;
    PyObject *number = PyNumber_Long(o);
    if (number) (void)PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow > 0 && !constant->count) {
        *value = (int64_t)PyLong_AsUnsignedLongLong(number);
        *dtype = SMELT_UINT64;
        overflow = PyErr_Occurred() != NULL;
    }
    Py_XDECREF(number);
    if (number && !overflow) return true;
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "function constant %R is %R, which does not fit in %s", key, o,
                 constant->count ? "int64" : "int64 or uint64");
    return false;
}

static bool read_component(PyObject *o, PyObject *key, int i, smelt_constant *constant) {
    smelt_dtype dtype = PyBool_Check(o) ? SMELT_BOOL : PyIndex_Check(o) ? SMELT_INT64 : SMELT_FLOAT32;
    if (i && dtype != constant->dtype) dtype = SMELT_FLOAT32;
    if (dtype == SMELT_FLOAT32) {
        /* A vector of mixed numbers is a vector of floats. */
        for (int before = 0; before < i && constant->dtype != dtype; before++)
            constant->value.reals[before] = (double)constant->value.integers[before];
        double value = PyFloat_AsDouble(o);
        if (PyErr_Occurred()) return fail_component(o, key);
        constant->value.reals[i] = value;
    } else if (!read_integer(o, key, i, constant, &dtype)) {
        return false;
    }
    constant->dtype = dtype;
    return true;
}

/* A constant's value; of scalars the first component is where `integer` and `real` are. */
static bool read_constant(PyObject *key, PyObject *value, smelt_constant *constant) {
    if (PyUnicode_Check(key)) {
        constant->name = PyUnicode_AsUTF8AndSize(key, NULL);
        if (!constant->name) return false;
    } else {
        int64_t index;
        if (!integer_of(key, &index) || index < 0 || index > INT32_MAX) {
            PyErr_Format(PyExc_TypeError, "function constant %R: expected its index or name", key);
            return false;
        }
        constant->index = (int)index;
    }
    if (!is_list(value)) return read_component(value, key, 0, constant);
    Py_ssize_t count = length_of(value);
    if (count < 2 || count > 4) {
        PyErr_Format(PyExc_ValueError, "function constant %R has %zd components; expected 2, 3 or 4", key,
                     count);
        return false;
    }
    constant->count = (int)count;
    for (int i = 0; i < count; i++)
        if (!read_component(item_of(value, i), key, i, constant)) return false;
    return true;
}

static bool read_constants(PyObject *dictionary, smelt_constant constants[SMELT_MAX_CONSTANTS]) {
    PyObject *key, *value;
    Py_ssize_t position = 0;
    int count = 0;
    if (dictionary == Py_None) return true;
    if (!PyDict_Check(dictionary)) {
        PyErr_Format(PyExc_TypeError, "constants is %R; expected a dict of names or indices and values",
                     dictionary);
        return false;
    }
    if (PyDict_Size(dictionary) > SMELT_MAX_CONSTANTS) {
        PyErr_Format(PyExc_ValueError, "constants has %zd values; at most %d are allowed",
                     PyDict_Size(dictionary), SMELT_MAX_CONSTANTS);
        return false;
    }
    while (PyDict_Next(dictionary, &position, &key, &value))
        if (!read_constant(key, value, &constants[count++])) return false;
    return true;
}

/* _function(name or None, constants or None) */
static PyObject *get_function(PyObject *self, PyObject *arguments) {
    smelt_function_desc desc;
    PyObject *constants;
    smelt_function *function;
    memset(&desc, 0, sizeof desc);
    if (!PyArg_ParseTuple(arguments, "zO:function", &desc.name, &constants)) return NULL;
    if (!read_constants(constants, desc.constants)) return NULL;
    smelt_status status = smelt_library_function(handle_of(self), &desc, &function);
    if (status != SMELT_OK) return raise_status(status);
    if (!desc.name) desc.name = smelt_library_function_name(handle_of(self), 0);
    PyObject *origin = PyObject_GetAttrString(self, "_origin");
    PyErr_Clear();
    PyObject *wrapped = function_wrap(function, desc.name, origin);
    Py_XDECREF(origin);
    return wrapped;
}

/* ---- Packages. */

struct building {
    smelt_library *library;
    smelt_build_desc desc;
    PyObject *reports; /* list; adding to it takes the GIL */
    bool failed;
};

static void add_report(const smelt_build_report *report, void *context) {
    struct building *building = context;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *one =
        Py_BuildValue("{s:s,s:s,s:d,s:s,s:s,s:i,s:K}", "entry", report->entry, "targets", report->targets,
                      "seconds", report->seconds, "status", smelt_status_name(report->status), "message",
                      report->message ? report->message : "", "codes", report->codes, "bytes",
                      (unsigned long long)report->bytes);
    if (!one || PyList_Append(building->reports, one) < 0) {
        building->failed = true;
        PyErr_Clear();
    }
    Py_XDECREF(one);
    PyGILState_Release(state);
}

static bool read_texts(PyObject *tuple, const char *what, const char **texts, Py_ssize_t most) {
    if (PyTuple_Size(tuple) > most) {
        PyErr_Format(PyExc_ValueError, "library build: %s has %zd names; at most %zd are allowed", what,
                     PyTuple_Size(tuple), most);
        return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); i++)
        if (!(texts[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, i), NULL))) return false;
    return true;
}

static smelt_status build(void *context, smelt_interrupt *interrupt) {
    struct building *building = context;
    (void)interrupt;
    return smelt_library_build(building->library, &building->desc);
}

/* _build(path, targets, entries or None, constants, threadgroups, keep_going, jobs) */
static PyObject *build_package(PyObject *self, PyObject *arguments) {
    struct building building = {.library = handle_of(self)};
    smelt_build_desc *desc = &building.desc;
    PyObject *targets, *entries, *constants, *groups;
    int keep_going;
    if (!PyArg_ParseTuple(arguments, "sO!OOO!pi:build", &desc->path, &PyTuple_Type, &targets, &entries,
                          &constants, &PyTuple_Type, &groups, &keep_going, &desc->jobs))
        return NULL;
    Py_ssize_t count = entries == Py_None ? 0 : PyTuple_Size(entries);
    if (count < 0) return NULL;
    const char **names = calloc((size_t)count + 1, sizeof *names);
    bool raised = false, good = names &&
                                read_texts(targets, "targets", desc->targets, SMELT_MAX_BUILD_TARGETS) &&
                                (entries == Py_None || read_texts(entries, "entries", names, count)) &&
                                read_constants(constants, desc->constants);
    if (good && PyTuple_Size(groups) > SMELT_MAX_BUILD_THREADGROUPS) {
        PyErr_Format(PyExc_ValueError, "library build: threadgroups has %zd sizes; at most %d are allowed",
                     PyTuple_Size(groups), SMELT_MAX_BUILD_THREADGROUPS);
        good = false;
    }
    for (Py_ssize_t i = 0; good && i < PyTuple_Size(groups); i++)
        good = triple_of(PyTuple_GetItem(groups, i), "build", "threadgroups", desc->threadgroups[i]);
    building.reports = good ? PyList_New(0) : NULL;
    if (building.reports) {
        desc->entries = entries == Py_None ? NULL : names;
        desc->keep_going = keep_going;
        desc->report = add_report;
        desc->context = &building;
        smelt_status status = call_watched(build, &building, true, &raised);
        if (!raised && status != SMELT_OK) raise_status(status);
        if (raised || status != SMELT_OK) Py_CLEAR(building.reports);
    }
    free(names);
    return building.reports;
}

static PyObject *describe(PyObject *self, PyObject *arguments) {
    const char *name = NULL;
    char *text;
    if (!PyArg_ParseTuple(arguments, "|z:describe", &name)) return NULL;
    smelt_status status = smelt_library_describe(handle_of(self), name, &text);
    if (status != SMELT_OK) return raise_status(status);
    PyObject *result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    smelt_free(text);
    return result;
}

static PyGetSetDef getters[] = {
    {"functions", get_functions, NULL, "The names of the kernel functions, in the order of the text.", NULL},
    {0}};
static PyMethodDef methods[] = {{"_function", get_function, METH_VARARGS, NULL},
                                {"_build", build_package, METH_VARARGS, NULL},
                                {"describe", describe, METH_VARARGS,
                                 "describe($self, name=None)\n--\n\nA readable description of a package's "
                                 "contents: of one function or of all."},
                                {0}};
static PyType_Slot slots[] = {{Py_tp_new, new_library},
                              {Py_tp_dealloc, dealloc},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, getters},
                              {Py_tp_doc, "A library, without what smelt.Library adds."},
                              {0}};
static PyType_Spec spec = {.name = "smelt._smelt.Library",
                           .basicsize = sizeof(struct library),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           .slots = slots};

int library_init(PyObject *module) {
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    int result = type ? PyModule_AddObjectRef(module, "Library", type) : -1;
    Py_XDECREF(type);
    return result < 0 ? -1 : function_init(module);
}
