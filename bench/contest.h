/* A contest: several variants do the same work into the same output. Each is checked before any is timed, and
 * all are timed in turn. */
#ifndef SMELT_BENCH_CONTEST_H
#define SMELT_BENCH_CONTEST_H

#include "bench/harness.h"

#define MAX_VARIANTS 12
#define MAX_LAUNCHES 4

struct contest;

struct variant {
    const char *name;
    /* Does the job once, or enqueues it; fails like a call of the library. */
    smelt_status (*run)(void *context);
    void *context;
    const char *anchor; /* the variant it is compared with; NULL: none */
    struct bench_bar bar;
    int most_rounds;               /* 0: all */
    const struct contest *contest; /* set by contest_enter */
};

/* What the device decides. */
struct contest_device {
    int rounds; /* of a usual contest */
    /* Runs the variant once into poisoned output, and compares. What is wrong goes to
     * `message`, with BENCH_WRONG_RESULT. It may lower most_rounds. */
    smelt_status (*check)(struct variant *variant, char *message, size_t size);
    smelt_status (*measure)(void *variant, double *seconds);
    const char *(*error)(void); /* tells of a failure */
};

/* Looks at the whole output, copied to the host; false: it is wrong, and `message` says how. */
typedef bool contest_check(void *context, const void *output, char *message, size_t size);

struct contest {
    const struct contest_device *device;
    struct bench *bench;
    const char *job;
    double work; /* as in struct bench_case; the GPU's floor is this many bytes at the speed of a copy */
    const char *work_unit;
    smelt_array *output; /* where every variant puts its result */
    /* On the CPU: float32, the same shape; errors are relative to values of at least `smallest` (0: 1). */
    const smelt_array *expected;
    double tolerance, smallest;
    /* On the GPU. */
    contest_check *check;
    void *check_context;
    int batch; /* runs between two events */
    /* Filled by the functions below. */
    smelt_status status; /* of what the contest itself needs */
    struct variant variants[MAX_VARIANTS];
    struct bench_case cases[2 * MAX_VARIANTS];
    int count, case_count;
};

/* Checks the variant; if it is right, it takes part, else it is reported as failed. `variant.context` must
 * live until contest_run. */
void contest_enter(struct contest *contest, struct variant variant);

/* The figures of the variant entered last once more, compared with another one. Nothing if either is absent.
 */
void contest_compare(struct contest *contest, const char *variant, const char *anchor, struct bench_bar bar);

/* A case that is no rival: it is timed in the same rounds, but has no output. */
void contest_add(struct contest *contest, struct bench_case one);

/* Reports why a variant does not take part. */
void contest_absent(struct contest *contest, const char *variant, const char *why);

/* Times all that were entered. */
smelt_status contest_run(struct contest *contest);

/* ---- Launches that together do a job, one after another, through the public API. */

struct launches {
    smelt_function *functions[MAX_LAUNCHES];
    smelt_dispatch_desc descs[MAX_LAUNCHES];
    int count;
};

/* A kernel function of a text. */
smelt_status function_create(const char *file, const char *text, const char *name, smelt_function **function);

/* Appends one; launches_release is due in any case. */
smelt_status launches_add(struct launches *launches, const char *file, const char *text, const char *name,
                          const smelt_dispatch_desc *desc);
smelt_status launches_run(void *launches); /* a variant's run */
void launches_release(struct launches *launches);

#endif
