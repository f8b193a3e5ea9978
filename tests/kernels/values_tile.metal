// A product with a register tile per thread, whose tiles' sizes are arguments; the last one is a power of two or not.
// tests/CMakeLists.txt also runs it with code for these values.
// for depth: 4 6
// run: product -b 0=arange:float32:64x24 -b 1=arange:float32:24x32 -b 2:out:float32:64x32 --bytes 3=uint32:32 --bytes 4=uint32:16 --bytes 5=uint32:{depth} --bytes 6=uint32:64,32,24,0 --threadgroup-memory 0=2048 --groups 2,2,1 --threadgroup 32
// expect buffer 2: f(i) for i in 2048: sum((i // 32 * 24 + k) * (k * 32 + i % 32) for k in range(24))
// tolerance: 1e-5
#include <metal_stdlib>
using namespace metal;

#define TM 4
#define TN 4

kernel void product(device const float *A [[buffer(0)]], device const float *B [[buffer(1)]], device float *C [[buffer(2)]],
                    device const uint &BM [[buffer(3)]], constant uint &BN [[buffer(4)]], constant uint &BK [[buffer(5)]],
                    constant uint3 &sizes [[buffer(6)]], threadgroup float *shared [[threadgroup(0)]],
                    uint t [[thread_index_in_threadgroup]], uint threads [[threads_per_threadgroup]],
                    uint2 group [[threadgroup_position_in_grid]]) {
  uint N = sizes.y, K = sizes.z;
  uint row = t / (BN / TN), column = t % (BN / TN);
  threadgroup float *a = shared, *b = shared + BM * BK;
  float sums[TM * TN] = {0};
  for (uint k0 = 0; k0 < K; k0 += BK) {
    for (uint e = t; e < BM * BK; e += threads) a[e] = A[(group.y * BM + e / BK) * K + k0 + e % BK];
    for (uint e = t; e < BK * BN; e += threads) b[e] = B[(k0 + e / BN) * N + group.x * BN + e % BN];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = 0; k < BK; k++)
      for (uint i = 0; i < TM; i++)
        for (uint j = 0; j < TN; j++) sums[i * TN + j] += a[(row * TM + i) * BK + k] * b[k * BN + column * TN + j];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (uint i = 0; i < TM; i++)
    for (uint j = 0; j < TN; j++)
      C[(group.y * BM + row * TM + i) * N + group.x * BN + column * TN + j] = sums[i * TN + j];
}
