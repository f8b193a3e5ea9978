// The names of <simd/simd.h>, for headers that the host shares with its kernels: simd_float4, vector_float4,
// simd_float4x4, matrix_float4x4 …, and simd:: for metal::.
#pragma once

#include "metal_matrix"
#include "metal_packed"

namespace simd = metal;

#define __SMELT_NAMES(type)                                                                                  \
  typedef type##2 simd_##type##2, vector_##type##2;                                                          \
  typedef type##3 simd_##type##3, vector_##type##3;                                                          \
  typedef type##4 simd_##type##4, vector_##type##4;                                                          \
  typedef type simd_##type##1;                                                                               \
  typedef packed_##type##2 simd_packed_##type##2;                                                            \
  typedef packed_##type##4 simd_packed_##type##4;
__SMELT_NAMES(bool)
__SMELT_VECTOR_TYPES(__SMELT_NAMES)
#undef __SMELT_NAMES
typedef bool simd_bool;

#define __SMELT_NAME(type, C, R) typedef type##C##x##R simd_##type##C##x##R, matrix_##type##C##x##R;
#define __SMELT_NAMES(type)                                                                                  \
  __SMELT_NAME(type, 2, 2) __SMELT_NAME(type, 2, 3) __SMELT_NAME(type, 2, 4)                                 \
  __SMELT_NAME(type, 3, 2) __SMELT_NAME(type, 3, 3) __SMELT_NAME(type, 3, 4)                                 \
  __SMELT_NAME(type, 4, 2) __SMELT_NAME(type, 4, 3) __SMELT_NAME(type, 4, 4)
__SMELT_NAMES(half)
__SMELT_NAMES(float)
#undef __SMELT_NAMES
#undef __SMELT_NAME
