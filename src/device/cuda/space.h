/* The memory space of a GPU: the operations of arrays there. */
#ifndef SMELT_DEVICE_CUDA_SPACE_H
#define SMELT_DEVICE_CUDA_SPACE_H

#include "device/cuda/context.h"

/* Sets the GPU's space and the array functions of its struct device. */
void cuda_space_functions(struct cuda_gpu *gpu);

#endif
