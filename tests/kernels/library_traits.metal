// Type traits, utilities and the names of <simd/simd.h>: mostly at compile time.
// run: checks -b 0:out:float32:8 -b 1=arange:float32:8 --threadgroup-memory 0=32 --grid 1
// expect buffer 0: 3 3 9 8 6 10 24 5
#include <metal_stdlib>
#include <metal_type_traits>
#include <metal_utility>
#include <simd/simd.h>
using namespace metal;

enum class Small : ushort { one };
enum Plain { two };
struct Empty {};
struct Base { int a; };
struct Derived : Base { float b; };
union Both { int i; float f; };

// As for a scalar, so for a vector of it.
template <typename T> constexpr bool integral() { return is_integral<T>::value && is_integral_v<T> && is_arithmetic<T>::value && is_arithmetic_v<T> && !is_floating_point_v<T>; }
template <typename T> constexpr bool real() { return is_floating_point<T>::value && is_floating_point_v<T> && is_signed<T>::value && !is_integral<T>::value; }
static_assert(integral<char>() && integral<uchar2>() && integral<short3>() && integral<packed_ushort4>() && integral<long3>() && integral<bool>(), "");
static_assert(real<float>() && real<half2>() && real<bfloat3>() && real<packed_float4>() && real<half>() && real<bfloat>(), "");
static_assert(is_signed_v<char2> && is_unsigned<uint3>::value && is_unsigned_v<ulong4> && !is_unsigned_v<int> && is_signed<const short4>::value, "");
static_assert(is_scalar<half>::value && is_scalar_v<const int> && !is_scalar_v<float4> && is_vector<packed_char3>::value && is_vector_v<const bool2>, "");
static_assert(is_enum<Small>::value && is_enum_v<Plain> && !is_enum_v<int> && is_class<Base>::value && is_class_v<Empty> && !is_class_v<Both>, "");
static_assert(is_same<int8_t, char>::value && is_same_v<vec<int8_t, 3>, char3> && is_same_v<int16_t, short> && is_same_v<uint64_t, ulong> && is_same_v<size_t, ulong>, "");
static_assert(is_same_v<metal::nullptr_t, decltype(nullptr)> && is_same_v<ptrdiff_t, long> && is_same_v<uint8_t, uchar> && is_same_v<int32_t, int> && is_same_v<uint16_t, ushort> && is_same_v<int64_t, long> && is_same_v<uint32_t, uint>, "");
static_assert(is_convertible<int, float>::value && is_convertible_v<half, float> && !is_convertible_v<int4, float4> && !is_convertible_v<float4, float3>, "");
static_assert(is_const<const int>::value && is_const_v<const float4> && is_pointer_v<device float *> && is_reference_v<thread int &> && is_array_v<int[3]>, "");
static_assert(is_void_v<void> && is_base_of_v<Base, Derived> && is_trivial_v<Base> && is_standard_layout_v<Base>, "");
static_assert(is_trivially_copyable_v<float4> && is_trivially_copyable_v<packed_half3> && is_constructible_v<float3, float2, float> && !is_constructible_v<float3, float2, float2>, "");
static_assert(is_trivially_copyable_v<float4x4> && is_union_v<Both> && is_function_v<void(int)>, "");
static_assert(vec_elements<half3>::value == 3 && vec_elements<packed_int4>::value == 4 && vec_elements<float>::value == 0, "");
static_assert(is_same_v<make_scalar<ushort4>::type, ushort> && is_same_v<make_scalar_t<int>, int> && is_same_v<make_unsigned_t<int4>, uint4>, "");
static_assert(is_same_v<make_signed<uint>::type, int> && is_same_v<make_signed_t<ushort3>, short3> && is_same_v<make_unsigned<long>::type, ulong>, "");
static_assert(is_same_v<make_unsigned_t<packed_short2>, packed_ushort2> && is_same_v<underlying_type_t<Small>, ushort>, "");
static_assert(is_same_v<enable_if<true, int>::type, int> && is_same_v<enable_if_t<true>, void>, "");
static_assert(is_same_v<conditional<false, int, float>::type, float> && is_same_v<conditional_t<true, int, float>, int>, "");
static_assert(is_same_v<remove_const_t<const int>, int> && is_same_v<remove_volatile_t<volatile int>, int> && is_same_v<remove_cv_t<const volatile int>, int>, "");
static_assert(is_same_v<remove_reference_t<thread int &>, int> && is_same_v<remove_pointer_t<thread int *>, int> && is_same_v<remove_extent_t<int[3][4]>, int[4]>, "");
static_assert(is_same_v<add_const_t<int>, const int> && is_same_v<add_pointer_t<int>, thread int *> && is_same_v<decay_t<const thread float &>, float>, "");
static_assert(integral_constant<int, 7>::value == 7 && integral_constant<int, 7>() == 7 && bool_constant<true>::value && true_type::value && !false_type::value, "");
static_assert(conjunction_v<true_type, is_integral<int>> && !conjunction_v<true_type, false_type> && disjunction_v<false_type, true_type> && negation_v<false_type>, "");
static_assert(is_same_v<decltype(declval<float>() + declval<int>()), float>, "");
static_assert(is_same_v<make_index_sequence<3>, index_sequence<0, 1, 2>> && is_same_v<index_sequence_for<int, half>, index_sequence<0, 1>> && integer_sequence<int, 4, 5>::size() == 2, "");

static_assert(is_same_v<simd_float2, float2> && is_same_v<simd_float3, float3> && is_same_v<simd::float4, simd_float4>, "");
static_assert(is_same_v<simd_half2, half2> && is_same_v<simd_half4, half4> && is_same_v<simd_char4, char4> && is_same_v<simd_uchar4, uchar4>, "");
static_assert(is_same_v<simd_short2, short2> && is_same_v<simd_ushort4, ushort4> && is_same_v<simd_int2, int2> && is_same_v<simd_int3, int3> && is_same_v<simd_int4, int4>, "");
static_assert(is_same_v<simd_uint2, uint2> && is_same_v<simd_uint3, uint3> && is_same_v<simd_uint4, uint4> && is_same_v<simd_long2, long2> && is_same_v<simd_ulong2, ulong2>, "");
static_assert(is_same_v<vector_float2, float2> && is_same_v<vector_float3, float3> && is_same_v<vector_float4, float4> && is_same_v<vector_int2, int2>, "");
static_assert(is_same_v<vector_uint2, uint2> && is_same_v<vector_uint4, uint4> && is_same_v<vector_ushort2, ushort2> && is_same_v<vector_half4, half4>, "");
static_assert(is_same_v<simd_float2x2, float2x2> && is_same_v<simd_float3x3, simd::float3x3> && is_same_v<simd_float4x4, matrix_float4x4> && is_same_v<simd_half4x4, half4x4>, "");
static_assert(is_same_v<matrix_float2x2, float2x2> && is_same_v<matrix_float3x3, float3x3> && is_same_v<matrix_half3x3, half3x3>, "");
static_assert(sizeof(simd_packed_float2) == 8 && alignof(simd_packed_float4) == 4, "");

// A structure of a header that the host shares.
struct Shared {
  vector_float3 direction;
  simd_uint2 size;
  matrix_float4x4 view;
};
static_assert(sizeof(Shared) == 96, "");

template <size_t... i> float picked(constant float *in, index_sequence<i...>) { return (in[i * 2] + ...); }

// A project's own, beside the library's.
template <typename T> void swap(thread T &a, thread T &b) {
  T c = a;
  a = b;
  b = c + 1;
}

kernel void checks(device float *out [[buffer(0)]], constant float *in [[buffer(1)]], threadgroup float *shared [[threadgroup(0)]]) {
  float a = in[1], b = in[2];
  metal::swap(a, b);
  swap(a, b);
  out[0] = a + b - 1;
  out[1] = b;
  shared[0] = in[3];
  shared[1] = in[6];
  metal::swap(shared[0], shared[1]);
  out[2] = shared[1] * shared[1];
  shared[0] += 2;
  out[3] = shared[0];
  out[4] = picked(in, make_index_sequence<3>());
  out[5] = metal::move(out[4]) + 4;
  Shared s = {float3(1, 2, 3), uint2(4, 5), float4x4(6)};
  out[6] = (s.view * float4(s.direction, s.size.x)).w;
  out[7] = s.size.y;
  assert(out[7] == 5);
}
