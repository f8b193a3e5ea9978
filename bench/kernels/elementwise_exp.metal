// e^x of every element; one thread an element.
#include <metal_stdlib>
using namespace metal;

kernel void elementwise_exp(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                            uint i [[thread_position_in_grid]]) {
    out[i] = exp(in[i]);
}
