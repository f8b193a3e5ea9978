// Methods overloaded by the address space of their object may be defined outside of their class, even if the one for thread
// objects has no qualifier.
// run: methods -b 0:out:int32:3x4 -b 1=arange:int32:3 --grid 3
// expect buffer 0: f(i) for i in 12: [i // 4 + 1, i // 4 + 3, i // 4, 2 * (i // 4)][i % 4]
#include <metal_stdlib>
using namespace metal;

struct Value {
  int v;
  Value() = default;
  Value(int x) threadgroup;
  Value(int x);
  int plus(int x = 1) const device;
  int plus(int x = 1) const;
  template <typename T> T as(T x) const device;
  template <typename T> T as(T x) const;
};
Value::Value(int x) threadgroup : v(x) {}
Value::Value(int x) : v(x) {}
int Value::plus(int x) const device { return v + x; }
int Value::plus(int x) const { return v + x; }
template <typename T> T Value::as(T x) const device { return v + x; }
template <typename T> T Value::as(T x) const { return v + x; }

template <typename T, int N> struct Row {
  T v[N];
  int operator()(int x) const device;
  int operator()(int x) const;
};
template <typename T, int N> int Row<T, N>::operator()(int x) const device { return v[0] * x; }
template <typename T, int N> int Row<T, N>::operator()(int x) const { return v[0] * x; }

int plus(int x) { return x; }

kernel void methods(device int *out, device Value *values, uint i [[thread_position_in_grid]]) {
  Value own(values[i].v);
  device Row<int, 1> &row = *(device Row<int, 1> *)(values + i);
  out[4 * i] = own.plus();
  out[4 * i + 1] = values[i].as(3);
  out[4 * i + 2] = plus(values[i].plus(0));
  out[4 * i + 3] = row(2);
}
