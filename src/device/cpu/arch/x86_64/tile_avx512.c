/* Products of tiles with AVX-512 (F, BW, DQ, VL), FMA and F16C. Compiled for them: only tile.c, which looks
 * at the CPU, refers to it. */
#include <immintrin.h>
#include <stdint.h>

static void halves_to_floats(const uint16_t *in, int count, float *out) {
    int i = 0;
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(in + i))));
    for (; i < count; i++) out[i] = _cvtsh_ss(in[i]);
}

static void floats_to_halves(const float *in, int count, uint16_t *out) {
    int i = 0;
    for (; i + 16 <= count; i += 16)
        _mm256_storeu_si256((__m256i *)(out + i), _mm512_cvtps_ph(_mm512_loadu_ps(in + i), 0));
    for (; i < count; i++) out[i] = _cvtss_sh(in[i], 0);
}

#define LANES 16
#define ROWS 12
#define ROW_CASES ROW_CASES_12
#define DEPTH TILE_MOST_DEPTH /* tile.c takes less where the cache is small */
/* Products of 1024 and 2048 are 4 to 7 % faster with it and such panels, next to OpenBLAS on one core of a
 * Xeon with 2 MiB of second-level cache (30 November 2026). */
#define FETCHES true
#include "device/cpu/arch/x86_64/tile_level.h"

INLINE VECTOR multiply_add(VECTOR a, VECTOR b, VECTOR sum) {
    return (VECTOR)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum);
}
INLINE WHOLE multiply_pairs(WHOLE a, WHOLE b, WHOLE sum) {
    return sum + (WHOLE)_mm512_madd_epi16((__m512i)a, (__m512i)b);
}

DEFINE_LEVEL(avx512, multiply_floats)
