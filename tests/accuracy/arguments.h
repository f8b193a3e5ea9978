/* The arguments functions are measured at, in chunks of one size. */
#ifndef SMELT_TESTS_ACCURACY_ARGUMENTS_H
#define SMELT_TESTS_ACCURACY_ARGUMENTS_H

#include <smelt/smelt.h>

#include <stdbool.h>
#include <stdint.h>

/* How a type's functions of so many arguments are swept: `chunks` of `size` arguments; in the last `compared`
 * of them every math mode and engine is looked at, in the others the precise and fast forms only. */
struct sweep {
    smelt_dtype dtype;
    int arguments;
    bool full;
    int64_t size;
    int chunks, compared;
};
struct sweep sweep_of(smelt_dtype dtype, int arguments, bool full);

/* One chunk: the numbers as the type and as double. The special values and a mixture of everything stand
 * first. */
struct arguments {
    void *typed[3];
    double *wide[3];
};
struct arguments arguments_new(const struct sweep *sweep);
void arguments_free(struct arguments *arguments);
void arguments_fill(struct arguments *arguments, const struct sweep *sweep, int chunk);

#endif
