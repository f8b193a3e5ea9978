// Metal 4.1's atomic functions: the memory an order is about, after it, and a scope; functions without an order.
// run: orders -b 0:out:int32:8 -b 1:out:uint64:2 -b 2:out:float32:1 -b 3:out:uint32:9 --grid 96 --threadgroup 48
// expect buffer 0: 192 -192 95 -95 255 96 7 0
// expect buffer 1: 95 0
// expect buffer 2: 192
// expect buffer 3: 96 1128 47 63 0 47 48 1 77
#include <metal_stdlib>
using namespace metal;

// A program's own function of such a name.
template <typename T> T atomic_exchange(volatile device atomic<T> *at, T value, int times) {
  return atomic_exchange_explicit(at, T(value * times), memory_order_acq_rel, mem_flags::mem_device);
}

kernel void orders(device atomic_int *whole [[buffer(0)]], device atomic_ulong *longs [[buffer(1)]],
                   device atomic_float *real [[buffer(2)]], device atomic_uint *out [[buffer(3)]],
                   uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint shared[4];
  if (t < 4) atomic_store_explicit(&shared[t], 0u, memory_order_release, mem_flags::mem_threadgroup);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&shared[0], t, memory_order_acq_rel, mem_flags::mem_threadgroup);
  atomic_fetch_max_explicit(&shared[1], t, memory_order_seq_cst, mem_flags::mem_threadgroup, thread_scope_threadgroup);
  atomic_fetch_or(&shared[2], t);
  atomic_fetch_and_explicit(&shared[3], t, memory_order_relaxed, mem_flags::mem_threadgroup);

  atomic_fetch_add_explicit(&whole[0], 1, memory_order_acquire, mem_flags::mem_device);
  atomic_fetch_add(&whole[0], 1);
  atomic_fetch_sub_explicit(&whole[1], 1, memory_order_release, mem_flags::mem_device, thread_scope_device);
  atomic_fetch_sub(&whole[1], 1);
  atomic_fetch_max(&whole[2], int(i));
  atomic_fetch_min(&whole[3], -int(i));
  atomic_fetch_or(&whole[4], 1 << (i & 7));
  atomic_fetch_xor(&whole[7], 5);
  int seen = atomic_load(&whole[5]);
  while (!atomic_compare_exchange_weak(&whole[5], &seen, seen + 1)) {}
  atomic_store(&whole[6], 7);
  atomic_max(&longs[0], ulong(i));
  atomic_min_explicit(&longs[1], ulong(i), memory_order_acq_rel, mem_flags::mem_device);
  atomic_fetch_add(real, 1.0f);
  atomic_fetch_add_explicit(real, 1.0f, memory_order_acq_rel, mem_flags::mem_device);
  uint before = atomic_load_explicit(&out[0], memory_order_acquire, mem_flags::mem_device);
  (void)before;
  atomic_thread_fence(mem_flags::mem_device, memory_order_acq_rel);
  threadgroup_barrier(mem_flags::mem_threadgroup, memory_order_acq_rel);
  if (i < 48 || t) return;
  for (int k = 0; k < 4; k++) atomic_store(&out[k + 1], atomic_load(&shared[k]));
  atomic_store_explicit(&out[5], atomic_exchange(&shared[1], 1u), memory_order_release, mem_flags::mem_device);
  atomic_store(&out[0], 96u);
  atomic_store(&out[6], 48u);
  uint expected = 1;
  bool done = atomic_compare_exchange_weak_explicit(&shared[1], &expected, 2u, memory_order_acq_rel, memory_order_acquire,
                                                    mem_flags::mem_threadgroup);
  atomic_store(&out[7], uint(done));
  atomic_exchange(&out[8], 11u, 7);
}
