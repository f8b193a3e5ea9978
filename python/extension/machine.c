/* This machine, for smelt.doctor: devices, clang, LLVM, the cache. */
#include "extension.h"

/* A dictionary of one device; NULL with an exception. */
static PyObject *describe_device(const char *name, const char *reason) {
    const char *description = smelt_device_description(name);
    uint64_t free_bytes = 0, total_bytes = 0;
    /* A device without this information has no memory of its own, or is broken: its kernels will report it.
     */
    if (!*reason) (void)smelt_device_memory(name, &free_bytes, &total_bytes);
    return Py_BuildValue("{s:s,s:s,s:z,s:i,s:i,s:i,s:K,s:K}", "name", name, "reason", reason, "description",
                         description, "threads", smelt_device_threads(name), "vector_bits",
                         smelt_device_vector_bits(name), "driver_version", smelt_device_driver_version(name),
                         "free_bytes", (unsigned long long)free_bytes, "total_bytes",
                         (unsigned long long)total_bytes);
}

static PyObject *device_table(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    PyObject *list = PyList_New(0);
    const char *reason, *name;
    for (int i = 0; list && (name = smelt_device_name(i, &reason)); i++) {
        PyObject *device = describe_device(name, reason);
        if (!device || PyList_Append(list, device) < 0) Py_CLEAR(list);
        Py_XDECREF(device);
    }
    return list;
}

/* (path, version) from one of libsmelt's two search functions. */
static PyObject *found(smelt_status (*find)(char **path, char **version)) {
    char *path = NULL, *version = NULL;
    smelt_status status;
    Py_BEGIN_ALLOW_THREADS status = find(&path, &version);
    Py_END_ALLOW_THREADS if (status != SMELT_OK) return raise_status(status);
    PyObject *file = PyUnicode_DecodeFSDefault(path);
    PyObject *line = PyUnicode_DecodeUTF8(version, (Py_ssize_t)strlen(version), "replace");
    PyObject *pair = file && line ? PyTuple_Pack(2, file, line) : NULL;
    Py_XDECREF(file);
    Py_XDECREF(line);
    smelt_free(path);
    smelt_free(version);
    return pair;
}

static PyObject *find_clang(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    return found(smelt_clang_find);
}

static PyObject *find_llvm(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    return found(smelt_llvm_find);
}

static PyObject *cache_usage(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    uint64_t entries = 0, bytes = 0;
    const char *path = smelt_cache_path();
    if (!path) return raise_status(SMELT_ERROR_IO);
    PyObject *folder = PyUnicode_DecodeFSDefault(path);
    if (!folder) return NULL;
    smelt_status status;
    Py_BEGIN_ALLOW_THREADS status = smelt_cache_usage(&entries, &bytes);
    Py_END_ALLOW_THREADS PyObject *result =
        status == SMELT_OK
            ? Py_BuildValue("(OKK)", folder, (unsigned long long)entries, (unsigned long long)bytes)
            : raise_status(status);
    Py_DECREF(folder);
    return result;
}

static PyObject *layout_picture(PyObject *self, PyObject *layout) {
    (void)self;
    char *text;
    const char *words = PyUnicode_AsUTF8AndSize(layout, NULL);
    if (!words) return NULL;
    smelt_status status = smelt_layout_picture(words, &text);
    if (status != SMELT_OK) return raise_status(status);
    PyObject *picture = PyUnicode_FromString(text);
    smelt_free(text);
    return picture;
}

static PyMethodDef functions[] = {
    {"device_table", device_table, METH_NOARGS,
     "device_table()\n--\n\n"
     "The devices of this machine: a list with one dictionary per device.\n\n"
     "name; reason: why it cannot be used, or ''; description, or None where it cannot be used; threads of "
     "this machine that "
     "work on a launch; vector_bits of the registers that code uses (0 on GPUs and cpu-scalar); "
     "driver_version: the CUDA version of a GPU's driver, 13000 for 13.0, else 0; free_bytes and total_bytes "
     "of "
     "a GPU's memory, else 0."},
    {"find_clang", find_clang, METH_NOARGS,
     "find_clang()\n--\n\n"
     "The clang that kernels are compiled with: (path, version), where version is '' if it cannot be run.\n\n"
     "Raises NoCompilerError, which says what was looked for and what to install."},
    {"find_llvm", find_llvm, METH_NOARGS,
     "find_llvm()\n--\n\n"
     "The compiler library and its LLVM: (path, version).\n\n"
     "Raises NoCompilerError if either cannot be used."},
    {"layout_picture", layout_picture, METH_O,
     "layout_picture(layout, /)\n--\n\n"
     "A picture of the offsets of a layout of <smelt/layout>, like 'row_major<2, 6>()'."},
    {"cache_usage", cache_usage, METH_NOARGS,
     "cache_usage()\n--\n\n"
     "The disk cache: (folder, entries, bytes).\n\n"
     "Raises OSError with the reason if there is none."},
    {0}};

int machine_init(PyObject *module) {
    return PyModule_AddFunctions(module, functions);
}
