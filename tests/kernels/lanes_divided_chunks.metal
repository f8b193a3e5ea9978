// Quotients and remainders of numbers that differ by lane and by round. Where no vector straddles a multiple of the divisor,
// its lanes share a quotient: signed and unsigned numbers, negative ones, shifts, 16-bit ones, stores to tiles. In two,
// vectors straddle. In the last one, rows of the tile have as many elements as the divisor says.
// let row = lambda i, n, pitch: i // n * pitch + i % n
// let back = lambda j: 2000 + (j // 24 * 32 + j % 24 if j >= 0 else -(-j // 24 * 32 + -j % 24))
// for group: 64 128 96
// run: -b 0=arange:int32:4096 -b 1:out:int32:10368 --grid {group} --threadgroup {group}
// expect buffer 1: f(i) for i in 10368: [row(i % 1152, 24, 32), row(i % 1152, 40, 64), back(i % 1152 - 576), row(i % 1152, 32, 40), row(i % 1152, 200, 300), 1151 - i % 1152, row(i % 1152 + 3, 24, 32), row(i % 1152, 36, 50), i % 64 * 18 + i % 1152 // 64][i // 1152]
#include <metal_stdlib>
using namespace metal;

kernel void divided(device const int *in, device int *out, uint t [[thread_index_in_threadgroup]], uint threads [[threads_per_threadgroup]]) {
  threadgroup int tile[48][33];
  threadgroup int exact[64][18];
  const int n = 1152;
  for (int i = t; i < n; i += threads) out[i] = in[i / 24 * 32 + i % 24];
  for (uint i = t; i < uint(n); i += threads) out[n + i] = in[i / 40 * 64 + i % 40];
  for (int i = t; i < n; i += threads) {
    int j = i - 576;
    out[2 * n + i] = in[2000 + j / 24 * 32 + j % 24];
  }
  for (uint i = t; i < uint(n); i += threads) out[3 * n + i] = in[(i >> 5) * 40 + (i & 31)];
  for (ushort i = t; i < ushort(n); i += threads) out[4 * n + i] = in[ushort(i / 200) * 300 + ushort(i % 200)];
  for (uint i = t; i < uint(n); i += threads) tile[i / 24][i % 24] = i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = t; i < uint(n); i += threads) out[5 * n + i] = tile[47 - i / 24][23 - i % 24];
  for (uint i = t + 3; i < uint(n) + 3; i += threads) out[6 * n + i - 3] = in[i / 24 * 32 + i % 24];
  for (int i = t; i < n; i += threads) out[7 * n + i] = in[i / 36 * 50 + i % 36];
  for (int i = t; i < n; i += threads) exact[i / 18][i - i / 18 * 18] = i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int i = t; i < n; i += threads) out[8 * n + i] = exact[i % 64][i / 64];
}
