// Methods qualified by the address space of their object, and what they return into it.
// run: methods -b 0:out:float32:7x4 -b 1=arange:int32:17 --grid 7 --threadgroup 7
// expect buffer 0: f(i) for i in 28: [7 - i // 4, 10 + i // 4, 6, 3 + 2 * (i // 4)][i % 4]
#include <metal_stdlib>
using namespace metal;

template <typename T, int N> struct Tile {
  T v[N];
  threadgroup T &at(int i) threadgroup { return v[i]; }
  const threadgroup T &at(int i) const threadgroup { return v[i]; }
  threadgroup T *row(int i) threadgroup { return v + i; }
  threadgroup T &operator[](int i) threadgroup {
    if (i < 0) return v[N + i];
    return *row(i);
  }
  T sum() const threadgroup {
    T total = 0;
    for (int i = 0; i < N; i++) total += at(i);
    return total;
  }
};
struct List {
  int count;
  int values[7];
  device int &top() device { return values[count - 1]; }
  device int *first() device { return &values[0]; }
  int last() const constant { return values[6]; }
};
template <typename T> struct Any {
  T value;
  thread T &get() thread { return value; }
  threadgroup T &get() threadgroup { return value; }
  T twice() const device { return value * 2; }
  T twice() const constant { return value * 2; }
  T twice() const thread { return value * 2; }
};
constant Any<int> kAny = {21};

kernel void methods(device float *out [[buffer(0)]], device List *lists [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  threadgroup Tile<float, 7> tile;
  threadgroup Any<int> shared;
  tile.at(i) = i;
  tile.row(0)[i] += 1;
  if (i == 0) shared.get() = 3;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  threadgroup float &mine = tile[6 - i];
  out[4 * i] = mine;
  device List &list = lists[1];
  out[4 * i + 1] = list.first()[0] + list.count - 7 + i;
  if (i == 0) list.top() += 0;
  Any<float> any = {0.5f};
  any.get() += 0.5f;
  out[4 * i + 2] = any.twice() * (kAny.twice() == 42) + tile[-1] * 0 + (tile.sum() == 28) * 4;
  out[4 * i + 3] = shared.value + 2 * tile.at(i) - 2;
}
