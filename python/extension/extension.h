/* What the files of the extension module `smelt._smelt` share. It binds the public C API, no more; CPython's
 * limited API of 3.11. One file a Python type or job:
 *   module.c   the module and its functions
 *   errors.c   statuses as exceptions
 *   dtype.c    smelt.Dtype, and what else names an element type
 *   array.c    smelt.array
 *   interop.c  any object as an array, and arrays as the kind of object that came in
 *   dlpack.c   DLPack capsules
 *   kernel.c   kernels from bodies: smelt.metal_kernel
 *   library.c  whole .metal files: smelt.library */
#ifndef SMELT_PYTHON_EXTENSION_H
#define SMELT_PYTHON_EXTENSION_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <smelt/smelt.h>

/* ---- errors.c */

/* Sets the exception for a call that failed with `status`, from smelt_error() of this thread, and returns
 * NULL. ValueError: INVALID_ARGUMENT, LIMIT, FORMAT. RuntimeError's subclass smelt.Error otherwise
 * (CompileError, BarrierError, FaultError, DeviceLostError …), which also are TimeoutError, OSError,
 * MemoryError, NotImplementedError where Python has a name for it. */
PyObject *raise_status(smelt_status status);
int errors_init(PyObject *module);

/* ---- dtype.c */

/* The one object of a dtype: smelt.float32. Borrowed. */
PyObject *dtype_object(smelt_dtype dtype);
/* What `o` names: smelt's own, a NumPy dtype or scalar type, ml_dtypes' bfloat16, torch's, JAX's, MLX's,
 * float, int, bool, "float32". False with a TypeError that says what came and names `what`. */
bool dtype_of_object(PyObject *o, const char *what, smelt_dtype *dtype);
int dtype_init(PyObject *module);

/* ---- array.c */

/* A smelt.array over `array`, whose reference it takes, also when it fails (NULL). */
PyObject *array_wrap(smelt_array *array);
/* The array of a smelt.array, borrowed; NULL, without an exception, for other objects. */
smelt_array *array_of(PyObject *o);
int array_init(PyObject *module);

/* ---- interop.c */

/* What an argument was, and so what results become. */
enum array_kind {
    KIND_SCALAR, /* a Python number: a 0-d array */
    KIND_SMELT,
    KIND_NUMPY,
    KIND_TORCH,
    KIND_JAX,
    KIND_CUPY,
    KIND_MLX,
    KIND_OTHER /* anything else with the buffer protocol or __dlpack__: results are smelt.array */
};

/* An array over the memory of `o`, without a copy where its layout and dtype allow, with one reference for
 * the caller. `what` names the argument in messages. False with a TypeError or ValueError. */
bool array_import(PyObject *o, const char *what, smelt_array **array, enum array_kind *kind);
/* `array` as an object of `kind`, on the array's device; takes the reference, also when it fails (NULL). */
PyObject *array_export(smelt_array *array, enum array_kind kind);

#endif
