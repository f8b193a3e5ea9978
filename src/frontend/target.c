#include "frontend/target.h"
#include "base/error.h"

#include <cpuid.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- What this machine can do, without asking LLVM. */

static bool has_level_3(void) {
    unsigned ignored, basic = 0, extended = 0;
    (void)__get_cpuid(1, &ignored, &ignored, &basic, &ignored);
    (void)__get_cpuid(0x80000001u, &ignored, &ignored, &extended, &ignored);
    /* The built-in knows whether the system saves the wide registers; these three are not among its names. */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") && (basic & bit_MOVBE) &&
           (basic & bit_F16C) && (extended & bit_LZCNT);
}

static bool has_level_4(void) {
    return has_level_3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

static bool has_baseline(void) {
    return true;
}

/* ---- What is asked for. */

static const struct level {
    const char *name, *cpu;
    bool (*runs_here)(void);
} levels[] = {
    {"avx512", "x86-64-v4", has_level_4},
    {"avx2", "x86-64-v3", has_level_3},
    {"sse2", "x86-64", has_baseline},
};
#define LEVEL_COUNT (sizeof levels / sizeof *levels)

static void warn_once(const char *setting, bool known) {
    static atomic_bool warned;
    if (atomic_exchange(&warned, true)) return;
    if (known)
        log_line(SMELT_LOG_WARNING,
                 "SMELT_CPU is '%s', which this machine lacks; expected avx512, avx2 or sse2, as the machine "
                 "has it; using its own CPU",
                 setting);
    else
        log_line(SMELT_LOG_WARNING,
                 "SMELT_CPU is '%s', expected avx512, avx2 or sse2; using this machine's own CPU", setting);
}

const char *target_cpu(void) {
    const char *setting = getenv("SMELT_CPU");
    if (!setting || !*setting) return NULL;
    for (size_t i = 0; i < LEVEL_COUNT; i++) {
        if (strcmp(levels[i].name, setting) != 0) continue;
        if (levels[i].runs_here()) return levels[i].cpu;
        warn_once(setting, true);
        return NULL;
    }
    warn_once(setting, false);
    return NULL;
}

void target_add_to_key(const char *cpu, struct hasher *hasher) {
    hasher_add_string(hasher, cpu ? cpu : "");
    if (cpu) return;
    unsigned words[4 * 4] = {0};
    unsigned ignored;
    (void)__get_cpuid(0x80000002u, &words[0], &words[1], &words[2], &words[3]);
    (void)__get_cpuid(1, &words[4], &ignored, &words[6], &words[7]);
    (void)__get_cpuid_count(7, 0, &words[8], &words[9], &words[10], &words[11]);
    (void)__get_cpuid(0x80000001u, &words[12], &ignored, &words[14], &words[15]);
    /* Leaf 1's ecx carries OSXSAVE, which the running system decides; ebx the CPU number: left out above. */
    hasher_add(hasher, words, sizeof words);
}
