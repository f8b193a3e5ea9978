/* Elementary functions of vectors. */
#ifndef SMELT_BENCH_HAND_VECTOR_MATH_H
#define SMELT_BENCH_HAND_VECTOR_MATH_H

#include "bench/hand/vector.h"

/* e^x within 1 ulp: x = n ln 2 + r, a polynomial in r, scaled by 2^n. NaN stays. */
static inline vector vector_exp(vector x) {
    const vector rounder = vector_set(0x1.8p23f);
    x = vector_max(vector_set(-104.0f), vector_min(vector_set(89.0f), x));
    vector n = vector_sub(vector_fmadd(x, vector_set(0x1.715476p0f), rounder), rounder);
    vector r = vector_fnmadd(n, vector_set(0x1.62e43p-1f), x);
    r = vector_fmadd(n, vector_set(0x1.05c61p-29f), r);
    vector p = vector_set(0x1.6d1176p-10f);
    p = vector_fmadd(p, r, vector_set(0x1.120bdap-7f));
    p = vector_fmadd(p, r, vector_set(0x1.555518p-5f));
    p = vector_fmadd(p, r, vector_set(0x1.5554dcp-3f));
    p = vector_fmadd(p, r, vector_set(0.5f));
    p = vector_fmadd(p, vector_mul(r, r), r);
    return vector_scale(vector_add(p, vector_set(1.0f)), n);
}

#endif
