// Operands in device memory that threads convert for the tensor cores of a warpgroup, eight neighbouring elements at a time. The
// eight must be terms of one sum, aligned to their size, with one scale.
#pragma once

#include "MetalPerformancePrimitives/mpp_fragment.h"

namespace mpp {
namespace tensor_ops {
namespace __tensor_ops_detail {

// Element: half or bfloat, which hold every element of the operand, times its scale.
template <class Element, class T> struct eights {
  static constexpr kind from = kind_of<typename T::value_type>;
  static constexpr bool is_real = from == kind::real16 || from == kind::brain16, is_fp4 = from == kind::fp4;
  static constexpr bool is_signed = from == kind::int8 || from == kind::int4;
  // Per element; 0: an element of another kind.
  static constexpr int bits = is_real ? 16
                              : is_byte(from) || from == kind::e4m3 || from == kind::e5m2 ? 8
                              : from == kind::int4 || from == kind::uint4 || is_fp4 ? 4
                                                                                   : 0;
  static constexpr int words = bits / 4;
  static constexpr bool has_scale_of_eight() {
    if constexpr (T::__scaled)
      return __is_same(metal::__value_t<typename T::__plane::element_type>, metal::metal_fp8_ue8m0_format) &&
             T::__plane::block_size(0) % 8 == 0 && !__is_same(Element, half);
    else
      return true;
  }
  static constexpr bool possible = bits > 0 && metal::__tensor::in_device<typename T::element_type> &&
                                   (!is_real || (__is_same(typename T::value_type, Element) && !T::__scaled)) && has_scale_of_eight();

  METAL_FUNC static ulong first(const T &operand) {
    ulong address = (ulong)operand.__data;
    if constexpr (T::__packed) address += (ulong)operand.__origin * bits / 8;
    return address;
  }
  METAL_FUNC static ulong line_bytes(const T &operand) { return (ulong)operand.__strides[1] * bits / 8; }
  METAL_FUNC static bool is_aligned(const T &operand, uint terms) {
    bool aligned = operand.__strides[0] == 1 && operand.__strides[1] % 8 == 0 && terms % 8 == 0 && (first(operand) & (bits - 1)) == 0;
    if constexpr (T::__packed) aligned &= operand.__origin % 8 == 0;
    return aligned;
  }

  METAL_FUNC static void load(const T &operand, ulong address, uint (&raw)[words]) {
    auto loaded = load_at<typename word_of_bytes<bits>::type>(operand.__data, address);
    if constexpr (words == 1)
      raw[0] = loaded;
    else
      _Pragma("clang loop unroll(full)") for (int i = 0; i < words; i++) raw[i] = loaded[i];
  }

  // One code per byte, in order.
  METAL_FUNC static void spread(const uint (&raw)[words], uint (&bytes)[2]) {
    if constexpr (bits == 8) {
      bytes[0] = raw[0], bytes[1] = raw[words - 1];
    } else {
      uint even = raw[0] & 0x0F0F0F0Fu, odd = raw[0] >> 4 & 0x0F0F0F0Fu;
      if constexpr (is_fp4) { // as fp8_e4m3, which stands for 2^-6 of it
        even = (raw[0] << 2 & 0x1C1C1C1Cu) | (raw[0] << 4 & 0x80808080u);
        odd = (raw[0] >> 2 & 0x1C1C1C1Cu) | (raw[0] & 0x80808080u);
      }
      bytes[0] = __smelt_ptx_permute_bytes(even, odd, 0x5140), bytes[1] = __smelt_ptx_permute_bytes(even, odd, 0x7362);
    }
  }

  // Pairs of half: exact, but of fp4 2^-6 of each element.
  METAL_FUNC static void to_halves(const uint (&bytes)[2], uint (&pairs)[4]) {
    _Pragma("clang loop unroll(full)") for (int i = 0; i < 4; i++) {
      uint word = bytes[i / 2];
      if constexpr (from == kind::e5m2) {
        pairs[i] = i % 2 ? __smelt_ptx_halves_of_high_e5m2(word) : __smelt_ptx_halves_of_low_e5m2(word);
      } else if constexpr (from == kind::e4m3 || is_fp4) {
        pairs[i] = i % 2 ? __smelt_ptx_halves_of_high_e4m3(word) : __smelt_ptx_halves_of_low_e4m3(word);
      } else { // 1024 plus a byte is a half with this byte as its lower one
        constexpr uint low = !is_signed ? 0 : bits == 8 ? 0x80 : 8;
        uint moved = __smelt_ptx_permute_bytes(word ^ low * 0x01010101u, 0x64646464u, i % 2 ? 0x4342 : 0x4140);
        pairs[i] = __smelt_ptx_fma_halves(moved, 0x3C003C00u, (0xE400u + low) * 0x10001u);
      }
    }
  }

  // Pairs of Element. `code`: of the scale.
  METAL_FUNC static void convert(const uint (&raw)[words], uint code, uint (&pairs)[4]) {
    if constexpr (is_real) {
      _Pragma("clang loop unroll(full)") for (int i = 0; i < 4; i++) pairs[i] = raw[i % words];
    } else {
      uint bytes[2];
      spread(raw, bytes);
      to_halves(bytes, pairs);
      if constexpr (__is_same(Element, half)) {
        _Pragma("clang loop unroll(full)") for (int i = 0; i < 4 && is_fp4; i++)
          pairs[i] = __smelt_ptx_fma_halves(pairs[i], 0x54005400u, 0x80008000u);
      } else {
        // One factor after the other: their product may overflow.
        float scale = 1;
        if constexpr (T::__scaled) scale = metal::__packed_numeric::format<metal::metal_fp8_ue8m0_format>::decode(code);
        _Pragma("clang loop unroll(full)") for (int i = 0; i < 4; i++) {
          half2 both = __builtin_bit_cast(half2, pairs[i]);
          float low = (float)both.x, high = (float)both.y;
          if constexpr (is_fp4) low *= 64, high *= 64;
          if constexpr (T::__scaled) low *= scale, high *= scale;
          pairs[i] = __builtin_bit_cast(uint, metal::vec<bfloat, 2>((bfloat)low, (bfloat)high));
        }
      }
    }
  }
};

// What a thread converts of an operand's next 64 terms: the same eight of every `step`th line. W: warpgroups. Terms and lines
// beyond the operand are 0.
template <class W, class T, uint Lines> struct converted_operand {
  using own = eights<typename W::element, T>;
  static constexpr uint threads = W::count * 128, step = threads / 8, count = (Lines + step - 1) / step;
  uint raw[count][own::words], scales[count];
  uint line, chunk, lines, terms;
  ulong address, line_step, scale_address, scale_step;
  bool whole;

  METAL_FUNC void begin(const T &operand, uint held_lines, uint held_terms) {
    line = __smelt_thread_index() / 8, chunk = __smelt_thread_index() % 8;
    lines = held_lines, terms = held_terms;
    whole = Lines % step == 0 && lines >= Lines && terms % W::depth == 0;
    ulong bytes = own::line_bytes(operand);
    address = own::first(operand) + line * bytes + (ulong)chunk * own::bits, line_step = step * bytes;
    if constexpr (T::__scaled) scale_address = (ulong)operand.__scales.__data, scale_step = (ulong)operand.__scale_strides[1];
  }
  template <bool Whole> METAL_FUNC void load_each(const T &operand, uint k) {
    uint term = k + chunk * 8;
    ulong from = address + (ulong)k * own::bits / 8;
    _Pragma("clang loop unroll(full)") for (uint i = 0; i < count; i++) {
      if constexpr (!Whole) {
        _Pragma("clang loop unroll(full)") for (int j = 0; j < own::words; j++) raw[i][j] = 0;
        scales[i] = 0;
      }
      if (Whole || (term < terms && line + i * step < lines)) own::load(operand, from + i * line_step, raw[i]);
    }
    if constexpr (T::__scaled) {
      constexpr uint across = T::__plane::block_size(0), down = T::__plane::block_size(1);
      ulong scales_from = scale_address + term / across;
      if (down == 1) scales_from += line * scale_step;
      _Pragma("clang loop unroll(full)") for (uint i = 0; i < count; i++)
        if (Whole || (term < terms && line + i * step < lines))
          scales[i] = load_at<uchar>(operand.__scales.__data, scales_from + (down == 1 ? i * step : (line + i * step) / down) * scale_step);
    }
  }
  METAL_FUNC void load(const T &operand, uint k) {
    if (whole && k < terms)
      load_each<true>(operand, k);
    else
      load_each<false>(operand, k);
  }
  METAL_FUNC void store(uint address) {
    uint to = address + line * 128 + (chunk ^ (line & 7)) * 16;
    _Pragma("clang loop unroll(full)") for (uint i = 0; i < count; i++) {
      uint pairs[4];
      own::convert(raw[i], scales[i], pairs);
      if (Lines % step == 0 || line + i * step < Lines) __smelt_ptx_store_shared(to + i * step * 128, pairs[0], pairs[1], pairs[2], pairs[3]);
    }
  }
};

} // namespace __tensor_ops_detail
} // namespace tensor_ops
} // namespace mpp
