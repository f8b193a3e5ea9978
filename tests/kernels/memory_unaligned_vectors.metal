// Vectors, matrices and structures at addresses that are multiples of their elements' size only, in every address space.
// for place: 1 3
// run: moves -b 0=arange:uint8:41472 -b 1:out:uint8:41472 -b 2=arange:uint8:41472 --bytes 3=uint32:{place} --grid 32 --threadgroup 32
// let sizes = [1, 1, 1, 2, 2, 4, 4, 8, 2, 2, 2, 4, 4, 4, 1, 4, 4, 2]
// let counts = [2, 3, 4, 3, 4, 3, 4, 2, 2, 4, 4, 2, 3, 4, 4, 8, 16, 4]
// let steps = [5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 9, 17, 5]
// let number = lambda r, b: b // sizes[r] - place
// let moved = lambda r, b: number(r, b) >= 0 and number(r, b) // steps[r] < 32 and number(r, b) % steps[r] < counts[r]
// let source = lambda r, b: b if r >= 15 else b + sizes[r] * (counts[r] - 1 - 2 * (number(r, b) % steps[r]))
// let value = lambda r, b: (2304 * r + source(r, b)) % 256 & (1 if r == 14 else 255)
// expect buffer 1: f(i) for i in 41472: value(i // 2304, i % 2304) if moved(i // 2304, i % 2304) else 0
#include <metal_stdlib>
using namespace metal;

struct mixed {
  float4 a;
  half2 b[4];
};

/* The elements the other way round, so that they are loaded and stored one by one; others are copied whole. */
template <typename T> T turned(T v) { return v; }
template <typename T> vec<T, 2> turned(vec<T, 2> v) { return v.yx; }
template <typename T> vec<T, 3> turned(vec<T, 3> v) { return v.zyx; }
template <typename T> vec<T, 4> turned(vec<T, 4> v) { return v.wzyx; }

/* From device or constant memory by way of threadgroup memory and of a private array to device memory. */
template <typename T> void move(int region, int size, int step, device uchar *out, device uchar *in, constant uchar *fixed,
                                threadgroup uchar *shared, uint place, uint i) {
  uint elements = size * (place + step * i), at = region * 2304 + elements;
  thread uchar own[4 * sizeof(T)];
  *(threadgroup T *)(shared + elements) = i & 1 ? *(device T *)(in + at) : *(constant T *)(fixed + at);
  thread T &mine = *reinterpret_cast<thread T *>(own + size * (place & i));
  mine = *(threadgroup T *)(shared + elements);
  *(device T *)(out + at) = turned(mine);
  simdgroup_barrier(mem_flags::mem_threadgroup);
}

kernel void moves(device uchar *in [[buffer(0)]], device uchar *out [[buffer(1)]], constant uchar *fixed [[buffer(2)]],
                  constant uint &place [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  threadgroup uchar shared[2368];
  move<char2>(0, 1, 5, out, in, fixed, shared, place, i);
  move<uchar3>(1, 1, 5, out, in, fixed, shared, place, i);
  move<char4>(2, 1, 5, out, in, fixed, shared, place, i);
  move<ushort3>(3, 2, 5, out, in, fixed, shared, place, i);
  move<short4>(4, 2, 5, out, in, fixed, shared, place, i);
  move<uint3>(5, 4, 5, out, in, fixed, shared, place, i);
  move<int4>(6, 4, 5, out, in, fixed, shared, place, i);
  move<long2>(7, 8, 5, out, in, fixed, shared, place, i);
  move<half2>(8, 2, 5, out, in, fixed, shared, place, i);
  move<half4>(9, 2, 5, out, in, fixed, shared, place, i);
  move<bfloat4>(10, 2, 5, out, in, fixed, shared, place, i);
  move<float2>(11, 4, 5, out, in, fixed, shared, place, i);
  move<float3>(12, 4, 5, out, in, fixed, shared, place, i);
  move<float4>(13, 4, 5, out, in, fixed, shared, place, i);
  uint first = 14 * 2304 + place + 5 * i;
  for (uint k = 0; k < 4; k++) in[first + k] &= 1;
  *(device bool4 *)(out + first) = turned(*(device bool4 *)(in + first));
  move<mixed>(15, 4, 9, out, in, fixed, shared, place, i);
  move<float4x4>(16, 4, 17, out, in, fixed, shared, place, i);
  move<half2x2>(17, 2, 5, out, in, fixed, shared, place, i);
}
