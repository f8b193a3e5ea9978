/* A device: a struct of function pointers. Adding one touches its folder and the table in device.c. */
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

#define LAUNCH_MAX_BUFFERS 400

/* Where a device gets an entry's code from. An entry has several codes, made when a launch first needs them:
 * see struct code_shape. */
struct code_source {
    /* Compiles the entry for a shape of launch on a device's target (struct device). *cache_hit: no compiler
     * ran. Called from several threads. */
    smelt_status (*compile)(void *context, const char *target, const struct code_shape *shape,
                            struct image *image, bool *cache_hit);
    void *context;     /* must live as long as what is loaded from here */
    bool barrier_hint; /* the entry's text has barriers */
};

/* What had to be done before a launch could run. */
struct preparation {
    bool compiled;  /* code was missing */
    bool cache_hit; /* and no compiler ran for it */
};

/* A buffer of a launch: a part of an array's memory, or bytes of the caller. */
struct launch_buffer {
    struct memory *memory; /* NULL: bytes that the launch takes with it and the kernel only reads */
    char *start;           /* of the memory, or of the bytes */
    size_t offset;         /* where the buffer begins, from `start` on */
    size_t bytes;          /* of the buffer's elements */
};

static inline char *launch_address(const struct launch_buffer *buffer) {
    return buffer->start + buffer->offset;
}

/* One launch, from the call that asks for it to the device. What a shape of code depends on is known before
 * `prepare`: sizes, `large`, `inlined` and the time-out; buffers are there for `run`. */
struct launch {
    const char *what; /* the kernel's name */
    const struct device *device;
    struct executable *executable;
    uint32_t grid[3];       /* threads, all > 0 */
    uint32_t group_size[3]; /* threads of a full group; the product is within the device's limit */
    uint32_t groups[3];
    double timeout;                      /* seconds; 0: none */
    bool large;                          /* a buffer has 2^31 bytes or nearly (array_is_large) */
    bool unaligned;                      /* a buffer does not begin at a multiple of BUFFER_ALIGNMENT */
    uint8_t inlined[SHAPE_MAX_INLINED];  /* as code_shape.inlined, for what is on the host */
    const struct launch_buffer *buffers; /* by index */
    const size_t *threadgroup_memory; /* SMELT_MAX_BUFFERS sizes, bytes, by threadgroup index; NULL: none */
    smelt_stream *stream;             /* of the device; NULL: its default */
    const char *profile;              /* whose limits apply; NULL: the device's */
    const struct image *image;        /* set by `prepare`: what is known of the entry */
    const struct entry *entry;        /* (optional) its parameters have names, for traces */
    uint64_t flow;                    /* in a trace, the arrow from here to what the device does; 0: none */
    /* (optional) The device sets the numbers of lines, and `seconds` where it has a clock of its own: the
     * launch is then waited for. */
    smelt_run_info *info;
};

struct device {
    const char *name;           /* "cpu" */
    const char *description;    /* a sentence */
    const char *target;         /* what code is made for; part of cache keys; NULL: this machine's CPU */
    enum engine engine;         /* whose code it wants */
    uint64_t threadgroup_limit; /* bytes of threadgroup memory */
    uint32_t thread_limit;      /* threads a group */
    const struct memory_space *space; /* where arrays must lie that kernels use; NULL: the host's memory */
    /* device/stream.h; each NULL where launches have ended when `run` returns. */
    const struct stream_functions *streams;
    const struct event_functions *events;
    const struct recording_functions *recordings;
    size_t code_bytes; /* of its own code, which begins with a struct code_head (device/executable.h) */
    /* Makes a code ready to run, of which the head is set and the rest zeros; frees what it has beside its
     * image, also after a failure. */
    smelt_status (*make_code)(struct executable *executable, struct code_head *code);
    void (*free_code)(struct executable *executable, struct code_head *code);
    /* Makes the codes the launch needs where they are missing; launch->image is that of its full groups'
     * code, if it has any, and lives as long as the executable. */
    smelt_status (*prepare)(struct launch *launch, struct preparation *preparation);
    /* What its full groups would be compiled for, if there were any. */
    void (*shape)(const struct launch *launch, bool barrier_hint, struct code_shape *shape);
    int (*threads)(void); /* (optional) threads of this machine that work on a launch */
    /* A CPU runs and waits; a GPU's launch is enqueued, unless there is something to wait for: a time-out,
     * `info`, lines that are logged. */
    smelt_status (*run)(const struct launch *launch);
    /* Where `space` is not NULL: a new array there, undefined or filled with *value, in the stream's order
     * (NULL: the default stream's). */
    smelt_status (*create_array)(const struct device *device, smelt_stream *stream, smelt_dtype dtype,
                                 const smelt_shape *shape, const double *value, smelt_array **array);
    /* Where `space` is not NULL: smelt_device_memory, _wait, _reset. */
    smelt_status (*memory)(const struct device *device, uint64_t *free_bytes, uint64_t *total_bytes);
    smelt_status (*wait)(const struct device *device);
    smelt_status (*reset)(const struct device *device);
    /* (optional) smelt_device_driver_version; 0: not known. */
    int (*driver_version)(const struct device *device);
};

/* What a launch of `name` that ended well returns: INTERRUPTED or TIMEOUT if it was stopped. */
smelt_status launch_end(const char *name, const struct launch *launch, bool interrupted, bool expired);

/* Sets `groups` to what the grid has. */
void launch_count_groups(struct launch *launch);

/* How the devices of a kind are found. Each registers itself when the library is loaded. */
struct device_kind {
    int rank; /* devices are listed by it */
    const char
        *name; /* "cuda" is the first of them and "cuda:1" one by number; NULL: each has its own name */
    /* Device number `index` of those that can be used; NULL: there are no more. Where there is none at all,
     * *reason says why: a sentence without its end. */
    const struct device *(*at)(int index, const char **reason);
    /* (optional) Adds what a trace does not have yet, before it is closed. */
    void (*finish_trace)(uint32_t capture);
};

#define MOST_KINDS 4
#define MOST_DEVICES 18 /* both CPU engines and 16 GPUs */

/* The device called `name` (NULL: "cpu"), or NO_DEVICE with the names there are. */
smelt_status device_find(const char *name, const struct device **device);

void device_finish_trace(uint32_t capture);

/* Called by constructors alone (REGISTER_DEVICES), at most MOST_KINDS times. */
void device_register(const struct device_kind *kind);
#define REGISTER_DEVICES(kind)                                        \
    __attribute__((constructor)) static void register_devices(void) { \
        device_register(&(kind));                                     \
    }

#endif
