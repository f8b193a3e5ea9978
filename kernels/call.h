/* What every shipped operation takes in addition to its arrays.
 *
 * The operations are a layer over smelt.h. They return its statuses and yield new references, as it does;
 * smelt_error() tells what smelt itself refused, and nothing about an INVALID_ARGUMENT of the operation,
 * whose contract stands at its declaration. */
#ifndef SMELT_KERNELS_CALL_H
#define SMELT_KERNELS_CALL_H

#include <smelt/smelt.h>

/* How an operation is run. NULL in place of a call means the defaults. */
typedef struct smelt_call {
    const char *device;   /* default "cpu" */
    double timeout;       /* seconds; 0: none */
    bool poison;          /* fill outputs with NaN first, to see what a kernel leaves unwritten */
    smelt_run_info *info; /* may be NULL */
} smelt_call;

#endif
