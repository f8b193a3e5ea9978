#include "frontend/target.h"
#include "base/error.h"
#include "device/cpu/arch/arch.h"

#include <pthread.h>
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

static uint32_t identity[ARCH_IDENTITY_WORDS];

static void read_identity(void) {
    arch_identity(identity);
}

/* The identity is read once per process: in a virtual machine, each CPUID instruction enters the hypervisor,
 * which takes long compared with a load from the disk cache. */
void target_add_to_key(const char *cpu, struct hasher *hasher) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    hasher_add_string(hasher, cpu ? cpu : "");
    if (cpu) return;
    pthread_once(&once, read_identity);
    hasher_add(hasher, identity, sizeof identity);
}
