// Functions that kernels of array operations call, which Metal's library lacks or defines otherwise. The text stands
// behind `using namespace metal;`.
// erf: an odd polynomial below 1, 1 - exp(polynomial) up to 4, both by interpolation at Chebyshev's points (errors of
// the polynomials 2e-9 and 1e-9). log1p, expm1: a quotient restores what rounding took from 1 + x or e^x.
inline float log1p_of(float x) {
  float u = 1.0f + x;
  return u == 1.0f || u == INFINITY ? x : log(u) * (x / (u - 1.0f));
}
inline float expm1_of(float x) {
  float u = exp(x), less = u - 1.0f;
  if (u == 1.0f) return x;
  if (less == -1.0f || u == INFINITY) return less;
  return less * (x / log(u));
}
inline float erf_of(float x) {
  float size = fabs(x);
  if (size < 1.0f) {
    float t = x * x;
    return x * fma(fma(fma(fma(fma(fma(7.87587505e-05f, t, -0.000801686428f), t, 0.00518908742f), t,
           -0.026854212f), t, 0.112835947f), t, -0.376126267f), t, 1.12837917f);
  }
  float t = fmin(size, 4.0f), rest = exp(fma(fma(fma(fma(fma(fma(fma(fma(fma(-7.5826822e-08f, t, 3.32168464e-06f), t, -6.22983537e-05f), t,
                 0.000685836686f), t, -0.00506494693f), t, 0.0270995233f), t, -0.111055017f), t, -0.63095303f), t,
                 -1.13067514f), t, 0.00041632922f));
  return x != x ? x : copysign(1.0f - rest, x);
}
// erfinv: x times a polynomial of w = -log(1 - x²), or for w >= 5 of its root, by interpolation as above (relative errors
// 6e-9 and 2e-8).
inline float erfinv_of(float x) {
  const float w = -log((1.0f - x) * (1.0f + x));
  float p;
  if (w < 5.0f) {
    const float t = w - 2.5f;
    p = fma(fma(fma(fma(fma(fma(fma(fma(fma(-8.93192631e-09f, t, 2.3335968e-08f), t, 4.68131361e-07f), t, -3.46398519e-06f), t,
            -4.9724199e-06f), t, 0.000218349393f), t, -0.00125272643f), t, -0.00417739293f), t, 0.24664028f), t, 1.50140941f);
  } else {
    const float t = sqrt(w) - 3.21803399f;
    p = fma(fma(fma(fma(fma(fma(fma(fma(fma(9.4318275e-05f, t, -9.87524836e-05f), t, -0.000362930819f), t, 0.0011115768f), t,
            -0.00187786063f), t, 0.00275039906f), t, -0.00408773683f), t, 0.00574955111f), t, 1.00490379f), t, 3.0517571f);
  }
  return fabs(x) == 1.0f ? x * INFINITY : x * p;
}
inline float sigmoid_of(float x) {
  float e = exp(-fabs(x));
  return x < 0.0f ? e / (1.0f + e) : 1.0f / (1.0f + e);
}
inline float logaddexp_of(float x, float y) {
  float high = x > y || x != x ? x : y, low = x > y || x != x ? y : x;
  if (fabs(high) == INFINITY || high != high || low != low) return low != low ? low : high;
  return high + log1p_of(exp(low - high));
}
inline float remainder_of(float x, float y) {
  float r = fmod(x, y);
  return r != 0.0f && (r < 0.0f) != (y < 0.0f) ? r + y : r;
}
inline float floor_divide_of(float x, float y) {
  if (y == 0.0f) return x / y;
  float q = (x - remainder_of(x, y)) / y, whole = floor(q);
  return q - whole > 0.5f ? whole + 1.0f : whole;
}
template <typename T> inline T integer_remainder(T x, T y) {
  T r = T(x % y);
  return r != T(0) && (r < T(0)) != (y < T(0)) ? T(r + y) : r;
}
template <typename T> inline T integer_floor_divide(T x, T y) {
  if (y == T(0)) return T(0);
  T q = T(x / y), r = T(x % y);
  return r != T(0) && (r < T(0)) != (y < T(0)) ? T(q - T(1)) : q;
}
template <typename T> inline T integer_power(T x, T y) {
  if (y < T(0)) return x == T(1) ? T(1) : T(x * x) == T(1) ? (y & T(1) ? x : T(1)) : T(0);
  T result = T(1);
  for (; y != T(0); y = T(y >> 1)) {
    if (y & T(1)) result = T(result * x);
    x = T(x * x);
  }
  return result;
}
template <typename T> inline T invert_of(T x) { return T(~x); }
inline bool invert_of(bool x) { return !x; }
inline long index_of(long i, long size) {
  if (i < 0) i += size;
  return i < 0 ? 0 : i >= size ? size - 1 : i;
}
