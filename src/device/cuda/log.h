/* Lines that kernels on a GPU log. */
#ifndef SMELT_DEVICE_CUDA_LOG_H
#define SMELT_DEVICE_CUDA_LOG_H

#include "device/cuda/flight.h"

/* Gives the launch an empty log, in the stream's order; *address is the struct cuda_log, in a block of the
 * launch's. */
smelt_status cuda_log_open(struct flight *flight, CUdeviceptr *address);

/* The thread with index `index` in the group with number `group`, which the grid's edge may cut off. */
struct log_place cuda_log_place(const struct flight *flight, uint64_t group, uint32_t index);

/* After the launch has ended: reads its lines into flight->log. */
smelt_status cuda_log_read(struct flight *flight, CUdeviceptr address);

/* Passes them to their receiver, which may call smelt, and counts them in the request: not between cuda_enter
 * and cuda_leave. */
void cuda_log_deliver(struct flight *flight);

#endif
