// Address spaces in the template arguments of a call that is a statement: they are types there, not variables.
// run: spaces -b 0:out:int32:4x3 -b 1=arange:int32:4 --grid 4 --threadgroup 4
// expect buffer 0: f(i) for i in 12: [10 + i // 3, 20 + i // 3, 5][i % 3]
#include <metal_stdlib>
using namespace metal;

namespace ops {
struct add { static int run(int a, int b) { return a + b; } };
namespace inner { struct take { static int run(int, int b) { return b; } }; }
}
template <typename Op, typename A, typename B> void apply(A &to, B &from, int by) { to = Op::run(from, by); }
constant int kFive = 5;

kernel void spaces(device int *out, device int *x, uint i [[thread_position_in_grid]]) {
  threadgroup int tile[4], other[4];
  apply<ops::add, threadgroup int, device int>(tile[i], x[i], 10);
  ops::inner::take::run(1, 2);
  apply<ops::add, threadgroup int, threadgroup int>(other[i], tile[i], 10);
  if (i < 9)
    apply<ops::inner::take, device int, constant int>(out[3 * i + 2], kFive, kFive);
  out[3 * i] = tile[i];
  out[3 * i + 1] = other[i];
}
