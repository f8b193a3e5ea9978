/* What a text offers: the kernel functions that can be run, with their parameters; other functions, and why
 * they cannot; function constants. */
#ifndef SMELT_SOURCE_ENTRIES_H
#define SMELT_SOURCE_ENTRIES_H

#include "source/program.h"
#include "source/structure.h"

/* Of a rewritten program. */
smelt_status entries_find(struct program *program, const struct structure *structure);

#endif
