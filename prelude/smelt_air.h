// Functions that kernels reach below Metal's own library, as __asm("air.…"): copies of tiles by a whole simdgroup. Where a
// text has such a label, src/source/entry_point.c appends __SMELT_AIR_FUNCTIONS, and src/compiler/passes/declare.c puts these functions in
// place of what the label names. Copies are done when the call returns; to wait for them is a barrier of the simdgroup.
#pragma once

#include "metal_simdgroup"

// `to` and `from` lie in two address spaces, which C++ cannot name apart from the type: hence macros.
// One element of `size` bytes, a constant once all is inlined; zeros where it is not `there`.
#define __SMELT_AIR_COPY_AS(T, to_space, from_space)                                                         \
  if (size == sizeof(T)) {                                                                                   \
    *(to_space T *)target = there ? *(const from_space T *)source : (T)0;                                    \
    continue;                                                                                                \
  }
#define __SMELT_AIR_COPY_ELEMENT(to_space, from_space)                                                       \
  __SMELT_AIR_COPY_AS(uchar, to_space, from_space)                                                           \
  __SMELT_AIR_COPY_AS(ushort, to_space, from_space)                                                          \
  __SMELT_AIR_COPY_AS(uint, to_space, from_space)                                                            \
  __SMELT_AIR_COPY_AS(ulong, to_space, from_space)                                                           \
  for (ulong byte = 0; byte < size; byte++) target[byte] = there ? source[byte] : (char)0;

// The lanes that take part deal the elements out among themselves.
#define __SMELT_AIR_COPIES(to_space, to_letters, from_space, from_letters)                                   \
  extern "C" void *__smelt_air_simdgroup_async_copy_1d_##to_letters##_##from_letters(                        \
      ulong size, ulong, to_space void *to, const from_space void *from, ulong count) {                      \
    uint lanes = __smelt_simd_ballot(true);                                                                  \
    for (ulong i = __builtin_popcount(lanes & ((1u << __smelt_lane()) - 1)); i < count; i += __builtin_popcount(lanes)) { \
      to_space char *target = (to_space char *)to + i * size;                                                \
      const from_space char *source = (const from_space char *)from + i * size;                              \
      constexpr bool there = true;                                                                           \
      __SMELT_AIR_COPY_ELEMENT(to_space, from_space)                                                         \
    }                                                                                                        \
    return (void *)to;                                                                                       \
  }                                                                                                          \
  extern "C" void *__smelt_air_simdgroup_async_copy_2d_##to_letters##_##from_letters(                        \
      ulong size, ulong, to_space void *to, ulong to_row, ulong to_step, metal::ulong2 to_tile,              \
      const from_space void *from, ulong from_row, ulong from_step, metal::ulong2 from_tile, metal::long2 offset, \
      int clamp_to_edge) {                                                                                   \
    uint lanes = __smelt_simd_ballot(true), width = (uint)to_tile.x, count = width * (uint)to_tile.y;        \
    for (uint i = __builtin_popcount(lanes & ((1u << __smelt_lane()) - 1)); i < count; i += __builtin_popcount(lanes)) { \
      ulong x = i % width, y = i / width;                                                                    \
      long from_x = (long)x + offset.x, from_y = (long)y + offset.y, last_x = (long)from_tile.x - 1, last_y = (long)from_tile.y - 1; \
      bool there = from_x >= 0 && from_x <= last_x && from_y >= 0 && from_y <= last_y;                       \
      if (clamp_to_edge && last_x >= 0 && last_y >= 0) {                                                     \
        from_x = from_x < 0 ? 0 : from_x > last_x ? last_x : from_x;                                         \
        from_y = from_y < 0 ? 0 : from_y > last_y ? last_y : from_y;                                         \
        there = true;                                                                                        \
      }                                                                                                      \
      to_space char *target = (to_space char *)to + (y * to_row + x * to_step) * size;                       \
      const from_space char *source =                                                                        \
          (const from_space char *)from + ((ulong)from_y * from_row + (ulong)from_x * from_step) * size;     \
      __SMELT_AIR_COPY_ELEMENT(to_space, from_space)                                                         \
    }                                                                                                        \
    return (void *)to;                                                                                       \
  }
#define __SMELT_AIR_FUNCTIONS                                                                                \
  __SMELT_AIR_COPIES(__smelt_threadgroup, p3i8, __smelt_device, p1i8)                                        \
  __SMELT_AIR_COPIES(__smelt_device, p1i8, __smelt_threadgroup, p3i8)                                        \
  extern "C" void __smelt_air_wait_simdgroup_events(int, const void *) {                                     \
    __smelt_simdgroup_barrier((uint)metal::mem_flags::mem_threadgroup);                                      \
  }
