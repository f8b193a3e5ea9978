// Casts between half and bfloat, which have no common type: functional, C-style and static_cast, by name, by alias and by a
// template's parameter; and what looks like a cast.
// run: casts -b 0=arange:float32:9 -b 1:out:float32:9x8 --grid 9
// expect buffer 1: f(i) for i in 72: [i // 8 + 0.5, i // 8 + 0.5, 3 * (i // 8) + 1, i // 8, i // 8 + 0.5, 2 * (i // 8), 18, i // 8 - 2][i % 8]
#include <metal_stdlib>
using namespace metal;

typedef half half_t;
using brain = bfloat;
struct Bits { uint low : 4; int high : 4; };
struct Holder { half value; operator half() const { return value; } };

template <typename To, typename From> To functional(From x) { return To(x); }
template <typename To, typename From> To c_style(From x) { return (To)x; }
template <class To, class From> To by_static(From x) { return static_cast<To>(x) + static_cast<To>(0); }
template <typename T, typename U = half> struct Converter {
  T stored;
  Converter(U x) : stored(T(x)) {}
  U back() const { return (U)stored; }
};
template <typename T, int N> float sum(const thread T (&values)[N]) {
  float total = 0;
  for (int k = 0; k < N; k++) total += float(T(values[k]));
  return total;
}
template <typename... T> float all(T... x) { return (float(x) + ...) + sizeof...(T); }

kernel void casts(const device float *in [[buffer(0)]], device float *out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  device float *mine = out + 8 * i;
  half h = half(in[i]) + 0.5h;
  bfloat b = bfloat(h);
  mine[0] = half(b);
  mine[1] = float((half_t)(brain)(h));
  mine[2] = float(functional<bfloat>(h)) + float(c_style<half>(b)) + float(by_static<bfloat>(h)) - 0.5f;
  Converter<bfloat> converter(h - half(0.5h));
  mine[3] = converter.back();
  Holder holder = {h};
  mine[4] = (bfloat)half(holder);
  half4 wide = half4(bfloat4(half4(h)));
  bfloat2 pair = bfloat2(half2(in[i] - 0.5f, 0.5f - in[i]));
  mine[5] = float(wide.x) + float(half(-pair.y));
  Bits bits = {5, -3};
  bfloat values[3] = {bfloat(1), bfloat(2), static_cast<bfloat>(bits.low)};
  bfloat (&reference)[3] = values;
  half (*pointer)(half) = nullptr;
  mine[6] = sum(reference) + all(bfloat(h) - (bfloat)(h), 1.0f, half(bits.high)) + static_cast<half>(bits.low) + sizeof(half) + (pointer ? 1 : 0) + 2;
  mine[7] = float(long(bfloat(in[i]))) - 2 * int((half)1.9h);
}
