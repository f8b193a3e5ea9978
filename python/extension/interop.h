/* Shared by the files that read and create foreign arrays: interop.c chooses among numpy.c, buffer.c and
 * dlpack.c, which use memory.c. */
#ifndef SMELT_PYTHON_INTEROP_H
#define SMELT_PYTHON_INTEROP_H

#include "extension.h"

/* A request to array_import. */
struct request {
    const char *what; /* the argument's name */
    bool writing;     /* the memory itself is needed, to be written */
};

/* Foreign elements in the host's memory. */
struct source {
    smelt_dtype dtype;
    smelt_shape shape;
    int64_t strides[SMELT_MAX_DIMENSIONS]; /* in bytes */
    char *data;
    bool swapped; /* not in this machine's byte order */
    bool readonly;
    void (*release)(void *context); /* releases the memory; called once, on any thread */
    void *context;
};

/* An array over the source's memory or, if their layout is not supported, a copy. Takes the context, also
 * when it fails (false). */
bool memory_import(const struct source *source, const struct request *request, smelt_array **array);

/* Releases a reference to a Python object, a source's context. */
void memory_drop_object(void *object);

/* The dimensions fit in smelt_shape; ValueError. */
bool memory_dimensions(int ndim, const char *what);

/* A dtype by its kind, as NumPy calls it ('b', 'i', 'u', 'f', 'c'), and bytes; or none. */
smelt_dtype memory_dtype(char kind, int bytes);

bool numpy_import(PyObject *o, const struct request *request, smelt_array **array);
PyObject *numpy_export(smelt_array *array); /* takes the array */
int numpy_init(PyObject *module);

bool buffer_import(PyObject *o, const struct request *request, smelt_array **array);

/* ---- DLPack. */

/* By o.__dlpack__(). `kind` selects the library whose stream is used. */
bool dlpack_import(PyObject *o, enum array_kind kind, const struct request *request, smelt_array **array);

/* A library's table of functions that do the same without Python, an attribute of its types; one index each.
 * -1: the type has none. */
int exchange_of_type(PyObject *type);
bool exchange_import(int index, PyObject *o, const struct request *request, smelt_array **array);
PyObject *exchange_export(int index, smelt_array *array); /* takes the array */
/* The library's current stream on GPU `number`. */
bool exchange_stream(int index, int32_t number, void **native);

/* Raises TypeError "WHAT: LIBRARY …: MESSAGE" for the producer's own exception, which becomes its cause. */
void dlpack_refused(const char *what, PyObject *o);
/* Raises the failure of a call of the C API about a tensor. */
void dlpack_failed(smelt_status status, const char *what);
/* Raises the error for writing to read-only memory. */
void dlpack_read_only(const char *what);

/* ---- torch.c */

bool torch_import(PyObject *o, const struct request *request, smelt_array **array);
PyObject *torch_export(smelt_array *array); /* takes the array */

/* ---- interop.c */

/* A call of a library's function on the array as a smelt.array, or as NumPy's. Takes the array. */
PyObject *interop_by_function(smelt_array *array, bool numpy, const char *module, const char *name);

enum { DLPACK_CPU = 1, DLPACK_CUDA = 2, DLPACK_CUDA_HOST = 3, DLPACK_CUDA_MANAGED = 13 };

#endif
