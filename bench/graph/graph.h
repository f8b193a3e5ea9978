/* The jobs of smelt bench graph that are in files of their own. */
#ifndef SMELT_BENCH_GRAPH_GRAPH_H
#define SMELT_BENCH_GRAPH_GRAPH_H

#include "bench/harness.h"

/* Of "chain-small" and its relatives. */
smelt_status bench_graph_chain(struct bench *bench, const char *name);

#endif
