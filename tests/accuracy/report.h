/* The tables of docs/accuracy.md, between <!-- NAME --> and <!-- end of NAME -->. */
#ifndef SMELT_TESTS_ACCURACY_REPORT_H
#define SMELT_TESTS_ACCURACY_REPORT_H

#include "../prelude/support.h"
#include "measure.h"

/* A table from another file; its text is NULL if it was not measured. */
struct table {
    const char *name;
    const char *const *rows; /* the first cells, ended by NULL */
    const char *text;
};
#define OTHER_TABLES 4

void report_print(const struct engines *engines, struct measurements (*measurements)[TYPES],
                  const struct table *others);
/* Replaces the measured rows in a file; fails if it cannot. `gpu`: the file with the GPU's cells, for all
 * rows that it has (gpu_columns.h); NULL: they stay as they are. */
void report_write(const char *path, const struct engines *engines, struct measurements (*measurements)[TYPES],
                  const struct table *others, const char *gpu);
/* The cells of one function in the GPU's columns, and the line's end. */
void report_gpu_cells(struct body *text, const struct engines *engines, const struct function *function,
                      const struct measurements *m);
/* Whether the file's tables have the expected rows; reports what is wrong. */
bool report_check(const char *path, const struct table *others);

#endif
