/* Products of tiles with AVX2, FMA and F16C. Compiled for them: only tile.c, which looks at the CPU, refers
 * to it. */
#include <immintrin.h>
#include <stdint.h>

static void halves_to_floats(const uint16_t *in, int count, float *out) {
    int i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(in + i))));
    for (; i < count; i++) out[i] = _cvtsh_ss(in[i]);
}

static void floats_to_halves(const float *in, int count, uint16_t *out) {
    int i = 0;
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i *)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(in + i), 0));
    for (; i < count; i++) out[i] = _cvtss_sh(in[i], 0);
}

#define LANES 8
#define ROWS 6
#define ROW_CASES ROW_CASES_6
/* Products of 1024 are 2 to 4 % faster than with 256, next to OpenBLAS as in tile_avx512.c (30 November
 * 2026). */
#define DEPTH 384
/* Products were 0 to 5 % slower with it: loads occupy two thirds of the ports already. */
#define FETCHES false
#include "device/cpu/arch/x86_64/tile_level.h"

INLINE VECTOR multiply_add(VECTOR a, VECTOR b, VECTOR sum) {
    return (VECTOR)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
}
INLINE WHOLE multiply_pairs(WHOLE a, WHOLE b, WHOLE sum) {
    return sum + (WHOLE)_mm256_madd_epi16((__m256i)a, (__m256i)b);
}

DEFINE_LEVEL(avx2, multiply_floats)
