/* Pairs of bfloats with AVX512-BF16, which rounds sums by its own rules: for relaxed math only. */
#include "device/cpu/arch/x86_64/tile.h"

#include <immintrin.h>
#include "device/cpu/arch/x86_64/tile_wide.h"

INLINE VECTOR multiply_pairs(WHOLE a, WHOLE b, VECTOR sum) {
    return (VECTOR)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
}
/* The operands' words travel as floats' vectors do. */
INLINE VECTOR multiply_brains(VECTOR a, VECTOR b, VECTOR sum) {
    return multiply_pairs((WHOLE)a, (WHOLE)b, sum);
}
INLINE VECTOR spread_pair(const uint32_t *p) {
    return (VECTOR)spread_whole(p);
}

DEFINE_SUMS(multiply, VECTOR, load_floats, store_floats, spread_pair, multiply_brains)

const struct tile_engine tile_engine_brain_avx512 = VECTOR_ENGINE(2, multiply);
