/* The functions whose accuracy is measured: their text, their reference, their bars. */
#ifndef SMELT_TESTS_ACCURACY_FUNCTIONS_H
#define SMELT_TESTS_ACCURACY_FUNCTIONS_H

#include <smelt/smelt.h>

#include <stdbool.h>
#include <stdint.h>

/* Results for `count` arguments, in double, less than a few of double's own ULP from the true value.
 * arguments[1] and [2] are read where the function has them. `dtype` is the type at work: few depend on it.
 */
typedef void reference_function(smelt_dtype dtype, const double *const *arguments, double *results,
                                int64_t count);

/* What a result may be off by, absolutely, under fast math; INFINITY where nothing is promised. */
typedef double allowance_function(double x, double y, double expected);

struct function {
    const char *name;   /* a row of the tables */
    const char *text;   /* of x, y, z, `second` and `exponent`; '@' stands for metal::, metal::precise::, … */
    const char *vector; /* the text on vectors, where it differs; "": none */
    reference_function *reference;
    int arguments;
    double bar;                /* worst ULP of float, precise; 0: exact in every type */
    allowance_function *allow; /* of float under fast math; NULL: as the precise form */
    double least;              /* the least that it is anywhere, in ULP */
    const char *allowed;       /* the same in words */
    bool any_zero;             /* either zero is right */
    bool operation;            /* an operator: its only form follows the math mode, relaxed as much as fast */
};

extern const struct function accuracy_functions[];
extern const int accuracy_function_count;

#endif
