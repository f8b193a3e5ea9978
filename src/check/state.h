/* The state of a checked launch, for the files of this folder. */
#ifndef SMELT_CHECK_STATE_H
#define SMELT_CHECK_STATE_H

#include "check/check.h"

/* ---- Memory (memory.c). */

/* Accesses of four bytes of memory, each packed into 64 bits (race.c); 0: none. */
struct cell {
    uint64_t writer, readers[2];
};

/* Memory without gaps: that of arguments that touch each other, or of a threadgroup. */
struct region {
    char *start, *end;
    char *shadow;
    uint32_t *origins;
    struct cell *cells;
    struct cell *planes[3]; /* of the bytes 1 to 3 of words (race.c); NULL: not needed yet */
    bool has_parts;         /* parts of words were accessed */
};

/* The private variables of the threads that run on a fiber. */
struct stack {
    char *start, *end;
    char *shadow;
    uint32_t *origins;
};

#define MOST_REGIONS 512

/* The first argument of an index, and its region. NULL: there is none, or it has no bytes. */
struct bound {
    const struct check_argument *argument;
    struct region *region;
};

#define MOST_BOUND 64

/* ---- Threads (race.c). Memory of a kind is put in order by barriers that name it. */

enum memory_kind { DEVICE_MEMORY, THREADGROUP_MEMORY, MEMORY_KINDS };

/* The shadow of a value. */
struct shared_value {
    uint64_t shadow;
    uint32_t origin;
};

struct thread_state {
    uint32_t barriers[MEMORY_KINDS];           /* of the threadgroup, passed; … */
    uint32_t simdgroup_barriers[MEMORY_KINDS]; /* of the simdgroup */
    uint32_t all_barriers;                     /* of the threadgroup, whatever memory they name */
    uint32_t fence[MEMORY_KINDS];              /* the number of its last one; 0: none */
    uint32_t interval[MEMORY_KINDS];           /* where it is; 0: to be found */
    const struct check_site *barrier;          /* the site of the last one that it reached; NULL: none */
    /* At a simdgroup function (simdgroup.c): its place, and the shadow of what other lanes may take. */
    const struct check_site *site;
    struct shared_value shared[CHECK_MOST_SHARED];
};

/* What threads of a simdgroup do between two barriers. */
struct interval {
    enum memory_kind kind;
    uint32_t group, simdgroup;
    uint32_t barriers, simdgroup_barriers, all_barriers;
    uint32_t fence, fences; /* the thread's last one; how many all threads had called at the start */
};

/* What an access is meant for. */
struct access {
    const char *base; /* NULL: not known */
    uint64_t extent;
    const char *first; /* the element that has index 0, if it is not the one at `base` */
    const char *name;  /* NULL: not known */
    uint32_t element;  /* bytes */
    const char *shape; /* as in check_argument; NULL: not an argument */
};

/* ---- Undefined values (undefined.c). Where one comes from, and what `what` is. */

enum origin_kind {
    ORIGIN_HELD,       /* a load out of bounds, or a lane that is not there: its struct finding */
    ORIGIN_VARIABLE,   /* the site of its declaration */
    ORIGIN_ARRAY,      /* a private array: its name */
    ORIGIN_ARGUMENT,   /* an output: its struct check_argument */
    ORIGIN_THREADGROUP /* the name of the array; NULL: not known yet */
};

struct origin {
    enum origin_kind kind;
    const void *what;
};

#define RECENT_ORIGINS 256

/* ---- The launch. */

/* A place that only its line tells. */
struct line_site {
    struct line_site *next;
    struct check_site site;
};

/* Two writes without order, of which the second is about to happen: one that changes nothing is not a
 * finding.
 */
#define MOST_WRITTEN 64
struct doubt {
    char *address; /* NULL: there is none */
    uint64_t bytes, before, now;
    char old[MOST_WRITTEN];
    struct access access;
};

/* No access is longer: private arrays are much shorter. */
#define SCRATCH_BYTES ((size_t)16 << 20)

struct check {
    struct check_launch launch;
    struct check_argument *arguments;
    struct region regions[MOST_REGIONS]; /* of device memory, by address */
    int region_count;
    struct region *last;            /* that was found */
    struct bound bound[MOST_BOUND]; /* by [[buffer(index)]] */
    struct region threadgroup;
    struct check_group group;
    const char *slot; /* the [[threadgroup(i)]] argument that was found last; NULL: none */
    uint64_t slot_bytes;
    uint32_t fences[MEMORY_KINDS]; /* called so far, by all threads */
    bool has_group_fences;         /* one of them orders device memory for all threadgroups */

    uint32_t thread;
    struct thread_state threads[CHECK_MOST_THREADS];
    struct stack stacks[CHECK_MOST_THREADS]; /* by fiber */
    struct stack *stack;                     /* of the running thread */
    struct check_parameters *parameters[CHECK_MOST_THREADS];

    struct interval *intervals; /* from 1 */
    uint32_t interval_count, interval_room;
    uint32_t latest[CHECK_MOST_THREADS / CHECK_LANES][MEMORY_KINDS];

    const struct check_site **sites; /* by number, those that were met */
    uint32_t site_room;

    struct origin *origins; /* by number from 1 */
    uint32_t origin_count, origin_room;
    uint32_t recent_origins[RECENT_ORIGINS]; /* by a hash of `what`; 0: none */

    struct advice *advice; /* advice.c; NULL: none is wanted */

    struct access now; /* the running one */
    struct doubt doubt;
    struct stack elsewhere;         /* for the shadow of memory that nobody follows: constants of the code */
    struct check_parameters *spare; /* where there is no memory for a thread's own */
    struct stack scratch;           /* for accesses that have no memory */
    struct stack lent;              /* the runtime's memory that the code uses (check_lend) */
    struct line_site *lines;
    bool out_of_memory;
    struct findings *findings;
};

/* Of the calling thread of the host, while it runs checked code. */
extern _Thread_local struct check *check_this __attribute__((tls_model("initial-exec")));

/* memory.c */
smelt_status memories_open(struct check *check);
void memories_close(struct check *check);
struct region *memories_region(struct check *check, const char *address); /* NULL: none */
/* The first argument that contains an address; the one with this [[buffer(index)]]. NULL: none. */
const struct check_argument *memories_argument(const struct check *check, const char *address);
const struct check_argument *memories_indexed(const struct check *check, int32_t index);
smelt_status memories_begin_group(struct check *check);
/* As many cells as a region has words; NULL: no memory. The region frees them. */
struct cell *memories_cells(const struct region *region);
/* The shadow of `bytes` bytes; false: no memory, or none at `start`. */
bool memories_open_stack(struct stack *stack, char *start, size_t bytes);
void memories_close_stack(struct stack *stack);
smelt_status memories_enter_stack(struct check *check, int fiber, char *start, size_t bytes);
/* Zeroed, of pages that are allocated when they are touched; NULL: no memory. */
void *memories_map(size_t bytes);
void memories_unmap(void *start, size_t bytes);

/* race.c */
void race_access(struct check *check, struct region *region, enum memory_kind kind, char *address,
                 uint64_t bytes, enum check_access access, const struct check_site *site);
/* The fast path of race_access. False: the access may race, and race_access must judge it; part of it may be
 * noted already. */
bool race_usual(struct check *check, struct region *region, enum memory_kind kind, char *address,
                uint64_t bytes, enum check_access access, const struct check_site *site);
void race_begin_group(struct check *check);
/* Before anything else happens: was the write in doubt one that changed something? */
void race_settle(struct check *check);

/* Whether the last write there was another thread's. */
bool race_changed_by_other(const struct check *check, const struct region *region, const char *address);

/* advice.c */
bool advice_open(struct check *check); /* false: out of memory */
void advice_close(struct check *check);
void advice_begin_group(struct check *check, const struct check_group *group);
void advice_use(struct check *check, const struct check_argument *argument);
/* An access inside its array; only where advice is wanted. */
void advice_access(struct check *check, const char *address, uint64_t bytes, enum check_access access,
                   enum check_space space, const struct check_site *site);
void advice_end(struct check *check);

/* undefined.c */
/* Sets the shadow of memory: undefined since `origin`. */
void undefined_mark(char *shadow, uint32_t *origins, size_t offset, uint64_t bytes, uint32_t origin);
/* The number of an origin, new or known. */
uint32_t undefined_origin(struct check *check, enum origin_kind kind, const void *what);
/* Whether some of the bits that `mask` has in each of these bytes are undefined, and the origin of the first.
 */
bool undefined_in(char *address, uint64_t bytes, unsigned char mask, uint32_t *origin);
/* The bytes are undefined since `origin`. */
void undefined_set(char *address, uint64_t bytes, uint32_t origin);
/* `what` is the use of a value: "the kernel stores". */
void undefined_report(struct check *check, uint32_t origin, const struct check_site *site, const char *what);
void undefined_end(struct check *check);

/* access.c */
/* Of a line without columns; the same one each time. NULL: out of memory. */
const struct check_site *check_line_site(struct check *check, const char *file, int line);

/* check.c */
/* Keeps the site of a number. */
void check_meet(struct check *check, const struct check_site *site);
/* Fills in who and where: the running thread. */
void check_place(struct check *check, smelt_finding *finding);
void check_position(const struct check *check, uint32_t thread, uint32_t position[3]);
/* Fills in the argument or variable that the running access is meant for, and the index there of the element
 * at an address, if it is known. */
void check_name(struct check *check, const char *address, smelt_finding *finding);

#endif
