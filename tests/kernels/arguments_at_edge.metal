// Arguments that only threadgroups at the edge of the grid use; code for full ones, which knows their size, lacks the uses.
// run: reversed -b 0=arange:int32:126 -b 1:out:int32:126 --bytes 2=int32:3 --threadgroup-memory 0=256 --grid 126 --threadgroup 64
// expect buffer 1: f(i) for i in 126: -7 if i < 64 else 3 * (126 - 1 - (i - 64))
#include <metal_stdlib>
using namespace metal;

kernel void reversed(const device int *x [[buffer(0)]], device int *out [[buffer(1)]], constant int &factor [[buffer(2)]],
                     threadgroup int *tile [[threadgroup(0)]], uint i [[thread_position_in_grid]],
                     uint t [[thread_index_in_threadgroup]], uint size [[threads_per_threadgroup]]) {
  int result = -7;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (size % 64 != 0) {
    tile[t] = x[i] * factor;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    result = tile[size - 1 - t];
  }
  out[i] = result;
}
