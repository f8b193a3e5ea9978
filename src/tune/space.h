/* Spaces of named parameters: their combinations as candidates, in words, and the results that are right. */
#ifndef SMELT_TUNE_SPACE_H
#define SMELT_TUNE_SPACE_H

#include "base/text.h"
#include "smelt/tune.h"

/* Stands for the threads per threadgroup along x. */
#define SPACE_THREADS "threads"

struct space {
    const smelt_tune_space *space;
    const char *what; /* in messages */
    int parameter_count, count;
    char **words; /* of each combination: "TILE=16,UNROLL=2" */
};

/* Checks and lists the combinations. Call tune_space_end in any case. */
smelt_status tune_space_begin(const smelt_tune_space *space, const char *what, struct space *result);
void tune_space_end(struct space *space);

/* The values of combination `index`; the last parameter changes first. */
void tune_space_values(const struct space *space, int index, int64_t *values);

/* Appends what the choice depends on: the space, and the array's dtype and shape (NULL: there is none). */
void tune_space_add_key(const struct space *space, struct text *key);
void tune_space_add_array(struct text *key, const smelt_array *array);

/* Whether all elements of `made` are as close to `expected` as the space asks for. */
bool tune_space_is_right(const struct space *space, smelt_array *made, smelt_array *expected);

#endif
