// complex64 for kernels of array operations. The text stands behind `using namespace metal;`.
struct complex64 {
  float re, im;
  complex64() = default;
  complex64(float re, float im) : re(re), im(im) {}
  template <typename T> explicit complex64(T x) : re(float(x)), im(0.0f) {}
  template <typename T> explicit operator T() const { return T(re); }
};
inline complex64 operator+(complex64 a, complex64 b) { return complex64(a.re + b.re, a.im + b.im); }
inline complex64 operator-(complex64 a, complex64 b) { return complex64(a.re - b.re, a.im - b.im); }
inline complex64 operator-(complex64 a) { return complex64(-a.re, -a.im); }
inline complex64 operator*(complex64 a, complex64 b) {
  return complex64(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}
inline complex64 operator/(complex64 a, complex64 b) {
  bool wide = fabs(b.re) >= fabs(b.im);
  float ratio = wide ? b.im / b.re : b.re / b.im;
  float scale = wide ? b.re + b.im * ratio : b.re * ratio + b.im;
  if (wide) return complex64((a.re + a.im * ratio) / scale, (a.im - a.re * ratio) / scale);
  return complex64((a.re * ratio + a.im) / scale, (a.im * ratio - a.re) / scale);
}
inline bool operator==(complex64 a, complex64 b) { return a.re == b.re && a.im == b.im; }
inline bool operator!=(complex64 a, complex64 b) { return !(a == b); }
inline float modulus(complex64 a) {
  float x = fabs(a.re), y = fabs(a.im), large = fmax(x, y), small = fmin(x, y);
  if (large == 0.0f || large == INFINITY) return large;
  float ratio = small / large;
  return large * sqrt(1.0f + ratio * ratio);
}
