/* Runs a case on devices and compares the results. */
#ifndef SMELT_FUZZ_CHECK_CASE_H
#define SMELT_FUZZ_CHECK_CASE_H

#include "kernel_case.h"

enum outcome {
    AGREES,
    INVALID, /* it does not compile: the generator must not create such a case */
    UNSOUND, /* the oracle itself fails: the generator or the oracle is wrong */
    DIFFERS, /* an output is not the oracle's */
    FAILS,   /* an error on a device under test */
    CRASHES, /* the process died */
    HANGS
};
extern const char *const outcome_names[];

#define MAX_DEVICES 4

struct check_options {
    const char *devices[MAX_DEVICES + 1]; /* under test, one after the other; ended by NULL */
    const char *oracle;
    /* A difference planted to test the tester: in the text for the devices under test, `from` becomes `to`.
     */
    const char *plant_from, *plant_to;
    /* Floats may differ by this much, relative to the larger; 0: bit by bit (a NaN is like any other NaN). */
    double tolerance;
    /* The kernel is run once more with every access checked, in place of the devices under test: what is
     * found is wrong, except for what such kernels do on purpose. */
    bool checked;
    double timeout; /* seconds for the devices under test; 0: none, which is different code */
};

struct verdict {
    enum outcome outcome;
    int launch;     /* the first that fails */
    unsigned notes; /* lines logged: a device under test may have refused something */
    char note[300]; /* the last of them */
    char message[1200];
};

void check_case(const struct kernel_case *kernel, const struct check_options *options,
                struct verdict *verdict);

#endif
