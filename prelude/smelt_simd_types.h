// The names of <simd/simd.h>, with which headers shared by the host and the device say float4 and float4x4: simd_float4,
// vector_float4, simd::float4, simd_float4x4, matrix_float4x4, simd::float4x4.
#pragma once

#include "metal_matrix"

// Not an alias of metal: a program may have names of its own in it.
namespace simd {
using namespace metal;
}

#define __SMELT_SIMD_VECTOR(type, size)                                                                      \
  typedef type##size simd_##type##size;                                                                      \
  typedef type##size vector_##type##size;                                                                    \
  namespace simd { using ::type##size; }
#define __SMELT_SIMD_VECTORS(type)                                                                           \
  typedef type simd_##type##1;                                                                               \
  __SMELT_SIMD_VECTOR(type, 2) __SMELT_SIMD_VECTOR(type, 3) __SMELT_SIMD_VECTOR(type, 4)
__SMELT_VECTOR_TYPES(__SMELT_SIMD_VECTORS)
#undef __SMELT_SIMD_VECTORS
#undef __SMELT_SIMD_VECTOR

#define __SMELT_SIMD_MATRIX(type, size)                                                                      \
  typedef metal::type##size simd_##type##size;                                                               \
  typedef metal::type##size matrix_##type##size;
#define __SMELT_SIMD_MATRICES(type)                                                                          \
  __SMELT_SIMD_MATRIX(type, 2x2) __SMELT_SIMD_MATRIX(type, 2x3) __SMELT_SIMD_MATRIX(type, 2x4)               \
  __SMELT_SIMD_MATRIX(type, 3x2) __SMELT_SIMD_MATRIX(type, 3x3) __SMELT_SIMD_MATRIX(type, 3x4)               \
  __SMELT_SIMD_MATRIX(type, 4x2) __SMELT_SIMD_MATRIX(type, 4x3) __SMELT_SIMD_MATRIX(type, 4x4)
__SMELT_SIMD_MATRICES(float)
__SMELT_SIMD_MATRICES(half)
#undef __SMELT_SIMD_MATRICES
#undef __SMELT_SIMD_MATRIX
