/* Arrays without elements: they stand for values that are computed later, and carry dtype and shape alone.
 * Their device is called "graph". Operations on them check and infer as always, and launch nothing. */
#ifndef SMELT_ARRAY_SYMBOLIC_H
#define SMELT_ARRAY_SYMBOLIC_H

#include "array/array.h"

#define ARRAY_SYMBOLIC_DEVICE "graph"

/* A row-contiguous one. `release(context)` is called with the last reference (may be NULL). */
smelt_status array_symbolic(smelt_dtype dtype, const smelt_shape *shape, void (*release)(void *context),
                            void *context, smelt_array **array);

bool array_is_symbolic(const smelt_array *array);

/* The context that it was created with; of a view, that of its base. */
void *array_symbolic_context(const smelt_array *array);

#endif
