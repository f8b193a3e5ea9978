/* Which products of tiles this machine computes how. */
#include "device/cpu/arch/x86_64/tile.h"
#include "device/cpu/arch/arch.h"

#include <cpuid.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct tile_level own; /* this machine's best */

/* Leaf 7 of CPUID, by subleaf: AVX512-VNNI, AVX512-BF16, and AMX's three parts. */
static bool has(uint32_t subleaf, int place, int bit) {
    uint32_t r[4] = {0};
    return __get_cpuid_count(7, subleaf, &r[0], &r[1], &r[2], &r[3]) && (r[place] >> bit & 1);
}

static void add_extensions(void) {
    if (has(0, 2, 11)) own.engines[TILE_UNIT_SHORT] = &tile_engine_short_vnni;
    if (has(1, 0, 5)) own.engines[TILE_UNIT_BRAIN] = &tile_engine_brain_avx512;
    bool tiles = has(0, 3, 24), brains = has(0, 3, 22), bytes = has(0, 3, 25);
    if (!tiles || !(brains || bytes) || !tile_amx_permitted()) return;
    if (brains) own.engines[TILE_UNIT_BRAIN] = &tile_engine_brain_amx;
    if (bytes) own.engines[TILE_UNIT_BYTE] = &tile_engine_byte_amx;
}

static void choose(void) {
    static const struct tile_level *const levels[] = {&tile_level_avx512, &tile_level_avx2, &tile_level_sse2};
    const char *setting = getenv("SMELT_CPU");
    bool known = false;
    for (const struct arch_level *level = arch_levels; setting && level->name; level++)
        known |= strcmp(level->name, setting) == 0 && arch_runs_level(level);
    tile_fill_tables();
    int i = 0;
    for (const struct arch_level *level = arch_levels; level->name; level++, i++) {
        if (known ? strcmp(level->name, setting) != 0 : !arch_runs_level(level)) continue;
        own = *levels[i];
        if (!known && i == 0) add_extensions();
        return;
    }
}

const struct tile_level *arch_tile_level(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose);
    return &own;
}
