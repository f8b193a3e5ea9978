/* Steps recorded on a GPU as branches: a replay runs those at once that do not need each other. */
#ifndef SMELT_GRAPH_BRANCHES_H
#define SMELT_GRAPH_BRANCHES_H

#include "graph/crew.h"

/* Runs the steps in order on a stream that records, each behind those alone that it needs (compiled->needed);
 * what is recorded next waits for all. Without a device's functions for it, each waits for the one before. */
smelt_status branches_run(const smelt_compiled *compiled, smelt_stream *stream, crew_step *run,
                          void *context);

#endif
