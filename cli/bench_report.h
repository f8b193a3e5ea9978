/* How results of benchmarks are printed. */
#ifndef SMELT_CLI_BENCH_REPORT_H
#define SMELT_CLI_BENCH_REPORT_H

#include "bench/harness.h"

/* The table's first line, and one line a result. */
void print_table_head(void);
void print_table_row(const struct bench_result *result);

void print_results_json(const struct bench_result *results, int count);

#endif
