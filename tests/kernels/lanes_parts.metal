// Tiles of sums in the registers of a thread: loops that are written for a part of the gang after another, with counters, factors and
// rounds that all lanes share, tiles of other types, a tile that stores in the loop, and one whose loop may have no round.
// for function: four eight six words
// let N = {'four': 4, 'eight': 8, 'six': 6, 'words': 2}[function]
// run: {function} -b 0:out:float32:4608 --bytes 1=uint32:13,0 --grid 64 --threadgroup 64
// let a = lambda k, r: (k * 7 + r * 3) % 11 - 5
// let b = lambda k, c: (k * 5 + c * 2) % 13 - 6
// let sums = [sum(a(k, e // (8 * N)) * b(k, e % (8 * N)) * (k + 1) for k in range(13)) for e in range(64 * N * N)]
// expect buffer 0: f(i) for i in 4608: sums[i] + 2 if i < 64 * N * N else (13 if i < 64 * N * N + 64 else 0)
#include <metal_stdlib>
using namespace metal;

constant constexpr uint most = 16;

template <typename T, uint N> void tile(device float *out, constant uint2 &rounds, threadgroup T *left, threadgroup T *right,
                                        threadgroup uint *counts, uint me) {
  const uint side = 8 * N, row = me / 8 * N, column = me % 8 * N;
  for (uint i = me; i < most * side; i += 64) {
    const int k = i / side, at = i % side;
    left[i] = T((k * 7 + at * 3) % 11 - 5);
    right[i] = T((k * 5 + at * 2) % 13 - 6);
  }
  counts[me] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  T sums[N][N];
  for (uint i = 0; i < N; i++)
    for (uint j = 0; j < N; j++) sums[i][j] = 2;
  T factor = 1;
  for (uint k = 0; k < rounds.x; k++) {
    T x[N], y[N];
    for (uint i = 0; i < N; i++) x[i] = left[k * side + row + i] * factor;
    for (uint j = 0; j < N; j++) y[j] = right[k * side + column + j];
    for (uint i = 0; i < N; i++)
      for (uint j = 0; j < N; j++) sums[i][j] += x[i] * y[j];
    factor += 1;
    counts[me] += 1;
  }
  for (uint k = 0; k < rounds.y; k++)
    for (uint i = 0; i < N; i++)
      for (uint j = 0; j < N; j++) sums[i][j] += left[k * side + row + i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = 0; i < N; i++)
    for (uint j = 0; j < N; j++) out[(row + i) * side + column + j] = float(sums[i][j]);
  out[side * side + me] = counts[63 - me];
}

#define TILE(name, T, N)                                                                                                              \
  kernel void name(device float *out [[buffer(0)]], constant uint2 &rounds [[buffer(1)]], uint me [[thread_index_in_threadgroup]]) {  \
    threadgroup T left[most * 8 * N], right[most * 8 * N];                                                                           \
    threadgroup uint counts[64];                                                                                                     \
    tile<T, N>(out, rounds, left, right, counts, me);                                                                                \
  }
TILE(four, float, 4)
TILE(eight, float, 8)
TILE(six, int, 6)
TILE(words, long, 2)
