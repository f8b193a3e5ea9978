/* Results of benchmarks as a picture: bars of their rates, and where they lie under the machine's bounds. */
#ifndef SMELT_CLI_PLOT_H
#define SMELT_CLI_PLOT_H

#include "bench/harness.h"

#define PLOT_MOST 256

struct plot_row {
    char job[64], variant[64];
    char unit[8];
    double rate, intensity, peak, bandwidth; /* operations per second and per byte; 0: unknown */
};

struct plot {
    struct plot_row rows[PLOT_MOST];
    int count;
};

/* Notes a result, if it has a rate. Those beyond PLOT_MOST are left out. */
void plot_add(struct plot *plot, const struct bench_result *result);

/* Writes an SVG file. Returns an exit status, after a complaint where it is not EXIT_OK. */
int plot_write(const struct plot *plot, const char *file);

#endif
