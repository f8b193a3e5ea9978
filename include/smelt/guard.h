/* guard.h — guarded launches: a time-out, health flags, finite results, other devices, a fallback.
 *
 * Status, ownership, defaults and units are those of smelt.h. docs/linalg.md shows how the factorisations
 * report; docs/python-launching.md has the same in Python.
 */
#ifndef SMELT_GUARD_H
#define SMELT_GUARD_H

#include <smelt/smelt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Flags: sixteen floats in which a kernel reports its progress and errors. */

#define SMELT_FLAG_COUNT 16

typedef enum smelt_flag {
    SMELT_FLAG_START = 0, /* 1 once the checks before the work have passed */
    SMELT_FLAG_ROWS = 1,  /* the matrix: m, n, min(m, n) */
    SMELT_FLAG_COLUMNS = 2,
    SMELT_FLAG_RANK = 3,
    SMELT_FLAG_GROUP = 5, /* threads per group, threads in all, work per thread */
    SMELT_FLAG_THREADS = 6,
    SMELT_FLAG_WORK = 7,
    SMELT_FLAG_VALUES = 8, /* to 11: intermediate values, chosen by the kernel */
    SMELT_FLAG_ITERATIONS = 12,
    SMELT_FLAG_ERROR = 13, /* a code; 0: none */
    SMELT_FLAG_ERROR_VALUE = 14,
    SMELT_FLAG_SUCCESS = 15 /* 1 at the very end, if all went well */
} smelt_flag;

/* Metal text with functions that fill the flags, for a kernel's header: dbg_preflight, dbg_fail, dbg_finite,
 * dbg_succeed … */
SMELT_API const char *smelt_flags_header(void);

/* The meaning of an error code. Lists end with a NULL meaning. 1 to 5 are predefined: too large, too much
 * work, too many iterations, and two kinds of numerical instability. */
typedef struct smelt_code {
    int code;
    const char *meaning;
} smelt_code;

/* Reads flags of shape (…, 16), float32. HEALTH describes the first set that is not a success: an error code,
 * a kernel that never started or did not finish, or flags that were never written. `name` is the kernel's;
 * codes may be NULL. *failed, unless NULL, is the number of sets that failed. INVALID_ARGUMENT for other
 * arrays. Waits for the device. */
SMELT_API smelt_status smelt_flags_check(smelt_array *flags, const char *name, const smelt_code *codes,
                                         int64_t *failed);

/* HEALTH if an array of floats holds NaN or infinity: how many, the first and where. `name` is the array's.
 * Other dtypes are finite. Waits for the device. */
SMELT_API smelt_status smelt_check_finite(smelt_array *array, const char *name);

/* ---- Guards. */

#define SMELT_MAX_RETRIES 4

/* What became of a guarded run. */
typedef struct smelt_guard_report {
    int attempts;        /* runs of the kernel */
    char device[32];     /* of the last one */
    bool fell_back;      /* the fallback computed the result */
    smelt_status status; /* of the first failure; OK: there was none */
    char message[512];   /* its message */
    uint64_t reserved[8];
} smelt_guard_report;

/* A failure is any status but INVALID_ARGUMENT and INTERRUPTED, which pass through: mistakes and wishes of
 * the caller. After a failure, the run is tried on `devices`, one after the other, then `fallback` computes
 * the result; without one, the first failure is returned. A warning is logged of what was done, unless there
 * is a report. */
typedef struct smelt_guard {
    const char *name; /* of the kernel, for messages; NULL: "kernel" */
    double timeout;   /* seconds for each attempt, compiling included; 0: none */
    /* (optional) Refuses inputs that the kernel cannot handle, before it runs. Its failure leads to the
     * fallback at once: other devices get the same inputs. It records its message with smelt_guard_refuse. */
    smelt_status (*precondition)(void *context);
    int flags; /* 1 + the number of the output (kernels) or buffer (functions) that holds flags; 0: none */
    const smelt_code *codes; /* of the flags; may be NULL */
    bool finite;             /* float outputs must be finite. Of functions: the buffers in `outputs` */
    uint32_t outputs;        /* functions: bit i: buffer i is a result */
    const char *devices[SMELT_MAX_RETRIES]; /* to retry on, ended by NULL */
    /* (optional) Computes the results: as many new arrays as the kernel has outputs, or, for functions, into
     * the arrays that are bound. */
    smelt_status (*fallback)(void *context, smelt_array **outputs);
    void *context;              /* of both */
    smelt_guard_report *report; /* filled if given, also on failure */
    uint64_t reserved[8];
} smelt_guard;

/* Records a message and returns HEALTH, for preconditions and fallbacks. */
SMELT_API smelt_status smelt_guard_refuse(const char *message);

/* smelt_kernel_run under a guard. desc->device is the first device; its time-out is the guard's if that is
 * shorter. */
SMELT_API smelt_status smelt_kernel_run_guarded(smelt_kernel *kernel, const smelt_run_desc *desc,
                                                const smelt_guard *guard, smelt_array **outputs);

/* smelt_function_run under a guard. The function runs again after a failure: it must not read what it writes.
 */
SMELT_API smelt_status smelt_function_run_guarded(smelt_function *function, const smelt_dispatch_desc *desc,
                                                  const smelt_guard *guard);

/* Any work under a guard: `attempt` runs it on `device` (NULL: the default) within `timeout` seconds (0: any
 * time) and stores `count` new arrays. */
typedef smelt_status smelt_attempt(void *context, const char *device, double timeout, smelt_array **outputs);
SMELT_API smelt_status smelt_guard_run(const smelt_guard *guard, const char *device, smelt_attempt *attempt,
                                       void *context, int count, smelt_array **outputs);

#ifdef __cplusplus
}
#endif
#endif
