#include "cuda/shape.h"

#include <string.h>

void cuda_shape(const struct launch *launch, bool barrier_hint, struct code_shape *shape) {
    const uint32_t *size = launch->group_size;
    uint32_t threads = size[0] * size[1] * size[2];
    bool line = size[1] == 1 && size[2] == 1;
    (void)barrier_hint;
    *shape = (struct code_shape){.engine = ENGINE_PTX,
                                 .polled = launch->timeout > 0,
                                 .small = !launch->large,
                                 .aligned = !launch->unaligned};
    for (int d = 0; d < 3; d++) {
        uint64_t groups = ((uint64_t)launch->grid[d] + size[d] - 1) / size[d];
        if (launch->grid[d] % size[d]) shape->masked = 1;
        if (launch->grid[d] >= INT32_MAX - 1023u) shape->small = 0;
        if (groups > (d ? CUDA_MOST_BLOCKS : CUDA_MOST_BLOCKS_X)) shape->folded = 1;
    }
    if (launch->inlined) memcpy(shape->inlined, launch->inlined, sizeof shape->inlined);
    if (threads % 32 == 0) {
        memcpy(shape->size, size, sizeof shape->size);
        return;
    }
    for (int d = 1; d < 3; d++) shape->size[d] = line;
    shape->most_threads = 32;
    while (shape->most_threads < threads) shape->most_threads *= 2;
}

/* From old to new, which is from less to more. `only`: runs on devices of this capability alone; the others'
 * runs on newer ones, too, as PTX does. */
static const struct target {
    const char *name, *features;
    int capability;
    bool only;
} targets[] = {
    {"sm_80", "+ptx74", 80, false}, {"sm_86", "+ptx74", 86, false}, {"sm_87", "+ptx74", 87, false},
    {"sm_89", "+ptx80", 89, false}, {"sm_90", "+ptx85", 90, false}, {"sm_90a", "+ptx81", 90, true},
};
#define TARGET_COUNT ((int)(sizeof targets / sizeof *targets))

static int find_target(const char *name) {
    for (int i = 0; i < TARGET_COUNT; i++)
        if (strcmp(targets[i].name, name) == 0) return i;
    return -1;
}

const char *cuda_target(int capability) {
    const char *best = NULL;
    for (int i = 0; i < TARGET_COUNT; i++) {
        bool runs =
            targets[i].only ? targets[i].capability == capability : targets[i].capability <= capability;
        if (runs) best = targets[i].name;
    }
    return best;
}

const char *cuda_target_named(const char *name) {
    int index = find_target(name);
    return index < 0 ? NULL : targets[index].name;
}

const char *cuda_target_at(int index) {
    return index < 0 || index >= TARGET_COUNT ? NULL : targets[index].name;
}

const char *cuda_target_features(const char *target) {
    int index = find_target(target);
    return index < 0 ? "" : targets[index].features;
}

bool cuda_target_runs(const char *target, const char *here, int *rank) {
    int made = find_target(target), wanted = find_target(here);
    if (made < 0 || wanted < 0) return false;
    *rank = made;
    return made == wanted || (!targets[made].only && targets[made].capability <= targets[wanted].capability);
}
