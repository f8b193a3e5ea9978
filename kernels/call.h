/* What every shipped operation takes beside its arrays. */
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
