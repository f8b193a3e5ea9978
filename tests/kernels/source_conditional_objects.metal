// Conditional expressions over objects of every space: named ones, members, references, in templates, nested, with
// braces; bit-fields and scalars stay what they are.
// run: objects -b 0=arange:float32:11x4 -b 1:out:float32:11x8 --bytes 2=float32:100,101,102,103,7,8,0,0 --grid 11 --threadgroup 11
// let C = lambda i: (3.0, 4.0)
// let row = lambda i: [(20 if i % 3 else 7) + (i if i % 2 else 1), (7 if i % 2 else 20) + 2, (30 + i if i % 4 else 20), 4 * i if i % 2 else 100, 4 * i if i % 2 else 200 + i, {0: 100, 1: 4 * i, 2: 1}.get(i % 4, 5), (4 * i if i % 2 else 0) + (0 if i % 2 else 4 * i), (3 if i % 2 else 0) + (5 if i % 2 else 3) + (7 if i > 4 else 8) + (2 if i % 2 else 9)]
// expect buffer 1: f(i) for i in 88: row(i // 8)[i % 8]
#include <metal_stdlib>
using namespace metal;

struct Pair { float a; int b; };
union Word { float f; uint u; };
struct Args { float4 first; Pair pair; };
struct Bits { uint low : 3; uint high : 5; int sign : 2; };
struct Holder { device float4 *data; Pair own; };
constant Pair kPair = {20, 2};
constant float4 kTable[2] = {float4(1), float4(2)};
namespace table { constant Pair inner = {20, 5}; }

template <typename V> V zero_unless(bool b, const device V *p) { return b ? *p : V{}; }
template <typename V> V unless_zero(bool b, const device V *p) { return b ? V{} : *p; }
template <typename T> T pick(const device T *p, threadgroup T *s, bool c) { return c ? (p[0]) : (*s); }

kernel void objects(const device float4 *in [[buffer(0)]], device float *out [[buffer(1)]],
                    constant Args &args [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  threadgroup Pair shared[11];
  threadgroup float4 quads[11];
  shared[i].a = 30 + i;
  shared[i].b = 1;
  quads[i] = float4(200 + i);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  device float *mine = out + 8 * i;
  float4 local[2] = {float4(5), float4(6)};
  Pair p = i % 3 ? kPair : args.pair, q = i % 2 ? Pair{float(i), 0} : Pair{1, 0};
  mine[0] = p.a + q.a;
  Pair seven = {7, 2};
  Pair r = i % 2 ? seven : table::inner;
  r.b = (i % 2 ? Pair{1, 2} : kPair).b;
  mine[1] = r.a + r.b;
  mine[2] = (i % 4 ? shared[i] : kPair).a;
  device float4 &element = *((device float4 *)in + i);
  constant float4 &first = args.first;
  float4 v = i & 1 ? element : first;
  mine[3] = v.x;
  mine[4] = pick(in + i, quads + i, i % 2).x;
  float4 nested = i % 4 == 0 ? args.first : i % 4 == 1 ? in[i] : i % 4 == 2 ? kTable[0] : local[0];
  mine[5] = nested.x;
  mine[6] = zero_unless(i % 2, in + i).x + unless_zero(i % 2, in + i).x;
  Bits bits = {3, 5, -1};
  Word one = {7.0f}, two = {8.0f};
  threadgroup Word *none = nullptr;
  uint low = i % 2 ? bits.low : 0;
  low += i % 2 ? bits.high : bits.low;
  int values[2] = {0, 0};
  (i % 2 ? values[0] : values[1]) = i % 2 ? 2 : 9;
  Word w = i > 4 ? one : two;
  mine[7] = float(low) + w.f + values[0] + values[1] + (none ? 1 : 0);
}
