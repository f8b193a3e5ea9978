// More methods, bit fields, pragmas and template constants than any list had room for, from macros.
// run: many -b 0=arange:int32:13 -b 1:out:int32:12 -b 2:out:float32:12 -b 3=1.000244140625 --grid 12 --threadgroup 12 --constant n=3
// let fields = lambda i: 255 % 8 if i % 2 else 257 % 8
// expect buffer 1: f(i) for i in 12: i + 1 + fields(i) + sum(4 * k + 3 for k in range(1, 101))
// expect buffer 2: f(i) for i in 12: 0
#include <metal_stdlib>
using namespace metal;

#define TEN(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) X(n##8) X(n##9)
#define HUNDRED(X, n) TEN(X, n##0) TEN(X, n##1) TEN(X, n##2) TEN(X, n##3) TEN(X, n##4) TEN(X, n##5) TEN(X, n##6) TEN(X, n##7) TEN(X, n##8) TEN(X, n##9)

// 1100 methods that return an address in their object's own memory.
#define METHOD(n) const device int *at##n() const device { return &value + n % 2; }
struct number {
  int value;
  HUNDRED(METHOD, 1) HUNDRED(METHOD, 2) HUNDRED(METHOD, 3) HUNDRED(METHOD, 4) HUNDRED(METHOD, 5) HUNDRED(METHOD, 6)
  HUNDRED(METHOD, 7) HUNDRED(METHOD, 8) HUNDRED(METHOD, 9) HUNDRED(METHOD, 10) HUNDRED(METHOD, 11)
};

// 300 bit fields, of which the last are chosen from.
#define FIELD(n) uint field##n : 3;
struct fields { HUNDRED(FIELD, 1) HUNDRED(FIELD, 2) HUNDRED(FIELD, 3) };

// 200 constants of templates that are computed from a function constant.
constant int n [[function_constant(0)]];
template <int K> constant int times = K * n;
template <int K> struct with { static constant int value; };
template <int K> constant int with<K>::value = K + n;
template <int K> int sum() {
  if constexpr (K == 0) return 0;
  else return times<K> + with<K>::value + sum<K - 1>();
}

// 300 pragmas; with the last, and another behind it that says nothing of contraction, products are rounded before they are summed.
#define PRAGMA(n) inline float same##n(float x) { _Pragma("METAL fp contract(off)") return x; }
HUNDRED(PRAGMA, 1) HUNDRED(PRAGMA, 2)
inline float rounded(float x, float y) {
  _Pragma("METAL fp contract(off)")
  _Pragma("METAL fp math_mode(safe)")
  return x * x - y;
}

kernel void many(const device number *in [[buffer(0)]], device int *out [[buffer(1)]], device float *met [[buffer(2)]],
                 constant float &x [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  fields f = {};
  f.field398 = 255;
  f.field399 = 257;
  uint chosen = i % 2 ? f.field398 : f.field399;
  out[i] = *in[i].at1199() + chosen + sum<100>();
  met[i] = rounded(x, same199(x + 0x1p-12f));
}
