// Copies between device and threadgroup memory that older kernels declare by their labels: rows and tiles of every element
// size, with what lies outside the source as zeros or as its edge, and back. The second simdgroup copies.
// run: -b 0=arange:float32:300 -b 1:out:float32:640 -b 2:out:float32:300 -b 3:out:uint16:64 -b 4=arange:uint8:64 --grid 64 --threadgroup 64
// let s = lambda y, x: 20 * y + x
// let tile = lambda y, x: s(y + 2, x + 3) if y < 5 and x < 6 else 0
// let edge = lambda y, x: s(min(y, 4) + 2, min(x, 5) + 3)
// let moved = lambda y, x: s(y - 1 + 2, x + 2 + 3) if 0 <= y - 1 < 5 and x + 2 < 6 else 0
// let part = lambda i: [lambda e: 7 + e if e < 50 else -1, lambda e: tile(e // 10, e % 10) if e % 10 < 8 and e < 80 else -1, lambda e: edge(e // 10, e % 10) if e % 10 < 8 and e < 80 else -1, lambda e: moved(e // 10, e % 10) if e % 10 < 8 and e < 80 else -1][i // 160](i % 160)
// expect buffer 1: f(i) for i in 640: part(i)
// expect buffer 2: f(i) for i in 300: tile(i // 20 - 1, i % 20 - 4) if 1 <= i // 20 < 4 and 4 <= i % 20 < 9 else 0
// expect buffer 3: f(i) for i in 64: 2 * i + (2 * i + 1) * 256 if i < 32 else 65535
#include <metal_stdlib>
#include <metal_simdgroup_matrix>

struct _simdgroup_event_t;
thread _simdgroup_event_t *__metal_simdgroup_async_copy_1d(ulong, ulong, threadgroup void *, const device void *, ulong)
    __asm("air.simdgroup_async_copy_1d.p3i8.p1i8");
thread _simdgroup_event_t *__metal_simdgroup_async_copy_1d(ulong, ulong, device void *, const threadgroup void *, ulong)
    __asm("\01air.simdgroup_async_copy_1d.p1i8.p3i8");
thread _simdgroup_event_t *__metal_simdgroup_async_copy_2d(ulong, ulong, threadgroup void *, ulong, ulong, metal::ulong2,
                                                           const device void *, ulong, ulong, metal::ulong2, metal::long2, int)
    __asm("air.simdgroup_async_copy_2d.p3i8.p1i8");
thread _simdgroup_event_t *__metal_simdgroup_async_copy_2d(ulong, ulong, device void *, ulong, ulong, metal::ulong2,
                                                           const threadgroup void *, ulong, ulong, metal::ulong2, metal::long2, int)
    __asm("air.simdgroup_async_copy_2d.p1i8.p3i8");
void __metal_wait_simdgroup_events(int, thread _simdgroup_event_t **) __asm("air.wait_simdgroup_events");

#pragma METAL internals : enable
using namespace metal;
struct copies {
  thread _simdgroup_event_t *event;
  template <typename T>
  void rows(threadgroup T *to, const device T *from, uint count) thread {
    event = __metal_simdgroup_async_copy_1d(sizeof(T), alignof(T), reinterpret_cast<threadgroup void *>(to), reinterpret_cast<const device void *>(from), count);
  }
  template <typename T>
  void rows(device T *to, const threadgroup T *from, uint count) thread {
    event = __metal_simdgroup_async_copy_1d(sizeof(T), alignof(T), to, from, count);
  }
  template <typename T>
  void tile(threadgroup T *to, ushort to_row, ushort2 to_tile, const device T *from, uint from_row, ushort2 from_tile, long2 offset, int clamp) thread {
    event = __metal_simdgroup_async_copy_2d(sizeof(T), alignof(T), to, ulong(to_row), 1, ulong2(to_tile), from, ulong(from_row), 1, ulong2(from_tile), offset, clamp);
  }
  template <typename T>
  void tile(device T *to, uint to_row, ushort2 to_tile, const threadgroup T *from, ushort from_row, ushort2 from_tile) thread {
    event = __metal_simdgroup_async_copy_2d(sizeof(T), alignof(T), to, ulong(to_row), 1, ulong2(to_tile), from, ulong(from_row), 1, ulong2(from_tile), long2(0), 0);
  }
  static void wait(int count, thread copies *events) { __metal_wait_simdgroup_events(count, reinterpret_cast<thread _simdgroup_event_t **>(events)); }
};

kernel void copying(device float *source [[buffer(0)]], device float *out [[buffer(1)]], device float *back [[buffer(2)]],
                    device ushort *pairs [[buffer(3)]], device uchar *bytes [[buffer(4)]],
                    uint simdgroup [[simdgroup_index_in_threadgroup]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tiles[640];
  threadgroup ushort halves[64];
  for (uint k = t; k < 640; k += 64) tiles[k] = -1;
  halves[t] = 65535;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup == 1) {
    copies events[4], more;
    events[0].rows(tiles, source + 7, 50);
    events[1].tile(tiles + 160, 10, ushort2(8, 8), source + 43, 20, ushort2(6, 5), long2(0), 0);
    events[2].tile(tiles + 320, 10, ushort2(8, 8), source + 43, 20, ushort2(6, 5), long2(0), 1);
    events[3].tile(tiles + 480, 10, ushort2(8, 8), source + 43, 20, ushort2(6, 5), long2(2, -1), 0);
    more.rows((threadgroup uchar *)halves, bytes, 64);
    copies::wait(4, events);
    copies::wait(1, &more);
    // Half of the lanes can do it too.
    if (t % 2) more.tile(back + 24, 20, ushort2(5, 3), tiles + 160, 10, ushort2(5, 3));
    copies::wait(1, &more);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  for (uint k = t; k < 640; k += 64) out[k] = tiles[k];
  copies last;
  if (simdgroup == 0) last.rows(pairs, halves, 64);
}
