/* The functions whose accuracy is measured: text, reference, bars. */
#ifndef SMELT_TESTS_ACCURACY_FUNCTIONS_H
#define SMELT_TESTS_ACCURACY_FUNCTIONS_H

#include <smelt/smelt.h>

#include <stdbool.h>
#include <stdint.h>

/* Results for `count` arguments, in double, within a few of double's own ULP of the true value. arguments[1]
 * and [2] are read if the function has them. `dtype` is the type in use; few functions depend on it. */
typedef void reference_function(smelt_dtype dtype, const double *const *arguments, double *results,
                                int64_t count);

/* The absolute error allowed under fast math; INFINITY if nothing is promised. */
typedef double allowance_function(double x, double y, double expected);

struct function {
    const char *name;   /* a row of the tables */
    const char *text;   /* of x, y, z, `second` and `exponent`; '@' stands for metal::, metal::precise::, … */
    const char *vector; /* the text for vectors, if it differs; "": none */
    reference_function *reference;
    int arguments;
    double bar;                /* worst ULP of float, precise; 0: exact in every type */
    allowance_function *allow; /* of float under fast math; NULL: as the precise form */
    double least;              /* the smallest allowance anywhere, in ULP */
    const char *allowed;       /* the same in words */
    bool any_zero;             /* either zero is correct */
    bool operation; /* an operator: it has one form, which follows the math mode; relaxed allows as much as
                       fast */
};

extern const struct function accuracy_functions[];
extern const int accuracy_function_count;

#endif
