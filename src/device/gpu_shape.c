#include "device/gpu_shape.h"

#include <string.h>

void gpu_shape(const struct launch *launch, bool barrier_hint, struct code_shape *shape) {
    const uint32_t *size = launch->group_size;
    uint32_t threads = size[0] * size[1] * size[2];
    bool line = size[1] == 1 && size[2] == 1;
    (void)barrier_hint;
    *shape = (struct code_shape){.engine = ENGINE_PTX,
                                 .polled = launch->timeout > 0,
                                 .small = !launch->large,
                                 .aligned = !launch->unaligned};
    for (int d = 0; d < 3; d++) {
        if (launch->grid[d] % size[d]) shape->masked = 1;
        if (launch->grid[d] >= INT32_MAX - 1023u) shape->small = 0;
        if (launch->groups[d] > (d ? GPU_MOST_BLOCKS : GPU_MOST_BLOCKS_X)) shape->folded = 1;
    }
    memcpy(shape->inlined, launch->inlined, sizeof shape->inlined);
    if (threads % 32 == 0) {
        memcpy(shape->size, size, sizeof shape->size);
        return;
    }
    for (int d = 1; d < 3; d++) shape->size[d] = line;
    shape->most_threads = 32;
    while (shape->most_threads < threads) shape->most_threads *= 2;
}
