/* The arguments at which functions are measured, in chunks of one size. */
#ifndef SMELT_TESTS_ACCURACY_ARGUMENTS_H
#define SMELT_TESTS_ACCURACY_ARGUMENTS_H

#include <smelt/smelt.h>

#include <stdint.h>

/* The two devices of a measurement: the first is measured, the second compared with it. */
#define ENGINES 2
struct engines {
    const char *name[ENGINES];
    bool sampled; /* half, bfloat and the second device in mode safe only, vectors of one width */
};

/* How the functions of a type with one number of arguments are swept: `chunks` of `size` arguments. In the
 * last `compared` chunks every math mode and engine is examined; in the others only the precise and fast
 * forms. */
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
    int step; /* float, one argument: one of every so many bit patterns is taken */
};
struct sweep sweep_of(smelt_dtype dtype, int arguments, enum density density);

/* One chunk: the numbers in the type and as double. The special values and a mixture of all kinds come first.
 */
struct arguments {
    void *typed[3];
    double *wide[3];
};
struct arguments arguments_new(const struct sweep *sweep);
void arguments_free(struct arguments *arguments);
void arguments_fill(struct arguments *arguments, const struct sweep *sweep, int chunk);

#endif
