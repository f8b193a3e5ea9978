/* Shared by the files that bind smelt/ops.h and smelt/autodiff.h: apply.c, operators.c, tape.c. */
#ifndef SMELT_PYTHON_OPERATIONS_H
#define SMELT_PYTHON_OPERATIONS_H

#include "extension.h"

#include <smelt/autodiff.h>
#include <smelt/ops.h>

/* ---- apply.c */

/* An object as an operation's input, with a reference for the caller; *weak: a number of Python. False with
 * an exception that names `what`. */
bool operation_input(PyObject *o, const char *what, smelt_array **array, bool *weak);
/* Releases the references of its inputs. */
void release_inputs(smelt_apply_desc *desc);
/* Runs it, and releases its inputs in any case. */
PyObject *apply_operation(smelt_apply_desc *desc);
/* A function of smelt.operations. */
PyObject *python_operation(const char *name);

#endif
