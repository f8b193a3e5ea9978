/* The compiled form of a graph: which nodes are one step, where values lie, what a fused kernel looks like.
 */
#ifndef SMELT_GRAPH_PLAN_H
#define SMELT_GRAPH_PLAN_H

#include "graph/graph.h"
#include "ops/map.h"

/* ---- Fusion: fuse.c. */

/* Nodes that become one kernel. A kernel has one thread for each element of `full`, or, if something is
 * reduced
 * (`axes`), one thread or simdgroup for each *row*: the elements of `full` that become one. Its nodes are
 * full ones, of shape `full`, and row ones, with one element for each row. */
struct group {
    bool alive;
    smelt_shape full;
    uint32_t axes;    /* reduced; 0: none */
    smelt_shape kept; /* `full` with size 1 along `axes` … */
    smelt_shape left; /* … and without them */
    int64_t count;    /* elements of a row */
    bool lanes;       /* a simdgroup takes a row, its elements are neighbours */
    bool staged;      /* rows are cut in chunks, whose results a second kernel reduces */
    int *nodes, node_count, node_capacity;
};

struct fusion {
    const smelt_graph *graph;
    int *group_of;  /* by node: a group, or -1 */
    char *is_row;   /* by node in a group: a row node */
    int *use_count; /* by value; being an output is a use */
    struct group *groups;
    int group_count, group_capacity;
};

/* `fuse` false: no groups. */
smelt_status fusion_create(const smelt_graph *graph, bool fuse, struct fusion *fusion);
void fusion_free(struct fusion *fusion);

/* fuse_rules.c. Whether the node may be part of a fused kernel at all. */
bool fusion_is_elementwise(const smelt_graph *graph, int node);
bool fusion_is_reduction(const smelt_graph *graph, int node);
/* A constant of one element, which is part of the kernel's text. */
bool fusion_is_literal(const smelt_graph *graph, int value);
/* An operation whose result is a view, if the strides allow it. */
bool fusion_is_view(const smelt_graph *graph, int node);
/* Whether `node` fits into `group` (of the fusion, with number `g`) by its shape and the place of its inputs
 * there; *row: as a row node. May give the group, so far without axes, the node's: `become`. */
bool fusion_fits(const struct fusion *fusion, int g, int node, bool *row, struct group *become);
/* Whether two groups can be one. */
bool fusion_merges(const struct fusion *fusion, int a, int b, struct group *become);

/* ---- Kernels: kernel_text.c and rows_text.c. */

struct kernel_operand {
    int value; /* < 0: a position */
    int root;  /* the value in whose memory it lies */
    int64_t strides[SMELT_MAX_DIMENSIONS], offset;
    bool written;
};

/* A generated kernel: everything of its map but the arrays. */
struct fused_kernel {
    smelt_shape space;
    bool lanes;
    int operand_count;
    struct kernel_operand operands[MAP_MAX_OPERANDS];
    int number_count;
    int64_t numbers[MAP_MAX_NUMBERS];
    char *before, *body;
    uint64_t content[2];
};

void fused_kernel_free(struct fused_kernel *kernel);
/* The map of the kernel; arrays: by value, of roots. */
void fused_kernel_map(const struct fused_kernel *kernel, smelt_array *const *arrays, const char *device,
                      smelt_stream *stream, struct map *map);

/* ---- Steps and places: plan.c. A step is a fused kernel, an operation, a kernel from a body, or the call of
 * an opaque registered operation. */

#define GRAPH_MOST_STREAMS 64

enum step_kind { STEP_FUSED = 1, STEP_OPERATION, STEP_KERNEL, STEP_CALL };

struct step {
    enum step_kind kind;
    int node;            /* of an operation or a kernel; of a group its first */
    int group;           /* of a fused step; else -1 */
    int *reads, *writes; /* values in memory */
    int read_count, write_count;
    struct fused_kernel kernels[2]; /* of a fused step: one, or two stages */
    int kernel_count;
};

enum place_kind {
    PLACE_NONE = 0, /* never in memory */
    PLACE_INPUT,    /* an array of the caller */
    PLACE_CONSTANT,
    PLACE_OUTPUT, /* an array of the result */
    PLACE_BUFFER, /* planned memory */
    PLACE_VIEW    /* of another value */
};

struct place {
    enum place_kind kind;
    int root;  /* the value whose memory it is in; itself, but of a view */
    int index; /* of the input, output or buffer */
    int64_t strides[SMELT_MAX_DIMENSIONS], offset; /* in elements of the root */
};

struct smelt_compiled {
    atomic_int references;
    char device[32];
    bool unfused, unplanned;
    int streams;        /* threads that run steps; at most 1: in order */
    smelt_graph *graph; /* expanded; passes have run */
    struct fusion fusion;
    struct step *steps;
    int step_count;
    /* By value; then scratch values of staged steps, whose types are in `scratch`. */
    struct place *places;
    int value_count;
    struct graph_value *scratch;
    int scratch_count, scratch_capacity;
    uint64_t *buffers; /* bytes of each */
    int buffer_count;
    uint64_t *needed; /* order.c: a row of bits per step; NULL: steps run in order */
    int needed_words; /* of a row */
    smelt_compiled_info info;
};

/* compile.c: everything after the passes: fusion, steps, kernels, memory. */
smelt_status compiled_plan(smelt_compiled *compiled);

/* The type of a value, also of a scratch value. */
const struct graph_value *plan_value(const smelt_compiled *compiled, int value);

/* Steps in order, and the places of all values but buffers. */
smelt_status plan_steps(smelt_compiled *compiled);
/* order.c: for each step, the earlier ones that must have ended before it begins, as bits. */
smelt_status plan_order(smelt_compiled *compiled);
static inline const uint64_t *plan_needed(const smelt_compiled *compiled, int step) {
    return compiled->needed ? compiled->needed + (size_t)step * (size_t)compiled->needed_words : NULL;
}
/* memory.c: values to buffers. */
smelt_status plan_memory(smelt_compiled *compiled, bool reuse);

/* kernel_text.c: the kernel of a fused step without reductions. */
smelt_status plan_elements(smelt_compiled *compiled, struct step *step);
/* rows_text.c: the kernels of one with reductions. */
smelt_status plan_rows(smelt_compiled *compiled, struct step *step);
/* A new value for what a stage passes to the next. */
smelt_status plan_scratch(smelt_compiled *compiled, smelt_dtype dtype, const smelt_shape *shape, int *value);

/* ---- What both kinds of kernels are written with: kernel_text.c. */

/* The strides, by dimensions of `shape`, with which a value that is broadcast to it lies in memory. */
void plan_strides(const smelt_compiled *compiled, int value, const smelt_shape *shape,
                  int64_t strides[SMELT_MAX_DIMENSIONS]);
/* The operand of these strides in the kernel, which is added if it is new: its number. */
int plan_operand(const smelt_compiled *compiled, struct fused_kernel *kernel, int value,
                 const int64_t strides[SMELT_MAX_DIMENSIONS], int ndim, bool written);
/* How a node's input is called in a kernel's text: "v12", "l3". */
struct variable {
    char name[24];
};
/* The number in the names that a fused kernel's text gives to a node: its place in the group. It is not the
 * node's number in the graph, so equal parts of a graph, such as the layers of a model, share a kernel. */
int plan_name(const struct group *group, int node);
/* Appends the statements that declare v<plan_name> of an elementwise node. Inputs that are literals need no
 * name. */
void plan_write_node(struct text *text, const smelt_graph *graph, const struct group *group, int node,
                     const struct variable *inputs);
/* Computes the hash; takes the texts. */
smelt_status plan_finish_kernel(struct fused_kernel *kernel, struct text *before, struct text *body);

#endif
