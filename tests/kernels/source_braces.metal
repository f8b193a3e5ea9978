// Vectors from lists in braces: what a list of scalars leaves out is 0, also behind a single one, which fills nothing.
// run: source_braces -b 0=arange:float32:5 -b 1:out:float32:5x4 -b 2:out:uint32:5x4 -b 3:out:float16:5x4 --grid 5
// let a = lambda i: i // 4 + 2
// let v = lambda i, *l: (list(l) + [0, 0, 0])[i % 4]
// expect buffer 1: f(i) for i in 20: v(i, a(i)) + v(i, a(i), 3) + v(i, a(i), 3, a(i), 9) + [v(i, 1, 2, 3), v(i, 4)][i // 4 % 2] + v(i, 0, -1, -2) + v(i, 5, i // 4) + 7
// expect buffer 2: f(i) for i in 20: v(i, i // 4, 7, i // 4 ^ 5) + v(i, 3)
// expect buffer 3: f(i) for i in 20: v(i, 0.5, i // 4 + 1) + v(i, 2, 2, 2, 2)
#include <metal_stdlib>
using namespace metal;

constant float4 table[2] = {{1, 2, 3}, {4}};

struct Pair {
  float2 first;
  float3 second;
};

static float4 returned(float x) { return {5, x}; }
static float last(float4 x) { return x.w + x.x; }

kernel void source_braces(device const float *in [[buffer(0)]], device float4 *out [[buffer(1)]], device uint4 *keys [[buffer(2)]],
                          device half4 *halves [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  float a = in[i] + 2;
  float4 one = {a};
  float4 two{a, 3.0f};
  float4 mixed = {two.xy, a, 9};
  Pair pair = {{8}, {0, -1, -2}};
  out[i] = one + two + mixed + table[i & 1] + float4(pair.second, 0) + returned(i) + last({7.0f}) + pair.first.y + float4{};
  uint4 key = {i, 7, i ^ 5};
  keys[i] = key + uint4{3};
  half4 h = {0.5h, half(i + 1)};
  halves[i] = h + half4(2);
}
