/* A device: a struct of function pointers. A new device touches only its own folder (CONTRIBUTING.md). */
#ifndef SMELT_DEVICE_DEVICE_H
#define SMELT_DEVICE_DEVICE_H

#include "abi/image.h"

struct executable;
struct code_head;
struct entry;
struct memory;
struct memory_space;
struct stream_functions;
struct event_functions;
struct recording_functions;
struct queue_functions;
struct smelt_finding;
struct translation;

#define LAUNCH_MAX_BUFFERS 400

/* A device's source of an entry's code. An entry has several codes, compiled when a launch first needs them:
 * see struct code_shape. */
struct code_source {
    /* Compiles the entry for a shape of launch on a device's target (struct device). values: the code is for
     * these alone; NULL: for all. *cache_hit: no compiler ran. Called from several threads. */
    smelt_status (*compile)(void *context, const char *target, const struct code_shape *shape,
                            const struct known_values *values, enum compile_effort effort,
                            struct image *image, bool *cache_hit);
    /* (optional) Keeps what owns the context and the executable while code is compiled in the background.
     * NULL: nothing is, and launches wait for the best code. */
    void (*hold)(void *context);
    void (*let_go)(void *context);
    void *context;     /* must live as long as the code loaded from here */
    bool barrier_hint; /* the entry's text has barriers */
};

/* The work needed before a launch could run. */
struct preparation {
    bool compiled;  /* code was missing */
    bool cache_hit; /* and no compiler ran for it */
};

/* A buffer of a launch: a part of an array's memory, or bytes of the caller. */
struct launch_buffer {
    struct memory *memory;    /* NULL: bytes that travel with the launch and that the kernel only reads */
    char *start;              /* of the memory, or of the bytes */
    size_t offset;            /* where the buffer begins, from `start` on */
    size_t bytes;             /* of the buffer's elements */
    size_t before;            /* bytes that strides reach before the first element */
    size_t span;              /* … and all bytes that they reach; 0: `bytes` */
    const smelt_array *array; /* for messages; NULL: bytes */
    bool undefined;           /* checked launches: nobody has given the elements values */
};

static inline char *launch_address(const struct launch_buffer *buffer) {
    return buffer->start + buffer->offset;
}

/* Views of the same memory count as overlapping: a kernel may access elements beyond a view. */
static inline bool launch_buffers_overlap(const struct launch_buffer *a, const struct launch_buffer *b) {
    uintptr_t from = (uintptr_t)launch_address(a) - a->before;
    uintptr_t other = (uintptr_t)launch_address(b) - b->before;
    size_t bytes = a->span ? a->span : a->bytes, other_bytes = b->span ? b->span : b->bytes;
    return (a->memory && a->memory == b->memory) || (from < other + other_bytes && other < from + bytes);
}

/* One launch, from the call to the device. The inputs of a code's shape are known before `prepare`: sizes,
 * `large`, `inlined` and the time-out; buffers are there for `run`. */
struct launch {
    const char *what; /* the kernel's name */
    const struct device *device;
    struct executable *executable;
    uint32_t grid[3];       /* threads, all > 0 */
    uint32_t group_size[3]; /* threads of a full group; the product is within the device's limit */
    uint32_t groups[3];
    double timeout;                      /* seconds; 0: none */
    bool best;                           /* waits for the best code */
    bool joined;                         /* its groups are groups of one thread each (cpu_shape.h) */
    bool large;                          /* a buffer has 2^31 bytes or nearly (array_is_large) */
    bool unaligned;                      /* a buffer does not begin at a multiple of BUFFER_ALIGNMENT */
    bool overlapping;                    /* a buffer that the kernel may write overlaps another */
    uint8_t inlined[SHAPE_MAX_INLINED];  /* as code_shape.inlined, for arguments on the host */
    const struct launch_buffer *buffers; /* by index */
    const size_t *threadgroup_memory; /* SMELT_MAX_BUFFERS sizes, bytes, by threadgroup index; NULL: none */
    smelt_stream *stream;             /* of the device; NULL: its default */
    const char *profile;              /* the profile whose limits apply; NULL: the device's */
    const struct image *image;        /* set by `prepare`: the entry's properties */
    const struct image *edge_image;   /* … those of the code for groups at the edge; NULL: no other code */
    const struct entry *entry;        /* (optional) its parameters have names, for traces and findings */
    const char *(*parameter_name)(const struct launch *launch, int parameter); /* "": it has none */
    bool tested;          /* accesses are tested against the extents of their arrays */
    bool check;           /* the caller asks for a checked launch: on device.checked, or by device.tests */
    const char *look_for; /* … for what else on request: words, as in smelt_run_desc.also; NULL: nothing */
    uint32_t also;        /* … as bits of enum check_also */
    bool unchecked;       /* not `tested`, as the caller asks */
    /* (optional) Of a checked run: completes a finding from the user's text. False: the text says that it is
     * to be ignored. */
    bool (*accept)(const struct launch *launch, struct smelt_finding *finding);
    const struct translation *translation; /* for `accept`; NULL if there is no text */
    uint64_t flow;                         /* in a trace, the arrow from here to the device's work; 0: none */
    /* (optional) The device sets the numbers of lines, and `seconds` where it has a clock of its own: the
     * launch is then waited for. */
    smelt_run_info *info;
};

struct device {
    const char *name;             /* "cpu" */
    const char *description;      /* a sentence */
    const char *target;           /* the target of its code; part of cache keys; NULL: this machine's CPU */
    enum engine engine;           /* the engine of its code */
    const struct device *checked; /* (optional) the same device, where every access of memory is checked */
    bool tests; /* without `checked`: checked launches run code that tests accesses (launch.tested) */
    uint64_t threadgroup_limit;       /* bytes of threadgroup memory */
    uint32_t thread_limit;            /* threads per group */
    uint32_t multiprocessors;         /* of a GPU; 0: a CPU */
    const struct memory_space *space; /* the memory of arrays that kernels use; NULL: the host's */
    /* device/stream.h; each NULL if launches have ended when `run` returns. */
    const struct stream_functions *streams;
    const struct event_functions *events;
    const struct recording_functions *recordings;
    const struct queue_functions *queues; /* (optional) device/queue.h */
    size_t code_bytes; /* of its own code, which begins with a struct code_head (device/executable.h) */
    /* Makes a code ready to run, whose head is set and whose rest is zero; frees its resources except the
     * image, also after a failure. */
    smelt_status (*make_code)(struct executable *executable, struct code_head *code);
    void (*free_code)(struct executable *executable, struct code_head *code);
    /* (optional) Loads the code, so that its first launch need not wait for that. Called in the background,
     * before launches find the code. */
    smelt_status (*load_code)(struct executable *executable, struct code_head *code);
    /* Compiles the missing codes of the launch; launch->image is that of its full groups' code, if it has
     * any. Both images live as long as the executable. */
    smelt_status (*prepare)(struct launch *launch, struct preparation *preparation);
    /* The shape that its full groups would be compiled for. */
    void (*shape)(const struct launch *launch, bool barrier_hint, struct code_shape *shape);
    int (*threads)(void); /* (optional) the number of threads that run a launch */
    /* A CPU runs and waits; a GPU's launch is enqueued, unless it must be waited for: a time-out, `info`, log
     * lines. */
    smelt_status (*run)(const struct launch *launch);
    /* If `space` is not NULL: a new array there, undefined or filled with *value, in the stream's order
     * (NULL: the default stream's). */
    smelt_status (*create_array)(const struct device *device, smelt_stream *stream, smelt_dtype dtype,
                                 const smelt_shape *shape, const double *value, smelt_array **array);
    /* If `space` is not NULL: smelt_device_memory, _wait, _reset. */
    smelt_status (*memory)(const struct device *device, uint64_t *free_bytes, uint64_t *total_bytes);
    smelt_status (*wait)(const struct device *device);
    smelt_status (*reset)(const struct device *device);
    /* (optional) smelt_device_driver_version; 0: not known. */
    int (*driver_version)(const struct device *device);
};

/* What a launch of `name` that ended well returns: INTERRUPTED or TIMEOUT if it was stopped. */
smelt_status launch_end(const char *name, const struct launch *launch, bool interrupted, bool expired);

/* Sets `groups` from the grid. */
void launch_count_groups(struct launch *launch);
/* A parameter as the launch needs it: code for full groups, which knows their size, may lack a use that the
 * code for groups at the edge has, and the other way round. */
const struct binding *launch_binding(const struct launch *launch, int parameter);

/* How the devices of a kind are found. Each registers itself when the library is loaded. */
struct device_kind {
    int rank; /* devices are listed by it */
    const char
        *name; /* "cuda" is the first of them and "cuda:1" one by number; NULL: each has its own name */
    /* The usable device with number `index`; NULL: there are no more. If there is none at all, *reason is a
     * sentence without its end. */
    const struct device *(*at)(int index, const char **reason);
    /* (optional) Adds missing events to a trace before it is closed. */
    void (*finish_trace)(uint32_t capture);
};

#define MOST_KINDS 4
#define MOST_DEVICES 18 /* both CPU engines and 16 GPUs */

/* The device called `name` (NULL: "cpu"), or NO_DEVICE with the valid names. */
smelt_status device_find(const char *name, const struct device **device);

void device_finish_trace(uint32_t capture);

/* Called by constructors alone (REGISTER_DEVICES), at most MOST_KINDS times. */
void device_register(const struct device_kind *kind);
#define REGISTER_DEVICES(kind)                                        \
    __attribute__((constructor)) static void register_devices(void) { \
        device_register(&(kind));                                     \
    }

#endif
