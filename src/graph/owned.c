#include "graph/owned.h"

#include <stdlib.h>

void graph_registered_release(struct registered *operation) {
    if (!operation || atomic_fetch_sub(&operation->references, 1) != 1) return;
    if (operation->desc.release) operation->desc.release(operation->desc.context);
    free((char *)operation->desc.name);
    free(operation);
}

struct graph_call *graph_call_retain(struct graph_call *call) {
    if (call) atomic_fetch_add(&call->references, 1);
    return call;
}

void graph_call_release(struct graph_call *call) {
    if (!call || atomic_fetch_sub(&call->references, 1) != 1) return;
    for (smelt_attribute *a = call->attributes; a->name; a++) {
        free((char *)a->name);
        free((char *)a->string);
    }
    graph_registered_release(call->operation);
    free(call);
}

bool graph_call_is_opaque(const struct graph_call *call) {
    return call->operation->desc.opaque;
}

const char *graph_call_name(const struct graph_call *call) {
    return call->operation->desc.name;
}

struct graph_launch *graph_launch_retain(struct graph_launch *launch) {
    if (launch) atomic_fetch_add(&launch->references, 1);
    return launch;
}

void graph_launch_release(struct graph_launch *launch) {
    if (!launch || atomic_fetch_sub(&launch->references, 1) != 1) return;
    for (int i = 0; i < SMELT_MAX_TEMPLATES; i++) free((char *)launch->desc.templates[i].name);
    free(launch->init_values);
    smelt_kernel_release(launch->kernel);
    free(launch);
}

const char *graph_launch_name(const struct graph_launch *launch) {
    return launch->kernel->desc.name;
}
