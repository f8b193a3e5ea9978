// Operands in device memory that threads convert for the tensor cores of a warpgroup, a run of 8 or 16 neighbouring elements at a
// time. A run must be terms of one sum, aligned to its size, with one scale.
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
  template <int Run> static constexpr bool has_scale_of_run() {
    if constexpr (T::__scaled)
      return __is_same(metal::__value_t<typename T::__plane::element_type>, metal::metal_fp8_ue8m0_format) &&
             T::__plane::block_size(0) % Run == 0 && !__is_same(Element, half);
    else
      return true;
  }
  template <int Run>
  static constexpr bool possible = bits > 0 && metal::__tensor::in_device<typename T::element_type> &&
                                   (!is_real || (__is_same(typename T::value_type, Element) && !T::__scaled)) && has_scale_of_run<Run>();

  METAL_FUNC static ulong first(const T &operand) {
    ulong address = (ulong)operand.__data;
    if constexpr (T::__packed) address += (ulong)operand.__origin * bits / 8;
    return address;
  }
  METAL_FUNC static ulong line_bytes(const T &operand) { return (ulong)operand.__strides[1] * bits / 8; }
  template <int Run> METAL_FUNC static bool is_aligned(const T &operand, uint terms) {
    constexpr uint bytes = Run * bits / 8 < 16 ? Run * bits / 8 : 16;
    bool aligned = operand.__strides[0] == 1 && operand.__strides[1] >= 0 && operand.__strides[1] % Run == 0 && terms % Run == 0 &&
                   (first(operand) & (bytes - 1)) == 0 && line_bytes(operand) >> 32 == 0;
    if constexpr (T::__packed) aligned &= operand.__origin % Run == 0;
    if constexpr (T::__scaled) aligned &= (ulong)operand.__scale_strides[1] >> 32 == 0;
    return aligned;
  }

  template <int Words> METAL_FUNC static void load(const T &operand, ulong address, uint (&raw)[Words]) {
    constexpr int together = Words < 4 ? Words : 4;
    _Pragma("clang loop unroll(full)") for (int i = 0; i < Words; i += together) {
      auto loaded = load_at<typename word_of_bytes<together * 4>::type>(operand.__data, address + i * 4);
      if constexpr (together == 1)
        raw[i] = loaded;
      else
        _Pragma("clang loop unroll(full)") for (int j = 0; j < together; j++) raw[i + j] = loaded[j];
    }
  }

  // One code per byte, in order.
  METAL_FUNC static void spread(const uint *raw, uint (&bytes)[2]) {
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

  // A code of ue8m0 as a pair of bfloat. Without conditions: the compiler turns them into branches, which keep it from
  // interleaving neighbouring runs.
  METAL_FUNC static uint scale_of(uint code) { return (metal::max(code << 7, 0x40u) | (code + 1 >> 8) << 6) * 0x10001u; }

  // Pairs of Element of eight elements, `words` words. `scale`: of scale_of.
  METAL_FUNC static void convert(const uint *raw, uint scale, uint (&pairs)[4]) {
    if constexpr (is_real) {
      _Pragma("clang loop unroll(full)") for (int i = 0; i < 4; i++) pairs[i] = raw[i % words];
    } else {
      uint bytes[2];
      spread(raw, bytes);
      to_halves(bytes, pairs);
      _Pragma("clang loop unroll(full)") for (int i = 0; i < 4; i++) {
        if constexpr (is_fp4) pairs[i] = __smelt_ptx_fma_halves(pairs[i], 0x54005400u, 0x80008000u);
        if constexpr (!__is_same(Element, half)) {
          half2 both = __builtin_bit_cast(half2, pairs[i]);
          pairs[i] = __builtin_bit_cast(uint, metal::vec<bfloat, 2>((bfloat)(float)both.x, (bfloat)(float)both.y));
          if constexpr (T::__scaled) pairs[i] = __smelt_ptx_fma_bfloats(pairs[i], scale, 0x80008000u);
        }
      }
    }
  }
};

// What a thread converts of an operand's next 64 terms: the same run of every `step`th line. W: warpgroups. Terms beyond the
// operand are 0; lines beyond it are copies of the last one.
template <class W, class T, uint Lines, uint Run> struct converted_operand {
  using own = eights<typename W::element, T>;
  static constexpr uint runs = 64 / Run, step = W::count * 128 / runs, count = (Lines + step - 1) / step;
  static constexpr uint words = own::words * (Run / 8), all_words = count * words;
  uint raw[count][words], scales[count], lines[count];
  uint line, run, terms;
  ulong address, scale_address;
  uint line_bytes, scale_step;

  METAL_FUNC void begin(const T &operand, uint held_lines, uint held_terms) {
    line = __smelt_thread_index() / runs, run = __smelt_thread_index() % runs, terms = held_terms;
    _Pragma("clang loop unroll(full)") for (uint i = 0; i < count; i++) lines[i] = metal::min(line + i * step, held_lines - 1);
    // Masked, so that the compiler knows the alignment.
    constexpr uint run_bytes = Run * own::bits / 8, aligned = run_bytes < 16 ? run_bytes : 16;
    line_bytes = (uint)own::line_bytes(operand) & -aligned;
    address = (own::first(operand) & -(ulong)aligned) + run * run_bytes;
    if constexpr (T::__scaled) scale_address = (ulong)operand.__scales.__data, scale_step = (uint)operand.__scale_strides[1];
  }
  METAL_FUNC void load(const T &operand, uint k) {
    uint term = k + run * Run;
    if (term < terms) {
      ulong from = address + (ulong)k * own::bits / 8;
      _Pragma("clang loop unroll(full)") for (uint i = 0; i < count; i++) own::load(operand, from + (ulong)lines[i] * line_bytes, raw[i]);
      if constexpr (T::__scaled) {
        constexpr uint across = T::__plane::block_size(0), down = T::__plane::block_size(1);
        ulong scales_from = scale_address + term / across;
        _Pragma("clang loop unroll(full)") for (uint i = 0; i < count; i++)
          scales[i] = load_at<uchar>(operand.__scales.__data, scales_from + (ulong)(lines[i] / down) * scale_step);
      }
    } else {
      _Pragma("clang loop unroll(full)") for (uint i = 0; i < count; i++) {
        _Pragma("clang loop unroll(full)") for (uint j = 0; j < words; j++) raw[i][j] = 0;
        scales[i] = 0;
      }
    }
  }
  METAL_FUNC void store(uint address) {
    _Pragma("clang loop unroll(full)") for (uint i = 0; i < count; i++) {
      uint scale = 0;
      if constexpr (T::__scaled) scale = own::scale_of(scales[i]);
      _Pragma("clang loop unroll(full)") for (uint j = 0; j < Run / 8; j++) {
        uint pairs[4], to = address + line * 128 + ((run * (Run / 8) + j) ^ (line & 7)) * 16;
        own::convert(raw[i] + j * own::words, scale, pairs);
        if (Lines % step == 0 || line + i * step < Lines) __smelt_ptx_store_shared(to + i * step * 128, pairs[0], pairs[1], pairs[2], pairs[3]);
      }
    }
  }
};

} // namespace __tensor_ops_detail
} // namespace tensor_ops
} // namespace mpp
