/* The public handle of a stream. */
#ifndef SMELT_DEVICE_STREAM_H
#define SMELT_DEVICE_STREAM_H

#include "device/device.h"

#include <stdatomic.h>

struct cuda_stream;

struct smelt_stream {
    atomic_int references;
    const struct device *device;
    struct cuda_stream *cuda; /* NULL: a CPU's, on which everything has ended when its call returns */
    bool usual;               /* a handle on the GPU's default stream, which outlives it */
};

#endif
