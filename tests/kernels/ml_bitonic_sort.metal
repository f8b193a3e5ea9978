// A bitonic sort of each row in dynamic threadgroup memory, keys and indices, with helpers taking thread references.
// run: sort_rows -b 0=arange:int32:2x64 -b 1:out:int32:2x64 -b 2:out:uint32:2x64 --threadgroup-memory 0=256 --threadgroup-memory 1=256 --groups 2 --threadgroup 32
// expect buffer 1: f(i) for i in 128: sorted(((i // 64 * 64 + k) * 7919 + 13) % 1009 for k in range(64))[i % 64]
// expect buffer 2: f(i) for i in 128: sorted(range(64), key=lambda k: ((i // 64 * 64 + k) * 7919 + 13) % 1009)[i % 64]
#include <metal_stdlib>
using namespace metal;

template <typename T>
inline void exchange(thread T &a, thread T &b) {
  T kept = a;
  a = b;
  b = kept;
}

kernel void sort_rows(device const int *in [[buffer(0)]], device int *keys [[buffer(1)]], device uint *order [[buffer(2)]],
                      threadgroup int *key [[threadgroup(0)]], threadgroup uint *index [[threadgroup(1)]],
                      ushort t [[thread_position_in_threadgroup]], ushort row [[threadgroup_position_in_grid]]) {
  const ushort n = 64;
  for (ushort k = t; k < n; k += 32) {
    key[k] = (in[row * n + k] * 7919 + 13) % 1009;
    index[k] = k;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (ushort size = 2; size <= n; size <<= 1) {
    for (ushort step = size >> 1; step > 0; step >>= 1) {
      ushort low = (t / step) * step * 2 + t % step, high = low + step;
      bool up = (low & size) == 0;
      int p = key[low], q = key[high];
      uint i = index[low], j = index[high];
      if ((p > q) == up && p != q) {
        exchange(p, q);
        exchange<uint>(i, j);
      }
      key[low] = p; key[high] = q;
      index[low] = i; index[high] = j;
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
  }
  for (ushort k = t; k < n; k += 32) {
    keys[row * n + k] = key[k];
    order[row * n + k] = index[k];
  }
}
