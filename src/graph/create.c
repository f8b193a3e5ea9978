/* New graphs. The first one makes smelt_apply and smelt_kernel_run describe what is done with values. */
#include "base/text.h"
#include "graph/graph.h"
#include "graph/tracing.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void start_tracing(void) {
    operation_trace_with(graph_trace_operation);
    kernel_trace_with(graph_trace_kernel);
}

static void begin_tracing(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_tracing);
}

smelt_status smelt_graph_create(const char *name, smelt_graph **out) {
    if (!name || !out)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "graph: %s is NULL",
                    name ? "the address for the new graph" : "name");
    begin_tracing();
    smelt_graph *graph = calloc(1, sizeof *graph);
    char *copy = graph ? string_copy(name, strlen(name)) : NULL;
    if (!copy) {
        free(graph);
        return fail_out_of_memory(sizeof *graph);
    }
    atomic_init(&graph->references, 1);
    graph->name = copy;
    *out = graph;
    return SMELT_OK;
}
