/* Benchmarks of `smelt bench`: each has a name and measures cases, which are repeated in turn, so that a
 * change of the machine's speed meets all of them alike. */
#ifndef SMELT_CLI_BENCH_H
#define SMELT_CLI_BENCH_H

#include "smelt/smelt.h"

struct bench; /* where the results of a run of the command are gathered */

/* One thing that is timed. */
struct bench_case {
    const char *job;     /* what is done: "cold compile" */
    const char *variant; /* by what or how: "exp kernel" */
    const char
        *anchor; /* what it is compared with, in words: another variant of the same job, or a stated figure
                    ("target"); NULL: nothing */
    double anchor_seconds; /* the stated figure; 0: the median of the variant named by `anchor` */
    /* Does the job once and gives its time. The function times itself, so that preparing costs nothing; for
     * very short jobs it does many and divides. On failure smelt_error() tells. */
    smelt_status (*measure)(void *context, double *seconds);
    void *context;
};

/* Measures the cases: one unrecorded round, then `repeats` rounds (0: the number the user asked for) of every
 * case in turn, and records the medians. The strings must live until the program ends. */
smelt_status bench_measure(struct bench *bench, const struct bench_case *cases, int count, int repeats);

struct benchmark {
    const char *name;
    const char *help; /* one line for --help */
    smelt_status (*run)(struct bench *bench);
};

/* The benchmarks there are, each in the file of its name. */
extern const struct benchmark bench_compile;

#endif
