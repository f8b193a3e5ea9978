// Every atomic function, with every type, in device and in threadgroup memory: what it returns and what it leaves.
// run: -b 0:out:float32:1408 -b 1:out:uint64:8 -b 2:out:float32:64 -b 3:out:uint64:8 --grid 4 --threadgroup 4
// expect buffer 0: f(i) for i in 1408: (lambda i, t, a, b: 0 if t > 7 and i % 16 > 9 and i % 16 != 14 else [a, a, b, a + b, a, max(a, b), b, a, a, 2, a, a & b, (a & b) | 6, ((a & b) | 6) ^ a, 1, 7][i % 16])(i, i // 128, 11 + i // 16 % 4, 9 + 2 * (i // 16 % 4)) if i % 16 != 15 else 7
// expect buffer 2: f(i) for i in 64: [0, 1, 0, 1, 1, 0, 1, 0][i % 8]
// expect-prefix buffer 3: 3 18446744073709551615 9 9223372036854775807
// scalar-engine-sse2: it is too large for narrow vectors
#include <metal_stdlib>
#include <metal_atomic>
using namespace metal;

constant constexpr auto relaxed = memory_order_relaxed;

template <typename T, typename Atomic>
void operations(Atomic object, device float *out, uint lane, bool integer) {
  T a = T(11 + lane), b = T(9 + 2 * lane);
  atomic_store_explicit(object, a, relaxed);
  out[0] = float(atomic_load_explicit(object, relaxed));
  out[1] = float(atomic_exchange_explicit(object, b, relaxed));
  out[2] = float(atomic_fetch_add_explicit(object, a, relaxed));
  out[3] = float(atomic_fetch_sub_explicit(object, b, relaxed));
  out[4] = float(atomic_fetch_max_explicit(object, b, relaxed));
  out[5] = float(atomic_fetch_min_explicit(object, b, relaxed));
  out[6] = float(atomic_load_explicit(object, relaxed));
  // A weak exchange may fail without a reason, but then it leaves the expected value.
  T expected = b;
  while (!atomic_compare_exchange_weak_explicit(object, &expected, a, relaxed, relaxed))
    if (expected != b) break;
  out[7] = float(atomic_load_explicit(object, relaxed));
  expected = b;
  bool done = a != b && atomic_compare_exchange_weak_explicit(object, &expected, T(1), relaxed, relaxed);
  out[8] = float(a != b ? expected : a);
  out[9] = done ? 1 : 2;
  // The least value of a signed type is the greatest of an unsigned one.
  T minus = T(T(0) - T(1));
  bool has_sign = minus < T(0);
  atomic_store_explicit(object, minus, relaxed);
  atomic_fetch_min_explicit(object, T(1), relaxed);
  bool low = atomic_load_explicit(object, relaxed) == (has_sign ? minus : T(1));
  atomic_store_explicit(object, minus, relaxed);
  atomic_fetch_max_explicit(object, T(1), relaxed);
  out[14] = low && atomic_load_explicit(object, relaxed) == (has_sign ? T(1) : minus);
  if (!integer) out[10] = out[11] = out[12] = out[13] = 0;
  // The strongest orders too.
  atomic_store_explicit(object, T(3), memory_order_seq_cst);
  atomic_fetch_add_explicit(object, T(4), memory_order_acq_rel);
  out[15] = float(atomic_load_explicit(object, memory_order_acquire));
  atomic_store_explicit(object, a, memory_order_release);
}

template <typename T, typename Atomic>
void bits(Atomic object, device float *out, uint lane) {
  T a = T(11 + lane), b = T(9 + 2 * lane);
  atomic_store_explicit(object, a, relaxed);
  out[10] = float(atomic_fetch_and_explicit(object, b, relaxed));
  out[11] = float(atomic_fetch_or_explicit(object, T(6), relaxed));
  out[12] = float(atomic_fetch_xor_explicit(object, a, relaxed));
  out[13] = float(atomic_load_explicit(object, relaxed));
}

template <typename T>
void check(device float *out, thread int &number, device ulong *cells, threadgroup ulong *tile, uint lane) {
  volatile device atomic<T> *in_device = (volatile device atomic<T> *)(cells + lane);
  threadgroup atomic<T> *in_group = (threadgroup atomic<T> *)(tile + lane);
  device float *first = out + number * 128 + lane * 16, *second = first + 64;
  operations<T>(in_device, first, lane, is_integral_v<T>);
  operations<T>(in_group, second, lane, is_integral_v<T>);
  if constexpr (is_integral_v<T>) {
    bits<T>(in_device, first, lane);
    bits<T>(in_group, second, lane);
  }
  number++;
}

template <typename Atomic> void truths(Atomic object, device float *out) {
  atomic_store_explicit(object, false, relaxed);
  out[0] = atomic_load_explicit(object, relaxed);
  atomic_fetch_or_explicit(object, true, relaxed);
  out[1] = atomic_exchange_explicit(object, false, relaxed);
  bool expected = true;
  out[2] = atomic_compare_exchange_weak_explicit(object, &expected, true, relaxed, relaxed);
  while (!atomic_compare_exchange_weak_explicit(object, &expected, true, relaxed, relaxed)) {}
  out[3] = atomic_load_explicit(object, relaxed);
  out[4] = atomic_fetch_and_explicit(object, false, relaxed);
  out[5] = atomic_fetch_xor_explicit(object, true, relaxed);
  out[6] = atomic_fetch_xor_explicit(object, true, relaxed);
  out[7] = atomic_load_explicit(object, relaxed);
}

[[kernel]] void atomics(device float *out [[buffer(0)]], device ulong *cells [[buffer(1)]],
                        device float *bools [[buffer(2)]], device atomic_ulong *wide [[buffer(3)]],
                        uint lane [[thread_index_in_threadgroup]]) {
  threadgroup ulong tile[8];
  threadgroup atomic_ulong peak;
  int number = 0;
  check<int8_t>(out, number, cells, tile, lane);
  check<uint8_t>(out, number, cells, tile, lane);
  check<short>(out, number, cells, tile, lane);
  check<ushort>(out, number, cells, tile, lane);
  check<int>(out, number, cells, tile, lane);
  check<uint>(out, number, cells, tile, lane);
  check<long>(out, number, cells, tile, lane);
  check<ulong>(out, number, cells, tile, lane);
  check<float>(out, number, cells, tile, lane);
  check<half>(out, number, cells, tile, lane);
  check<bfloat>(out, number, cells, tile, lane);
  truths((device atomic_bool *)(cells + lane), bools + lane * 8);
  truths((threadgroup atomic_bool *)(tile + lane), bools + 32 + lane * 8);
  if (lane) return;
  atomic_store_explicit(&wide[0], 5, relaxed);
  atomic_min_explicit(&wide[0], 3, relaxed);
  atomic_store_explicit(&wide[1], 5, relaxed);
  atomic_max_explicit(&wide[1], ~0ul, relaxed);
  atomic_store_explicit(&peak, 9, relaxed);
  atomic_max_explicit(&peak, 8, relaxed);
  atomic_store_explicit(&wide[2], atomic_load_explicit(&peak, relaxed), relaxed);
  atomic_min_explicit(&peak, 1, relaxed);
  atomic_store_explicit(&wide[3], atomic_load_explicit(&peak, relaxed) + 0x7ffffffffffffffeul, relaxed);
}
