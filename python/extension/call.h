/* Calls of kernels from bodies: Python's arguments as the C API's. */
#ifndef SMELT_PYTHON_CALL_H
#define SMELT_PYTHON_CALL_H

#include "extension.h"

/* smelt._smelt.Kernel. After creation only `last` and `handles` change; a handle is created when a call first
 * needs it. */
struct kernel {
    PyObject_HEAD PyObject *name, *source, *header;       /* str */
    PyObject *input_names, *output_names, *include_paths; /* tuples of str */
    PyObject *atomic_outputs;                             /* bool, or a tuple of bool */
    const char *text;                                     /* the name, for messages */
    char **labels; /* the arguments' names in messages: see enum label */
    int input_count, output_count;
    smelt_kernel_desc desc;   /* its strings are those of the objects above */
    smelt_kernel *handles[2]; /* by `strided` */
    bool ran;                 /* `last` is of a launch */
    bool timed;
    smelt_run_info last;
};

enum keyword {
    KEYWORD_INPUTS,
    KEYWORD_OUTPUT_SHAPES,
    KEYWORD_OUTPUT_DTYPES,
    KEYWORD_GRID,
    KEYWORD_THREADGROUP,
    KEYWORD_TEMPLATE,
    KEYWORD_INIT_VALUE,
    KEYWORD_VERBOSE,
    KEYWORD_STREAM,
    KEYWORD_DEVICE,
    KEYWORD_TIMEOUT,
    KEYWORD_PROFILE,
    KEYWORD_CHECK,
    KEYWORD_ROW_CONTIGUOUS,
    KEYWORD_OUT,
    KEYWORD_OUTPUT_KIND,
    KEYWORD_COUNT
};

/* "kernel 'k': input 'a'": created once, since every call may need them. */
enum label { LABEL_INPUT, LABEL_OUT, LABEL_SHAPE, LABEL_DTYPE, LABEL_KINDS };
bool labels_make(struct kernel *kernel);
void labels_free(struct kernel *kernel);
const char *label_of(const struct kernel *kernel, enum label label, int i);

/* One call: the descriptor, and what must live until the launch is done. */
struct call {
    struct kernel *kernel;
    smelt_run_desc desc; /* inputs and `into` with references, as many as are counted here */
    int input_count, into_count;
    double init_values[SMELT_MAX_ARGUMENTS];
    char device[32];
    bool strided, verbose;
    enum array_kind kind; /* of the results */
    PyObject *out;        /* list or tuple of the arrays to write into, borrowed; or NULL */
    PyObject *kept[4];    /* objects whose text the descriptor points to */
};

/* Sorts keyword arguments; TypeError for positional and unknown ones. Borrowed; NULL: not given, or None. */
bool call_keywords(const struct kernel *kernel, PyObject *arguments, PyObject *keywords,
                   PyObject *values[KEYWORD_COUNT]);

/* Reads a call; to be closed also after a failure. `sized`: grid and threadgroup must be given. */
bool call_open(struct call *call, struct kernel *kernel, PyObject *const values[KEYWORD_COUNT], bool sized);
void call_close(struct call *call);

/* The kernel's handle for a call; NULL with an exception. */
smelt_kernel *kernel_handle(struct kernel *kernel, bool strided);

/* Outputs of a run as a list of objects of the call's kind. Takes the references, also when it fails. `out`:
 * the objects written into, whose arrays are theirs; may be NULL. */
PyObject *call_results(smelt_array **outputs, int count, enum array_kind kind, PyObject *out);
/* Records the call's new outputs on open tapes. False with an exception, and without the outputs. */
bool call_note(const struct kernel *kernel, smelt_array *const *inputs, smelt_array **outputs);

/* Records the launch for last_run; `info` NULL: not measured, computed from grid and threadgroup. */
void kernel_note(struct kernel *kernel, const smelt_run_desc *desc, const smelt_run_info *info);

/* The kind of results called `name` ("numpy"), or a failure. */
bool kind_of_name(const struct kernel *kernel, PyObject *name, enum array_kind *kind);

/* ---- numbers.c: Python's numbers and sequences of them */

/* An int, NumPy's integer or an array with one of them. False, without an exception, for others. */
bool integer_of(PyObject *o, int64_t *value);
/* 1 to 3 positive sizes; the others become 1. Messages begin with "kernel 'k': grid". */
bool triple_of(PyObject *o, const char *kernel, const char *name, int64_t sizes[3]);
bool shape_of(PyObject *o, const char *what, smelt_shape *shape);
/* The i-th of a list or tuple, borrowed. */
PyObject *item_of(PyObject *sequence, Py_ssize_t i);
Py_ssize_t length_of(PyObject *sequence);
bool is_list(PyObject *o);
/* The name of an object's type, for messages; a new reference, or NULL with an exception. */
PyObject *type_name(PyObject *o);

/* ---- streams.c */

/* A stream from Python: smelt's, an int, torch's, CuPy's, or an object with __cuda_stream__. `device` is the
 * required device, "cuda:0"; a reference for the caller. False with an exception. */
bool stream_of(PyObject *o, const char *what, const char *device, smelt_stream **stream);

/* ---- interrupt.c: Ctrl-C */

/* A call of the C API that may take long. */
typedef smelt_status long_call(void *context, smelt_interrupt *interrupt);

/* Makes the call without the GIL. On the main thread, a signal with a Python handler ends it. The handler
 * runs, and its exception is raised (*raised). If it raises nothing, the call is repeated, or ends with a
 * RuntimeError if it may not be (`once`). */
smelt_status call_watched(long_call *run, void *context, bool once, bool *raised);
/* The same for a launch on a GPU that need not be waited for: only a compile may take long there. */
smelt_status call_enqueuing(long_call *run, void *context, bool once, bool *raised);
/* Only without the GIL: for short calls. */
smelt_status call_without_gil(long_call *run, void *context, smelt_interrupt *interrupt);
int interrupt_init(PyObject *module);

/* ---- limits.c: this thread's limits on the kernels it runs */

/* Ends them on threads where signals do not; NULL: no limit is set. */
smelt_interrupt *limits_interrupt(void);
/* The time-out of a launch on a GPU, from the one given in its call (0: none). */
double limits_timeout(double timeout);
int limits_init(PyObject *module);

int call_init(void);
int kernel_init(PyObject *module);
int bind_init(PyObject *module);
int library_init(PyObject *module);

/* Kernel.bind */
PyObject *kernel_bind(PyObject *self, PyObject *arguments, PyObject *keywords);

#endif
