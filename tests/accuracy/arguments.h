/* The arguments functions are measured at, in chunks of one size. */
#ifndef SMELT_TESTS_ACCURACY_ARGUMENTS_H
#define SMELT_TESTS_ACCURACY_ARGUMENTS_H

#include <smelt/smelt.h>

#include <stdint.h>

/* The two devices of a measurement: the first is measured, the second compared with it. */
#define ENGINES 2
struct engines {
    const char *name[ENGINES];
    bool sampled; /* half and bfloat in mode safe only, vectors of one width */
};

/* How a type's functions of so many arguments are swept: `chunks` of `size` arguments; in the last `compared`
 * of them every math mode and engine is looked at, in the others the precise and fast forms only. */
enum density {
    QUICK,
    DENSE,
    FULL
}; /* FULL: every float for functions of one argument, as DENSE for the others */
struct sweep {
    smelt_dtype dtype;
    int arguments;
    int64_t size;
    int chunks, compared;
    int step; /* float, one argument: of each stretch of so many bit patterns one is taken */
};
struct sweep sweep_of(smelt_dtype dtype, int arguments, enum density density);

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
