// Vectors at any multiple of their elements' size, in device and threadgroup memory: tests/ptx/test_unaligned.py.
#include <metal_stdlib>
using namespace metal;

struct mixed {
  float4 a;
  half2 b[4];
};

template <typename T> T turned(T v) { return v; }
template <typename T> vec<T, 2> turned(vec<T, 2> v) { return v.yx; }
template <typename T> vec<T, 3> turned(vec<T, 3> v) { return v.zyx; }
template <typename T> vec<T, 4> turned(vec<T, 4> v) { return v.wzyx; }

template <typename T> void move(int region, int size, int step, device uchar *out, device uchar *in, threadgroup uchar *shared,
                                uint place, uint i) {
  uint elements = size * (place + step * i), at = region * 2304 + elements;
  threadgroup T &there = *reinterpret_cast<threadgroup T *>(shared + elements);
  there = *(device T *)(in + at);
  *(device T *)(out + at) = turned(there);
}

kernel void moves(device uchar *in [[buffer(0)]], device uchar *out [[buffer(1)]], device uint &place [[buffer(2)]],
                  uint i [[thread_position_in_grid]]) {
  threadgroup uchar shared[2368];
  move<char2>(0, 1, 5, out, in, shared, place, i);
  move<uchar3>(1, 1, 5, out, in, shared, place, i);
  move<char4>(2, 1, 5, out, in, shared, place, i);
  move<ushort3>(3, 2, 5, out, in, shared, place, i);
  move<short4>(4, 2, 5, out, in, shared, place, i);
  move<uint3>(5, 4, 5, out, in, shared, place, i);
  move<int4>(6, 4, 5, out, in, shared, place, i);
  move<long2>(7, 8, 5, out, in, shared, place, i);
  move<half2>(8, 2, 5, out, in, shared, place, i);
  move<half4>(9, 2, 5, out, in, shared, place, i);
  move<bfloat4>(10, 2, 5, out, in, shared, place, i);
  move<float2>(11, 4, 5, out, in, shared, place, i);
  move<float3>(12, 4, 5, out, in, shared, place, i);
  move<float4>(13, 4, 5, out, in, shared, place, i);
  move<mixed>(14, 4, 9, out, in, shared, place, i);
  move<float4x4>(15, 4, 17, out, in, shared, place, i);
  move<half2x2>(16, 2, 5, out, in, shared, place, i);
}

// What is known to be aligned is not asked for.
kernel void known(device float4 *in [[buffer(0)]], device half4 *out [[buffer(1)]], constant uint &n [[buffer(2)]],
                  uint i [[thread_position_in_grid]]) {
  threadgroup half4 shared[64];
  shared[i % 64] = half4(in[i * n] + *(device float4 *)((device float *)in + 8 * i));
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i + n] = shared[(i + 1) % 64];
}
