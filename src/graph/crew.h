/* Steps of an execution that run at once, on threads of the host. */
#ifndef SMELT_GRAPH_CREW_H
#define SMELT_GRAPH_CREW_H

#include "graph/plan.h"

/* Runs step number `step`; the failure's message is the thread's. */
typedef smelt_status crew_step(void *context, int step);

/* Runs all steps of a compiled graph that has an order, on `streams` threads, the caller's among them. After
 * a failure no step begins; the first one and its message are returned. */
smelt_status crew_run(const smelt_compiled *compiled, crew_step *run, void *context);

#endif
