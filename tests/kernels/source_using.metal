// Classes that take methods from a base with `using`: the address space of the object decides, as it does for objects
// of the base, also next to methods of their own, and for const objects.
// run: taken -b 0=arange:int32:8 -b 1:out:int32:8x8 --bytes 2=int32:50,51 --grid 8 --threadgroup 8
// let row = lambda i: [i + 1000, i + 2000, 50 + 3000, 7 * i + 4000, i + 5000, 2 * i + 30, i + 6000 + 2, 1 if i == 3 else 0]
// expect buffer 1: f(i) for i in 64: row(i // 8)[i % 8]
#include <metal_stdlib>
using namespace metal;

struct Cell {
  int v;
  int get() const thread { return v + 1000; }
  int get() const device { return v + 2000; }
  int get() const constant { return v + 3000; }
  int get(int times) const { return v * times; }
  int operator[](int i) const { return v + i + 10; }
  int operator[](int i) const device { return v + i + 5000; }
  int mine() { return 1; }
  int mine() device { return v + 6000; }
  int mine() const device { return 2; }
  bool operator==(const int x) const { return false; }
  bool operator==(const int x) const device { return v == x; }
};
struct Counted : Cell {
  using Cell::get;
  using Cell::operator[];
  using Cell::mine;
  using Cell::operator==;
  int get(float times) const { return int(times) + 4000; }
};
template <typename T> struct Hidden : private Cell {
  using Cell::get, Cell::v;
  T twice() const { return T(v) * 2; }
};

kernel void taken(device Counted *cells [[buffer(0)]], device int *out [[buffer(1)]],
                  constant Counted &fixed [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  device int *mine = out + 8 * i;
  Counted own;
  own.v = i;
  const device Counted &cell = cells[i];
  mine[0] = own.get();
  mine[1] = cell.get();
  mine[2] = fixed.get();
  mine[3] = cell.get(7) + cells[i].get(0.5f);
  mine[4] = cells[i][0];
  device Hidden<int> *hidden = (device Hidden<int> *)cells + i;
  Hidden<int> copy = *hidden;
  mine[5] = copy.twice() + (hidden->get() - copy.get()) / 1000 * 30;
  mine[6] = cells[i].mine() + cell.mine();
  mine[7] = cells[i] == 3;
}
