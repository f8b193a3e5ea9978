/* Pairs of int16_t with AVX512-VNNI. */
#include "device/cpu/arch/x86_64/tile.h"

#include <immintrin.h>
#include "device/cpu/arch/x86_64/tile_wide.h"

INLINE WHOLE multiply_pairs(WHOLE a, WHOLE b, WHOLE sum) {
    return (WHOLE)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
}

DEFINE_SUMS(multiply_shorts, WHOLE, load_wholes, store_wholes, spread_whole, multiply_pairs)

const struct tile_engine tile_engine_short_vnni = VECTOR_ENGINE(2, multiply_shorts);
