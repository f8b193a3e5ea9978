/* smelt run, of a stored graph. */
#ifndef SMELT_CLI_GRAPH_RUN_H
#define SMELT_CLI_GRAPH_RUN_H

#include "options.h"

/* Loads the graph, executes it on the inputs of the command line, and delivers its outputs. Returns an exit
 * status. */
int graph_run(const struct options *options);

#endif
