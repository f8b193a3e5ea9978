/* Benchmarks of `smelt bench`: each has a name and measures cases, which are repeated in turn, so that a
 * change of the machine's speed meets all of them alike. */
#ifndef SMELT_BENCH_HARNESS_H
#define SMELT_BENCH_HARNESS_H

#include "smelt/smelt.h"

struct bench; /* one run of the command: what was asked for, and the results */

/* What a case must reach. */
struct bench_bar {
    enum {
        BENCH_NO_BAR = 0,
        BENCH_TIME_AT_MOST,  /* value times the anchor's time */
        BENCH_SPEED_AT_LEAST /* value times the anchor's speed */
    } kind;
    double value;
};

/* One thing that is timed. */
struct bench_case {
    const char *job;     /* what is done: "cold compile" */
    const char *variant; /* by what or how: "exp kernel" */
    const char
        *anchor; /* what it is compared with, in words: another variant of the same job, or a stated figure
                    ("target"); NULL: nothing */
    double anchor_seconds; /* the stated figure; 0: the median of the variant named by `anchor` */
    /* Does the job once and gives its time. The function times itself, so that preparing costs nothing; for
     * very short jobs it does many and divides. On failure smelt_error() tells. NULL: the figures are those
     * of the case before, compared with something else. */
    smelt_status (*measure)(void *context, double *seconds);
    const char *(*error)(void); /* tells of a failure in place of smelt_error; may be NULL */
    void *context;
    int most_rounds; /* slow cases need not take part in every round; 0: all; 1: one, and not the unrecorded
                        one */
    double work;     /* bytes or operations of the job, for the rate; 0: no rate is shown */
    const char *work_unit; /* "B" or "FLOP" */
    struct bench_bar bar;
};

/* Measures the cases: one unrecorded round, then `repeats` rounds (0: the number the user asked for) of every
 * case in turn, and records the medians. The strings must live until the program ends. A case that fails is
 * recorded as failed; the others go on. Fails itself only where it cannot go on. */
smelt_status bench_measure(struct bench *bench, const struct bench_case *cases, int count, int repeats);

/* Records, instead of figures, why there are none: a failure (the command's exit status then tells), or that
 * something is not to be had here. The text is copied. */
smelt_status bench_fail(struct bench *bench, const char *job, const char *variant, int exit_status,
                        const char *message);
smelt_status bench_note(struct bench *bench, const char *job, const char *variant, const char *text);

/* Whether only a trial is wanted: small sizes, one round. */
bool bench_quick(const struct bench *bench);

/* The rounds the user asked for; `usual` where nothing was said. */
int bench_repeats(const struct bench *bench, int usual);

/* Whether the job is among those the user named; all are, if none was. */
bool bench_wants(const struct bench *bench, const char *job);

struct benchmark {
    const char *name;
    const char *help; /* one line for --help */
    smelt_status (*run)(struct bench *bench);
    const char *const *jobs; /* those that may be named behind it, ended by NULL; NULL: none */
};

/* The benchmarks there are, each in the file of its name. */
extern const struct benchmark bench_compile, bench_cpu, bench_gpu;

#endif
