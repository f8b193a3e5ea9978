// A thread's products of small matrices: the factors are loaded again after each store, which does not write to them. Where a store does,
// or may, the second load has another value.
// for group: 32 48
// run: -b 0=arange:float32:96x16 -b 1=arange:float32:96x16 -b 2:out:float32:96x16 -b 3=arange:int32:300 -b 4:out:int32:96x4 --grid 96 --threadgroup {group}
// expect buffer 2: f(i) for i in 1536: sum((i // 16 * 16 + i % 16 // 4 * 4 + k) * (i // 16 * 16 + k * 4 + i % 4) % 4096 for k in range(4))
// expect buffer 4: f(i) for i in 384: [i // 4, 1000 + i // 4, 2000 + i // 4, 7][i % 4]
#include <metal_stdlib>
using namespace metal;

kernel void reloads(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], device float *c [[buffer(2)]],
                    device int *own [[buffer(3)]], device int *out [[buffer(4)]], uint g [[thread_position_in_grid]]) {
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) {
      float sum = 0;
      for (int k = 0; k < 4; k++) sum += float(int(a[g * 16 + i * 4 + k] * b[g * 16 + k * 4 + j]) % 4096);
      c[g * 16 + i * 4 + j] = sum;
    }
  out[g * 4] = own[g];
  own[g] = own[g] + 1000;
  out[g * 4 + 1] = own[g];
  device int *same = own + min(g, 200u);
  *same = 2000 + g;
  out[g * 4 + 2] = own[g];
  threadgroup int shared[64];
  threadgroup int *mine = shared + g % 32;
  *mine = 7;
  out[g * 4 + 3] = *mine;
}
