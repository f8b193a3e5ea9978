/* Shared by kernels and library functions: checks of a launch, its buffers, and running it. */
#ifndef SMELT_KERNEL_DISPATCH_H
#define SMELT_KERNEL_DISPATCH_H

#include "array/array.h"
#include "device/device.h"
#include "frontend/compile.h"

/* Sets the device, by name, of a launch that has its name, profile, time-out, stream and `info`, and checks
 * these; `info` becomes zeros. */
smelt_status launch_begin(struct launch *launch, const char *device);

/* Accesses are tested in every run on a CPU, unless the caller or SMELT_BOUNDS=0 asks otherwise. Requires the
 * launch's device. */
bool launch_is_tested(const struct launch *launch);

/* Checks the sizes against the limits of launch->device and sets them. grid in threads; y and z 0 mean 1.
 * group: product checked before it is clamped to the grid (`clamp`, body form only). */
smelt_status launch_measure(struct launch *launch, const int64_t grid[3], const int64_t group[3], bool clamp);

/* Checks before anything is compiled: the profile's name, and that a time-out is a number of seconds. */
smelt_status settings_check(const char *what, const struct device *device, const char *profile,
                            double timeout);

/* INVALID_ARGUMENT if the stream (NULL: the default) is another device's. */
smelt_status stream_check(const char *what, const struct device *device, const smelt_stream *stream);

/* Limits a profile puts on a device: NULL is the device itself, "apple" 32 KiB of threadgroup memory. */
smelt_status profile_threadgroup_limit(const char *profile, const struct device *device, uint64_t *bytes);

/* Has an array of this dtype, shape and these strides (elements; NULL: row-contiguous) 2^31 bytes, or so
 * nearly that code for small launches must not run? */
bool array_is_large(smelt_dtype dtype, const smelt_shape *shape, const int64_t *strides);

/* The buffer for a row-contiguous array, or at least for its first element; for bytes. */
static inline struct launch_buffer launch_buffer_of(const smelt_array *array) {
    struct memory *memory = array->memory;
    return (struct launch_buffer){.memory = memory,
                                  .start = memory->start,
                                  .offset = (size_t)(array->data - memory->start),
                                  .bytes = (size_t)array->size * smelt_dtype_bytes(array->dtype),
                                  .array = array};
}

static inline struct launch_buffer launch_buffer_of_bytes(const void *bytes, size_t size) {
    return (struct launch_buffer){.start = (char *)bytes, .bytes = size};
}

/* Compiles the missing code of the launch, and records this in `info`. */
smelt_status launch_prepare(struct launch *launch);

/* Checks the threadgroup memory, and runs. */
smelt_status launch_run(struct launch *launch);

#endif
