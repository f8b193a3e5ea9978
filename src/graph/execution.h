/* One execution of a session: the caller's arrays, checked and bound, and the steps. */
#ifndef SMELT_GRAPH_EXECUTION_H
#define SMELT_GRAPH_EXECUTION_H

#include "graph/plan.h"
#include "graph/record.h"

#include <pthread.h>

struct smelt_session {
    atomic_int references;
    pthread_mutex_t lock; /* of an execution */
    smelt_compiled *compiled;
    smelt_array **buffers;
    /* By value: constants, values in buffers, and views of both. */
    smelt_array **fixed;
    struct records records;
    bool recording; /* whether executions are recorded */
};

/* A value that is a view of `root`. */
static inline smelt_status execution_view(const smelt_compiled *compiled, int value, smelt_array *root,
                                          smelt_array **out) {
    const struct place *place = &compiled->places[value];
    return smelt_array_view(root, plan_value(compiled, value)->shape, place->strides, place->offset, out);
}

/* On the steps' own streams; outputs receive references. records: desc->stream is recording. */
smelt_status execution_run(const smelt_session *session, const smelt_execute_desc *desc, bool records,
                           smelt_array **outputs);

#endif
