/* Functions of libraries. */
#ifndef SMELT_PYTHON_FUNCTION_H
#define SMELT_PYTHON_FUNCTION_H

#include "call.h"

/* smelt.Function over `function`, whose reference it takes, also when it fails (NULL). `origin`: of its
 * library's text (errors_locate), or NULL. */
PyObject *function_wrap(smelt_function *function, const char *name, PyObject *origin);
int function_init(PyObject *module);

/* ---- bytes.c */

/* Python numbers, or lists of them, as the bytes of a parameter's type. `what` begins messages. A block for
 * the caller to free; NULL with an exception. */
void *bytes_of_numbers(PyObject *o, const char *what, const smelt_parameter *parameter, size_t *size);

/* A launch as a dictionary: Kernel.last_run. `timed`: its seconds are known. */
PyObject *info_dictionary(const smelt_run_info *info, bool timed);

#endif
