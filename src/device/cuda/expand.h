/* Copies of a launch's matrices in bfloat, which its code multiplies instead of narrow elements with scales.
 */
#ifndef SMELT_DEVICE_CUDA_EXPAND_H
#define SMELT_DEVICE_CUDA_EXPAND_H

#include "device/cuda/flight.h"

/* Decides whether the launch gets copies, takes memory for them and fills their addresses among the
 * parameters, which must have those of the buffers. Without memory, or where copies do not pay, the addresses
 * are 0. */
void cuda_expand_plan(struct flight *flight);

/* Enqueues the conversions, before the kernel. */
smelt_status cuda_expand_run(struct flight *flight);

#endif
