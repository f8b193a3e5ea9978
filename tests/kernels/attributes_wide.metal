// Every attribute of a kernel argument in its full type, over a 3-D grid whose groups are smaller at each edge.
// run: -b 0:out:uint32:11970 --grid 9,7,5 --threadgroup 6,4,3
// let G = (9, 7, 5)
// let S = (6, 4, 3)
// let at = lambda n: (n % 9, n // 9 % 7, n // 63)
// let group = lambda n: tuple(at(n)[d] // S[d] for d in range(3))
// let inside = lambda n: tuple(at(n)[d] % S[d] for d in range(3))
// let size = lambda n: tuple(min(S[d], G[d] - group(n)[d] * S[d]) for d in range(3))
// let index = lambda n: (inside(n)[2] * size(n)[1] + inside(n)[1]) * size(n)[0] + inside(n)[0]
// let some = lambda n: prod(size(n))
// let values = lambda n: at(n) + inside(n) + group(n) + G + size(n) + (2, 2, 2) + G + (0, 0, 0) + S + (index(n), index(n) % 32, index(n) // 32, (some(n) + 31) // 32, 32, 32, index(n) % 4, index(n) // 4, (some(n) + 3) // 4, 3, 18)
// expect buffer 0: f(i) for i in 11970: values(i // 38)[i % 38]
#include <metal_stdlib>
using namespace metal;

kernel void attributes(device uint *out [[buffer(0)]],
                       uint3 thread_position_in_grid [[thread_position_in_grid]],
                       uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]],
                       uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]],
                       uint3 threads_per_grid [[threads_per_grid]],
                       uint3 threads_per_threadgroup [[threads_per_threadgroup]],
                       uint3 threadgroups_per_grid [[threadgroups_per_grid]],
                       uint3 grid_size [[grid_size]],
                       uint3 grid_origin [[grid_origin]],
                       uint3 dispatch_threads_per_threadgroup [[dispatch_threads_per_threadgroup]],
                       uint thread_index_in_threadgroup [[thread_index_in_threadgroup]],
                       uint thread_index_in_simdgroup [[thread_index_in_simdgroup]],
                       uint simdgroup_index_in_threadgroup [[simdgroup_index_in_threadgroup]],
                       uint simdgroups_per_threadgroup [[simdgroups_per_threadgroup]],
                       uint threads_per_simdgroup [[threads_per_simdgroup]],
                       uint thread_execution_width [[thread_execution_width]],
                       uint thread_index_in_quadgroup [[thread_index_in_quadgroup]],
                       uint quadgroup_index_in_threadgroup [[quadgroup_index_in_threadgroup]],
                       uint quadgroups_per_threadgroup [[quadgroups_per_threadgroup]],
                       uint dispatch_simdgroups_per_threadgroup [[dispatch_simdgroups_per_threadgroup]],
                       uint dispatch_quadgroups_per_threadgroup [[dispatch_quadgroups_per_threadgroup]]) {
  device uint *mine = out + ((thread_position_in_grid.z * 7 + thread_position_in_grid.y) * 9 + thread_position_in_grid.x) * 38;
  auto put = [&](uint value) { *mine++ = value; };
  put(thread_position_in_grid.x);
  put(thread_position_in_grid.y);
  put(thread_position_in_grid.z);
  put(thread_position_in_threadgroup.x);
  put(thread_position_in_threadgroup.y);
  put(thread_position_in_threadgroup.z);
  put(threadgroup_position_in_grid.x);
  put(threadgroup_position_in_grid.y);
  put(threadgroup_position_in_grid.z);
  put(threads_per_grid.x);
  put(threads_per_grid.y);
  put(threads_per_grid.z);
  put(threads_per_threadgroup.x);
  put(threads_per_threadgroup.y);
  put(threads_per_threadgroup.z);
  put(threadgroups_per_grid.x);
  put(threadgroups_per_grid.y);
  put(threadgroups_per_grid.z);
  put(grid_size.x);
  put(grid_size.y);
  put(grid_size.z);
  put(grid_origin.x);
  put(grid_origin.y);
  put(grid_origin.z);
  put(dispatch_threads_per_threadgroup.x);
  put(dispatch_threads_per_threadgroup.y);
  put(dispatch_threads_per_threadgroup.z);
  put(thread_index_in_threadgroup);
  put(thread_index_in_simdgroup);
  put(simdgroup_index_in_threadgroup);
  put(simdgroups_per_threadgroup);
  put(threads_per_simdgroup);
  put(thread_execution_width);
  put(thread_index_in_quadgroup);
  put(quadgroup_index_in_threadgroup);
  put(quadgroups_per_threadgroup);
  put(dispatch_simdgroups_per_threadgroup);
  put(dispatch_quadgroups_per_threadgroup);
}
