// __METAL_VERSION__, and what Metal 4 has: a required size of threadgroups.
// run: sized -b 0:out:int32:128 --grid 16,8 --threadgroup 8,4 --metal-version 4.0
// expect buffer 0: f(i) for i in 128: 400000 + 32 * (i % 16 // 8 + i // 64 * 2) + i % 8 + i // 16 % 4 * 8
#include <metal_stdlib>
using namespace metal;
#if __METAL_VERSION__ < 400 || __METAL_VERSION__ >= 500
#error "Metal 4 was asked for"
#endif
template <int N> [[kernel, required_threads_per_threadgroup(N * 2, 4)]]
void sized(device int *out [[buffer(0)]], uint2 at [[thread_position_in_grid]], uint i [[thread_index_in_threadgroup]],
           uint2 group [[threadgroup_position_in_grid]]) {
  out[at.y * 16 + at.x] = __METAL_VERSION__ * 1000 + 32 * (group.y * 2 + group.x) + i;
}
template [[host_name("sized")]] kernel void sized<4>(device int *, uint2, uint, uint2);
