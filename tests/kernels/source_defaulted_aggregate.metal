// Structs whose only constructor is defaulted are initialised by lists, also next to methods that need C++23.
// run: aggregates -b 0:out:float32:4x4 -b 1=arange:float32:4 --grid 4 --threadgroup 4
// expect buffer 0: f(i) for i in 16: [100 + i // 4, 3 + 4, 0, 5][i % 4]
#include <metal_stdlib>
using namespace metal;

struct Value {
  Value() = default;
  float x;
  float get() const device { return x + 100; }
  float get() const { return x; }
};
template <typename T> struct Pair {
  T first;
  Pair() = default;
  T second;
};
struct Known {
  int a = 1;
  constexpr Known() = default;
};
struct Own { // keeps its constructor: another one is there
  Own() = default;
  Own(float y) : x(y + 1) {}
  float x;
};

kernel void aggregates(device float *out, device Value *values, uint i [[thread_position_in_grid]]) {
  Value own = {3};
  Pair<float> pair{1, 4}, zeros{};
  Own five(4), none{};
  Known known{0};
  out[4 * i] = values[i].get();
  out[4 * i + 1] = own.get() + pair.second;
  out[4 * i + 2] = zeros.second + none.x + known.a;
  out[4 * i + 3] = five.x;
}
