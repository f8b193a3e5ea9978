// 2 to the power of x without the special function unit, which computes 16 exponentials per cycle on a multiprocessor where others
// compute 128 multiply-adds. For x up to 126, and -INFINITY, whose result is 0, as is that of all below -127. NaN gives 0, too: the
// caller must see to it otherwise. Between -127 and -126 results are subnormal.
//
// x is n + f, with |f| at most 1/2: adding 1.5 · 2^23 rounds to an integer, which then lies in the lowest bits. The polynomial in f
// is 1 at 0, so that 2^-127, which takes all bits of the exponent away, is exactly 0. Its coefficients have the least largest
// relative error among such polynomials: 1.02e-4 of degree 3, 2.9e-6 of degree 4, both with the errors of these operations
// (tests/python/test_attention_exp2.py). Rounding to bfloat errs by up to 3.9e-3, to half by 4.9e-4.
#include <metal_stdlib>
using namespace metal;

template <int DEGREE> inline float exp2_by_fma(float x) {
    static_assert(DEGREE == 3 || DEGREE == 4, "the degrees there are");
    const float clamped = __builtin_fmaxf(x, -127.0f), shifted = clamped + 0x1.8p23f, f = clamped - (shifted - 0x1.8p23f);
    const float power = DEGREE == 3
                            ? fma(fma(fma(0.055008605f, f, 0.24221101f), f, 0.69328296f), f, 1.0f)
                            : fma(fma(fma(fma(0.0095828576f, f, 0.055906437f), f, 0.24024099f), f, 0.69312418f), f, 1.0f);
    return as_type<float>(as_type<uint>(power) + (as_type<uint>(shifted) << 23));
}
