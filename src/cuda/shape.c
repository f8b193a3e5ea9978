#include "cuda/shape.h"

#include <string.h>

void cuda_shape(const struct launch *launch, bool barrier_hint, struct code_shape *shape) {
    const uint32_t *size = launch->group_size;
    uint32_t threads = size[0] * size[1] * size[2];
    bool line = size[1] == 1 && size[2] == 1;
    (void)barrier_hint;
    *shape =
        (struct code_shape){.engine = ENGINE_PTX, .polled = launch->timeout > 0, .small = !launch->large};
    for (int d = 0; d < 3; d++) {
        uint64_t groups = ((uint64_t)launch->grid[d] + size[d] - 1) / size[d];
        if (launch->grid[d] % size[d]) shape->masked = 1;
        if (launch->grid[d] >= INT32_MAX - 1023u) shape->small = 0;
        if (groups > (d ? CUDA_MOST_BLOCKS : CUDA_MOST_BLOCKS_X)) shape->folded = 1;
    }
    if (threads % 32 == 0) {
        memcpy(shape->size, size, sizeof shape->size);
        return;
    }
    for (int d = 1; d < 3; d++) shape->size[d] = line;
    shape->most_threads = 32;
    while (shape->most_threads < threads) shape->most_threads *= 2;
}

/* sm_90a's code runs on 9.0 alone; sm_90's on all that is newer. */
static const struct target {
    const char *name, *features;
    int capability;
} targets[] = {
    {"sm_80", "+ptx74", 80}, {"sm_86", "+ptx74", 86},  {"sm_87", "+ptx74", 87},
    {"sm_89", "+ptx80", 89}, {"sm_90a", "+ptx80", 90}, {"sm_90", "+ptx85", 0},
};
#define TARGET_COUNT (sizeof targets / sizeof *targets)

const char *cuda_target(int capability) {
    if (capability < targets[0].capability) return NULL;
    if (capability > 90) return "sm_90";
    const struct target *best = &targets[0];
    for (size_t i = 1; i < TARGET_COUNT; i++)
        if (targets[i].capability && targets[i].capability <= capability) best = &targets[i];
    return best->name;
}

const char *cuda_target_named(const char *name) {
    for (size_t i = 0; i < TARGET_COUNT; i++)
        if (strcmp(targets[i].name, name) == 0) return targets[i].name;
    return NULL;
}

const char *cuda_target_features(const char *target) {
    for (size_t i = 0; i < TARGET_COUNT; i++)
        if (strcmp(targets[i].name, target) == 0) return targets[i].features;
    return "";
}
