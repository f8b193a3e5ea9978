#include "package/features.h"
#include "device/cpu/arch/arch.h"
#include "frontend/target.h"

#include <stdio.h>
#include <string.h>

void features_of_machine(struct text *out) {
    arch_add_features(true, out);
}

void features_of_code(struct text *out) {
    arch_add_features(false, out);
}

void features_allowed(struct text *out) {
    const char *cpu = target_cpu();
    if (cpu)
        text_add(out, features_of_level(cpu));
    else
        features_of_machine(out);
}

const char *features_of_level(const char *cpu) {
    for (const struct arch_level *level = arch_levels; level->name; level++)
        if (strcmp(level->cpu, cpu) == 0) return level->features;
    return NULL;
}

static bool has(const char *list, const char *name, size_t length) {
    for (; *list; list += strcspn(list, " "), list += *list == ' ')
        if (strcspn(list, " ") == length && strncmp(list, name, length) == 0) return true;
    return false;
}

bool features_missing(const char *needed, const char *had, char missing[64]) {
    for (; *needed; needed += strcspn(needed, " "), needed += *needed == ' ') {
        size_t length = strcspn(needed, " ");
        if (has(had, needed, length)) continue;
        snprintf(missing, 64, "%.*s", (int)length, needed);
        return true;
    }
    return false;
}

int features_level(const char *list) {
    char missing[64];
    if (!features_missing(features_of_level("x86-64-v4"), list, missing)) return 4;
    return features_missing(features_of_level("x86-64-v3"), list, missing) ? 1 : 3;
}

int features_count(const char *list) {
    int count = 0;
    for (; *list; list += strcspn(list, " "), list += *list == ' ') count++;
    return count;
}
