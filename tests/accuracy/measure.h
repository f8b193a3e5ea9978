/* Measuring: every function in every form, type, math mode and engine. */
#ifndef SMELT_TESTS_ACCURACY_MEASURE_H
#define SMELT_TESTS_ACCURACY_MEASURE_H

#include "compare.h"
#include "kernels.h"

#define MODES 3 /* smelt_math_mode */
#define TYPES 3
extern const smelt_dtype measured_types[TYPES];
extern const char *const mode_names[MODES];

/* One form in one mode on one engine. Mode safe on the first engine is measured over the whole sweep. Others,
 * and the plain form, share its figures if they have the same bits as it (in mode fast: as its fast form, for
 * the plain one); otherwise they have their own. */
struct measurement {
    bool same;
    struct worst worst;
};
struct measurements {
    struct measurement of[MODES][ENGINES][FORMS];
    int64_t swept, compared; /* arguments in total, and those at which modes and engines were compared */
};

/* measurements[type][function]. Failures are counted, and reported when they occur. */
void measure_all(const struct engines *engines, enum density density, const char *only,
                 struct measurements (*measurements)[TYPES]);

#endif
