/* The array object: dtype, shape and strides over reference-counted memory. */
#ifndef SMELT_ARRAY_ARRAY_H
#define SMELT_ARRAY_ARRAY_H

#include "base/error.h"

#include <stdatomic.h>

struct memory;

/* Memory that is not the host's: what arrays need done there. One for each device; see cuda/memory.h. */
struct memory_space {
    const char *device; /* "cuda:0" */
    /* In the order of what used the memory before; copy_out waits, copy_in may return before. Addresses are
     * within `memory`. */
    smelt_status (*copy_in)(struct memory *memory, char *to, const void *from, size_t bytes);
    smelt_status (*copy_out)(struct memory *memory, void *to, const char *from, size_t bytes);
    void (*release)(struct memory *memory); /* frees memory->start where it is not borrowed */
};

/* Memory that arrays and views share. */
struct memory {
    atomic_int references;
    char *start;
    size_t bytes;
    void (*release)(void *context); /* NULL: free(start) unless `borrowed` */
    void *context;
    bool borrowed;
    const struct memory_space *space; /* NULL: the host's */
    void *use;                        /* the space's own: streams that used it */
};

struct smelt_array {
    atomic_int references;
    smelt_dtype dtype;
    smelt_shape shape;
    int64_t strides[SMELT_MAX_DIMENSIONS]; /* in elements */
    int64_t size;                          /* product of the shape */
    char *data;                            /* element (0, …) */
    struct memory *memory;
};

/* Checks dtype, ndim and sizes; gives the number of elements. The failure names `what`. */
smelt_status shape_check(const char *what, smelt_dtype dtype, const smelt_shape *shape, int64_t *size);

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
