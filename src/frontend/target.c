#include "frontend/target.h"
#include "base/error.h"
#include "device/cpu/arch/arch.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

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
    for (const struct arch_level *level = arch_levels; level->name; level++) {
        if (strcmp(level->name, setting) != 0) continue;
        if (arch_runs_level(level)) return level->cpu;
        warn_once(setting, true);
        return NULL;
    }
    warn_once(setting, false);
    return NULL;
}

void target_add_to_key(const char *cpu, struct hasher *hasher) {
    hasher_add_string(hasher, cpu ? cpu : "");
    if (cpu) return;
    uint32_t words[ARCH_IDENTITY_WORDS];
    arch_identity(words);
    hasher_add(hasher, words, sizeof words);
}
