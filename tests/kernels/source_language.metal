// C++17 as clang takes it: bit-fields, unions, packs, structured bindings, deduction, operators, constexpr if, lambdas.
// run: language -b 0:out:float32:8x24 --grid 8
// let row = lambda i: (5, 9, -3, 1, 6, 6, 6, 1, 16, 3, 5, 18, 3, 4, 6, 7, 4, 2, 6, 5, 3, 3, 2.5, 4 + i)
// expect buffer 0: f(i) for i in 192: row(i // 24)[i % 24]
#include <metal_stdlib>
using namespace metal;

enum class Op : uchar { add, mul };
union Word { float f; uint u; uchar bytes[4]; };
struct Bits { uint a : 3; uint b : 5; int c : 8; };
template <typename... T> float sum(T... t) { return (0.0f + ... + float(t)); }
template <typename T, typename... U> T first(T t, U...) { return t; }
struct alignas(16) Aligned { float x, y; };
static_assert(sizeof(Aligned) == 16, "aligned");
struct Pair {
  float x, y;
  Pair operator+(Pair o) const { return {x + o.x, y + o.y}; }
  thread Pair &operator+=(Pair o) { x += o.x; y += o.y; return *this; }
  bool operator==(const thread Pair &o) const { return x == o.x && y == o.y; }
  float operator[](int i) const { return i ? y : x; }
  explicit operator float() const { return x; }
};
Pair operator*(Pair a, float s) { return {a.x * s, a.y * s}; }
template <typename T> auto twice(T x) -> decltype(x + x) { return x + x; }
template <Op o> float apply(float x) {
  if constexpr (o == Op::add) return x + 1;
  else return x * 2;
}
struct Scale { float k; float operator()(float x) const { return x * k; } };
template <typename F> float call(F f, float x) { return f(x); }
template <template <typename> class C, typename T> struct Wrap { C<T> inner; };
template <typename T> struct Box { T v; };
template <class T> Box(T) -> Box<T>;
typedef float three[3];
struct Base { float b; float get() const { return b; } };
struct Derived : Base { float d; float both() const { return b + d; } };
namespace outer::inner { constant float value = 2.5f; }
namespace short_name = outer::inner;

kernel void language(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  device float *at = out + 24 * i;
  auto put = [&](float value) { *at++ = value; };
  Bits bits = {5, 9, -3};
  put(bits.a), put(static_cast<float>(bits.b)), put(i < 100 ? bits.c : bits.a);
  Word word;
  word.f = 1.0f;
  put(word.u == 0x3f800000u && word.bytes[3] == 0x3f);
  Pair p{1, 2};
  p += Pair{1, 1};
  p = (p + Pair{1, 0}) * 2.0f;
  auto [x, y] = p;
  put(x), put(y), put(float(p)), put(p == Pair{6, 6});
  float values[4] = {1, 2, 3, 4}, total = 0;
  for (auto v : values) total += v;
  for (thread auto &v : values) v += 1;
  for (const thread float &v : values) total += v - 2;
  put(total);
  auto kept = [total](float q) mutable { total += q; return total; };
  put(kept(1) - 14);
  put(sum(1, 2.0f, 3u) - first(1, 8));
  put([=](auto q) -> float { return total + q; }(2));
  put(twice(1.5f)), put(apply<Op::add>(3)), put(apply<Op::mul>(3)), put(call(Scale{2}, 3.5f));
  put(call([](float q) { return q; }, 4));
  constexpr int N = 3;
  int filled[N] = {};
  filled[1] += 2;
  put(filled[0] + filled[1]);
  Box box{6.0f};
  Wrap<Box, int> wrap{{5}};
  put(box.v), put(wrap.inner.v);
  Derived derived;
  derived.b = 1;
  derived.d = 2;
  put(derived.get() + derived.both() - 1);
  three t = {1, 2, 3};
  put(t[2]);
  put(short_name::value);
  float s = 0;
  if (float u = x; u > 3) s += 1;
  switch (Op o = Op::mul; o) {
  case Op::add: s = 0; break;
  case Op::mul: s += 2; [[fallthrough]];
  default: s += 1;
  }
  decltype(s) z = s;
  decltype(auto) w = (z);
  thread float **pp;
  thread float *q = &w;
  pp = &q;
  **pp += i;
  put(z);
}
