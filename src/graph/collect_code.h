/* The machine code that a compiled graph runs, for its file (stored.h). */
#ifndef SMELT_GRAPH_COLLECT_CODE_H
#define SMELT_GRAPH_COLLECT_CODE_H

#include "base/text.h"
#include "smelt/graph.h"

/* Appends every kernel that an execution runs, each as a package. On CPUs, a package has code for the graph's
 * own launches. Code that is not in the cache is compiled, on all CPUs at once. */
smelt_status compiled_collect_code(smelt_compiled *compiled, struct text *out);

#endif
