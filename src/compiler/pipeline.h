/* The order of the passes. */
#ifndef SMELT_COMPILER_PIPELINE_H
#define SMELT_COMPILER_PIPELINE_H

#include "compiler/pass.h"

/* From clang's bitcode to the optimised code of one thread … */
smelt_status pipeline_optimise(struct unit *unit);
/* … and from there to the engine's code. Both stop after the pass that the request names. */
smelt_status pipeline_lower(struct unit *unit);

/* INVALID_ARGUMENT for a request that names a pass the engine lacks: the message lists those there are. */
smelt_status pipeline_check(struct unit *unit);

#endif
