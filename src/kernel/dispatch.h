/* What kernels and library functions share: the checked size of a launch, and the launch itself. */
#ifndef SMELT_KERNEL_DISPATCH_H
#define SMELT_KERNEL_DISPATCH_H

#include "frontend/compile.h"
#include "device/device.h"

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

/* INVALID_ARGUMENT if the stream (NULL: the default) is another device's. */
smelt_status stream_check(const char *what, const struct device *device, const smelt_stream *stream);

/* Limits a profile puts on a device: NULL is the device itself, "apple" 32 KiB of threadgroup memory. */
smelt_status profile_threadgroup_limit(const char *profile, const struct device *device, uint64_t *bytes);

/* Has an array of this dtype, shape and these strides (elements; NULL: row-contiguous) 2^31 bytes, or so
 * nearly that code for small launches must not run? */
bool array_is_large(smelt_dtype dtype, const smelt_shape *shape, const int64_t *strides);

struct dispatch {
    const char *what;
    const struct entry *entry; /* its parameters have names for traces; may be NULL */
    const struct device *device;
    const char *profile;
    struct executable *executable;
    const struct extent *extent;
    double timeout;
    bool large;             /* any buffer is (array_is_large) */
    const uint8_t *inlined; /* as struct launch's */
    smelt_stream *stream;
    smelt_run_info *info; /* may be NULL */
    /* Set between preparing and running. */
    void *const *buffers;
    const struct launch_buffer *details; /* may be NULL where the device uses the host's memory */
    const size_t *threadgroup_memory;    /* may be NULL */
    /* Filled by preparing: what is known of the entry. */
    const struct image *image;
};

/* Compiles what the launch needs and what is missing, and says so in `info`. */
smelt_status dispatch_prepare(struct dispatch *dispatch);

smelt_status dispatch_run(const struct dispatch *dispatch);

struct launch launch_of(const struct extent *extent, double timeout);

#endif
