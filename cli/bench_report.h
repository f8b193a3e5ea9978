/* How results of benchmarks are printed: as a table, as JSON, or as comma-separated values; a row at a time,
 * as they come: a whole run takes a while. */
#ifndef SMELT_CLI_BENCH_REPORT_H
#define SMELT_CLI_BENCH_REPORT_H

#include "bench/against.h"
#include "bench/harness.h"

struct printer {
    enum { PRINT_TABLE, PRINT_JSON, PRINT_CSV } format;
    int count;    /* rows so far */
    char job[64]; /* of the last row of a table of products */
};

void print_result(struct printer *printer, const struct bench_result *result);
void print_comparison(struct printer *printer, const struct against_row *row);

/* What comes behind the last row. */
void print_end(const struct printer *printer);

#endif
