/* The tables of docs/accuracy.md, which stand there between <!-- NAME --> and <!-- end of NAME -->. */
#ifndef SMELT_TESTS_ACCURACY_REPORT_H
#define SMELT_TESTS_ACCURACY_REPORT_H

#include "../prelude/support.h"
#include "measure.h"

/* A table made elsewhere: its text is NULL where it was not measured. */
struct table {
    const char *name;
    const char *const *rows; /* the first cells, ended by NULL */
    const char *text;
};
#define OTHER_TABLES 4

void report_print(const struct engines *engines, struct measurements (*measurements)[TYPES],
                  const struct table *others);
/* Replaces the rows of what was measured in a file; a failure where it cannot. `gpu`: the file of the GPU's
 * cells, for all rows it has (gpu_columns.h); may be NULL: they stay as they are. */
void report_write(const char *path, const struct engines *engines, struct measurements (*measurements)[TYPES],
                  const struct table *others, const char *gpu);
/* The cells of one function in the GPU's columns, and the line's end. */
void report_gpu_cells(struct body *text, const struct engines *engines, const struct function *function,
                      const struct measurements *m);
/* Whether the file's tables have the rows they should have; says what is wrong. */
bool report_check(const char *path, const struct table *others);

#endif
