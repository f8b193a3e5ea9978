/* Elementary functions of 16 floats. */
#ifndef SMELT_BENCH_HAND_VECTOR_MATH_H
#define SMELT_BENCH_HAND_VECTOR_MATH_H

#include <immintrin.h>

/* e^x within 1 ulp: x = n ln 2 + r, a polynomial in r, scaled by 2^n. NaN stays. */
static inline __m512 exp16(__m512 x) {
    const __m512 rounder = _mm512_set1_ps(0x1.8p23f);
    x = _mm512_max_ps(_mm512_set1_ps(-104.0f), _mm512_min_ps(_mm512_set1_ps(89.0f), x));
    __m512 n = _mm512_sub_ps(_mm512_fmadd_ps(x, _mm512_set1_ps(0x1.715476p0f), rounder), rounder);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0x1.62e43p-1f), x);
    r = _mm512_fmadd_ps(n, _mm512_set1_ps(0x1.05c61p-29f), r);
    __m512 p = _mm512_set1_ps(0x1.6d1176p-10f);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.120bdap-7f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.555518p-5f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.5554dcp-3f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5f));
    p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
    return _mm512_scalef_ps(_mm512_add_ps(p, _mm512_set1_ps(1.0f)), n);
}

#endif
