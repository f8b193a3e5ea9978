/* graph.h — graphs: computations that are described first, compiled as a whole for a device, and executed
 * many times. Includes operations on arrays (ops.h) and their derivatives (autodiff.h), which work on values
 * of graphs as they do on arrays.
 *
 * A value of a graph is a smelt_array without elements: it has a dtype and a shape, and its device is
 * "graph". smelt_apply, compositions, kernels (smelt_kernel_run) and tapes take values, alone or together
 * with arrays, which become constants of the graph; they return values, and check and infer dtypes and shapes
 * as always, with the same messages. What needs elements (smelt_array_to, smelt_array_copy …) is an error.
 * docs/graphs.md has examples.
 *
 * Status, ownership, defaults and units are those of smelt.h. A graph is built by one thread at a time;
 * compiled graphs and sessions may be used by several threads (a session executes one call after the other).
 */
#ifndef SMELT_GRAPH_H
#define SMELT_GRAPH_H

#include <smelt/autodiff.h>
#include <smelt/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Graphs --------------------------------------------------------------------------------- */

typedef struct smelt_graph smelt_graph;

/* The dtype and shape of a value. */
typedef struct smelt_type {
    smelt_dtype dtype;
    smelt_shape shape;
    uint64_t reserved[2];
} smelt_type;

/* An empty graph. `name` is for messages. */
SMELT_API smelt_status smelt_graph_create(const char *name, smelt_graph **graph);
SMELT_API smelt_graph *smelt_graph_retain(smelt_graph *graph);
/* Values keep their graph. */
SMELT_API void smelt_graph_release(smelt_graph *graph);

/* A new input, the next in order. `name` must differ from other inputs'; NULL: "input0", "input1" … */
SMELT_API smelt_status smelt_graph_input(smelt_graph *graph, const char *name, smelt_dtype dtype,
                                         smelt_shape shape, smelt_array **value);
/* `value` (or an array, a constant) becomes the next output; NULL name: "output0" … */
SMELT_API smelt_status smelt_graph_output(smelt_graph *graph, const char *name, smelt_array *value);

SMELT_API int smelt_graph_input_count(const smelt_graph *graph);
SMELT_API int smelt_graph_output_count(const smelt_graph *graph);

/* One line per node: "%2 = multiply(%0, %1) : float32 4x3". Free *text with smelt_free. */
SMELT_API smelt_status smelt_graph_show(const smelt_graph *graph, char **text);

/* ---- Reading graphs ------------------------------------------------------------------------- */

typedef enum smelt_attribute_kind {
    SMELT_ATTRIBUTE_NONE = 0,
    SMELT_ATTRIBUTE_INTEGER,
    SMELT_ATTRIBUTE_REAL,
    SMELT_ATTRIBUTE_BOOLEAN,
    SMELT_ATTRIBUTE_STRING
} smelt_attribute_kind;

/* A compile-time parameter of an operation. */
typedef struct smelt_attribute {
    const char *name; /* NULL ends a list */
    smelt_attribute_kind kind;
    int64_t integer;
    double real;
    bool boolean;
    const char *string;
    uint64_t reserved[2];
} smelt_attribute;

typedef enum smelt_node_kind {
    SMELT_NODE_INPUT = 1,
    SMELT_NODE_CONSTANT,
    SMELT_NODE_OPERATION, /* one that is not composed of others */
    SMELT_NODE_CUSTOM,    /* a registered operation */
    SMELT_NODE_KERNEL
} smelt_node_kind;

/* A node. Its values are numbers, first_output, first_output + 1 …; pointers live as long as the graph, until
 * nodes are added. */
typedef struct smelt_node {
    smelt_node_kind kind;
    const char *name; /* of the input, operation or kernel; "constant" */
    const int *inputs;
    int input_count;
    int first_output, output_count;
    const smelt_apply_desc *desc;      /* of an operation: without arrays and device */
    smelt_array *constant;             /* of a constant, on the host; not a reference of its own */
    const smelt_attribute *attributes; /* of a registered operation, ended by a NULL name */
    uint64_t reserved[4];
} smelt_node;

/* Nodes are numbered from 0; each follows what it needs. */
SMELT_API int smelt_graph_node_count(const smelt_graph *graph);
SMELT_API smelt_status smelt_graph_node(const smelt_graph *graph, int index, smelt_node *node);
SMELT_API smelt_status smelt_graph_value_type(const smelt_graph *graph, int value, smelt_type *type);
/* The name of an output, and the number of its value; NULL if there is none. */
SMELT_API const char *smelt_graph_output_name(const smelt_graph *graph, int index, int *value);

/* ---- Registered operations ------------------------------------------------------------------ */

#define SMELT_MAX_ATTRIBUTES 32

/* One use of a registered operation, as its functions see it. */
typedef struct smelt_operation_call {
    const char *name;
    const char *device; /* for which it is compiled, "cuda:0"; where it runs, outside graphs; "graph" in
                           infer, vjp and jvp of values */
    smelt_array *const *inputs;
    int input_count;
    const smelt_type *types; /* of the outputs, as the caller gave them; in infer: to be filled */
    int output_count;
    const smelt_attribute *attributes; /* ended by a NULL name */
    uint64_t reserved[4];
} smelt_operation_call;

/* The description of an operation. Functions return SMELT_OK or a failure whose message the thread has
 * (that of the smelt call which failed). They may run on any thread. */
typedef struct smelt_operation_desc {
    const char *name; /* by which graphs find it */
    /* (optional) Sets types[0 … *output_count - 1], at most SMELT_MAX_ARGUMENTS; then callers need not give
     * types, and given ones must equal these. */
    smelt_status (*infer)(void *context, const smelt_operation_call *call, smelt_type *types,
                          int *output_count);
    /* Computes outputs[i], new references, by operations and kernels on the inputs. In a graph this is called
     * when the graph is compiled for a device, with values: `call->device` and `call->attributes` choose the
     * variant, and only what is called here is compiled. */
    smelt_status (*run)(void *context, const smelt_operation_call *call, smelt_array **outputs);
    /* (optional) As in smelt_record_desc. */
    smelt_status (*vjp)(void *context, const smelt_operation_call *call, smelt_array *const *outputs,
                        smelt_array *const *cotangents, smelt_array **gradients);
    smelt_status (*jvp)(void *context, const smelt_operation_call *call, smelt_array *const *outputs,
                        smelt_array *const *tangents, smelt_array **output_tangents);
    /* (optional) Called when the operation is replaced and no graph uses it any more. */
    void (*release)(void *context);
    void *context;
    /* `run` is not called when a graph is compiled, but at each execution, with arrays on the device, for
     * what graphs cannot describe: functions of .metal files, other libraries. Its results are copied. */
    bool opaque;
    uint64_t reserved[7];
} smelt_operation_desc;

/* Registers it for the process; one of the same name is replaced for later uses. "matrix_multiplication", the
 * product of two matrices, is registered from the start: attribute "algorithm", a name of
 * smelt_matmul_algorithm; without it, the fastest. */
SMELT_API smelt_status smelt_operation_register(const smelt_operation_desc *desc);

/* A use of a registered operation. */
typedef struct smelt_custom_desc {
    const char *name;
    smelt_array *const *inputs;
    int input_count;
    const smelt_type *types;                          /* of the outputs; NULL: inferred by the operation */
    int output_count;                                 /* of types */
    smelt_attribute attributes[SMELT_MAX_ATTRIBUTES]; /* ended by a NULL name */
    const char *device;                               /* for arrays: where it runs; NULL: where they are */
    uint64_t reserved[8];
} smelt_custom_desc;

/* A node if an input is a value, else runs the operation. outputs[i]: a new reference; `capacity` of them
 * fit, *count receives their number. Open tapes record it with its VJP and JVP. INVALID_ARGUMENT: the name is
 * not registered (the message lists those that are), types are missing, or `run` returned others. */
SMELT_API smelt_status smelt_custom(const smelt_custom_desc *desc, int capacity, smelt_array **outputs,
                                    int *count);

/* ---- Derivatives ---------------------------------------------------------------------------- */

/* A new graph that computes what `graph` does and then the gradients of its output number `output`, summed
 * over its elements, by inputs `inputs[0 … input_count - 1]` (numbers), which have float dtypes: its outputs
 * are those of `graph` and then the gradients, named "gradient of NAME". To differentiate inside a graph, use
 * a tape on its values. Fails as smelt_tape_vjp. */
SMELT_API smelt_status smelt_graph_gradient(smelt_graph *graph, int output, const int *inputs,
                                            int input_count, smelt_graph **gradient);

/* ---- Compiling ------------------------------------------------------------------------------ */

/* A graph, compiled for a device: a list of steps, each a fused kernel, an operation or a kernel. */
typedef struct smelt_compiled smelt_compiled;

typedef struct smelt_compile_desc {
    const char *device; /* default "cpu" */
    bool unfused;       /* one step per operation: to compare and to debug */
    bool unplanned;     /* memory is not reused */
    /* 0 and 1: steps run in order, each on the whole device, which is faster for steps with much to do.
     * More: independent steps may run at the same time. They do not share buffers, so the peak may grow.
     * On CPUs they run on that many threads, including the caller's; functions of opaque operations are then
     * called on several threads. On GPUs they become branches of the recording that a session replays, and
     * the GPU runs as many at once as it has room for; other executions run steps in order. Saved graphs
     * keep the number. */
    int64_t streams;
    uint64_t reserved[7];
} smelt_compile_desc;

typedef struct smelt_compiled_info {
    int nodes;            /* of the graph, registered operations expanded */
    int folded;           /* computed when the graph was compiled */
    int shared;           /* equal to an earlier one, or the same as its input */
    int dead;             /* no output depended on them */
    int steps;            /* what an execution does */
    int fused_kernels;    /* steps that are fused kernels … */
    int fused_nodes;      /* … and the nodes in them */
    uint64_t peak_bytes;  /* of intermediate values, while it executes */
    uint64_t total_bytes; /* what they would need without reuse */
    uint64_t reserved[8];
} smelt_compiled_info;

/* Compiles the graph as it is now: constants are folded, dead nodes removed, common subexpressions shared;
 * chains of elementwise operations, broadcasts, and what comes before and after reductions are fused into
 * generated kernels; memory is planned. Machine code is compiled when a session is created. `desc` may be
 * NULL. */
SMELT_API smelt_status smelt_graph_compile(smelt_graph *graph, const smelt_compile_desc *desc,
                                           smelt_compiled **compiled);
SMELT_API smelt_compiled *smelt_compiled_retain(smelt_compiled *compiled);
SMELT_API void smelt_compiled_release(smelt_compiled *compiled);
SMELT_API smelt_status smelt_compiled_describe(const smelt_compiled *compiled, smelt_compiled_info *info);

/* The steps, one per line, or (step >= 0) the Metal text of a step that is a fused kernel. Free *text with
 * smelt_free. INVALID_ARGUMENT if the step does not exist or has no text. */
SMELT_API smelt_status smelt_compiled_show(const smelt_compiled *compiled, int step, char **text);

SMELT_API int smelt_compiled_input_count(const smelt_compiled *compiled);
SMELT_API int smelt_compiled_output_count(const smelt_compiled *compiled);
/* NULL if there is none; lives as long as the handle. `type` may be NULL. */
SMELT_API const char *smelt_compiled_input(const smelt_compiled *compiled, int index, smelt_type *type);
SMELT_API const char *smelt_compiled_output(const smelt_compiled *compiled, int index, smelt_type *type);

typedef struct smelt_store_desc {
    const char *path; /* required */
    /* No machine code: the file serves every machine that has the compiler, and is small. Kernels are
     * compiled when they first run. */
    bool without_code;
    uint64_t reserved[8];
} smelt_store_desc;

/* Writes the compiled graph to a file, with the machine code of the kernels that it runs on its device: for
 * that, the graph is executed once, on zeros. Kernels from bodies are stored as text, and compiled when they
 * first run. Constants of float32 whose elements are all float16's take half the room. UNSUPPORTED for graphs
 * with opaque operations of the program, and for kernels with include folders; IO. */
SMELT_API smelt_status smelt_compiled_store(smelt_compiled *compiled, const smelt_store_desc *desc);
/* smelt_compiled_store with only a path. */
SMELT_API smelt_status smelt_compiled_save(smelt_compiled *compiled, const char *path);
/* Reads one, for the device that it was compiled for. Where the file holds code for this machine, from this
 * build of smelt, executing it needs no compiler, except for kernels from bodies. The file may hold machine
 * code, which runs unchecked: load only files from a trusted source. FORMAT if the file is damaged, or from
 * another version of smelt; NO_DEVICE; IO. */
SMELT_API smelt_status smelt_compiled_load(const char *path, smelt_compiled **compiled);

/* The first bytes of such a file. */
#define SMELT_GRAPH_MAGIC "smeltgraph"

/* ---- Sessions ------------------------------------------------------------------------------- */

/* A compiled graph with its memory on its device. */
typedef struct smelt_session smelt_session;

typedef struct smelt_session_desc {
    bool no_recording; /* on a GPU: enqueue every launch by itself instead of replaying a CUDA graph */
    uint64_t reserved[8];
} smelt_session_desc;

/* Allocates, and moves constants to the device. `desc` may be NULL. */
SMELT_API smelt_status smelt_session_create(smelt_compiled *compiled, const smelt_session_desc *desc,
                                            smelt_session **session);
SMELT_API smelt_session *smelt_session_retain(smelt_session *session);
SMELT_API void smelt_session_release(smelt_session *session);

typedef struct smelt_execute_desc {
    smelt_array *const *inputs; /* of the inputs' dtypes and shapes, on any device, with any strides */
    int input_count;
    const char *const *input_names; /* inputs[i] is the input of this name; NULL: in the graph's order */
    /* For each output an array that receives it: of its dtype and shape, row-contiguous, on the device. NULL,
     * as the list or an element: a new one. It must not share memory with inputs. */
    smelt_array *const *into;
    smelt_stream *stream; /* of the device; NULL: its default */
    uint64_t reserved[8];
} smelt_execute_desc;

/* Executes it. outputs[i]: a new reference to output i, on the session's device, row-contiguous. On a CPU it
 * has ended on return; on a GPU it is enqueued. INVALID_ARGUMENT names an input that is missing or does not
 * have its type. */
SMELT_API smelt_status smelt_session_execute(smelt_session *session, const smelt_execute_desc *desc,
                                             smelt_array **outputs);

#ifdef __cplusplus
}
#endif
#endif
