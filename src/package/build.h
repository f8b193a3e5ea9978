/* Builds packages: every requested entry, through clang and the compiler library, several at once. */
#ifndef SMELT_PACKAGE_BUILD_H
#define SMELT_PACKAGE_BUILD_H

#include "frontend/translation.h"

/* A launch that a package has code for. It has no padding: launches are compared as bytes. */
struct package_launch {
    uint32_t grid[3], group[3]; /* in threads */
    uint32_t large;             /* as in struct launch */
};

struct package_request {
    const struct translation *translation;
    const char *source_name;
    const struct entry *const *entries;
    int entry_count;
    const smelt_build_desc *desc; /* the other options */
    /* On CPUs, the package has code for these launches instead of the usual shapes; with none, for the usual
     * shapes. Code that serves every launch is always in it. */
    const struct package_launch *launches;
    int launch_count;
};

/* The package's bytes. Fails at the first entry, in their order, that does not compile; with desc->keep_going
 * at the end, with *bytes holding the others' package unless there are none. */
smelt_status package_build(const struct package_request *request, struct text *bytes);

#endif
