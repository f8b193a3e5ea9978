/* The GPUs in the table of devices. */
#include "device/cuda/context.h"
#include "device/cuda/timeline.h"

static const struct device *gpu_at(int index, const char **reason) {
    int count;
    const struct cuda_gpu *found = cuda_gpus(&count, reason);
    return index < count ? &found[index].device : NULL;
}

static const struct device_kind cuda_kind = {
    .rank = 1, .name = "cuda", .at = gpu_at, .finish_trace = cuda_timeline_finish};
REGISTER_DEVICES(cuda_kind)
