/* NVIDIA's driver, called directly: what smelt's launches are measured against, and the memory traffic that
 * benchmarks prepare and check with. Opened at run time, under the name that smelt opens; uses the device's
 * primary context, as smelt does, so that both see one another's memory and streams. Every call gives NULL,
 * or a sentence (valid until the next call) about the failure. */
#ifndef SMELT_BENCH_GPU_DRIVER_H
#define SMELT_BENCH_GPU_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t gpu_address;

/* Opens the driver and the first GPU; nothing the second time. */
const char *gpu_driver_open(void);

/* Sets `count` bytes, copies between host and device or on the device; all wait until it is done. */
const char *gpu_driver_fill(gpu_address to, uint8_t value, size_t count);
const char *gpu_driver_write(gpu_address to, const void *from, size_t bytes);
const char *gpu_driver_read(void *to, gpu_address from, size_t bytes);
const char *gpu_driver_copy(gpu_address to, gpu_address from, size_t bytes);

/* Enqueues a copy on a stream. */
const char *gpu_driver_copy_on(void *stream, gpu_address to, gpu_address from, size_t bytes);

/* Enqueues a kernel that does nothing `count` times, one block of 32 threads each, by nothing but calls of
 * cuLaunchKernel. The stream may be NULL: the default one. */
const char *gpu_driver_launch_empty(void *stream, int count);

/* A graph of `count` such kernels, and its replay. */
const char *gpu_driver_record_empty(int count, void **graph);
const char *gpu_driver_replay(void *graph, void *stream);

/* Waits for a stream. */
const char *gpu_driver_wait(void *stream);

#endif
