/* Launches on NVIDIA GPUs: the functions of struct device. */
#ifndef SMELT_DEVICE_CUDA_LAUNCH_H
#define SMELT_DEVICE_CUDA_LAUNCH_H

#include "device/device.h"

/* Sets those that load codes, prepare and run launches. */
void cuda_device_functions(struct device *device);

#endif
