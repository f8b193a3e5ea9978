/* Shared by the files of the extension module `smelt._smelt`. It binds the public C API, no more; CPython's
 * limited API of 3.11. One file per Python type or job:
 *   module.c   the module and its functions
 *   errors.c   statuses as exceptions
 *   dtype.c    smelt.Dtype, and what else names an element type
 *   array.c    smelt.array; array_numbers.c: as a number, its properties; array_data.c: buffers, NumPy,
 *              pickles; values.c: its elements as Python's numbers, and back; text.c: as text;
 *              index.c: a[i, j:k]; operators.c: its operators
 *   interop.c  any object as an array, and arrays as the kind of object that came in
 *   dlpack.c   DLPack capsules; exchange.c: its tables of C functions; torch.c
 *   memory.c   arrays over memory of Python objects, from numpy.c and buffer.c
 *   machine.c  the machine's devices and compilers, for smelt.doctor
 *   apply.c    operations by name; tape.c: tapes, custom functions (operations.h is theirs)
 *   graph.c    graphs, compiled graphs, sessions; registered.c: registered operations; lists.c: lists
 *              of arrays
 *   kernel.c   kernels from bodies: smelt.metal_kernel; call.c: the arguments of a call;
 *              numbers.c: sizes and shapes; bind.c: Kernel.bind
 *   library.c  whole .metal files: smelt.library; function.c: their functions;
 *              bytes.c: numbers as a type's bytes; function_call.c, function_parameters.c,
 *              function_bind.c: calls of functions
 *   tensor.c   smelt.Tensor; safetensors.c: files of arrays
 *   guard.c    guarded runs of smelt.launch
 *   linalg.c   factorisations and solves of smelt.linalg
 *   tune.c     searches of smelt.autotune
 *   streams.c  GPUs' streams as other libraries name them
 *   interrupt.c  Ctrl-C while a kernel runs, or is waited for; limits.c: time-outs of smelt.launch */
#ifndef SMELT_PYTHON_EXTENSION_H
#define SMELT_PYTHON_EXTENSION_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <smelt/check.h>
#include <smelt/tensor.h>

#include <stdlib.h>
#include <string.h>

/* ---- Small things */

/* Names that are looked up in calls of kernels. */
extern struct interned {
    PyObject *numpy, *array_struct, *dlpack, *dlpack_device, *dtype, *requires_grad, *is_conj, *is_neg,
        *empty_tuple;
} interned;
int interned_init(void);

/* Cached facts about objects, by their address; it keeps them. When it is full, further objects are not
 * cached. The GIL is its lock. */
#define POINTER_TABLE_BITS 8
struct pointer_table {
    PyObject *keys[1 << POINTER_TABLE_BITS];
    int values[1 << POINTER_TABLE_BITS];
    int count;
};
bool pointer_find(const struct pointer_table *table, PyObject *key, int *value);
void pointer_add(struct pointer_table *table, PyObject *key, int value);

/* ---- errors.c */

/* Sets the exception for a call that failed with `status`, from smelt_error() of this thread, and returns
 * NULL. ValueError: INVALID_ARGUMENT, LIMIT, FORMAT. RuntimeError's subclass smelt.Error otherwise
 * (CompileError, BarrierError, FaultError, DeviceLostError …), which are also TimeoutError, OSError,
 * MemoryError or NotImplementedError if Python has the name. */
PyObject *raise_status(smelt_status status);
/* The list of smelt.Finding of the calling thread's last checked run. */
PyObject *errors_findings(void);
/* Adds the places in the caller's file of the lines that the current exception names, if it is smelt.Error
 * (smelt/_origin.py). `origin` may be NULL or None. Return NULL. */
PyObject *errors_locate(PyObject *origin);
/* The same by the attribute _origin of an object, if it has one. */
PyObject *errors_locate_of(PyObject *owner);
int errors_init(PyObject *module);

/* ---- dtype.c */

/* The one object of a dtype: smelt.float32. Borrowed. */
PyObject *dtype_object(smelt_dtype dtype);
/* The dtype that `o` names: smelt's own, a NumPy dtype or scalar type, ml_dtypes' bfloat16, torch's, JAX's,
 * MLX's, float, int, bool, "float32". False with a TypeError that names `o` and `what`. */
bool dtype_of_object(PyObject *o, const char *what, smelt_dtype *dtype);
/* The NumPy dtype, borrowed; NULL with an exception if NumPy is not installed. bfloat16 is ml_dtypes', or
 * uint16 without that. */
PyObject *dtype_numpy(smelt_dtype dtype);
int dtype_init(PyObject *module);

/* ---- machine.c */

int machine_init(PyObject *module);

/* ---- array.c */

/* A smelt.array over `array`, whose reference it takes, also when it fails (NULL). */
PyObject *array_wrap(smelt_array *array);
/* The array of a smelt.array, borrowed; NULL, without an exception, for other objects. */
smelt_array *array_of(PyObject *o);
/* Makes the object one over `array`, of which it takes a reference of its own. */
void array_replace(PyObject *o, smelt_array *array);
/* `array` itself with one more reference if it is in the host's memory, else a copy there; releases the GIL
 * while it waits. False with an exception. */
bool array_on_host(smelt_array *array, smelt_array **host);
int array_init(PyObject *module);

/* ---- array_data.c, array_numbers.c: more slots and methods; each list ends with 0 */

extern PyType_Slot array_data_slots[], array_number_slots[];
extern PyMethodDef array_data_methods[], array_number_methods[];
PyObject *array_shape_tuple(const smelt_array *array);

/* ---- tensor.c */

/* The tensor of a smelt.Tensor, borrowed; NULL, without an exception, for other objects. */
smelt_tensor *tensor_of(PyObject *o);
/* smelt.Tensor over `tensor`, whose reference it takes, also when it fails. */
PyObject *tensor_wrap(smelt_tensor *tensor);
/* A string without zeros; NULL with an exception. `what` begins messages. */
const char *tensor_string(PyObject *o, const char *what);
/* "fp8_e4m3", or whatever names a dtype; false with an exception. */
bool tensor_element(PyObject *o, const char *what, int *element);
PyObject *tensor_tuple(const int64_t *numbers, int count);
int tensor_init(PyObject *module);

/* ---- safetensors.c */

int safetensors_init(PyObject *module);

/* ---- values.c */

/* An array of Python numbers in lists and tuples, nested to one shape. SMELT_NO_DTYPE: bool, int32, float32
 * or complex64, whichever is the first to hold them all. NULL with a TypeError or ValueError. */
smelt_array *array_of_values(PyObject *values, smelt_dtype dtype);
/* The element at `address` as a Python number. */
PyObject *value_at(smelt_dtype dtype, const void *address);
/* Methods item and tolist. */
PyObject *array_item(PyObject *self, PyObject *arguments);
PyObject *array_to_list(PyObject *self, PyObject *unused);

/* ---- text.c */

PyObject *array_repr(PyObject *self);

/* ---- index.c: mp_subscript, sq_item */

PyObject *array_subscript(PyObject *self, PyObject *key);
PyObject *array_sequence_item(PyObject *self, Py_ssize_t i);

/* ---- operators.c: slots and methods of smelt.array in addition to array.c's; each list ends with 0 */

extern PyType_Slot array_operator_slots[];
extern PyMethodDef array_operator_methods[];

/* ---- interrupt.c */

/* Waits on the main thread for the kernels that write an array on a GPU, and checks for signals meanwhile:
 * false with a handler's exception, such as KeyboardInterrupt, or with a late error of a kernel. Does not
 * wait on other threads, or for arrays in the host's memory. */
bool array_wait(smelt_array *array);

/* ---- apply.c, tape.c */

int apply_init(PyObject *module);
int attention_init(PyObject *module);
int delta_init(PyObject *module);
int quantized_init(PyObject *module);

/* ---- guard.c */

int guard_init(PyObject *module);

/* ---- linalg.c */

int linalg_init(PyObject *module);
int tune_init(PyObject *module);
int tape_init(PyObject *module);
/* Records on the open tapes that `name`, which has no derivative, computed `outputs` (new handles) from
 * `inputs`. False with an exception. */
bool tape_note(const char *name, smelt_array **inputs, int input_count, smelt_array **outputs,
               int output_count);

/* ---- interop.c */

/* The kind of an argument, and of the results. */
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
/* An array over the memory of `o`, to be written: ValueError if it would be a copy or is read-only. */
bool array_import_for_writing(PyObject *o, const char *what, smelt_array **array, enum array_kind *kind);
/* The array itself, one over the memory of an object that may be written, or a copy of another's. `copy`:
 * None, True (always) or False (never). */
bool array_share(PyObject *o, const char *what, PyObject *copy, smelt_array **array);
/* `array` as an object of `kind`, on the array's device; takes the reference, also when it fails (NULL). */
PyObject *array_export(smelt_array *array, enum array_kind kind);
int interop_init(PyObject *module);

/* ---- streams.c */

/* The stream over a native one, the same for each call, with a reference for the caller. False with an
 * exception. */
bool stream_of_native(const char *device, void *native, smelt_stream **stream);
/* The current stream of the library of arrays of `kind` (torch or CuPy), with a reference for the caller;
 * NULL for others, and on a CPU. False with an exception. */
bool stream_of_kind(enum array_kind kind, const char *device, smelt_stream **stream);

/* ---- dlpack.c */

PyObject *array_to_capsule(PyObject *self, PyObject *arguments, PyObject *keywords); /* __dlpack__ */
PyObject *array_dlpack_device(PyObject *self, PyObject *unused);

#endif
