// Methods overloaded by the address space of their object: each object gets its own, and what a method returns lies where
// its object does.
// run: methods -b 0:out:float32:5x15 -b 1=arange:float32:40 --grid 5 --threadgroup 5
// let columns = [lambda i: 100 + 8 * i, lambda i: 10 + 2 * i, lambda i: 8 * i, lambda i: 1000 + 7, lambda i: 8 * i + 1, lambda i: 11 * i + 22]
// let more = [lambda i: 8 * i + 103 + 8 * i, lambda i: 3, lambda i: 207 + 8 * i, lambda i: 5 + 8 * i, lambda i: 6 + 8 * i, lambda i: 33, lambda i: 8 * i + 106, lambda i: 8 * i + 100, lambda i: 8 * i + 10]
// expect buffer 0: f(i) for i in 75: (columns + more)[i % 15](i // 15)
#include <metal_stdlib>
using namespace metal;

template <typename T, size_t N> struct Row {
  const constant T &operator[](size_t i) const constant { return v[i]; }
  device T &operator[](size_t i) device { return v[i]; }
  const device T &operator[](size_t i) const device { return v[i]; }
  thread T &operator[](size_t i) thread { return v[i]; }
  const thread T &operator[](size_t i) const thread { return v[i]; }
  threadgroup T &operator[](size_t i) threadgroup { return v[i]; }
  const threadgroup T &operator[](size_t i) const threadgroup { return v[i]; }
  T v[N];
};

struct Value {
  float x;
  float get() const device { return x + 100; }
  float get() const threadgroup { return x + 10; }
  float get() const constant { return x + 1000; }
  float get() const { return x; }
  float twice() const device { return get() + this->x; }
  float twice() const { return 2 * get(); }
  float same(float by) const device { return get() + by; }
  float same(float by) const { return get() + by; }
  float more(float a, int b = 2) const device { return x + a + b; }
  float more(float a, int b = 2) const { return a - b; }
  float more() const device { return get() + 100 + 7; }
  float more() const { return 0; }
  float operator-() const device { return x + 5; }
  float operator-() const { return 5; }
  float operator-(float by) const device { return x + by; }
  float operator-(float by) const { return by; }
  float operator()(float a, float b) const threadgroup { return a * b; }
  float operator()(float a, float b) const { return a + b; }
};
struct alignas(4) Aligned {
  float x;
  float get() const device { return x + 100; }
  float get() const { return x; }
};
struct __attribute__((packed)) Packed {
  float x;
  float get() const device { return x + 10; }
  float get() const { return x; }
};
struct Inner {
  float first;
  Row<Value, 3> values;
  float pad[4];
};
constant Value kValue = {7};

// Takes pointers into device memory: what operator[] returns has to say so.
float second(const device Row<Value, 3> *const row) { return (*row)[0u].x; }
float sum(threadgroup float &a, device float &b, thread float &c) { return a + b + c; }

kernel void methods(device float *out [[buffer(0)]], device Row<Inner, 5> *rows [[buffer(1)]],
                      uint i [[thread_position_in_grid]]) {
  threadgroup Row<Value, 5> shared;
  shared[i].x = 2 * i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  Row<Value, 5> own;
  own[i].x = (*rows)[i].first;
  device Value &there = (*rows)[i].values[0];
  there.x -= 1;
  Row<float, 2> pair = {{float(i), 1}};
  Row<float, 2> copy = pair;
  device float *line = out + 15 * i;
  line[0] = there.get();
  line[1] = shared[i].get();
  line[2] = own[i].get();
  line[3] = kValue.get();
  there.x += 1;
  line[4] = second(&(*rows)[i].values);
  there.x -= 1;
  line[5] = sum(shared[i].x, there.x, copy[0]) + 22;
  line[6] = there.twice() + 3;
  line[7] = own[i].more(5);
  line[8] = there.more();
  line[9] = -there;
  line[10] = there - 6.0f;
  line[11] = shared[i](3, 11);
  line[12] = there.same(6);
  line[13] = ((device Aligned &)there).get();
  line[14] = ((device Packed &)there).get();
}
