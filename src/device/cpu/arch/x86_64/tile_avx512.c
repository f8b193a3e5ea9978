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

#define PANEL 32
#include "device/cpu/arch/x86_64/tile_pack.h"
#include "device/cpu/arch/x86_64/tile_wide.h"

INLINE VECTOR multiply_add(VECTOR a, VECTOR b, VECTOR sum) {
    return (VECTOR)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum);
}
INLINE WHOLE multiply_pairs(WHOLE a, WHOLE b, WHOLE sum) {
    return sum + (WHOLE)_mm512_madd_epi16((__m512i)a, (__m512i)b);
}

DEFINE_SUMS(multiply_floats, VECTOR, load_floats, store_floats, spread_float, multiply_add)
DEFINE_SUMS(multiply_shorts, WHOLE, load_wholes, store_wholes, spread_whole, multiply_pairs)

static const struct tile_engine on_floats = {.terms = 1,
                                             .rows = ROWS,
                                             .columns = COLUMNS,
                                             .depth = 256,
                                             .unit_step = 1,
                                             .row_step = 1,
                                             .multiply = multiply_floats};
static const struct tile_engine on_shorts = {.terms = 2,
                                             .rows = ROWS,
                                             .columns = COLUMNS,
                                             .depth = 256,
                                             .unit_step = 1,
                                             .row_step = 1,
                                             .multiply = multiply_shorts};

const struct tile_level tile_level_avx512 = {
    .name = "avx512",
    .pack = pack_part,
    .store = store_sums,
    .load = load_sums,
    .unfold = unfold_tile,
    .fold = fold_tile,
    .engines = {
        [TILE_UNIT_FLOAT] = &on_floats, [TILE_UNIT_EXACT] = &on_floats, [TILE_UNIT_SHORT] = &on_shorts}};
