/* One call of a function of a library. */
#ifndef SMELT_PYTHON_DISPATCH_H
#define SMELT_PYTHON_DISPATCH_H

#include "function.h"

/* Must be closed, also after a failure. */
struct dispatch {
    struct function *function;
    smelt_dispatch_desc desc;            /* its arrays with references */
    PyObject *values[SMELT_MAX_BUFFERS]; /* by buffer index, borrowed */
    void *bytes[SMELT_MAX_BUFFERS];
    char device[32];
    PyObject *kept[3];
    enum array_kind kind; /* of the first array that is not a NumPy array */
};

/* Keywords that are not names of parameters. */
enum { THREADS, GROUPS, GROUP_SIZE, MEMORY, DEVICE, STREAM, TIMEOUT, PROFILE, CASTS, CHECK, OPTION_COUNT };

static inline bool dispatch_is_number(PyObject *o) {
    return PyLong_Check(o) || PyFloat_Check(o) || PyBytes_Check(o) || is_list(o) || o == Py_None;
}

/* ---- function_parameters.c */

/* Raises a TypeError about `o`; false. */
bool dispatch_fail_argument(const struct function *function, const char *message, PyObject *o);
/* The buffers that a query of the code needs, before the arguments are converted. */
void dispatch_guess_buffers(struct dispatch *dispatch);
void dispatch_unbind(smelt_buffer *buffer);
void dispatch_unbind_all(struct dispatch *dispatch);
/* Of several at one index that function constants select from, the one that the code uses. */
const smelt_parameter *dispatch_find_parameter(const struct function *function, bool threadgroup, int index,
                                               PyObject *name);
/* "out (0), a (1)" of the buffers, or of the missing ones. */
void dispatch_list_buffers(const struct dispatch *dispatch, bool missing, char *text, size_t size);
/* The option that a keyword names, or -1. */
int dispatch_option(PyObject *key);
/* "kernel 'k': argument 0 ('a')": created once, since every call needs it. */
const char *dispatch_label(struct function *function, const smelt_parameter *parameter);
int dispatch_init(void);

/* ---- function_bind.c: false with an exception. */

bool dispatch_read_sizes(struct dispatch *dispatch, PyObject *arguments, PyObject *keywords,
                         PyObject *const *options);
bool dispatch_bind_all(struct dispatch *dispatch);
bool dispatch_read_memory(struct dispatch *dispatch, PyObject *o);

#endif
