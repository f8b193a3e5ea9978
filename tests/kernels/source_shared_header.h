// A header for host and device, with the types of simd.
#ifndef SOURCE_SHARED_HEADER
#define SOURCE_SHARED_HEADER
#include <simd/simd.h>
struct body {
    vector_float3 position;
    simd_float2 weight;
    simd::float4 rest;
};
typedef struct {
    matrix_float4x4 model;
    simd_float3x3 normal;
    simd::float2x2 small;
    vector_uint2 count;
} uniforms;
#endif
