/* A checked launch: the memory that its kernel may use, what is known of each byte, and the findings. Checked
 * code calls the functions of abi/check.h; the device calls those below. One thread of the host runs all
 * threadgroups of a checked launch, one after another. */
#ifndef SMELT_CHECK_CHECK_H
#define SMELT_CHECK_CHECK_H

#include "abi/check.h"
#include "abi/cpu_context.h"
#include "base/error.h"
#include "check/finding.h"

#include <stddef.h>

#define CHECK_MOST_THREADS 1024
#define CHECK_LANES 32

/* A bound argument. */
struct check_argument {
    char *base;  /* the address that the kernel gets */
    char *start; /* of its elements: lower, if strides are negative */
    uint64_t bytes;
    uint32_t element;  /* bytes of what the parameter points to, at least 1 */
    int32_t index;     /* [[buffer(index)]] */
    bool undefined;    /* an output that nobody has filled */
    const char *name;  /* of the parameter, "" if it has none; lives as long as the launch */
    const char *shape; /* of the array; "" if it has one dimension, or there is none. check_open copies it */
};

struct check;

struct check_launch {
    const char *kernel;
    uint32_t groups[3];                     /* of the grid */
    const struct check_argument *arguments; /* copied */
    int argument_count;
    const char
        *slot_names[CPU_MAX_THREADGROUP_SLOTS]; /* of [[threadgroup(i)]] arguments; NULL or "": unnamed */
    uint32_t also;         /* enum check_also: what the code looks for on request, and the checker is to */
    const char *constants; /* the code's own data */
    size_t constant_bytes;
    /* (optional) Completes a finding; false: it does not count. */
    bool (*accept)(const void *context, smelt_finding *finding);
    const void *accept_context;
};

/* OUT_OF_MEMORY. */
smelt_status check_open(const struct check_launch *launch, struct check **check);
/* NULL does nothing. */
void check_close(struct check *check);

/* A threadgroup begins; its memory is undefined again. slots: the sizes of [[threadgroup(i)]] arguments. */
struct check_group {
    uint32_t number; /* in the grid, x fastest */
    uint32_t position[3], size[3];
    char *memory; /* all threadgroup memory */
    size_t memory_bytes;
    char *const *slots; /* addresses, */
    const uint64_t *slot_bytes;
    int slot_count;
};
smelt_status check_begin_group(struct check *check, const struct check_group *group);

/* The calling thread of the host runs this kernel thread from now on; NULL: none. stack: where its private
 * variables lie; `fiber` numbers it. */
void check_enter(struct check *check, uint32_t thread, char *stack, size_t stack_bytes, int fiber);

/* Where the value of a shuffle comes from (prelude/metal_simdgroup): a lane; beyond the last or the first
 * one, where Metal leaves a lane its own value; a lane that no simdgroup or quad has, its number added. */
#define CHECK_OWN_VALUE CHECK_LANES
#define CHECK_MISSING_LANE CHECK_LANES

/* Lanes of a simdgroup, the threads from `first`, are about to get the results of one function: bits by
 * lane. */
struct check_lanes {
    enum check_lanes_function {
        CHECK_LANES_SHUFFLE,
        CHECK_LANES_VOTE,
        CHECK_LANES_COLLECTIVE, /* a reduction or scan */
        CHECK_LANES_PRODUCT,    /* of simdgroup matrices */
        CHECK_LANES_BARRIER     /* simdgroup_barrier */
    } function;
    enum check_scan { CHECK_NO_SCAN, CHECK_SCAN_INCLUSIVE, CHECK_SCAN_EXCLUSIVE } scan; /* collectives */
    uint32_t first, width;         /* lanes that perform it together: 32, or 4 of a quad */
    uint32_t active, exist;        /* those that take part; that the simdgroup has */
    uint32_t left;                 /* … and that have left by a return */
    uint32_t sources[CHECK_LANES]; /* of a shuffle, by active lane: where its value comes from */
};
void check_simdgroup(struct check *check, const struct check_lanes *lanes);

/* Threads of the group do not meet at a barrier. */
struct check_standing {
    uint32_t thread, line;
    const char *file; /* NULL: it has ended */
};
void check_barrier_missed(struct check *check, const struct check_standing *waiting,
                          const struct check_standing *other);

/* Elements in `lines` lines that the runtime accesses for the running thread, at a line of the user's.
 * strides: in bits. False: some lie outside of the array where the first one is. */
struct check_lines {
    char *start;
    uint64_t lines, elements; /* of a line */
    int64_t line_bits, element_bits;
    uint32_t width; /* bits of an element */
    bool written;
};
bool check_touch(struct check *check, const struct check_lines *lines, const char *file, int line);

/* The running thread is about to compute a product of tiles (abi/tile.h), at a line of the user's: which
 * elements of its result are undefined from now on. `complete`: it is computed; else, all have values, as
 * there was a finding. */
void check_product(struct check *check, const uint64_t *words, bool complete, const char *file, int line);

/* Memory of the runtime's own that checked code uses: undefined values are followed through it. */
void check_lend(struct check *check, char *start, size_t bytes);

/* After the last threadgroup: what nobody wrote, if all have run (`is_whole`). CHECK with the first finding's
 * message if there are any: they become the calling thread's (finding.h). */
smelt_status check_end(struct check *check, bool is_whole);

#endif
