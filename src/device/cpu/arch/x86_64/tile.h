/* What the levels of products of tiles share. */
#ifndef SMELT_DEVICE_CPU_ARCH_X86_64_TILE_H
#define SMELT_DEVICE_CPU_ARCH_X86_64_TILE_H

#include "device/cpu/arch/tile.h"

/* The values of a format's codes. */
struct tile_table {
    unsigned bits;
    float values[256];
};
/* Of TILE_INT4 to TILE_E5M2. */
const struct tile_table *tile_table(enum tile_kind kind);
/* Called once, before any product. */
void tile_fill_tables(void);

/* The size of an element. */
static inline int tile_bits(enum tile_kind kind) {
    static const uint8_t bits[] = {
        [TILE_FLOAT] = 32, [TILE_HALF] = 16, [TILE_BFLOAT] = 16, [TILE_INT8] = 8,  [TILE_UINT8] = 8,
        [TILE_INT4] = 4,   [TILE_UINT4] = 4, [TILE_INT2] = 2,    [TILE_UINT2] = 2, [TILE_FP4] = 4,
        [TILE_E4M3] = 8,   [TILE_E5M2] = 8,  [TILE_INT32] = 32};
    return bits[kind];
}

extern const struct tile_level tile_level_sse2, tile_level_avx2, tile_level_avx512;
/* AVX-512 with VNNI and bfloat16, where the CPU has them; AMX too. Engines of the formats they add. */
extern const struct tile_engine tile_engine_short_vnni, tile_engine_brain_avx512, tile_engine_brain_amx,
    tile_engine_byte_amx;
/* Whether the system lets this process use AMX's tiles; asks for it. */
bool tile_amx_permitted(void);

#endif
