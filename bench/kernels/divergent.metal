// A loop whose length depends on the data, branches in it, and threads that leave early.
#include <metal_stdlib>
using namespace metal;

kernel void divergent(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                      constant uint &count [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i >= count) return;
    float c = in[i], a = 0.0f;
    int k = 0;
    while (a < 4.0f && k < 100) {
        if (c > 0.5f) {
            a = a * a + c;
            if (a > 2.0f) a = a + c * 0.5f;
        } else {
            a = a * 0.5f + 0.1f * k;
            if (k > 20 && c < -0.5f) {
                out[i] = -a;
                return;
            }
        }
        k++;
    }
    out[i] = a + k;
}
