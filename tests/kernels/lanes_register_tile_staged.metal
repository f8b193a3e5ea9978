// Tiles of 8 × 8 sums per thread from threadgroup memory, where one of the factors is transposed on its way.
// run: -b 0=arange:float32:128x48 -b 1=arange:int32:48x128 -b 2:out:float32:128x128 --bytes 3=uint32:48 --bytes 4=uint32:128 --groups 2,2 --threadgroup 64
// expect buffer 2: f(i) for i in 16384: sum((i // 128 * 48 + k) * ((k * 128 + i % 128) % 29) for k in range(48))
#include <metal_stdlib>
using namespace metal;

kernel void product(device const float *a [[buffer(0)]], device const int *b [[buffer(1)]], device float *c [[buffer(2)]],
                    constant uint &depth [[buffer(3)]], constant uint &columns [[buffer(4)]],
                    uint2 group [[threadgroup_position_in_grid]], uint me [[thread_index_in_threadgroup]]) {
    threadgroup float left[16][64], right[16][64];
    const uint row = me / 8 * 8, column = me % 8 * 8;
    float sums[8][8] = {};
    for (uint from = 0; from < depth; from += 16) {
        #pragma unroll
        for (uint k = 0; k < 16; k++) {
            left[k][me] = a[(group.y * 64 + me) * depth + from + k];
            right[k][me] = b[(from + k) * columns + group.x * 64 + me] % 29;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint k = 0; k < 16; k++)
            for (uint i = 0; i < 8; i++)
                for (uint j = 0; j < 8; j++) sums[i][j] += left[k][row + i] * right[k][column + j];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (uint i = 0; i < 8; i++)
        for (uint j = 0; j < 8; j++)
            c[(group.y * 64 + row + i) * columns + group.x * 64 + column + j] = sums[i][j];
}
