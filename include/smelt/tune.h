/* Tuning: of several ways to do a job, the fastest on this machine, found once and remembered.
 *
 * Results lie in `tuning.sqlite` in the cache folder, under a fingerprint of the machine. Python's
 * smelt.autotune, the command `smelt tune` and programs share them. Processes may tune at the same time: each
 * keeps the results of the others. Results are stored through libsqlite3.so.0; without it, they are lost with
 * the process, and one warning says so. */
#ifndef SMELT_TUNE_H
#define SMELT_TUNE_H

#include <smelt/smelt.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SMELT_MAX_TUNE_PARAMETERS 8
#define SMELT_MAX_TUNE_CANDIDATES 4096

/* ---- A search over candidates of any kind. ---------------------------------------------------- */

/* A candidate that was tried, or skipped. The strings live as long as the call. */
typedef struct smelt_tune_progress {
    const char *name;      /* of the search */
    const char *candidate; /* its words */
    int tried, count;      /* candidates so far, and all */
    double seconds;        /* the candidate's; 0: it was skipped */
    const char *note;      /* why it was skipped; NULL: it was not */
    const char *best;      /* the words of the best so far; NULL: none works yet */
    double best_seconds;
    uint64_t reserved[4];
} smelt_tune_progress;

typedef struct smelt_tune_desc {
    const char *name;              /* what is tuned; messages show it as far as the first space */
    const char *key;               /* what the choice depends on: sizes, dtypes; NULL: nothing */
    const char *device;            /* default "cpu" */
    const char *const *candidates; /* `count` different words, which are stored: "TILE=16,UNROLL=2" */
    int count;
    /* Does the job once with candidate `index`, or enqueues it on the device. A status other than SMELT_OK
     * skips the candidate, with smelt_error() as the note; INTERRUPTED ends the search. */
    smelt_status (*run)(int index, void *context);
    /* Whether the result of the last run is right; NULL: it is. */
    bool (*check)(int index, void *context);
    /* Why the last run failed; NULL: smelt_error() tells. */
    const char *(*error)(void *context);
    void (*progress)(const smelt_tune_progress *progress, void *context); /* may be NULL */
    void *context;
    double budget;              /* seconds; 0: 30. At least one candidate is tried */
    bool again;                 /* search even if there is a stored result */
    smelt_interrupt *interrupt; /* ends the search when it is raised; may be NULL */
    uint64_t reserved[8];
} smelt_tune_desc;

typedef struct smelt_tune_result {
    int index;      /* of the chosen candidate */
    double seconds; /* of a run */
    bool stored;    /* the result of an earlier search: nothing ran */
    int tried;      /* candidates that ran, were right and were measured */
    uint64_t reserved[4];
} smelt_tune_result;

/* The stored candidate for (machine, name, key), or the fastest of those that work. Each is run once for its
 * code and checked, then timed; one that takes three times as long as the best is skipped. The three best are
 * timed again in turn. Candidates that the budget leaves no time for are skipped. An interrupted search
 * stores nothing. Errors: INVALID_ARGUMENT, NO_DEVICE, INTERRUPTED, OUT_OF_MEMORY; if no candidate works, the
 * first one's status. */
SMELT_API smelt_status smelt_tune(const smelt_tune_desc *desc, smelt_tune_result *result);

/* ---- Spaces of named parameters. --------------------------------------------------------------- */

/* Values to try. The name is a template parameter of a kernel or a function constant of a library; "threads"
 * stands for the threads per threadgroup along x. */
typedef struct smelt_tune_parameter {
    const char *name; /* NULL ends a list */
    const int64_t *values;
    int count;
} smelt_tune_parameter;

typedef struct smelt_tune_space {
    smelt_tune_parameter parameters[SMELT_MAX_TUNE_PARAMETERS + 1]; /* every combination is a candidate */
    const char *key; /* further words of the key; may be NULL */
    /* Right results by output (kernel) or buffer (function); NULL: not checked. */
    smelt_array *expected[SMELT_MAX_BUFFERS];
    double tolerance; /* |result - expected| <= tolerance * (1 + |expected|); 0: 1e-3 */
    /* Sets what depends on the values in `desc`, the candidate's smelt_run_desc or smelt_dispatch_desc:
     * groups, for example. May be NULL. */
    void (*adapt)(const int64_t *values, void *desc, void *context);
    void (*progress)(const smelt_tune_progress *progress, void *context); /* may be NULL */
    void *context;
    double budget;
    bool again;
    uint64_t reserved[8];
} smelt_tune_space;

/* The fastest values for a run of a kernel: `values` receives one per parameter, and `result` (may be NULL)
 * how they were found. The choice is stored for the kernel's text, the space, the shapes and dtypes of its
 * arrays, and the grid; texts that it includes do not count. The run's time-out and interrupt apply to each
 * run. INVALID_ARGUMENT for a space without parameters or with too many combinations; else as smelt_tune. */
SMELT_API smelt_status smelt_tune_kernel(smelt_kernel *kernel, const smelt_run_desc *run,
                                         const smelt_tune_space *space, int64_t *values,
                                         smelt_tune_result *result);

/* The same for a function of a library. Buffers whose results are checked have their first contents again
 * before each checked run. Buffers keep what the last run wrote. */
SMELT_API smelt_status smelt_tune_function(smelt_library *library, const smelt_function_desc *function,
                                           const smelt_dispatch_desc *dispatch, const smelt_tune_space *space,
                                           int64_t *values, smelt_tune_result *result);

/* ---- Operations that smelt ships. --------------------------------------------------------------- */

/* A job of an operation: "matmul" (sizes: rows, columns, depth) or "attention" (batches times heads, rows,
 * keys, size of a head). */
typedef struct smelt_tune_job {
    const char *operation;
    const char *device; /* default "cpu" */
    smelt_dtype dtype;  /* float32, float16 or bfloat16 */
    int64_t sizes[4];
    void (*progress)(const smelt_tune_progress *progress, void *context); /* may be NULL */
    void *context;
    double budget;
    bool again;
    smelt_interrupt *interrupt;
    uint64_t reserved[8];
} smelt_tune_job;

/* Finds the fastest setting for jobs of this dtype whose sizes have the same next power of two; the operation
 * uses it from then on, in this and later processes. `words` (may be NULL) receives the choice, to be freed
 * with smelt_free: the rows and columns of a tile, "64,128"; for matmul on GPUs also the threads of a
 * threadgroup and the parts of the depth, "64,128,64,4". Zeros are the operation's own choice, which is
 * always a candidate. Tiles do not change the result of a matmul; parts of the depth, and the tiles of
 * attention, may change its last bits. Errors: as smelt_tune. */
SMELT_API smelt_status smelt_tune_operation(const smelt_tune_job *job, char **words,
                                            smelt_tune_result *result);

/* The operations, by number: their names, and what their sizes mean in words ("rows, columns, depth"; may be
 * NULL). NULL past the last. */
SMELT_API const char *smelt_tune_operation_name(int index, const char **sizes);

/* ---- Stored results. ---------------------------------------------------------------------------- */

typedef struct smelt_tune_entry {
    const char *machine, *name, *key, *choice;
    double seconds;
    bool here; /* of a device of this machine, as it is now */
    uint64_t reserved[4];
} smelt_tune_entry;

/* Calls `entry` for each stored result. IO if the file cannot be read. */
SMELT_API smelt_status smelt_tune_list(void (*entry)(const smelt_tune_entry *entry, void *context),
                                       void *context);

/* Removes all stored results. */
SMELT_API smelt_status smelt_tune_forget(void);

#ifdef __cplusplus
}
#endif

#endif
