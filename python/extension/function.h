/* Functions of libraries. */
#ifndef SMELT_PYTHON_FUNCTION_H
#define SMELT_PYTHON_FUNCTION_H

#include "call.h"

#define MOST_PARAMETERS (2 * SMELT_MAX_BUFFERS)

struct function {
    PyObject_HEAD smelt_function *handle;
    PyObject *name, *origin;
    const char *text; /* the name */
    smelt_parameter parameters[MOST_PARAMETERS];
    int parameter_count;           /* -1: not queried yet */
    char *labels[MOST_PARAMETERS]; /* dispatch_label's, created when needed */
    bool ran, timed;
    smelt_run_info last;
};

/* smelt.Function over `function`, whose reference it takes, also when it fails (NULL). `origin`: of its
 * library's text (errors_locate), or NULL. */
PyObject *function_wrap(smelt_function *function, const char *name, PyObject *origin);
int function_init(PyObject *module);

/* ---- function_parameters.c, function_bind.c, function_call.c: false and NULL with an exception. */

/* Fills in the parameters from the code that `desc` would run, if they have not been queried yet. */
bool function_query_parameters(struct function *function, smelt_dispatch_desc *desc);
/* A size in up to three dimensions, an argument called `name`. */
bool function_size(const struct function *function, PyObject *o, const char *name, int64_t sizes[3]);
/* f(a, b, threads=n). */
PyObject *function_call(PyObject *self, PyObject *arguments, PyObject *keywords);

/* ---- bytes.c */

/* Python numbers, or lists of them, as the bytes of a parameter's type. `what` begins messages. A block for
 * the caller to free; NULL with an exception. */
void *bytes_of_numbers(PyObject *o, const char *what, const smelt_parameter *parameter, size_t *size);

/* A launch as a dictionary: Kernel.last_run. `timed`: its seconds are known. */
PyObject *info_dictionary(const smelt_run_info *info, bool timed);

#endif
