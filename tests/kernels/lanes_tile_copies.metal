// Tiles copied to threadgroup memory and back, several elements per thread. Each run sets the distance between the tile's rows in
// device memory. Threads side by side share vectors; what they copy must not depend on that.
// for group: 128 96 32 40
// for n: 64 67
// let row = lambda i: i // 64
// let column = lambda i: i % 64
// run: -b 0=arange:int32:{n}x64 -b 1=arange:uint8:{n}x64 -b 2:out:int32:4096 -b 3:out:uint8:4096 -b 4:out:int32:4288 --bytes 5=uint32:{n} --groups 1 --threadgroup {group}
// expect buffer 2: f(i) for i in 4096: row(i) * n + column(i)
// expect buffer 3: f(i) for i in 4096: (row(i) * n + column(i)) % 256
// expect buffer 4: f(i) for i in 4288: (63 - i // n) * 64 + i % n if i % n < 64 and i < 64 * n else 0
#include <metal_stdlib>
using namespace metal;

constant constexpr uint side = 64;
struct four { int v[4]; };

kernel void tile_copies(device const int *numbers [[buffer(0)]], device const uchar *bytes [[buffer(1)]],
                        device four *out [[buffer(2)]], device uchar *out_bytes [[buffer(3)]], device int *back [[buffer(4)]],
                        constant uint &n [[buffer(5)]], uint me [[thread_index_in_threadgroup]],
                        uint threads [[threads_per_threadgroup]]) {
    threadgroup int tile[side * side / 4 * 5];
    threadgroup uchar narrow[side * side];
    struct eight { uchar v[8]; };
    // 16 threads per row of the matrix, one thread per row of the tile; then 8 threads and 8 bytes.
    for (uint i = me; i < side * side / 4; i += threads)
        *(threadgroup four *)(tile + i * 5) = *(device const four *)(numbers + i / 16 * n + i % 16 * 4);
    for (uint i = me; i < side * side / 8; i += threads)
        *(threadgroup eight *)(narrow + i / 8 * side + i % 8 * 8) = *(device const eight *)(bytes + i / 8 * n + i % 8 * 8);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = me; i < side * side / 4; i += threads) out[i] = *(threadgroup four *)(tile + i * 5);
    for (uint i = me; i < side * side; i += threads) out_bytes[i] = narrow[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    // Two threads per row and 4 elements each: 8 columns at a time; the rows in reverse.
    for (uint i = me; i < side * side; i += threads) tile[i] = i;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint column = 0; column < side; column += 8)
        for (uint i = me; i < side * 2; i += threads)
            *(device four *)(back + i / 2 * n + column + i % 2 * 4) =
                *(threadgroup four *)(tile + (side - 1 - i / 2) * side + column + i % 2 * 4);
}
