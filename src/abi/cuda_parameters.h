/* The only parameter of a kernel on an NVIDIA GPU: one block of bytes. Shared by src/compiler/ptx/, which
 * generates code that reads it, and src/device/cuda/, which fills it at each launch. */
#ifndef SMELT_ABI_CUDA_PARAMETERS_H
#define SMELT_ABI_CUDA_PARAMETERS_H

#include "abi/image.h"

struct cuda_parameters {
    uint32_t grid[3];       /* threads */
    uint32_t group_size[3]; /* threads of a full group */
    uint32_t groups[3];     /* threadgroups */
    uint32_t
        few; /* not 0: a multiprocessor has few of the grid's blocks, so the next kernel may start early */
    uint64_t stop; /* polled codes: address of a struct cuda_stop in the device's memory */
    uint64_t log;  /* codes that log: address of a struct cuda_log in the device's memory */
    /* One per binding of the image of kind BUFFER or THREADGROUP, in order: the address in the device's
     * memory, or the offset in the threadgroup's, behind image.threadgroup_bytes, a multiple of 16. An
     * inlined buffer's is unused. */
    uint64_t slots[];
};

/* In tested codes, one per slot follows the slots: the memory that accesses through the slot may touch. */
struct cuda_extent {
    uint64_t start; /* an address in the device's memory; 0 for threadgroup memory: the slot is its start */
    uint64_t bytes;
};

/* Then, for each tensor of the image that `expands`, in order: the address of a copy of it in the device's
 * memory, or 0. A copy has the elements times their scales, in bfloat, with the same strides. */
static inline uint32_t count_expanded(const struct image *image) {
    uint32_t count = 0;
    for (int32_t i = 0; i < image->tensor_count; i++) count += image->tensors[i].expands != 0;
    return count;
}

/* Last, 16-aligned, the contents of inlined buffers, in the order of their bindings, each of inlined_bytes().
 */
#define CUDA_PARAMETER_LIMIT 4096 /* bytes in all */

/* The bytes of a class of struct code_shape's `inlined`: 16, 32 … 2048. */
static inline uint32_t inlined_bytes(uint8_t class) {
    return class ? 8u << class : 0;
}

/* The smallest class that holds this many; 0: there is none. */
static inline uint8_t inlined_class(size_t bytes) {
    uint8_t class = 1;
    while (class <= 8 && inlined_bytes(class) < bytes) class ++;
    return class <= 8 ? class : 0;
}

enum cuda_found { CUDA_FOUND_NOTHING, CUDA_FOUND_OUTSIDE, CUDA_FOUND_MISALIGNED };

/* Zeros before the launch. Codes that are polled but not tested use `flag` alone. */
struct cuda_stop {
    uint32_t flag; /* not 0: the kernel must end */
    /* Tested codes: the first thread whose access fails a test sets `found`, describes the access, and then
     * sets `flag`. */
    uint32_t found;         /* enum cuda_found */
    uint64_t sites;         /* address of a struct access_site; its pointers are the device's, too */
    uint64_t address;       /* of the lowest access that the test covers */
    uint64_t start;         /* of the array; MISALIGNED: 0 */
    uint64_t extent;        /* bytes of the array; MISALIGNED: what the address must be a multiple of */
    uint64_t group, thread; /* the group's number in the grid, x fastest; the thread's index in it */
};

/* What kernels log. A thread counts its call in `lines`, takes CUDA_LOG_HEADER + n words with one atomic
 * addition to `used`, and writes them if they lie within the capacity: n, its group's number, its index in
 * the group, then the words of the log call (abi/log_words.h). Addresses among them are the device's. */
#define CUDA_LOG_HEADER 3
struct cuda_log {
    uint64_t used;     /* words taken, written or not */
    uint64_t capacity; /* number of words, zeros before the launch */
    uint64_t lines;    /* calls, written or not */
    uint64_t words[];
};

#endif
