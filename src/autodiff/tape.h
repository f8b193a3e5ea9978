/* Tapes: the recorded computations as nodes in order, and the arrays that depend on watched ones. */
#ifndef SMELT_AUTODIFF_TAPE_H
#define SMELT_AUTODIFF_TAPE_H

#include "ops/operation.h"
#include "smelt/autodiff.h"

/* A custom function, shared by the tapes that recorded it. */
struct custom {
    atomic_int references;
    char *name;
    smelt_record_desc desc; /* without its lists */
};

/* One computation. Holds references to all its arrays. */
struct node {
    smelt_apply_desc desc; /* desc.operation is SMELT_OPERATION_NONE for a custom function */
    struct custom *custom;
    int input_count, output_count;
    smelt_array **inputs, **outputs; /* in one block, inputs first */
};

struct smelt_tape {
    struct smelt_tape *below; /* of the thread's open tapes */
    const void *thread;       /* an address that is the thread's own */
    bool open;
    int pauses; /* in progress when it was begun: only later pauses apply to it */
    int busy;   /* its own products are being computed: it records nothing */
    struct node *nodes;
    int node_count, node_capacity;
    smelt_array **tracked; /* open addressing by handle; NULL is free */
    size_t capacity, count;
    smelt_array **watched; /* references */
    int watched_count, watched_capacity;
};

/* The position of a handle in `tracked`, or the one for it. The tape tracks at least one array. */
size_t tape_slot(const smelt_tape *tape, const smelt_array *array);

#endif
