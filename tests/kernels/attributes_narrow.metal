// Attributes as fewer components and as ushort: the entry point converts.
// run: narrow -b 0:out:uint32:9450 --grid 9,7,5 --threadgroup 6,4,3
// let G = (9, 7, 5)
// let S = (6, 4, 3)
// let at = lambda n: (n % 9, n // 9 % 7, n // 63)
// let group = lambda n: tuple(at(n)[d] // S[d] for d in range(3))
// let inside = lambda n: tuple(at(n)[d] % S[d] for d in range(3))
// let size = lambda n: tuple(min(S[d], G[d] - group(n)[d] * S[d]) for d in range(3))
// let index = lambda n: (inside(n)[2] * size(n)[1] + inside(n)[1]) * size(n)[0] + inside(n)[0]
// let some = lambda n: prod(size(n))
// let values = lambda n: at(n) + inside(n) + group(n)[:2] + (9, 9 * 7 * 5) + size(n)[:2] + (2, 2) + (9,) + (0, 0) + S[:1] + (index(n), index(n) % 32, index(n) // 32, (some(n) + 31) // 32, 32, 32, index(n) % 4, index(n) // 4, (some(n) + 3) // 4, 3, 18, 1)
// expect buffer 0: f(i) for i in 9450: values(i // 30)[i % 30]
#include <metal_stdlib>
using namespace metal;

// Two kernels in one file, and a template with the attribute's type as its argument.
kernel void other(device uint *out [[buffer(0)]], uint x [[thread_position_in_grid]]) { out[x] = 1; }

template <typename Pair, typename Short>
kernel void any(device uint *out [[buffer(0)]], ushort3 position [[thread_position_in_grid]],
                vec<Short, 3> inside [[thread_position_in_threadgroup]], Pair group [[threadgroup_position_in_grid]],
                ushort threads [[threads_per_grid]], Pair size [[threads_per_threadgroup]],
                const ushort2 groups [[threadgroups_per_grid]], uint whole [[grid_size]], ushort2 origin [[grid_origin]],
                Short full [[dispatch_threads_per_threadgroup]], Short index [[thread_index_in_threadgroup]],
                ushort lane [[thread_index_in_simdgroup]], ushort simdgroup [[simdgroup_index_in_threadgroup]],
                ushort simdgroups [[simdgroups_per_threadgroup]], ushort width [[threads_per_simdgroup]],
                ushort execution [[thread_execution_width]], ushort corner [[thread_index_in_quadgroup]],
                ushort quad [[quadgroup_index_in_threadgroup]], ushort quads [[quadgroups_per_threadgroup]],
                ushort all_simdgroups [[dispatch_simdgroups_per_threadgroup]],
                Short all_quads [[dispatch_quadgroups_per_threadgroup]]) {
  static_assert(sizeof(position) == 8 && sizeof(lane) == 2 && is_same_v<decltype(position.x), ushort>);
  device uint *mine = out + ((position.z * 7 + position.y) * 9 + position.x) * 30;
  auto put = [&](uint value) { *mine++ = value; };
  put(position.x);
  put(position.y);
  put(position.z);
  put(inside.x);
  put(inside.y);
  put(inside.z);
  put(group.x);
  put(group.y);
  put(threads);
  put(threads * 7 * 5);
  put(size.x);
  put(size.y);
  put(groups.x);
  put(groups.y);
  put(whole);
  put(origin.x);
  put(origin.y);
  put(full);
  put(index);
  put(lane);
  put(simdgroup);
  put(simdgroups);
  put(width);
  put(execution);
  put(corner);
  put(quad);
  put(quads);
  put(all_simdgroups);
  put(all_quads);
  put(1);
}
template [[host_name("narrow")]] kernel void any<uint2, ushort>(device uint *, ushort3, vec<ushort, 3>, uint2, ushort, uint2, ushort2, uint, ushort2, ushort, ushort, ushort, ushort, ushort, ushort, ushort, ushort, ushort, ushort, ushort, ushort);
