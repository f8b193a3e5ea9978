// Attributes of a thread as variables of the whole file, in every type; parameters, variables and members of their names.
// for kind: 0 1
// run: globals_{kind} -b 0:out:int32:480 --grid 12,5 --threadgroup 4,5
// let x = lambda i: i % 60 % 12
// let y = lambda i: i % 60 // 12
// let lid = lambda i: x(i) % 4 + 4 * y(i)
// let first = lambda i: [x(i) + 100 * y(i), lid(i), x(i) // 4 * 10 + 4, y(i) * 3, 12, lid(i) % 32, x(i) + y(i) + min(x(i), 7), 5 * x(i) + 1][i // 60]
// expect buffer 0: f(i) for i in 480: first(i) if kind == 0 else [7, x(i), lid(i) + 1, 3 * y(i), 60 + x(i), 9, 20, x(i) * 2][i // 60]
#include <metal_stdlib>
using namespace metal;

uint3 gid [[thread_position_in_grid]];
const ushort lid [[thread_index_in_threadgroup]];
static ushort2 group [[threadgroup_position_in_grid]];
metal::uint2 thread_position_in_threadgroup [[thread_position_in_threadgroup]];
uint2 threads_per_grid [[threads_per_grid]];
uint const lane [[thread_index_in_simdgroup]];
uint threads_per_threadgroup [[threads_per_threadgroup]];

struct place {
  uint gid, lane;
  int both() const thread { return int(gid + lane); }
};
template <typename T> T least(T a, T b) { return a < b ? a : b; }
static int linear() { return int(gid.x + 100 * gid.y); }
static int shadowed(uint gid, thread const place &p) { return int(gid) + int(p.gid) * 5; }

kernel void globals_0(device int *out [[buffer(0)]]) {
  uint at = gid.x + 12 * gid.y;
  device int *to = out + at;
  to[0] = linear();
  to[60] = lid;
  to[120] = group.x * 10 + threads_per_threadgroup;
  to[180] = thread_position_in_threadgroup.y * 3;
  to[240] = threads_per_grid.x;
  to[300] = lane;
  place p = {gid.x, gid.y};
  to[360] = p.both() + least(gid.x, 7u);
  to[420] = shadowed(1u, p);
}
kernel void globals_1(device int *out [[buffer(0)]], uint2 gid [[thread_position_in_grid]], uint lid [[thread_index_in_threadgroup]]) {
  device int *to = out + gid.x + 12 * gid.y;
  to[0] = 7;
  to[60] = gid.x;
  to[120] = lid + 1;
  to[180] = thread_position_in_threadgroup.y * 3;
  {
    uint threads_per_grid = 60;
    to[240] = threads_per_grid + gid.x;
  }
  place p;
  p.lane = 9;
  to[300] = p.lane;
  to[360] = sizeof(gid) == 8 ? int(threads_per_threadgroup * 5) : 0;
  to[420] = (gid.x < 100) ? gid.x * 2 : lane;
}
