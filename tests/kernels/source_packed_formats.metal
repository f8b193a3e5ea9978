// Formats of packed numbers without a header of their own, as in Metal 4, where metal_stdlib declares them.
// run: -b 0:out:int32:4 --grid 4 --metal-version 4.1
// expect buffer 0: 4 4 8 8
#include <metal_stdlib>
using namespace metal;

template <bool has_sign> struct integers {
  using element = metal::conditional_t<has_sign, metal::int4b_format, metal::uint4b_format>;
};
template <class T> constexpr int bits_of() { return 8 * sizeof(T); }
template <> constexpr int bits_of<integers<true>::element>() { return 4; }
template <> constexpr int bits_of<integers<false>::element>() { return 4; }
template <> constexpr int bits_of<metal_fp8_e4m3_format>() { return 8; }

kernel void widths(device int *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  constexpr int widths[] = {bits_of<integers<true>::element>(), bits_of<integers<false>::element>(),
                            bits_of<metal_fp8_e4m3_format>(), bits_of<uchar>()};
  out[i] = widths[i];
}
