// A comparison overloaded by the address space of its object is chosen by the left operand, as in Metal. C++20 would also
// consider the right operand's, with the operands reversed.
// run: methods -b 0:out:int32:3x9 -b 1=arange:int32:3 --grid 3
// let columns = [1, 0, 1, 0, 1, 1, 0, 0, 1]
// expect buffer 0: f(i) for i in 27: columns[i % 9]
#include <metal_stdlib>
using namespace metal;

struct Value {
  int v;
  bool operator==(const thread Value &o) const device { return v == o.v + 100; }
  bool operator==(const thread Value &o) const { return v == o.v; }
};
template <typename T> struct Both {
  T v;
  bool operator==(Both o) const device { return v == o.v + 100; }
  bool operator==(Both o) const thread { return v == o.v; }
  bool operator!=(Both o) const device { return v == o.v; }
  bool operator!=(Both o) const thread { return v != o.v; }
};

kernel void methods(device int *out, device Value *values, uint i [[thread_position_in_grid]]) {
  Value own = {values[i].v};
  device Both<int> &other = *(device Both<int> *)(values + i);
  Both<int> copy = other;
  device int *line = out + 9 * i;
  line[0] = own == values[i];
  line[1] = values[i] == own;
  line[2] = own == own;
  line[3] = values[i] == values[i];
  line[4] = copy == other;
  line[5] = other != copy;
  line[6] = other == copy;
  line[7] = copy != other;
  line[8] = other != other;
}
