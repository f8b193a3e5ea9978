// Arguments of methods overloaded by the address space of their object convert as the method's parameters say: bit-fields,
// braces, defaults, arrays, references. The method for the object's space is called even if another space's fits the arguments better.
// run: methods -b 0:out:int32:4x14 -b 1=arange:int32:4 --grid 4
// let columns = [lambda i: i + 3, lambda i: i - 4, lambda i: i + 3, lambda i: i + 40, lambda i: i + 13, lambda i: i, lambda i: i + 1]
// let more = [lambda i: i + 5, lambda i: i + 8, lambda i: 5 + i, lambda i: i + 6, lambda i: -2, lambda i: i + 2, lambda i: 2 * i + 4]
// expect buffer 0: f(i) for i in 56: (columns + more)[i % 14](i // 14)
#include <metal_stdlib>
using namespace metal;

struct Pair {
  int a, b;
};
struct Bits {
  uint a : 3;
  int b : 5;
};
template <typename T, int N> struct Row {
  T v[N];
};
struct Value {
  int v;
  int plus(int x) const device { return v + x; }
  int plus(int x) const { return -x; }
  float real(float x) device { return v + x; }
  float real(float y) { return -y; }
  int sum(Pair p, Row<int, 2> w = {{1, 2}}) const device { return v + p.a * p.b + w.v[0] + w.v[1]; }
  int sum(Pair p, Row<int, 2> w = {{1, 2}}) const { return -p.a; }
  void put(device int *to, thread int &other, int) const device { *to = v; other = v + 1; }
  void put(device int *to, thread int &other, int) const { *to = other = -1; }
  int arrays(const thread int (&x)[2], thread int y[2], int (*)[2] = nullptr) device { return v + x[0] + y[1]; }
  int arrays(const thread int (&x)[2], thread int y[2], int (*)[2] = nullptr) { return -1; }
  int better() device { return v; }
  int better(float x) device { return v + int(2 * x); }
  int better(float x) { return -1; }
  int better(int x) { return -2; }
  auto deduced(unsigned int, const int x, metal::int32_t y) const device { return v + x + y; }
  auto deduced(unsigned int, const int x, metal::int32_t y) const { return 0; }
  int constant_only(int x) const device { return v + x; }
  int constant_only(int x) { return -x; }
  int moved(thread int &&x) device { return v + x; }
  int moved(thread int &&x) { return -x; }
};
struct Derived : Value {
  int other;
};

kernel void methods(device int *out, device Value *values, uint i [[thread_position_in_grid]]) {
  Bits bits = {3, -4};
  int x[2] = {1, 2}, y[2] = {3, 4}, last;
  device Value &there = values[i];
  device Derived &derived = *(device Derived *)&there;
  Value own = {there.v};
  device int *line = out + 14 * i;
  line[0] = there.plus(bits.a);
  line[1] = there.plus(bits.b);
  line[2] = there.real(bits.a);
  line[3] = there.sum({2, 5}, {{10, 20}});
  line[4] = there.sum({2, 5});
  there.put(line + 5, last, 3);
  line[6] = last;
  line[7] = there.arrays(x, y);
  line[8] = there.better(4);
  line[9] = there.deduced(1, 2, 3) + there.better() - there.v;
  line[10] = there.constant_only(6);
  line[11] = own.sum({2, 5});
  line[12] = derived.moved(2);
  line[13] = derived.plus(own.v + 4);
}
