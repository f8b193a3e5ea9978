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
    /* Runs the job once, or enqueues it; fails like a call of the library. */
    smelt_status (*run)(void *context);
    void *context;
    const char *anchor; /* the variant it is compared with; NULL: none */
    struct bench_bar bar;
    int most_rounds;               /* 0: all */
    const struct contest *contest; /* set by contest_enter */
};

/* The device's part of a contest. */
struct contest_device {
    int rounds; /* of a usual contest */
    /* Runs the variant once into poisoned output, and compares. A wrong result is BENCH_WRONG_RESULT with a
     * `message`. It may lower most_rounds. */
    smelt_status (*check)(struct variant *variant, char *message, size_t size);
    smelt_status (*measure)(void *variant, double *seconds);
    const char *(*error)(void); /* tells of a failure */
};

/* Checks the whole output, copied to the host; false: it is wrong, and `message` describes the error. */
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

/* Checks the variant and enters it if its result is correct; otherwise reports it as failed.
 * `variant.context` must live until contest_run. */
void contest_enter(struct contest *contest, struct variant variant);

/* Repeats the figures of the last variant, compared with another one. Does nothing if either is absent. */
void contest_compare(struct contest *contest, const char *variant, const char *anchor, struct bench_bar bar);

/* Adds a case without output that is timed in the same rounds. */
void contest_add(struct contest *contest, struct bench_case one);

/* Reports why a variant does not take part. */
void contest_absent(struct contest *contest, const char *variant, const char *why);

/* Times all entered variants. */
smelt_status contest_run(struct contest *contest);

/* ---- Launches that together do a job, in sequence, through the public API. */

struct launches {
    smelt_function *functions[MAX_LAUNCHES];
    smelt_dispatch_desc descs[MAX_LAUNCHES];
    int count;
};

/* A kernel function of a text. */
smelt_status function_create(const char *file, const char *text, const char *name, smelt_function **function);

/* Appends one; call launches_release in any case. */
smelt_status launches_add(struct launches *launches, const char *file, const char *text, const char *name,
                          const smelt_dispatch_desc *desc);
smelt_status launches_run(void *launches); /* a variant's run */
void launches_release(struct launches *launches);

#endif
