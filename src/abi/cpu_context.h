/* The part of the scalar engine that generated code uses: the contexts of a thread and of its threadgroup,
 * and the functions it calls. lower.c compiles these offsets into code: the layout is part of the image
 * version.
 *
 * Packages hold code of other builds of smelt. It runs only if this file, log_words.h, runtime_symbols.c and
 * the image are identical: a change of this contract must change one of them. */
#ifndef SMELT_ABI_CPU_CONTEXT_H
#define SMELT_ABI_CPU_CONTEXT_H

#include "abi/image.h"
#include "abi/simdgroup.h"

#define CPU_MAX_SLOTS 400
#define CPU_MAX_THREADGROUP_SLOTS 31

/* The target of calls through a pointer to no function of the program: an unmapped address
 * (src/compiler/passes/indirect.c). */
#define SMELT_NO_FUNCTION 1

/* The memory that accesses through an argument may touch, with what comparisons need, so that they take no
 * arithmetic. counts[i]: how many of its addresses have 1 << i bytes of it. bound[j][i]: of those, how many
 * lie a multiple of 1 << j bytes behind the start, if that is the argument's address; otherwise 0. With
 * bound[j], indexes of elements of 1 << j bytes are compared, and with bound[0], distances. */
#define EXTENT_COUNTS 15
#define EXTENT_SCALES 5 /* up to float4 */
struct buffer_extent {
    uint64_t start, bytes;
    uint64_t counts[EXTENT_COUNTS], bound[EXTENT_SCALES][EXTENT_COUNTS];
};

/* One per worker of the pool, refilled for each threadgroup. */
struct group_context {
    uint32_t position[3];      /* of the group in the grid */
    uint32_t size[3];          /* threads of this group: smaller at the edge */
    uint32_t dispatch_size[3]; /* threads of a full group */
    uint32_t grid[3];          /* threads */
    uint32_t groups[3];        /* groups */
    uint32_t simdgroup_count;
    void *const *buffers;                               /* by index */
    char *threadgroup_memory;                           /* static variables */
    void *threadgroup_slots[CPU_MAX_THREADGROUP_SLOTS]; /* [[threadgroup(i)]] */
    const uint32_t *stop;                               /* atomic: not 0 when the launch must end */
    const struct buffer_extent *extents;                /* by index, of buffers */
    uint64_t threadgroup_slot_bytes[CPU_MAX_THREADGROUP_SLOTS];
    uint64_t answers;                   /* of the code's questions_function */
    const struct gang_context *running; /* set by code that runs all gangs of a group (image.runs_group) */
};

/* The accesses that one test in the code stands for (src/compiler/bounds), in the order of the program:
 * constants of the code, side by side. */
enum access_object {
    ACCESS_BUFFER,
    ACCESS_THREADGROUP_ARGUMENT,
    ACCESS_VARIABLE,
    ACCESS_PRIVATE, /* addresses are offsets in the array */
    ACCESS_UNKNOWN
};
struct access_site {
    const char *file;
    const char *name; /* of a variable; NULL: of an argument, or of a private one that lost it */
    uint64_t offset;  /* from the lowest address that the test covers */
    uint64_t bytes;
    uint64_t wrap; /* bytes from an index that code took as signed to the same one as unsigned; or 0 */
    uint32_t line;
    uint32_t object;  /* enum access_object */
    uint32_t slot;    /* of an argument */
    uint32_t element; /* bytes of a variable's elements */
    uint32_t writes;
    uint32_t left; /* how many sites follow */
};

/* One for each thread of a threadgroup. Generated code uses this part; struct thread in scalar.h extends it.
 */
struct thread_context {
    struct group_context *group;
    uint32_t position[3]; /* in the threadgroup */
    uint32_t index, lane, simdgroup;
    uint32_t returned;                   /* left by an explicit return */
    uint32_t iterations[SITE_MAX_DEPTH]; /* of the loops around it, from the outside in */
};

/* A simdgroup operation, packed into 32 bits for the call. */
enum simd_type { SIMD_I32, SIMD_I64, SIMD_F32 };

#define SIMD_CODE(kind, type, operation, width) \
    ((uint32_t)(kind) | (uint32_t)(type) << 4 | (uint32_t)(operation) << 8 | (uint32_t)(width) << 16)
#define SIMD_CODE_KIND(code) ((enum simd_kind)((code) & 15))
#define SIMD_CODE_TYPE(code) ((enum simd_type)((code) >> 4 & 15))
#define SIMD_CODE_OPERATION(code) ((code) >> 8 & 255)
#define SIMD_CODE_WIDTH(code) ((code) >> 16)

/* A bit of a barrier's line: it orders no memory (mem_none), and simdgroups that have ended do not hold it
 * up. */
#define BARRIER_ORDERS_NOTHING (UINT32_C(1) << 31)
#define BARRIER_LINE(line) ((line) & ~BARRIER_ORDERS_NOTHING)

/* The functions that generated code calls. */
void smelt_runtime_barrier(struct thread_context *context, uint32_t line, const char *file);
uint64_t smelt_runtime_simdgroup(struct thread_context *context, uint32_t site, uint32_t code,
                                 uint32_t argument, uint64_t value);
void smelt_runtime_stop(struct thread_context *context);
/* `count` words of a log call: see log_words.h. */
void smelt_runtime_log(struct thread_context *context, uint32_t count, const uint64_t *words);
/* A product of tiles by `words`, at most TILE_WORDS: see tile.h. */
void smelt_runtime_tile(struct thread_context *context, uint32_t count, const uint64_t *words);
/* Memory for tiles in slots, TILE_SIMDGROUP_BYTES for each simdgroup of a threadgroup. */
void *smelt_runtime_tile_memory(struct thread_context *context);
/* One of these accesses, the lowest at `address`, misses the `bytes` bytes from `start` on: ends the launch.
 * Of either engine. */
__attribute__((noreturn)) void smelt_runtime_outside(const struct access_site *sites, uint64_t start,
                                                     uint64_t bytes, uint64_t address);

/* A compiled entry: runs one thread. */
typedef void kernel_function(struct thread_context *context);

/* ---- The SIMD engine: one call runs a gang, `lanes` neighbouring threads of a threadgroup as vector code.
 */

#define GANG_MAX_LANES 256

/* One for each gang of the running threadgroup. */
struct gang_context {
    struct group_context *group;
    uint32_t first;                         /* index in the threadgroup of the thread in lane 0 */
    uint32_t count;                         /* lanes that hold a thread; unmasked code assumes all */
    uint32_t position[3];                   /* in the threadgroup, of the thread in lane 0 */
    uint32_t returned[GANG_MAX_LANES / 32]; /* one bit per lane: it left by an explicit return */
    struct gang_context *next;              /* of the group; NULL: this is the last */
};

/* A compiled gang: runs its threads to their end, and with image.runs_group those of all gangs after it. */
typedef void gang_function(struct gang_context *context);

/* What code asks about a launch before its first group: bit n is set if accesses of question n may be outside
 * their array in some thread (src/compiler/bounds/launch.c). */
typedef uint64_t questions_function(const struct group_context *group);

/* All lanes of the gang that have not returned wait at one barrier, until all gangs do. */
void smelt_runtime_gang_barrier(struct gang_context *context, uint32_t line, const char *file);
/* Some lanes (one bit per lane) reach a barrier in control flow that may differ by lane. 1: together with the
 * returned lanes they are the whole gang, or all of its simdgroups that have not ended, at a barrier that
 * orders no memory; they have waited at the barrier; 0: they are recorded as waiting in vain, and the code
 * must end them while the other lanes continue. */
uint32_t smelt_runtime_gang_arrive(struct gang_context *context, uint32_t line, const char *file,
                                   const uint32_t *lanes);
/* The log call of some lanes (one bit per lane). Word w is the same for all lanes, shared[w], unless bit w of
 * `varies` is set: then a lane's word is by_lane[v * gang's lanes + lane], v counting such words. */
void smelt_runtime_gang_log(struct gang_context *context, const uint32_t *lanes, uint32_t count,
                            const uint64_t *varies, const uint64_t *shared, const uint64_t *by_lane);
/* Products of tiles, one for each of some lanes, whose words are passed in the same way. */
void smelt_runtime_gang_tile(struct gang_context *context, const uint32_t *lanes, uint32_t count,
                             const uint64_t *varies, const uint64_t *shared, const uint64_t *by_lane);
void *smelt_runtime_gang_tile_memory(struct gang_context *context);
/* A block of products of simdgroup matrices (matrix_block.h). */
void smelt_runtime_gang_matrices(const uint64_t *block);
/* The stop flag was set: leaves the gang for good. */
void smelt_runtime_gang_stop(struct gang_context *context);

#endif
