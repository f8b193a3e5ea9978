/* Results against their reference, and against each other. */
#ifndef SMELT_TESTS_ACCURACY_COMPARE_H
#define SMELT_TESTS_ACCURACY_COMPARE_H

#include "arguments.h"
#include "functions.h"

/* The worst of the results examined so far. */
struct worst {
    double error; /* ULP; without arguments for which nothing is promised */
    double argument[3], got, expected;
    int64_t compared;
    int64_t misrounded; /* results that are not the correctly rounded ones: for 16-bit types */
    bool over;          /* one exceeded its bar, and was reported */
};

/* The rules for a column of results. */
struct rules {
    const struct function *function;
    smelt_dtype dtype;
    smelt_math_mode math; /* relaxed: zeros have no sign; fast: nor are there infinities and NaN */
    bool fast;            /* the allowance of the fast form */
    const char *label;    /* for failures: "metal::fast::, math mode safe, cpu" */
};

/* Compares `count` results with the expected ones, from the arguments' element `from` on; reports the first
 * that exceed their bar. */
void compare_results(const struct rules *rules, const struct arguments *arguments, const double *expected,
                     const void *got, int64_t from, int64_t count, struct worst *worst);
void worst_join(struct worst *into, const struct worst *other);

/* The first element below `count` at which two columns differ in a way that the rules forbid; -1: none. All
 * NaNs are equal. */
int64_t first_difference(const struct rules *rules, const struct arguments *arguments, const void *a,
                         const void *b, int64_t count);

/* The bar of the precise form in ULP of the type. */
double bar_of(const struct function *function, smelt_dtype dtype);

#endif
