/* The finding of a tested launch on a GPU. */
#ifndef SMELT_DEVICE_CUDA_OUTSIDE_H
#define SMELT_DEVICE_CUDA_OUTSIDE_H

#include "device/cuda/flight.h"

/* After the launch has ended. If an access out of bounds or at a misaligned address ended it, that access
 * becomes the calling thread's only finding, and the result is CHECK. Otherwise there are no findings. */
smelt_status cuda_outside_read(struct flight *flight);

#endif
