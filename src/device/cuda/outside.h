/* What a tested launch on a GPU found. */
#ifndef SMELT_DEVICE_CUDA_OUTSIDE_H
#define SMELT_DEVICE_CUDA_OUTSIDE_H

#include "device/cuda/flight.h"

/* After the launch has ended: the access out of bounds, or at a misaligned address, that ended it becomes the
 * calling thread's only finding, and the result is CHECK; if there was none, there are no findings. */
smelt_status cuda_outside_read(struct flight *flight);

#endif
