/* Results of benchmarks and how they are printed. */
#ifndef SMELT_CLI_BENCH_REPORT_H
#define SMELT_CLI_BENCH_REPORT_H

#include "bench/harness.h"

struct bench_result {
    const char *job, *variant, *anchor;
    double median, spread, anchor_seconds; /* anchor_seconds 0: there is none */
    double work;
    const char *work_unit;
    struct bench_bar bar;
    char *note; /* why there are no figures; NULL: there are */
    bool failed;
};

/* The table's first line, and one line a result. */
void print_table_head(void);
void print_table_row(const struct bench_result *result);

void print_results_json(const struct bench_result *results, int count);

#endif
