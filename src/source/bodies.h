/* The bodies of kernels that nothing else in a text names: entries of other kernels leave them out. */
#ifndef SMELT_SOURCE_BODIES_H
#define SMELT_SOURCE_BODIES_H

#include "source/program.h"
#include "source/structure.h"

/* Of a rewritten program. */
smelt_status bodies_find(struct program *program, const struct structure *structure);

#endif
