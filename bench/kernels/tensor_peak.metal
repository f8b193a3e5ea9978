// As many multiply-adds of 16-bit numbers as the asynchronous tensor cores of compute capability 9.0 can do: the products of
// kernels/matmul/best_warpgroups.metal, of two tiles that stay in threadgroup memory. in: the tiles, 128 × 64 and 64 × 256. 256 threads
// per threadgroup, each of which writes a float.
#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
namespace detail = mpp::tensor_ops::__tensor_ops_detail;

template <typename T>
kernel void tensor_peak(device const uint *in [[buffer(0)]], device float *out [[buffer(1)]], constant int &rounds [[buffer(2)]],
                        uint group [[threadgroup_position_in_grid]], uint me [[thread_position_in_threadgroup]]) {
    if (__smelt_gpu_target() != 901) return;
    using W = detail::warpgroups<is_same_v<T, bfloat> ? detail::kind::brain16 : detail::kind::real16, 128, 256, false, false, 8>;
    threadgroup uint *tiles = (threadgroup uint *)__smelt_staging(W::stage_bytes);
    for (uint i = me; i < W::stage_bytes / 4; i += 256) tiles[i] = in[i];
    __smelt_ptx_fence_async();
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint memory = __smelt_ptx_shared_address(tiles), own = __smelt_ptx_broadcast(me >> 7);
    float sums[W::sums], sum = 0;
    for (int round = 0; round < rounds; round++) {
        detail::multiply_stage<W>(memory, own, round == 0, sums);
        __smelt_ptx_wgmma_wait(1);
    }
    __smelt_ptx_wgmma_finish(sums, W::sums, 0);
    for (int i = 0; i < W::sums; i++) sum += sums[i];
    out[group * 256 + me] = sum;
}

template [[host_name("float16")]] kernel void tensor_peak<half>(device const uint *, device float *, constant int &, uint, uint);
template [[host_name("bfloat16")]] kernel void tensor_peak<bfloat>(device const uint *, device float *, constant int &, uint, uint);
