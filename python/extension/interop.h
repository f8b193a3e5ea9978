/* What the files that read and make foreign arrays share: interop.c chooses among numpy.c, buffer.c and
 * dlpack.c, which end in memory.c. */
#ifndef SMELT_PYTHON_INTEROP_H
#define SMELT_PYTHON_INTEROP_H

#include "extension.h"

/* What array_import was asked for. */
struct request {
    const char *what; /* the argument's name */
    bool writing;     /* the memory itself is wanted, to be written */
};

/* Somebody's elements in the host's memory. */
struct source {
    smelt_dtype dtype;
    smelt_shape shape;
    int64_t strides[SMELT_MAX_DIMENSIONS]; /* in bytes */
    char *data;
    bool swapped; /* not in this machine's byte order */
    bool readonly;
    void (*release)(void *context); /* gives the memory back; called once, on any thread */
    void *context;
};

/* An array over the source's memory or, where elements do not lie as ours do, a copy. Takes the context, also
 * when it fails (false). */
bool memory_import(const struct source *source, const struct request *request, smelt_array **array);

/* A reference to a Python object as a source's context; gives it back. */
void memory_drop_object(void *object);

/* The dimensions fit in smelt_shape; ValueError. */
bool memory_dimensions(int ndim, const char *what);

/* A dtype by its kind, as NumPy calls it ('b', 'i', 'u', 'f', 'c'), and bytes; or none. */
smelt_dtype memory_dtype(char kind, int bytes);

bool numpy_import(PyObject *o, const struct request *request, smelt_array **array);
PyObject *numpy_export(smelt_array *array); /* takes the array */
int numpy_init(PyObject *module);

bool buffer_import(PyObject *o, const struct request *request, smelt_array **array);

#endif
