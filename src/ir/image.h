/* What a compiled entry is, beside its machine code: everything a device needs to launch it. No LLVM in
 * sight. */
#ifndef SMELT_IR_IMAGE_H
#define SMELT_IR_IMAGE_H

#include "base/error.h"

enum binding_kind { BINDING_BUFFER = 1, BINDING_THREADGROUP = 2, BINDING_ATTRIBUTE = 3 };

/* One parameter of the kernel. The layout is that of __smelt::binding in the prelude. */
struct binding {
    int32_t kind;
    int32_t index;
    int32_t size; /* bytes of what is pointed to */
    int32_t align;
    int32_t writable;
};

/* Where a simdgroup operation stands in the program, as a path of alternating positions and loop numbers from
 * the outside in: position, loop, position, loop, …, position. Lanes are ordered by comparing positions and,
 * where they stand in the same loop, its iteration count: see cpu/simdgroup.c. */
#define SITE_MAX_DEPTH 12
struct site {
    int32_t depth; /* loops around the operation */
    int32_t position[SITE_MAX_DEPTH + 1];
    int32_t loop[SITE_MAX_DEPTH]; /* index into the thread's iteration counts */
};

#define IMAGE_MAX_BINDINGS 400
#define IMAGE_MAX_LOOPS 48

struct image {
    struct binding *bindings;
    int32_t binding_count;
    struct site *sites;
    int32_t site_count;
    uint64_t threadgroup_bytes; /* static threadgroup memory */
    uint64_t private_bytes;     /* of one thread */
    uint32_t max_threads;       /* max_total_threads_per_threadgroup; 0: not given */
    bool has_barrier;
    char *object; /* an ELF relocatable file */
    size_t object_size;
};

void image_free(struct image *image);

/* To and from one block of bytes, for caches and packages. A damaged block is SMELT_ERROR_FORMAT. */
smelt_status image_write(const struct image *image, char **bytes, size_t *size);
smelt_status image_read(const char *bytes, size_t size, struct image *image);

#endif
