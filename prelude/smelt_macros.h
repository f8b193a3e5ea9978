// The macros users see. The preprocessor is given these alone; everything else comes precompiled.
#pragma once

#define __METAL__ 1
#define __SMELT__ 1
#ifndef __METAL_VERSION__
#define __METAL_VERSION__ 320
#endif
// Before Metal 3.0 each platform had versions of its own, such as macos-metal2.4.
#if __METAL_VERSION__ < 300
#define __METAL_MACOS__ 1
#endif

// bfloat is a type of the language.
#define __HAVE_BFLOAT__ 1
// What devices have that public headers ask for. Not here: textures, ray tracing, meshes.
#define __HAVE_FUNCTION_CONSTANTS__ 1
#define __HAVE_LAMBDAS__ 1
#define __HAVE_COHERENT__ 1
#define __HAVE_ATOMIC_TEMPLATE__ 1
#define __HAVE_ATOMIC_BOOL__ 1
#define __HAVE_ATOMIC_FLOAT__ 1
#define __HAVE_ATOMIC_ULONG__ 1
#define __HAVE_ATOMIC_ULONG_MIN_MAX__ 1
#define __HAVE_ATOMIC_FENCE__ 1
#define __HAVE_SIMDGROUP__ 1
#define __HAVE_SIMDGROUP_BALLOT__ 1
#define __HAVE_SIMDGROUP_REDUCTION__ 1
#define __HAVE_SIMDGROUP_MATRIX__ 1
#define __HAVE_QUADGROUP__ 1
#define __HAVE_QUADGROUP_BALLOT__ 1
#define __HAVE_QUADGROUP_REDUCTION__ 1

#if __METAL_VERSION__ >= 400
#define __HAVE_TENSOR__ 1
#define __HAVE_TENSOR_VECTOR_ACCESSOR__ 1
#define __HAVE_EXECUTION_UNIT__ 1
#define __HAVE_PACKED_NUMERIC__ 1
#define __HAVE_PACKED_NUMERIC_TYPE__ 1
#define __HAVE_INT4B_FORMAT_TYPE__ 1
#endif
#if __METAL_VERSION__ >= 410
#define __HAVE_TENSOR_MULTIPLANE__ 1
#define __HAVE_TENSOR_GET_STRIDE_BYTES__ 1
#define __HAVE_INT2B_FORMAT_TYPE__ 1
#define __HAVE_INT8B_FORMAT_TYPE__ 1
#define __HAVE_METAL_FP4_E2M1_FORMAT_TYPE__ 1
#define __HAVE_METAL_FP8_E4M3_FORMAT_TYPE__ 1
#define __HAVE_METAL_FP8_E5M2_FORMAT_TYPE__ 1
#define __HAVE_METAL_FP8_UE8M0_FORMAT_TYPE__ 1
#define __HAVE_PACKED_NUMERIC_TYPE_PACK_UNPACK__ 1
#endif

#define METAL_FUNC inline __attribute__((always_inline))
#define METAL_INTERNAL METAL_FUNC
#define METAL_CONST static constant constexpr

// Only checked runs evaluate the condition (smelt check); in others, no code is left of it.
#define assert(...)                                                              \
  ((void)(__builtin_is_constant_evaluated() || !__smelt_is_checked() ||          \
          ((__VA_ARGS__) ? true : (__smelt_assertion(#__VA_ARGS__), false))))

// How math functions are asked for below the library (smelt_internals.h).
#define __METAL_PRECISE_MATH__ 0
#define __METAL_FAST_MATH__ 1
#ifdef __FAST_MATH__
#define __METAL_MAYBE_FAST_MATH__ __METAL_FAST_MATH__
#else
#define __METAL_MAYBE_FAST_MATH__ __METAL_PRECISE_MATH__
#endif

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_inff()

// Mathematical constants as float, half and bfloat.
#define M_E_F 2.71828182845904523536f
#define M_LOG2E_F 1.44269504088896340736f
#define M_LOG10E_F 0.434294481903251827651f
#define M_LN2_F 0.693147180559945309417f
#define M_LN10_F 2.30258509299404568402f
#define M_PI_F 3.14159265358979323846f
#define M_PI_2_F 1.57079632679489661923f
#define M_PI_4_F 0.785398163397448309616f
#define M_1_PI_F 0.318309886183790671538f
#define M_2_PI_F 0.636619772367581343076f
#define M_2_SQRTPI_F 1.12837916709551257390f
#define M_SQRT2_F 1.41421356237309504880f
#define M_SQRT1_2_F 0.707106781186547524401f
#define M_E_H ((half)2.71828182845904523536f)
#define M_LOG2E_H ((half)1.44269504088896340736f)
#define M_LOG10E_H ((half)0.434294481903251827651f)
#define M_LN2_H ((half)0.693147180559945309417f)
#define M_LN10_H ((half)2.30258509299404568402f)
#define M_PI_H ((half)3.14159265358979323846f)
#define M_PI_2_H ((half)1.57079632679489661923f)
#define M_PI_4_H ((half)0.785398163397448309616f)
#define M_1_PI_H ((half)0.318309886183790671538f)
#define M_2_PI_H ((half)0.636619772367581343076f)
#define M_2_SQRTPI_H ((half)1.12837916709551257390f)
#define M_SQRT2_H ((half)1.41421356237309504880f)
#define M_SQRT1_2_H ((half)0.707106781186547524401f)
#define M_E_BF ((bfloat)2.71828182845904523536f)
#define M_LOG2E_BF ((bfloat)1.44269504088896340736f)
#define M_LOG10E_BF ((bfloat)0.434294481903251827651f)
#define M_LN2_BF ((bfloat)0.693147180559945309417f)
#define M_LN10_BF ((bfloat)2.30258509299404568402f)
#define M_PI_BF ((bfloat)3.14159265358979323846f)
#define M_PI_2_BF ((bfloat)1.57079632679489661923f)
#define M_PI_4_BF ((bfloat)0.785398163397448309616f)
#define M_1_PI_BF ((bfloat)0.318309886183790671538f)
#define M_2_PI_BF ((bfloat)0.636619772367581343076f)
#define M_2_SQRTPI_BF ((bfloat)1.12837916709551257390f)
#define M_SQRT2_BF ((bfloat)1.41421356237309504880f)
#define M_SQRT1_2_BF ((bfloat)0.707106781186547524401f)
// What ilogb gives for 0 and for NaN.
#define FP_ILOGB0 (-2147483647 - 1)
#define FP_ILOGBNAN 2147483647

// The limits of the types; metal_limits has numeric_limits.
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define CHAR_MAX 127
#define CHAR_MIN (-128)
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-9223372036854775807l - 1)
#define ULONG_MAX 18446744073709551615ul
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define FLT_MAX_10_EXP 38
#define FLT_MAX_EXP 128
#define FLT_MIN_10_EXP (-37)
#define FLT_MIN_EXP (-125)
#define FLT_RADIX 2
#define FLT_MAX 0x1.fffffep127f
#define FLT_MIN 0x1.0p-126f
#define FLT_EPSILON 0x1.0p-23f
#define MAXFLOAT FLT_MAX
#define HALF_DIG 3
#define HALF_MANT_DIG 11
#define HALF_MAX_10_EXP 4
#define HALF_MAX_EXP 16
#define HALF_MIN_10_EXP (-4)
#define HALF_MIN_EXP (-13)
#define HALF_RADIX 2
#define HALF_MAX ((half)0x1.ffcp15f)
#define HALF_MIN ((half)0x1.0p-14f)
#define HALF_EPSILON ((half)0x1.0p-10f)
#define MAXHALF HALF_MAX
#define HUGE_VALH ((half)__builtin_inff())
#define BFLT_DIG 2
#define BFLT_MANT_DIG 8
#define BFLT_MAX_10_EXP 38
#define BFLT_MAX_EXP 128
#define BFLT_MIN_10_EXP (-37)
#define BFLT_MIN_EXP (-125)
#define BFLT_RADIX 2
#define BFLT_MAX ((bfloat)0x1.fep127f)
#define BFLT_MIN ((bfloat)0x1.0p-126f)
#define BFLT_EPSILON ((bfloat)0x1.0p-7f)
#define MAXBFLOAT BFLT_MAX
#define HUGE_VALBF ((bfloat)__builtin_inff())

#define MLX_MTL_CONST static constant constexpr const
#define MLX_MTL_PRAGMA_UNROLL _Pragma("clang loop unroll(full)")
#define MLX_MTL_LOOP_UNROLL _Pragma("clang loop unroll(full)")
#define instantiate_kernel(name, func, ...) \
  template [[host_name(name)]] [[kernel]] decltype(func<__VA_ARGS__>) func<__VA_ARGS__>;
