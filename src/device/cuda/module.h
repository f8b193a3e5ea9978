/* Code on a GPU: assembled by the driver, kept on disk, loaded into the GPU's context. */
#ifndef SMELT_DEVICE_CUDA_MODULE_H
#define SMELT_DEVICE_CUDA_MODULE_H

#include "device/cuda/context.h"

struct cuda_module {
    CUmodule handle;
    CUfunction function;
    uint32_t epoch;              /* of the GPU it was loaded in: in a later one it is gone */
    _Atomic uint32_t most_bytes; /* of dynamic threadgroup memory allowed for launches so far */
    atomic_bool recorded;        /* a replay may launch it at any time: it stays loaded */
    struct cuda_module *before;  /* of an earlier epoch; or another one that is left loaded */
};

/* Loads an image's object: PTX, which is assembled first unless the cache has the result, or machine code
 * (ELF) as it is. The GPU's context must be current. UNSUPPORTED: the driver is too old for it, or it is not
 * for this GPU; COMPILE with the driver's message: it cannot be assembled. Heap memory; `kernel` is for
 * messages. */
smelt_status cuda_module_load(struct cuda_gpu *gpu, const char *kernel, const struct image *image,
                              struct cuda_module **module);

/* It was launched on this stream: if that records or is captured, it stays loaded. */
void cuda_module_launched(struct cuda_module *module, struct cuda_stream *stream);

/* Unloads it, and those before it, when all launches have ended; if a stream on which kernels were launched
 * is captured now, only with the next one that is freed after the capture. Keeps the thread's message. */
void cuda_module_free(struct cuda_gpu *gpu, struct cuda_module *module);

#endif
