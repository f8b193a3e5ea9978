/* Shared by the files that bind smelt/ops.h, autodiff.h and graph.h: apply.c, operators.c, lists.c, tape.c,
 * graph.c, registered.c. */
#ifndef SMELT_PYTHON_OPERATIONS_H
#define SMELT_PYTHON_OPERATIONS_H

#include "extension.h"

#include <smelt/graph.h>

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

/* ---- lists.c */

struct arrays {
    smelt_array **items; /* borrowed of the objects, but NULL for None; free the list */
    int count;
};

/* The arrays of a list of smelt.array, of None too if they are `optional`. False with an exception that names
 * `what`. */
bool arrays_take(PyObject *list, const char *what, bool optional, struct arrays *arrays);
/* New references for the list; NULL arrays become None. */
PyObject *arrays_list(smelt_array *const *items, int count);
/* Takes the references of `items`. */
PyObject *arrays_list_taking(smelt_array **items, int count);

/* Keeps the current exception, of a Python function that smelt called, until the call into smelt is over. */
smelt_status exception_keep(void);
/* Raises it, or the exception for the status. Returns NULL. */
PyObject *exception_raise_kept(smelt_status status);

/* ---- graph.c, registered.c */

/* The types of a sequence of (dtype, shape) pairs, at most SMELT_MAX_ARGUMENTS. False with an exception. */
bool types_take(PyObject *sequence, const char *what, smelt_type *types, int *count);
/* A list of (dtype, shape). */
PyObject *types_list(const smelt_type *types, int count);
/* The handle of a Graph, borrowed; NULL with an exception. */
smelt_graph *graph_handle(PyObject *o);
int graph_init(PyObject *module);
/* jax.c */
int jax_init(PyObject *module);
int registered_init(PyObject *module);

#endif
