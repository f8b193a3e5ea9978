/* The GPU's columns of the tables. They are measured on a machine with a GPU and written to a file there, one
 * row per line: "TABLE | ROW | CELL | … |". On the machine with the document, they are put next to the CPU's.
 */
#ifndef SMELT_TESTS_ACCURACY_GPU_COLUMNS_H
#define SMELT_TESTS_ACCURACY_GPU_COLUMNS_H

#include "report.h"

/* Writes the measurements of engines->name[0], a GPU; fails if it cannot. */
void gpu_columns_write(const char *path, const struct engines *engines,
                       struct measurements (*measurements)[TYPES], const struct table *others);

/* `cpu` with the GPU's cells at the end of its rows: those of `results`, the text of such a file (may be
 * NULL), else those that the row has in `old`, the table as it stands in the document (may be NULL). Rows of
 * `cpu` may have GPU cells; they are taken away. Without any GPU cells there are no columns. free() it. */
char *gpu_columns_joined(const char *name, const char *cpu, const char *old, const char *results);

#endif
