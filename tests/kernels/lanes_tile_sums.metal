// Tiles of sums whose factors are in threadgroup memory: 4 × 4 and 8 × 8 per thread, elements of rows in other orders, products that
// are rounded before they are added, halves, several products per round, two loops, a counter used after the loop, no rounds.
// for function: plain squares vectors halves several added rests none
// run: {function} -b 0=arange:int32:64x24 -b 1=arange:int32:24x64 -b 2:out:float32:64x64 --bytes 3=uint32:24 --grid 16,16 --threadgroup 16,16 --timeout 0
// let rounds = {'rests': [k % 9 for k in range(18)] + list(range(9, 18)), 'none': []}.get(function, range(24))
// let times = {'added': 3}.get(function, 1)
// let more = {'plain': 24, 'rests': 7, 'none': 7}.get(function, 0)
// expect buffer 2: f(i) for i in 4096: sum((i // 64 * 24 + k) % 31 * ((k * 64 + i % 64) % 29) for k in rounds) * times + more
#include <metal_stdlib>
using namespace metal;

#define ARGUMENTS                                                                                                  \
  device const int *a [[buffer(0)]], device const int *b [[buffer(1)]], device float *c [[buffer(2)]],             \
      constant uint &depth [[buffer(3)]], uint2 me [[thread_position_in_threadgroup]],                             \
      uint thread_index [[thread_index_in_threadgroup]]

// Both tiles, 24 deep; the left one transposed.
template <typename T>
void stage(device const int *a, device const int *b, threadgroup T (&left)[24][64], threadgroup T (&right)[24][64], uint thread_index) {
  for (uint i = thread_index; i < 24 * 64; i += 256) {
    left[i % 24][i / 24] = T(a[i] % 31);
    right[i / 64][i % 64] = T(b[i] % 29);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

kernel void plain(ARGUMENTS) {
  threadgroup float left[24][64], right[24][64];
  stage(a, b, left, right, thread_index);
  float sums[4][4] = {};
  uint k = 0;
  for (; k < 24; k++)
    for (uint i = 0; i < 4; i++)
      for (uint j = 0; j < 4; j++) sums[i][j] += left[k][me.y * 4 + i] * right[k][me.x * 4 + j];
  for (uint i = 0; i < 4; i++)
    for (uint j = 0; j < 4; j++) c[(me.y * 4 + i) * 64 + me.x * 4 + j] = sums[i][j] + k;
}

// 64 of the threads compute; the rows of a thread are 8 apart.
kernel void squares(ARGUMENTS) {
  threadgroup float left[24][64], right[24][64];
  stage(a, b, left, right, thread_index);
  const uint quarter = thread_index % 64, row = quarter / 8, column = quarter % 8 * 8;
  float sums[8][8] = {};
  for (uint k = 0; k < 24; k++)
    for (uint i = 0; i < 8; i++)
      for (uint j = 0; j < 8; j++) sums[i][j] += right[k][column + j] * left[k][row + i * 8];
  for (uint i = 0; i < 8; i++)
    for (uint j = 0; j < 8; j++) c[(row + i * 8) * 64 + column + j] = sums[i][j];
}

kernel void vectors(ARGUMENTS) {
  threadgroup float left[24][64], right[24][64];
  stage(a, b, left, right, thread_index);
  float4 sums[4] = {};
  for (uint k = 0; k < 24; k++) {
    const float4 row = *(threadgroup const float4 *)&right[k][me.x * 4];
    for (uint i = 0; i < 4; i++) sums[i] += left[k][me.y * 4 + i] * row;
  }
  for (uint i = 0; i < 4; i++) *(device float4 *)&c[(me.y * 4 + i) * 64 + me.x * 4] = sums[i];
}

kernel void halves(ARGUMENTS) {
  threadgroup half left[24][64], right[24][64];
  stage(a, b, left, right, thread_index);
  float sums[4][4] = {};
  for (uint k = 0; k < 24; k++)
    for (uint i = 0; i < 4; i++)
      for (uint j = 0; j < 4; j++) sums[i][j] += float(left[k][me.y + i * 16]) * float(right[k][me.x * 4 + j]);
  for (uint i = 0; i < 4; i++)
    for (uint j = 0; j < 4; j++) c[(me.y + i * 16) * 64 + me.x * 4 + j] = sums[i][j];
}

// Two products per round; the threads of a gang share a column.
kernel void several(ARGUMENTS) {
  threadgroup float left[24][64], right[24][64];
  stage(a, b, left, right, thread_index);
  float sums[4][4] = {};
  for (uint k = 0; k < 24; k += 2)
    for (uint i = 0; i < 4; i++)
      for (uint j = 0; j < 4; j++) {
        sums[i][j] = fma(left[k][me.x * 4 + i], right[k][me.y * 4 + j], sums[i][j]);
        sums[i][j] = fma(left[k + 1][me.x * 4 + i], right[k + 1][me.y * 4 + j], sums[i][j]);
      }
  for (uint i = 0; i < 4; i++)
    for (uint j = 0; j < 4; j++) c[(me.x * 4 + i) * 64 + me.y * 4 + j] = sums[i][j];
}

// The factors of the first products are sums.
kernel void added(ARGUMENTS) {
  threadgroup float left[24][64], right[24][64];
  stage(a, b, left, right, thread_index);
  float sums[4][4] = {};
  for (uint k = 0; k < 24; k++)
    for (uint i = 0; i < 4; i++)
      for (uint j = 0; j < 4; j++) {
        const float l = left[k][me.y * 4 + i], r = right[k][me.x * 4 + j];
        sums[i][j] = fma(l, r + r, sums[i][j]);
        sums[i][j] = fma(l, r, sums[i][j]);
      }
  for (uint i = 0; i < 4; i++)
    for (uint j = 0; j < 4; j++) c[(me.y * 4 + i) * 64 + me.x * 4 + j] = sums[i][j];
}

// Two loops that add to the same sums, which do not begin with zero.
kernel void rests(ARGUMENTS) {
  threadgroup float left[24][64], right[24][64];
  stage(a, b, left, right, thread_index);
  float sums[4][4];
  for (uint i = 0; i < 4; i++)
    for (uint j = 0; j < 4; j++) sums[i][j] = 7;
  for (uint round = 0; round < depth / 12; round++) {
    for (uint k = 0; k < 9; k++)
      for (uint i = 0; i < 4; i++)
        for (uint j = 0; j < 4; j++) sums[i][j] += left[k][me.y * 4 + i] * right[k][me.x * 4 + j];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (uint k = 9; k < 18; k++)
    for (uint i = 0; i < 4; i++)
      for (uint j = 0; j < 4; j++) sums[i][j] += left[k][me.y * 4 + i] * right[k][me.x * 4 + j];
  for (uint i = 0; i < 4; i++)
    for (uint j = 0; j < 4; j++) c[(me.y * 4 + i) * 64 + me.x * 4 + j] = sums[i][j];
}

kernel void none(ARGUMENTS) {
  threadgroup float left[24][64], right[24][64];
  stage(a, b, left, right, thread_index);
  float sums[4][4];
  for (uint i = 0; i < 4; i++)
    for (uint j = 0; j < 4; j++) sums[i][j] = 7;
  for (uint from = depth; from < 24; from += 8)
    for (uint k = 0; k < 24; k++)
      for (uint i = 0; i < 4; i++)
        for (uint j = 0; j < 4; j++) sums[i][j] += left[k][me.y * 4 + i] * right[k][me.x * 4 + j];
  for (uint i = 0; i < 4; i++)
    for (uint j = 0; j < 4; j++) c[(me.y * 4 + i) * 64 + me.x * 4 + j] = sums[i][j];
}
