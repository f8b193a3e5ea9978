// Only the run tells the stride between a thread's elements. They are neighbours if it is 1, or their size in bytes.
// for strides: 1,2,1 3,6,3 0,0,2
// run: -b 0=arange:float32:1201 -b 1=arange:int16:1201 -b 2:out:float32:400 -b 3:out:float32:1200 --bytes 4=uint32:{strides} --grid 100 --threadgroup 50
// expect buffer 2: f(i) for i in 400: 3 * i * strides[0] if i < 388 else 0
// expect buffer 3: f(i) for i in 1200: i // strides[2] if i % strides[2] == 0 and i // strides[2] < 400 else 0
#include <metal_stdlib>
using namespace metal;

kernel void strided(device const float *x [[buffer(0)]], device const char *y [[buffer(1)]], device float *out [[buffer(2)]],
                    device float *apart [[buffer(3)]], constant uint *strides [[buffer(4)]], uint i [[thread_position_in_grid]]) {
    const uint elements = strides[0], bytes = strides[1], stores = strides[2];
    x += elements * i * 4;
    y += bytes * i * 4;
    apart += stores * i * 4;
    if (i * 4 + 4 <= 388)
        for (uint k = 0; k < 4; k++) out[i * 4 + k] = x[elements * k] + 2 * *(device const short *)(y + bytes * k);
    for (uint k = 0; k < 4; k++) apart[stores * k] = i * 4 + k;
}
