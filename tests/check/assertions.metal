// Assertions: only checked runs evaluate them.
#include <metal_stdlib>
using namespace metal;

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 32
kernel void in_the_kernel(device const float* a, device float* o, uint i [[thread_position_in_grid]]) {
  assert(a[i] < 60); // SM018
  o[i] = sqrt(60 - a[i]);
}

static float root(float x) {
  assert(x >= 0); // SM018
  return sqrt(x);
}
// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 32
kernel void in_a_function(device const float* a, device float* o, uint i [[thread_position_in_grid]]) {
  o[i] = root(32 - a[i]);
}

template <typename T, int N> struct row {
  T values[N];
  T at(int i) const {
    assert(i >= 0 && i < N); // SM018
    return values[clamp(i, 0, N - 1)];
  }
};
// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 32
kernel void in_a_template(device const float* a, device float* o, uint i [[thread_position_in_grid]]) {
  row<float, 4> r = {{a[0], a[1], a[2], a[3]}};
  o[i] = r.at(i / 8 - 1);
}

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 32
kernel void on_one_way(device const float* a, device float* o, uint i [[thread_position_in_grid]]) {
  if (i > 40) assert(false && "there are 40 rows"); // SM018
  o[i] = a[i];
}

static constexpr int half_of(int n) {
  assert(n % 2 == 0);
  return n / 2;
}
// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 32
kernel void that_all_hold(device const float* a, device float* o, uint i [[thread_position_in_grid]]) {
  threadgroup float s[half_of(64)];
  uint t = i % 32;
  s[t] = a[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  assert(s[t] == a[i]);
  o[i] = s[t] + half_of(int(2 * t));
}

// Accesses in assertions are checked, too.
// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 32
kernel void that_reads_too_far(device const float* a, device float* o, uint i [[thread_position_in_grid]]) {
  assert(a[i + 1] >= 0); // SM001 a[64]
  o[i] = a[i];
}
