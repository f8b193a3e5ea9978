/* Builds packages: every requested entry, through clang and the compiler library, several at once. */
#ifndef SMELT_PACKAGE_BUILD_H
#define SMELT_PACKAGE_BUILD_H

#include "frontend/translation.h"

/* A launch that the package is for, of threads. */
struct package_launch {
    uint32_t grid[3], group[3];
    uint32_t large; /* as in struct launch; no padding: launches are compared as bytes */
};

struct package_request {
    const struct translation *translation;
    const char *source_name;
    const struct entry *const *entries;
    int entry_count;
    const smelt_build_desc *desc; /* the other options */
    /* Code for CPUs that serves these launches best, in the place of the usual codes; none: the usual ones.
     * There is code for all other launches in any case. */
    const struct package_launch *launches;
    int launch_count;
};

/* The package's bytes. Fails at the first entry, in their order, that does not compile; with desc->keep_going
 * at the end, with *bytes holding the others' package unless there are none. */
smelt_status package_build(const struct package_request *request, struct text *bytes);

#endif
