/* A compiled entry: its machine code and everything a device needs to launch it. Independent of LLVM. */
#ifndef SMELT_ABI_IMAGE_H
#define SMELT_ABI_IMAGE_H

#include "abi/engine.h"
#include "abi/values.h"
#include "base/error.h"

/* Bytes by which the buffers of a small launch stay below 2^31. */
#define SMALL_REACH (1 << 24)

/* Buffers with higher indices are never inlined. */
#define SHAPE_MAX_INLINED 64

/* What a code of an entry was compiled for: an entry has several codes, compiled when a launch first needs
 * them. Compared and hashed as bytes: always zero-initialised. */
#define BUFFER_ALIGNMENT 16 /* of buffers with vectors; devices allocate with more */

struct code_shape {
    uint32_t engine;   /* enum engine */
    uint32_t polled;   /* SIMD, PTX: loops poll the stop flag (the scalar engine's always do) */
    uint32_t masked;   /* SIMD: the last lanes of a gang may hold no thread. PTX: groups may be cut off at the
                          grid's edge */
    uint32_t small;    /* grid and buffers stay below 2^31, buffers by SMALL_REACH */
    uint32_t rows;     /* a group's first dimension is a multiple of 32 */
    uint32_t multiple; /* SIMD: gangs of this many threads fill full groups; 0: 32 do. With `rows`, each lies
                          in one row or, if size[0] is known, takes whole rows of one plane */
    uint32_t size[3];  /* threads of a full group; 0: any. Codes for known sizes run full groups only, unless
                          they are masked. */
    uint32_t joined;   /* SIMD: groups have one thread; if the code lets them (image.joined), the launch joins
                          neighbouring groups to one */
    uint32_t most_threads; /* PTX: of a group, where its size is not known */
    uint32_t folded; /* PTX: more groups than the hardware's grid allows: they are numbered in one row */
    uint8_t aligned; /* PTX: buffers begin at multiples of BUFFER_ALIGNMENT */
    uint8_t by_rows; /* SIMD: enum by_rows. A gang lies in one row of a group if the code lets it
                        (image.by_rows), and the last of each row may hold fewer threads, whatever `masked`
                        says */
    uint8_t tested;  /* accesses are tested against the extents of their arrays */
    uint8_t also;    /* checked code: enum check_also (abi/check.h) */
    uint32_t coarse; /* PTX: one thread may do the work of several (image.coarse). 1, 2, 4: the grid has many
                        groups in its first, second, third dimension; COARSE_LINE: it has one dimension. 0: no
                        thread may */
    uint32_t distinct; /* SIMD, PTX: buffers that the kernel may write overlap no others */
    uint8_t
        inlined[SHAPE_MAX_INLINED]; /* PTX: by buffer index: its contents lie in the kernel's parameters
                                       (abi/cuda_parameters.h), 8 << n bytes of them; 0: behind an address */
};

#define COARSE_LINE 8

/* SHORT: rows of so few threads that only masks of 512 bits make up for the lanes without one. */
enum by_rows { NOT_BY_ROWS, BY_ROWS, BY_SHORT_ROWS };

/* Whether an image of this engine, compiled for this shape, runs every launch. The scalar engine's code does,
 * unless the shape is one of the SIMD engine: that specialises code to its shape before it refuses it, and
 * the scalar engine's code is generated from the specialised one. */
bool image_serves_all(uint32_t engine, const struct code_shape *shape);

/* Quick code gives the same bits as the best, is compiled sooner and runs more slowly (compiler/quick.c). It
 * exists only of some kernels and engines: where there is none, every effort means the best. */
enum compile_effort {
    COMPILE_BEST,
    COMPILE_QUICK_IF_LARGE, /* quick code if the best takes long to compile, judged by the kernel's size */
    COMPILE_QUICK,
    COMPILE_RECALL /* the best, and only if a cache has it: else NO_COMPILER. For device sources */
};

/* ABSENT: the function constant that guards the argument is false. */
enum binding_kind { BINDING_BUFFER = 1, BINDING_THREADGROUP = 2, BINDING_ATTRIBUTE = 3, BINDING_ABSENT = 4 };

/* One parameter of the kernel. All but `inlined` are those of __smelt::binding in the prelude. */
struct binding {
    int32_t kind;
    int32_t index;
    int32_t size; /* bytes of what is pointed to */
    int32_t align;
    int32_t writable;
    int32_t inlined; /* PTX: the bytes of its contents among the parameters: not 0 only where the shape asked
                        for it, which the code need not follow */
    int32_t type;    /* of an element, as smelt_dialect.h counts: BINDING_DTYPE, BINDING_COMPONENTS, … */
    int32_t unwritten; /* no store of the code reaches it, whatever its type allows; 0: not known */
};

#define BINDING_DTYPE(type) ((smelt_dtype)((type) & 255)) /* SMELT_NO_DTYPE for structures */
#define BINDING_COMPONENTS(type) ((type) >> 8 & 255)      /* of a vector; 1: a scalar */
#define BINDING_POINTER(type) ((type) >> 16 & 1)          /* else a reference or a value */

/* A tensor bound by the host takes up to three buffers: its elements at its own index; so many further on,
 * its layout, which is int64 extents, strides, and strides of its scales, each one per dimension; and its
 * scales. The bindings of the last two follow those of the parameters. The prelude has the same numbers. */
#define TENSOR_LAYOUT 32
#define TENSOR_SCALES 64
#define TENSOR_BUFFERS 96 /* buffer indexes below this */

/* The bytes of the layout of a tensor of this rank. */
static inline size_t tensor_layout_bytes(int32_t rank) {
    return (size_t)rank * 3 * sizeof(int64_t);
}

/* A parameter that is a tensor: __smelt::tensor_binding in the prelude. */
struct tensor_binding {
    int32_t parameter; /* its number */
    int32_t index;
    int32_t rank;
    int32_t element; /* a smelt_dtype or smelt_format */
    int32_t scales;  /* likewise; 0: it has none */
    int32_t expands; /* PTX: the code can use a copy of the matrix (abi/cuda_parameters.h), and writes neither
                        its elements nor its scales */
    int64_t most;    /* the largest number of its index type */
    int64_t extents[SMELT_MAX_DIMENSIONS]; /* dimension 0 first; -1: dynamic */
    int64_t blocks[SMELT_MAX_DIMENSIONS];  /* elements per scale */
};

/* The position of a simdgroup operation in the program: the positions of the loops around it from the outside
 * in, and its own. Lanes are ordered by comparing positions and, within the same loop, its iteration count:
 * see device/cpu/simdgroup.c. A thread is in one loop of a depth at a time, and has one count for each depth.
 */
#define SITE_MAX_DEPTH 64
struct site {
    int32_t depth; /* loops around the operation */
    int32_t position[SITE_MAX_DEPTH + 1];
};

#define IMAGE_MAX_BINDINGS 400

struct image {
    struct binding *bindings;
    int32_t binding_count; /* parameters, then what tensors need besides */
    struct tensor_binding *tensors;
    int32_t tensor_count;
    struct site *sites;
    int32_t site_count;
    uint64_t threadgroup_bytes;   /* static threadgroup memory */
    uint64_t threadgroup_filled;  /* the first of them: filled before each group (CPUs); the others are
                                     written before they are read, or never, and filled once a launch */
    uint64_t private_bytes;       /* of one thread */
    uint32_t max_threads;         /* max_total_threads_per_threadgroup; 0: not given */
    uint32_t required_threads[3]; /* required_threads_per_threadgroup; 0: not given */
    bool has_barrier;
    bool quick;         /* quick code (enum compile_effort): it runs every group of a launch of its shape, and
                           those cut off at the grid's edge, too, if the shape is masked */
    bool distinct;      /* the code relies on shape.distinct */
    bool runs_group;    /* SIMD: one call runs all gangs of a group, in order; without barriers */
    bool by_rows;       /* SIMD: gangs lie in rows of the group (compiler/passes/join.c) */
    bool joined;        /* the threads of a group are groups of one thread each (compiler/passes/join.c) */
    uint32_t coarse[3]; /* PTX: threads whose work one thread of the hardware does, in each dimension; 0, 0,
                           0: each does its own, and blocks are groups */
    uint32_t block[3];  /* … and then the threads of the hardware's blocks */
    bool alone;         /* PTX: threads do their own work in launches of any shape */
    bool early;         /* PTX: the code waits for the previous launch itself, and may start before its end */
    uint32_t expanded_tile; /* PTX: elements of the tile that a group multiplies by copies of tensors that
                               `expands`; 0: there are none */
    uint32_t log_words;     /* PTX: of the longest log call, with CUDA_LOG_HEADER; 0: no log calls */
    uint32_t value_count;   /* SIMD: values of which code could be compiled (compiler/passes/values.c), and
                               where   they lie */
    struct value_place values[VALUES_MAX];
    uint32_t engine;      /* the engine of the code: the scalar engine's if the SIMD engine refused */
    uint32_t lanes;       /* SIMD: threads of a gang, a multiple of 32 or a part of it */
    uint64_t stack_bytes; /* SIMD: the most that one call needs, with private arrays of all lanes */
    char *refusal;        /* a sentence: why the SIMD engine refused, or, of its code, why it
                             is not in the best form; NULL: neither */
    char *reduced;        /* which optimisation the kernel lacks because of its size; NULL: none */
    char *object; /* an ELF file, of a CPU relocatable; PTX: one, or text ended by 0, which object_size counts
                   */
    size_t object_size;
};

void image_free(struct image *image);

/* To and from one block of bytes, for caches and packages. A damaged block is SMELT_ERROR_FORMAT. */
smelt_status image_write(const struct image *image, char **bytes, size_t *size);
smelt_status image_read(const char *bytes, size_t size, struct image *image);

#endif
