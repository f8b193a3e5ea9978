/* One launch in progress: launch.c fills and enqueues it, wait.c waits for it. */
#ifndef SMELT_DEVICE_CUDA_FLIGHT_H
#define SMELT_DEVICE_CUDA_FLIGHT_H

#include "device/cuda/executable.h"
#include "device/cuda/expand_code.h"
#include "device/cuda/memory.h"
#include "abi/cuda_parameters.h"
#include "device/log.h"

#define MOST_EXPANSIONS 4

/* A matrix of which the launch makes a copy (expand.h). */
struct expansion {
    int kind;
    int64_t width, height;
    struct expand_parameters parameters;
    struct cuda_module *module;
};

struct flight {
    struct executable *executable;
    struct cuda_gpu *gpu;
    const struct launch *request;
    struct cuda_code *code;
    struct cuda_module *module;
    struct cuda_stream *stream;
    uint32_t blocks[3], threads, shared_bytes; /* of the hardware's grid */
    struct expansion expansions[MOST_EXPANSIONS];
    int expansion_count;
    CUdeviceptr scratch[5]; /* given back when the launch is enqueued, or has ended */
    int scratch_count;
    CUdeviceptr bytes; /* a block with what is not inlined */
    bool logged;       /* the kernel's lines are in `log` */
    struct launch_log log;
    union {
        struct cuda_parameters head;
        char bytes[CUDA_PARAMETER_LIMIT];
        _Alignas(16) char aligned;
    } parameters;
};

/* A block that lasts as long as the launch. */
smelt_status flight_scratch(struct flight *flight, size_t bytes, CUdeviceptr *address);

smelt_status flight_launch(struct flight *flight);

/* wait.c — launches, and waits: stops the kernel if it runs longer than its time-out, measures it, and reads
 * its log. INVALID_ARGUMENT if the stream is recording. */
smelt_status flight_launch_and_wait(struct flight *flight);

#endif
