/* The array object: dtype, shape and strides over reference-counted memory. */
#ifndef SMELT_ARRAY_ARRAY_H
#define SMELT_ARRAY_ARRAY_H

#include "base/error.h"

#include <stdatomic.h>

/* Unused bytes after an array that smelt allocates, so that a write a few elements too far does not reach the
 * heap's own data. */
#define ARRAY_PADDING 128

struct memory;

/* The operations of arrays on memory other than the host's. One per device; see src/device/cuda/space.c. Work
 * is enqueued on `stream` (NULL: the device's default), after all earlier uses of the memory. Addresses are
 * within their `memory`. */
struct memory_space {
    const char *device; /* "cuda:0" */
    /* A new row-contiguous array with undefined contents. */
    smelt_status (*create)(const struct memory_space *space, smelt_stream *stream, smelt_dtype dtype,
                           const smelt_shape *shape, smelt_array **array);
    /* Adopts borrowed memory, with its start and bytes. */
    smelt_status (*adopt)(const struct memory_space *space, struct memory *memory);
    /* Later work on `stream` follows all uses of the memory, and later uses follow the work there by then.
     * `home`: the owner of borrowed memory continues in the order of this stream; when the last reference is
     * released, the stream waits, not the caller. */
    smelt_status (*order)(struct memory *memory, smelt_stream *stream, bool home);
    /* `from` may change once it returns. */
    smelt_status (*copy_in)(struct memory *memory, smelt_stream *stream, char *to, const void *from,
                            size_t bytes);
    /* Waits. */
    smelt_status (*copy_out)(struct memory *memory, smelt_stream *stream, void *to, const char *from,
                             size_t bytes);
    /* `source` may be in the space of another device of the same kind; the stream is of `memory`'s. */
    smelt_status (*copy_within)(struct memory *memory, smelt_stream *stream, char *to, struct memory *source,
                                const char *from, size_t bytes);
    /* `count` times `width` (1, 2, 4, 8) bytes. */
    smelt_status (*fill)(struct memory *memory, smelt_stream *stream, char *to, const void *pattern,
                         size_t width, size_t count);
    /* Whether all work has ended on the stream that wrote it last. */
    smelt_status (*is_ready)(struct memory *memory, bool *ready);
    /* Called when the last reference is gone: frees memory->start unless it is borrowed; if it is, waits
     * before memory->release. Keeps the thread's message. */
    void (*release)(struct memory *memory);
};

/* Memory that arrays and views share. */
struct memory {
    atomic_int references;
    char *start;
    size_t bytes;
    size_t capacity;                /* of a block that the pool may keep (memory_pool.h); 0: it is freed */
    void (*release)(void *context); /* NULL: free(start) unless `borrowed` */
    void *context;
    bool borrowed;
    const struct memory_space *space; /* NULL: the host's */
    void *use;                        /* the space's own: streams that used it */
};

/* With one reference, otherwise empty; NULL: out of memory. */
struct memory *memory_new(void);
void memory_retain(struct memory *memory);
void memory_release(struct memory *memory);

struct smelt_array {
    atomic_int references;
    smelt_dtype dtype;
    smelt_shape shape;
    int64_t strides[SMELT_MAX_DIMENSIONS]; /* in elements */
    int64_t size;                          /* product of the shape */
    char *data;                            /* element (0, …) */
    struct memory *memory;
};

/* A new array over `memory`, whose reference it takes; strides NULL: row-contiguous. NULL: out of memory. */
smelt_array *array_over(struct memory *memory, smelt_dtype dtype, const smelt_shape *shape,
                        const int64_t *strides, int64_t size, char *data);

/* Checks the arguments of smelt_array_from_memory, and creates the array and its memory, without space. */
smelt_status array_borrow(const char *what, smelt_dtype dtype, const smelt_shape *shape,
                          const int64_t *strides, void *data, void (*release)(void *context), void *context,
                          smelt_array **array);

/* The bytes from an array's lowest element to the end of its highest: 0 for an empty one. */
size_t array_span(const smelt_array *array, char **low);

/* True if its elements fill their span, each once, in the order of some permutation of its dimensions. */
bool array_is_dense(const smelt_array *array);

/* A copy of a host's or a device's array in `space` (NULL: the host's memory), with the same strides if it is
 * dense, else row-contiguous. `stream` belongs to the device, or to the target if both are devices. */
smelt_status array_move(const smelt_array *array, const struct memory_space *space, smelt_stream *stream,
                        smelt_array **result);

/* smelt_array_fill, in the order of a stream of the array's device. */
smelt_status array_fill_on(smelt_array *array, smelt_stream *stream, double value);

/* Fills, copies and converts where at least one array is not in the host's memory; arguments are checked. */
smelt_status space_fill(smelt_array *array, smelt_stream *stream, const void *pattern);
smelt_status space_copy(smelt_array *to, const smelt_array *from);
smelt_status space_convert(const smelt_array *array, smelt_dtype dtype, smelt_array **result);

/* Checks dtype, ndim and sizes; returns the number of elements. The failure names `what`. */
smelt_status shape_check(const char *what, smelt_dtype dtype, const smelt_shape *shape, int64_t *size);

bool shape_equal(const smelt_shape *a, const smelt_shape *b);
/* Whether arrays of shape `from` can be broadcast to `to`. */
bool shape_broadcasts(const smelt_shape *from, const smelt_shape *to);
int64_t shape_product(const smelt_shape *shape);

/* Row-major strides of a shape. */
void shape_strides(const smelt_shape *shape, int64_t strides[SMELT_MAX_DIMENSIONS]);

/* Column-major strides: the first dimension runs fastest. */
void shape_fortran_strides(const smelt_shape *shape, int64_t strides[SMELT_MAX_DIMENSIONS]);

/* "4x16", "scalar" for ndim 0; at most 512 bytes. */
struct shape_text {
    char text[512];
};
struct shape_text shape_print(const smelt_shape *shape);

/* Rounds `count` doubles to a float dtype (float64 too), densely. */
void store_reals(smelt_dtype dtype, char *to, const double *from, int64_t count);

/* Walks the elements of a strided array in row-major order:
 *   for (struct walk w = walk_begin(shape, strides); w.left; walk_next(&w)) use(data + w.offset * bytes) */
struct walk {
    const smelt_shape *shape;
    const int64_t *strides;
    int64_t index[SMELT_MAX_DIMENSIONS];
    int64_t offset; /* in elements */
    int64_t left;   /* elements still to visit, this one included */
};
struct walk walk_begin(const smelt_shape *shape, const int64_t *strides);
void walk_next(struct walk *walk);

#endif
