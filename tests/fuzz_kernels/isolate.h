/* Checks cases in child processes, so that a crash or an endless loop in the compiler or in a kernel is an
 * ordinary verdict. The calling process must not have used smelt itself. */
#ifndef SMELT_FUZZ_ISOLATE_H
#define SMELT_FUZZ_ISOLATE_H

#include "check_case.h"
#include "generate.h"

/* Checks one case in a child process. */
void check_isolated(const struct kernel_case *kernel, const struct check_options *options, double seconds,
                    struct verdict *verdict);

struct totals {
    uint64_t kernels;               /* checked */
    uint64_t noted;                 /* kernels for which something was logged */
    uint64_t with[FEATURE_COUNT];   /* kernels that contain the feature */
    uint64_t counts[FEATURE_COUNT]; /* occurrences */
    char note[300];                 /* the last line logged */
};

/* Checks generated kernels, seed by seed, until one fails, `end` is reached or the time (CLOCK_MONOTONIC) is
 * past `until`. Returns the seed that failed, with its verdict, or the next one. Adds to `totals`. */
uint64_t check_seeds(uint64_t seed, uint64_t end, double until, const bool without[FEATURE_COUNT],
                     const struct check_options *options, double seconds, struct totals *totals,
                     struct verdict *verdict);

double seconds_now(void);

#endif
