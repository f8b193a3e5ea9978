// Which element types tensor operations take.
#pragma once

#include "metal_tensor"

namespace mpp {
namespace tensor_ops {

template <class T> inline constexpr T dynamic_length_v = metal::numeric_limits<T>::max();

namespace __tensor_ops_detail {

enum class kind { other, real32, real16, brain16, int8, uint8, int4, uint4, int2, uint2, fp4, e4m3, e5m2, int32 };
template <class T> inline constexpr kind kind_of = kind::other;
template <> inline constexpr kind kind_of<float> = kind::real32;
template <> inline constexpr kind kind_of<half> = kind::real16;
template <> inline constexpr kind kind_of<bfloat> = kind::brain16;
template <> inline constexpr kind kind_of<char> = kind::int8;
template <> inline constexpr kind kind_of<signed char> = kind::int8;
template <> inline constexpr kind kind_of<uchar> = kind::uint8;
template <> inline constexpr kind kind_of<metal::int4b_format> = kind::int4;
template <> inline constexpr kind kind_of<metal::uint4b_format> = kind::uint4;
template <> inline constexpr kind kind_of<metal::int2b_format> = kind::int2;
template <> inline constexpr kind kind_of<metal::uint2b_format> = kind::uint2;
template <> inline constexpr kind kind_of<metal::metal_fp4_e2m1_format> = kind::fp4;
template <> inline constexpr kind kind_of<metal::metal_fp8_e4m3_format> = kind::e4m3;
template <> inline constexpr kind kind_of<metal::metal_fp8_e5m2_format> = kind::e5m2;
template <> inline constexpr kind kind_of<int> = kind::int32;

constexpr bool is_real(kind k) { return k == kind::real32 || k == kind::real16 || k == kind::brain16; }
constexpr bool is_byte(kind k) { return k == kind::int8 || k == kind::uint8; }
constexpr bool is_nibble(kind k) { return k == kind::int4 || k == kind::uint4 || k == kind::int2 || k == kind::uint2; }
constexpr bool is_small_real(kind k) { return k == kind::fp4 || k == kind::e4m3 || k == kind::e5m2; }

// Bytes and narrower integers of one sign: the product of whole numbers.
constexpr bool is_whole(kind left, kind right) {
  return (left == kind::int8 && (right == kind::int8 || right == kind::int4 || right == kind::int2)) ||
         (left == kind::uint8 && (right == kind::uint8 || right == kind::uint4 || right == kind::uint2));
}

// The narrowest type that a product of reals may be rounded to: float where an operand is one, else that of the wider
// operand, or either where they are half and bfloat.
constexpr bool is_result(kind left, kind right, kind result) {
  if (result == kind::real32) return true;
  bool halves = left == kind::real16 || right == kind::real16 || is_small_real(left);
  bool brains = left == kind::brain16 || right == kind::brain16;
  bool wide = left == kind::real32 || right == kind::real32;
  return !wide && ((result == kind::real16 && halves) || (result == kind::brain16 && brains));
}

constexpr bool is_product(kind left, kind right, kind result) {
  if (is_whole(left, right)) return result == kind::int32;
  bool pair = (is_real(left) && is_real(right)) || (is_real(left) && is_byte(right)) || (is_byte(left) && is_real(right)) ||
              ((left == kind::real16 || left == kind::brain16) && is_nibble(right)) ||
              (left == kind::real16 && is_small_real(right)) || (left == right && is_small_real(left));
  return pair && is_result(left, right, result);
}

} // namespace __tensor_ops_detail
} // namespace tensor_ops
} // namespace mpp
