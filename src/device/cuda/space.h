/* The memory space of a GPU: what arrays need done there. */
#ifndef SMELT_DEVICE_CUDA_SPACE_H
#define SMELT_DEVICE_CUDA_SPACE_H

#include "device/cuda/context.h"

/* Sets the GPU's space and what its struct device has to do with arrays. */
void cuda_space_functions(struct cuda_gpu *gpu);

#endif
