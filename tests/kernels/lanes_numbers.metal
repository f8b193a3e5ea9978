// Addresses and branches that follow from the thread's place in its group by other arithmetic than sums: quotients and remainders, bits
// that overlap, choices, comparisons that neighbours share; groups of several gangs, of parts of one, and of two dimensions.
// for group: 96 192 64 48 12,8 32,6
// let sizes = [int(n) for n in str(group).strip('()').split(',')]
// let wide = sizes[0]
// let count = wide * (sizes + [1])[1]
// run: -b 0=arange:int32:1024 -b 1:out:int32:3072 --grid {group} --threadgroup {group}
// let bits = lambda t: ((t & 1) << 8 | t // 2) | 56
// let at = lambda t: t // 6 * 7 + t % 6
// let loads = lambda t: (at(t), bits(t), t * t % 8 + t // 8 * 8, (t ^ 21) & 63, t % 32 * 3 if t < 64 else t - 64, 100 - t // 4 % 5)
// let cases = lambda t: loads(t) + (count - 1 - t, (3 if t // 32 == 1 else t % 5) + 7 * (t % wide >= 8))
// expect buffer 1: f(i) for i in 3072: cases(i // 8)[i % 8] if i < 8 * count else 0
#include <metal_stdlib>
using namespace metal;

kernel void numbers(device const int *x [[buffer(0)]], device int *out [[buffer(1)]], uint t [[thread_index_in_threadgroup]],
                    uint2 place [[thread_position_in_threadgroup]], uint2 size [[threads_per_threadgroup]]) {
  threadgroup int tile[512];
  const uint count = size.x * size.y, last = count - 1 - t;
  device int *mine = out + 8 * t;
  tile[t / 6 * 7 + t % 6] = int(t);
  mine[0] = x[t / 6 * 7 + t % 6];
  mine[1] = x[((t & 1) << 8 | t / 2) | 56];
  mine[2] = x[t * t % 8 + t / 8 * 8];
  mine[3] = x[(t ^ 21) & 63];
  mine[4] = x[t < 64 ? t % 32 * 3 : t - 64];
  mine[5] = x[100 - t / 4 % 5];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  mine[6] = tile[last / 6 * 7 + last % 6];
  int chosen;
  if (t / 32 == 1)
    chosen = x[3];
  else
    chosen = x[t % 5];
  mine[7] = place.x >= 8 ? chosen + 7 : chosen;
}
