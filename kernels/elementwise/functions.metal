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
