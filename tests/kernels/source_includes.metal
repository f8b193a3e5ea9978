// Includes beside the file and from folders given, Metal's headers by every name, __has_include, pragmas of all kinds.
// run: includes -b 0:out:float32:4 --grid 4
// expect buffer 0: 24 24 24 24
#import <metal_stdlib>
#include <metal_stdlib>
#include <simd/simd.h>
#include <TargetConditionals.h>
#include <metal_types>
#include <metal_type_traits>
#include <metal_limits>
#include <metal_common>
#include <metal_math>
#include <metal_integer>
#include <metal_relational>
#include <metal_geometric>
#include <metal_matrix>
#include <metal_atomic>
#include <metal_compute>
#include <metal_simdgroup>
#include <metal_quadgroup>
#include <metal_simdgroup_matrix>
#include <metal_array>
#include <metal_pack>
#include <metal_texture>
#include <metal_graphics>
#include <metal_raytracing>
#include <metal_uniform>
#include <metal_logging>
#include <metal/metal_simdgroup>
#include <metal/metal_simdgroup_matrix>
#include "include/first.h"
#include "include/first.h"
#include "include/below/../third.h"
#if __has_include("include/third.h") && __has_include(<metal_stdlib>) && __has_include(<metal/metal_stdlib>) && !__has_include(<vector>)
#define FOUND 1
#else
#define FOUND 100
#endif
#if !defined(__METAL__) || !defined(__HAVE_SIMDGROUP_MATRIX__) || !defined(__HAVE_BFLOAT__) || __METAL_VERSION__ != 320 || defined(__HAVE_RAYTRACING__)
#error "macros of the language"
#endif
using namespace metal;
_Pragma("METAL internals : enable")
#pragma mark - Kernels
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused"
#pragma clang diagnostic pop
#define UNROLL _Pragma("unroll")
constant float two = 2.0;
kernel void includes(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  float sum = 0;
  UNROLL for (int k = 0; k < 3; k++) sum += k;
#pragma unroll(2)
  for (int k = 0; k < 3; k++) sum += k;
#pragma clang loop unroll(disable)
  for (int k = 0; k < 3; k++) sum += k;
#pragma nounroll
  for (int k = 0; k < 3; k++) sum += k;
#pragma unroll
  for (int k = 0; k < 3; k++) sum += k;
  out[i] = sum + first(0) * two * FOUND + vector_float3{1, 2, 3}.z;
}
