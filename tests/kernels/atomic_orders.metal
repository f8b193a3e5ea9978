// Atomic functions with every order and scope Metal names: what they return and leave. Atomics in structures and arrays,
// through references and volatile pointers. Fences and barriers with every flag, order and scope.
// run: -b 0:out:int32:700 -b 1:out:int32:8 -b 2:out:int32:35 --grid 35 --threadgroup 35
// let low = lambda t: (t + 1) & 29
// let kept = lambda t: max(30, min(40, t + 20))
// let left = lambda k, t: [t, t + 1, t + 1, t + 11, t + 11, t + 1, t + 1, low(t), low(t), low(t) | 34, low(t) | 34, (low(t) | 34) ^ 5, 40, min(40, t + 20), min(40, t + 20), kept(t), 1, 77, 0, 77][k]
// expect buffer 0: f(i) for i in 700: left(i // 35, i % 35)
// expect buffer 1: 0 35 595 70 1190 35 0 0
// expect buffer 2: f(i) for i in 35: 10 * (34 - i) + 13 * ((i + 1) % 35) + (i ^ 1 if (i ^ 1) < 35 else i)
#include <metal_stdlib>
#include <metal_atomic>
using namespace metal;

struct counters {
  int padding;
  atomic_int total;
  atomic<int> each[2];
  struct { atomic_int last, never; } inner;
};

template <typename T, typename Atomic> void operations(Atomic object, device int *out, int t, memory_order order, thread_scope scope) {
  // Loads take no release order, stores no acquire order.
  memory_order loading = order == memory_order_release || order == memory_order_acq_rel ? memory_order_acquire : order;
  memory_order storing = order == memory_order_acquire || order == memory_order_acq_rel ? memory_order_release : order;
  int k = 0;
  auto put = [&](int value) { out[35 * k++] = value; };
  atomic_store_explicit(object, T(t), storing, scope);
  put(atomic_load_explicit(object, loading, scope));
  atomic_exchange_explicit(object, T(t + 1), order, scope);
  put(atomic_load_explicit(object, loading, scope));
  put(atomic_fetch_add_explicit(object, T(10), order, scope));
  put(atomic_load_explicit(object, loading, scope));
  put(atomic_fetch_sub_explicit(object, T(10), order, scope));
  put(atomic_load_explicit(object, loading, scope));
  put(atomic_fetch_and_explicit(object, T(29), order, scope));
  put(atomic_load_explicit(object, loading, scope));
  put(atomic_fetch_or_explicit(object, T(34), order, scope));
  put(atomic_load_explicit(object, loading, scope));
  put(atomic_fetch_xor_explicit(object, T(5), order, scope));
  put(atomic_exchange_explicit(object, T(40), order, scope));
  put(atomic_fetch_min_explicit(object, T(t + 20), order, scope));
  put(atomic_load_explicit(object, loading, scope));
  put(atomic_fetch_max_explicit(object, T(30), order, scope));
  put(atomic_load_explicit(object, loading, scope));
  T expected = T(max(30, min(40, t + 20)));
  while (!atomic_compare_exchange_weak_explicit(object, &expected, T(77), order, loading, scope))
    if (expected != T(max(30, min(40, t + 20)))) break;
  put(1);
  put(atomic_load_explicit(object, loading, scope));
  expected = T(1);
  put(atomic_compare_exchange_weak_explicit(object, &expected, T(2), order, loading, scope));
  put(int(expected));
}

static void add(device atomic_int &object, int value) {
  (void)atomic_fetch_add_explicit(&object, value, memory_order_acq_rel, thread_scope_device);
}

kernel void orders(device int *out [[buffer(0)]], device counters *all [[buffer(1)]], device int *met [[buffer(2)]],
                   uint t [[thread_position_in_grid]]) {
  threadgroup atomic_int cells[35];
  threadgroup atomic_uint more[35];
  threadgroup int plain[3][35];
  constexpr memory_order orders[] = {memory_order_relaxed, memory_order_acquire, memory_order_release, memory_order_acq_rel, memory_order_seq_cst};
  constexpr thread_scope scopes[] = {thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device};
  // The last ones stay; the others must have been the same.
  bool equal = true;
  for (int o = 0; o < 5; o++) {
    operations<int>((volatile threadgroup atomic_int *)&cells[t], out + t, int(t), orders[o], scopes[o % 4]);
    int sum = 0;
    for (int k = 0; k < 20; k++) sum += out[35 * k + t] * (k + 1);
    operations<uint>(&more[t], out + t, int(t), orders[o], scopes[(o + 1) % 4]);
    for (int k = 0; k < 20; k++) sum -= out[35 * k + t] * (k + 1);
    equal = equal && sum == 0;
  }
  if (!equal) out[t] = -1;
  // Through members and references.
  add(all->total, 1);
  add(all->each[0], int(t));
  device atomic_int &second = all->each[1];
  atomic_fetch_add_explicit(&second, 2, memory_order_seq_cst);
  volatile device counters *again = all;
  atomic_fetch_add_explicit(&again->inner.last, 2 * int(t), memory_order_relaxed, thread_scope_device);
  atomic_fetch_max_explicit(&(*all).inner.never, int(t) + 1, memory_order_relaxed);
  // What is written before a barrier is there behind it, whatever else the barrier is told.
  plain[0][t] = 10 * int(t);
  threadgroup_barrier(mem_flags::mem_threadgroup, thread_scope_threadgroup);
  int value = plain[0][34 - t];
  plain[1][t] = 13 * int(t);
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup, memory_order_acq_rel, thread_scope_device);
  value += plain[1][(t + 1) % 35];
  plain[2][t] = int(t);
  simdgroup_barrier(mem_flags::mem_threadgroup, memory_order_acq_rel, thread_scope_simdgroup);
  value += plain[2][(t ^ 1) < 35 ? t ^ 1 : t];
  simdgroup_barrier(mem_flags::mem_none);
  simdgroup_barrier(mem_flags::mem_texture, thread_scope_simdgroup);
  threadgroup_barrier(mem_flags::mem_threadgroup_imageblock | mem_flags::mem_object_data);
  mem_flags flags = mem_flags::mem_none;
  flags |= mem_flags::mem_device;
  atomic_thread_fence(flags, memory_order_seq_cst, thread_scope_device);
  atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_acq_rel, thread_scope_threadgroup);
  atomic_thread_fence(mem_flags::mem_device, memory_order_release);
  atomic_thread_fence(mem_flags::mem_texture, memory_order_acquire, thread_scope_simdgroup);
  atomic_thread_fence(mem_flags::mem_none, memory_order_relaxed, thread_scope_thread);
  met[t] = value;
}
