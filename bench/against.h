/* Two builds compared: rounds of both, in child processes of `smelt bench … --json`, each first in every
 * other round, so that what changes about the machine meets both alike. */
#ifndef SMELT_BENCH_AGAINST_H
#define SMELT_BENCH_AGAINST_H

#include <stdbool.h>

enum { AGAINST_THIS, AGAINST_OTHER, AGAINST_BUILDS };

/* Medians over the rounds of each child's median, and inter-quartile ranges; NaN where a build has no
 * figures. */
struct against_row {
    const char *job, *variant;
    double median[AGAINST_BUILDS], spread[AGAINST_BUILDS];
};

struct against {
    const char *program[AGAINST_BUILDS]; /* the smelt command of each */
    int rounds;
    void (*report)(const struct against_row *row, void *context);
    void *context;
    char message[600]; /* filled: what went wrong last; empty: nothing */
};

/* Finds the command of a build or installation folder, or of its bin/smelt, and whether it answers as smelt
 * does. *path is heap memory. False: against->message has the reason. */
bool against_find(struct against *against, const char *build, char **path);

/* Compares what `arguments` (ended by NULL: "bench", "cpu", "exp", "--json") measures. Returns the exit
 * status of the first child that failed, else 0; rows are reported of what was measured even so. */
int against_run(struct against *against, const char *const *arguments);

#endif
