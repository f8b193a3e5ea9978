/* A driver library for tests without a GPU: libfakecuda.so exports the functions of device/cuda/driver.h's
 * table over memory of the host, and notes what a program does wrong with them.
 *
 * SMELT_CUDA_DRIVER names it to smelt; a test opens the same file (fake_cuda_open) and has the hooks below.
 * It is set up by the environment, read by cuInit:
 *
 *   FAKE_CUDA_DEVICES      how many GPUs there are (1); 0: cuInit gives CUDA_ERROR_NO_DEVICE
 *   FAKE_CUDA_CAPABILITY   compute capability (90); a list "75,90" is for one GPU after the other
 *   FAKE_CUDA_MEMORY       bytes of memory of each (256 MiB)
 *   FAKE_CUDA_POOLS        0: GPUs without memory pools
 *   FAKE_CUDA_DEFERRED     1: as the hook `deferred`
 *   FAKE_CUDA_CLOCK        1: events have the time when they happen, told to half a microsecond as NVIDIA's
 *                          driver does; else a millisecond is a piece of work
 *
 * Streams. Work is done when it is enqueued; or, deferred, not before something waits for it, and then no
 * more than that needs: work whose order nobody asked for does not happen by chance. In both cases each piece
 * of work knows what is ordered before it (stream order, events, waits of the host), and two that use one
 * block of memory with neither before the other are a violation. So is work on memory before it is allocated
 * or after it is given back, from pinned memory that is gone, on handles that are destroyed or from before a
 * reset, and calls without their context. Work is done, too, when it has been asked for often enough
 * (`patience`). The first violation is kept; tests end with `violation() == NULL`.
 *
 * Copies from memory that is not pinned are read at once, copies to such memory wait, as the driver does. A
 * block that is given back stays in the pool, good for allocations of its size, until the pool is trimmed.
 *
 * Kernels. A module is any text; a function is there if ".entry NAME(" is in the text, and its one parameter
 * has as many bytes as stand in the first […] behind it. Linking gives the text itself; text with "FAKE LINK
 * ERROR" in it does not link, and writes that into the error log. What a launch does is the test's: `launch`
 * is called when its turn comes in the stream, with a copy of the parameter made at the call. It reads and
 * writes memory of the GPU through addresses as they are (they are the host's), tells of each block that it
 * uses by `touch`, and returns a result: not 0 is a fault of the kernel. Without a hook launches do nothing.
 */
#ifndef SMELT_TESTS_FAKE_DRIVER_H
#define SMELT_TESTS_FAKE_DRIVER_H

#include "device/cuda/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct fake_launch {
    const char *function;
    const char *image; /* the module's text, ended by zero */
    int device;
    unsigned grid[3], block[3], shared_bytes;
    const void *parameter;
    size_t parameter_bytes;
};

typedef CUresult fake_launch_hook(const struct fake_launch *launch, void *context);

struct fake_cuda {
    /* Number of calls of a function ("cuMemcpyHtoDAsync_v2") since `forget_calls`; NULL: of all functions. */
    uint64_t (*calls)(const char *symbol);
    void (*forget_calls)(void);
    /* The n-th call of a function from now on (1: the next) gives `result` and does nothing. One at a time.
     */
    void (*fail_call)(const char *symbol, int n, CUresult result);
    /* The next call that waits returns `result`, and so does every call until the context is reset. */
    void (*fault)(CUresult result);
    /* … and afterwards there is no new context, as with NVIDIA's driver; without this a reset helps. */
    void (*fault_for_good)(CUresult result);
    void (*deferred)(bool on);
    /* The number of queries for completion that return false before the work is done; 2 at first. */
    void (*patience)(unsigned questions);
    void (*launch)(fake_launch_hook *hook, void *context);
    /* In a launch: it uses the block at `address`. */
    void (*touch)(CUdeviceptr address, bool writes);
    /* In a launch: lets calls of other threads proceed for a moment. */
    void (*pause)(void);
    /* The first violation; NULL: none. */
    const char *(*violation)(void);
    void (*forget_violation)(void);
    /* The number of objects that were not destroyed (nor lost by a reset): "block", "pinned", "stream",
     * "event", "graph", "module", "link". */
    int (*alive)(const char *kind);
    /* Bytes of blocks in use on a device. */
    uint64_t (*used)(int device);
};

/* The hooks, exported. */
const struct fake_cuda *fake_cuda_hooks(void);

/* Makes the library at `path` smelt's driver and returns its hooks; to be called before smelt looks for
 * devices. */
static inline const struct fake_cuda *fake_cuda_open(const char *path) {
    const struct fake_cuda *(*hooks)(void) = NULL;
    setenv("SMELT_CUDA_DRIVER", path, 1);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library) *(void **)&hooks = dlsym(library, "fake_cuda_hooks");
    if (!hooks) fprintf(stderr, "%s\n", dlerror());
    return hooks ? hooks() : NULL;
}

#endif
