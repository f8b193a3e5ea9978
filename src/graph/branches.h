/* Steps recorded on a GPU as branches: a replay runs steps that do not need each other at the same time. */
#ifndef SMELT_GRAPH_BRANCHES_H
#define SMELT_GRAPH_BRANCHES_H

#include "graph/crew.h"

/* Records the steps, in order, on a stream that records. Each waits only for the steps that it needs
 * (compiled->needed), and what is recorded afterwards waits for all of them. On devices that cannot record
 * branches, each step waits for the one before it. */
smelt_status branches_run(const smelt_compiled *compiled, smelt_stream *stream, crew_step *run,
                          void *context);

#endif
