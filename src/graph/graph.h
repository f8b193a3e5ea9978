/* The data model of graphs: nodes in an order in which each follows what it needs, and the values they
 * compute. A value is a number; value i of a graph has the type values[i]. */
#ifndef SMELT_GRAPH_GRAPH_H
#define SMELT_GRAPH_GRAPH_H

#include "array/symbolic.h"
#include "ops/operation.h"
#include "smelt/graph.h"

enum graph_kind {
    GRAPH_REMOVED = 0, /* by a pass */
    GRAPH_INPUT,
    GRAPH_CONSTANT,
    GRAPH_OPERATION, /* one that is not composed of others */
    GRAPH_CUSTOM,    /* registered, not expanded yet */
    GRAPH_KERNEL     /* a kernel from a body */
};

struct graph_value {
    int node;
    smelt_dtype dtype;
    smelt_shape shape;
};

struct graph_call;   /* custom.c */
struct graph_launch; /* launch.c */

struct graph_node {
    enum graph_kind kind;
    int *inputs; /* values */
    int input_count;
    int first, output_count; /* its values: first, first + 1 … */
    smelt_apply_desc desc;   /* of an operation: without arrays, device and stream; `algorithm` is owned */
    smelt_array *constant;   /* on the host, row-contiguous */
    struct graph_call *call;
    struct graph_launch *launch;
};

/* An input or output. */
struct graph_port {
    char *name;
    int value;
};

struct smelt_graph {
    atomic_int references;
    char *name;
    struct graph_node *nodes;
    int node_count, node_capacity;
    struct graph_value *values;
    int value_count, value_capacity;
    struct graph_port *inputs, *outputs;
    int input_count, output_count;
};

/* ---- Building: graph.c. */

/* Appends a node; `node` gives kind and what it owns, which the graph takes also when it fails. types: of its
 * outputs. */
smelt_status graph_add(smelt_graph *graph, const struct graph_node *node, const int *inputs, int input_count,
                       const smelt_type *types, int type_count, int *index);
/* A constant node: a copy of a host's or device's array. One of equal elements (strides 0) becomes a scalar
 * that is broadcast. */
smelt_status graph_add_constant(smelt_graph *graph, smelt_array *array, int *value);
/* A handle for a value, which keeps the graph. */
smelt_status graph_handle(smelt_graph *graph, int value, smelt_array **handle);
/* The graph of the first value among arrays; NULL: there is none. */
smelt_graph *graph_of(smelt_array *const *arrays, int count);
/* The value that a handle stands for, or a new constant of other arrays. Fails for values of other graphs. */
smelt_status graph_value_of(smelt_graph *graph, smelt_array *array, int *value);
/* Releases what a node owns; it becomes GRAPH_REMOVED. */
void graph_clear_node(struct graph_node *node);
smelt_status graph_add_port(struct graph_port **ports, int *count, const char *name, const char *kind,
                            int value);
smelt_type graph_type(const smelt_graph *graph, int value);

/* ---- Tracing: trace.c, launch.c. */

smelt_status graph_trace_operation(const smelt_apply_desc *desc, int count, const smelt_array *shaped,
                                   smelt_array **result);

/* ---- Registered operations: custom.c. */

/* A use of an operation by its name, with the attributes of `desc`. */
smelt_status graph_call_create(const smelt_custom_desc *desc, struct graph_call **call);
/* The types of the outputs, at most SMELT_MAX_ARGUMENTS, as the operation infers them. */
smelt_status graph_call_types(const struct graph_call *call, smelt_array *const *inputs, int input_count,
                              smelt_type *types, int *count);
/* Whether the operation runs at each execution. */
bool graph_call_is_opaque(const struct graph_call *call);
/* The name of the operation that a call uses. */
const char *graph_call_name(const struct graph_call *call);
struct graph_call *graph_call_retain(struct graph_call *call);
void graph_call_release(struct graph_call *call);
/* Calls its `run` for a device: `outputs` receives one reference for each type. */
smelt_status graph_call_expand(const struct graph_call *call, const char *device, smelt_array *const *inputs,
                               int input_count, const smelt_type *types, int type_count,
                               smelt_array **outputs);
/* Uses it again, on other inputs of the same types, as smelt_custom does. */
smelt_status graph_call_again(const struct graph_call *call, smelt_array *const *inputs, int input_count,
                              const smelt_type *types, int type_count, smelt_array **outputs);

/* ---- Kernels: launch.c. */

struct graph_launch *graph_launch_retain(struct graph_launch *launch);
void graph_launch_release(struct graph_launch *launch);
const char *graph_launch_name(const struct graph_launch *launch);
/* The node again, on other inputs. */
smelt_status graph_launch_again(const struct graph_launch *launch, smelt_array *const *inputs,
                                smelt_array **outputs);
/* Runs it on arrays, writing into `into`. */
smelt_status graph_launch_run(const struct graph_launch *launch, smelt_array *const *inputs,
                              smelt_array *const *into, const char *device, smelt_stream *stream);

/* ---- Copying: replay.c. */

/* Applies all nodes of `from` to handles: handles[v] for each value, those of inputs given by the caller
 * (others NULL), a reference each. device: registered operations are expanded for it; NULL: they stay. */
smelt_status graph_replay(const smelt_graph *from, const char *device, smelt_array **handles);

/* A copy for a device, registered operations expanded. What depends on constants alone is computed and
 * becomes a constant: *folded counts these nodes. */
smelt_status graph_expand(const smelt_graph *from, const char *device, smelt_graph **expanded, int *folded);

/* ---- Passes, in their order. Each changes the graph in place and counts what it did. */

/* share.c: nodes that change nothing, or equal an earlier one, are replaced. */
smelt_status graph_share(smelt_graph *graph, int *shared);
/* dead.c: nodes that no output depends on are removed. */
smelt_status graph_remove_dead(smelt_graph *graph, int *removed);

/* ---- Text: show.c. */

struct text;
void graph_write_node(struct text *text, const smelt_graph *graph, int node);

#endif
