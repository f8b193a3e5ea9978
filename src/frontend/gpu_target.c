#include "frontend/gpu_target.h"

#include <string.h>

/* From old to new, which is from less to more. `only`: runs on devices of this capability alone; the others'
 * runs on newer ones, too, as PTX does. */
static const struct target {
    const char *name, *features;
    int capability;
    bool only;
} targets[] = {
    {"sm_80", "+ptx74", 80, false}, {"sm_86", "+ptx74", 86, false}, {"sm_87", "+ptx74", 87, false},
    {"sm_89", "+ptx80", 89, false}, {"sm_90", "+ptx85", 90, false}, {"sm_90a", "+ptx85", 90, true},
};
#define TARGET_COUNT ((int)(sizeof targets / sizeof *targets))

static int find_target(const char *name) {
    for (int i = 0; i < TARGET_COUNT; i++)
        if (strcmp(targets[i].name, name) == 0) return i;
    return -1;
}

const char *gpu_target_of(int capability) {
    const char *best = NULL;
    for (int i = 0; i < TARGET_COUNT; i++) {
        bool runs =
            targets[i].only ? targets[i].capability == capability : targets[i].capability <= capability;
        if (runs) best = targets[i].name;
    }
    return best;
}

const char *gpu_target_named(const char *name) {
    int index = find_target(name);
    return index < 0 ? NULL : targets[index].name;
}

const char *gpu_target_at(int index) {
    return index < 0 || index >= TARGET_COUNT ? NULL : targets[index].name;
}

const char *gpu_target_features(const char *target) {
    int index = find_target(target);
    return index < 0 ? "" : targets[index].features;
}

bool gpu_target_runs(const char *target, const char *here, int *rank) {
    int made = find_target(target), wanted = find_target(here);
    if (made < 0 || wanted < 0) return false;
    *rank = made;
    return made == wanted || (!targets[made].only && targets[made].capability <= targets[wanted].capability);
}
