/* Results of benchmarks as a picture: bars of their rates, and where they lie under the machine's bounds. */
#ifndef SMELT_CLI_PLOT_H
#define SMELT_CLI_PLOT_H

#include "bench/harness.h"

#include <stdio.h>

#define PLOT_MOST 256
#define PLOT_WIDTH 900

enum plot_role {
    PLOT_MEASURED,
    PLOT_ANCHOR, /* what others of the job are compared with */
    PLOT_BOUND   /* of the machine */
};

struct plot_row {
    char job[64], variant[64], anchor[64];
    char unit[8];                      /* of the work; empty: there is only a time */
    double rate;                       /* work per second; without a unit, seconds */
    double intensity, peak, bandwidth; /* operations per byte and per second; 0: unknown */
    enum plot_role role;
};

struct plot {
    struct plot_row rows[PLOT_MOST];
    int count;
};

/* Notes a result. Those beyond PLOT_MOST are left out. */
void plot_add(struct plot *plot, const struct bench_result *result);

/* Writes an SVG file. Returns an exit status, after a complaint where it is not EXIT_OK. */
int plot_write(struct plot *plot, const char *file);

/* ---- Its parts. Each draws from pixel `top` down and returns where the next part begins. */

static inline const char *plot_color(enum plot_role role) {
    static const char *const colors[] = {
        [PLOT_MEASURED] = "#4472a8", [PLOT_ANCHOR] = "#999999", [PLOT_BOUND] = "#b04040"};
    return colors[role];
}

double plot_bars(FILE *out, const struct plot *plot, double top);  /* plot_bars.c */
double plot_roofs(FILE *out, const struct plot *plot, double top); /* plot_roofs.c */

#endif
