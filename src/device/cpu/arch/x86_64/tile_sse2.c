/* Products of tiles on any x86-64. */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

/* A half's exponent and mantissa, where a float's are, times 2^112. */
static void halves_to_floats(const uint16_t *in, int count, float *out) {
    for (int i = 0; i < count; i++) {
        uint32_t magnitude = in[i] & 0x7fffu, sign = (uint32_t)(in[i] & 0x8000u) << 16,
                 bits = magnitude << 13;
        float value;
        memcpy(&value, &bits, sizeof value);
        value *= 0x1p112f;
        memcpy(&bits, &value, sizeof bits);
        /* Infinity and NaN, which becomes quiet. */
        if (magnitude >= 0x7c00u)
            bits = 0x7f800000u | (magnitude & 0x3ffu) << 13 | (magnitude > 0x7c00u ? 0x400000u : 0);
        bits |= sign;
        memcpy(out + i, &bits, sizeof bits);
    }
}

static uint16_t float_to_half(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x1ffu));
    if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) {
        /* Below the normal ones: adding 0.5 leaves the half's mantissa in the lowest bits, rounded. */
        float sum;
        memcpy(&sum, &magnitude, sizeof sum);
        sum += 0.5f;
        memcpy(&bits, &sum, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3f000000u));
    }
    return (uint16_t)(sign | (magnitude + 0xc8000fffu + (magnitude >> 13 & 1)) >> 13);
}

static void floats_to_halves(const float *in, int count, uint16_t *out) {
    for (int i = 0; i < count; i++) out[i] = float_to_half(in[i]);
}

#define LANES 4
#define ROWS 4
#define ROW_CASES ROW_CASES_4
#define DEPTH 256
#define FETCHES false
#include "device/cpu/arch/x86_64/tile_level.h"

/* Two products and sums, rounded once. The product is exact in double. The sum is rounded to odd there: if it
 * is not exact, its last bit becomes 1, so that rounding to float sees on which side of a tie it lies. */
INLINE __m128 multiply_add_two(__m128 a, __m128 b, __m128 sum) {
    __m128d product = _mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b)), addend = _mm_cvtps_pd(sum);
    __m128d total = _mm_add_pd(product, addend), part = _mm_sub_pd(total, product);
    __m128d error = _mm_add_pd(_mm_sub_pd(product, _mm_sub_pd(total, part)), _mm_sub_pd(addend, part));
    __m128d zero = _mm_setzero_pd();
    __m128i inexact = _mm_castpd_si128(_mm_or_pd(_mm_cmplt_pd(error, zero), _mm_cmpgt_pd(error, zero)));
    /* One step away from zero where error and total have one sign, else towards it; none if the bit is 1. */
    __m128i bits = _mm_castpd_si128(total), one = _mm_set1_epi64x(1);
    __m128i differ = _mm_srli_epi64(_mm_xor_si128(bits, _mm_castpd_si128(error)), 63);
    __m128i step = _mm_sub_epi64(one, _mm_slli_epi64(differ, 1));
    __m128i even = _mm_sub_epi64(_mm_and_si128(bits, one), one);
    bits = _mm_add_epi64(bits, _mm_and_si128(_mm_and_si128(step, even), inexact));
    return _mm_cvtpd_ps(_mm_castsi128_pd(bits));
}
INLINE VECTOR multiply_add(VECTOR a, VECTOR b, VECTOR sum) {
    __m128 x = (__m128)a, y = (__m128)b, z = (__m128)sum;
    __m128 low = multiply_add_two(x, y, z);
    __m128 high = multiply_add_two(_mm_movehl_ps(x, x), _mm_movehl_ps(y, y), _mm_movehl_ps(z, z));
    return (VECTOR)_mm_movelh_ps(low, high);
}
INLINE VECTOR multiply_exact(VECTOR a, VECTOR b, VECTOR sum) {
    return a * b + sum;
}
INLINE WHOLE multiply_pairs(WHOLE a, WHOLE b, WHOLE sum) {
    return sum + (WHOLE)_mm_madd_epi16((__m128i)a, (__m128i)b);
}

DEFINE_SUMS(multiply_exacts, VECTOR, load_floats, store_floats, spread_float, multiply_exact)
DEFINE_LEVEL(sse2, multiply_exacts)
