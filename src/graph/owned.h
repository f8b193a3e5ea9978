/* What nodes own besides constants: uses of registered operations, and launches of kernels. */
#ifndef SMELT_GRAPH_OWNED_H
#define SMELT_GRAPH_OWNED_H

#include "graph/graph.h"
#include "kernel/kernel.h"

/* A registered operation. */
struct registered {
    atomic_int references;     /* the table's, and one for each call */
    smelt_operation_desc desc; /* the name is owned */
    bool shipped;              /* smelt's own: stored graphs may use it */
    struct registered *next;
};

void graph_registered_release(struct registered *operation);

/* shipped.c: the operations that are registered from the start, by number; NULL after the last. */
const smelt_operation_desc *graph_shipped_operation(int index);

/* A use of one. */
struct graph_call {
    atomic_int references;
    struct registered *operation;
    smelt_attribute attributes[SMELT_MAX_ATTRIBUTES + 1]; /* strings are owned */
};

/* A kernel from a body, and what its launch needs beside its arrays. */
struct graph_launch {
    atomic_int references;
    smelt_kernel *kernel;
    smelt_run_desc desc; /* without arrays, device, stream and what belongs to one call */
    double *init_values;
};

#endif
