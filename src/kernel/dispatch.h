/* What kernels and library functions share: the checked size of a launch, and the launch itself. */
#ifndef SMELT_KERNEL_DISPATCH_H
#define SMELT_KERNEL_DISPATCH_H

#include "frontend/compile.h"
#include "kernel/device.h"

/* A grid and its groups, checked against the device's limits. */
struct extent {
    uint32_t grid[3];  /* threads */
    uint32_t group[3]; /* threads of a full group */
    uint64_t groups[3];
};

/* grid in threads; y and z 0 mean 1. group: product checked against the device before it is clamped to the
 * grid (`clamp`, body form only). `what` names the kernel in messages. */
smelt_status extent_check(const char *what, const struct device *device, const int64_t grid[3],
                          const int64_t group[3], bool clamp, struct extent *extent);

/* What can be known to be wrong before anything is compiled: the profile's name, and a time-out that is no
 * number of seconds. */
smelt_status settings_check(const char *what, const struct device *device, const char *profile,
                            double timeout);

/* Limits a profile puts on a device: NULL is the device itself, "apple" 32 KiB of threadgroup memory. */
smelt_status profile_threadgroup_limit(const char *profile, const struct device *device, uint64_t *bytes);

struct dispatch {
    const char *what;
    const struct device *device;
    const char *profile;
    struct executable *executable;
    const struct extent *extent;
    void *const *buffers;
    const size_t *threadgroup_memory; /* may be NULL */
    double timeout;
    smelt_run_info *info; /* may be NULL; compile_seconds and cache_hit are the caller's */
};

smelt_status dispatch_run(const struct dispatch *dispatch);

#endif
