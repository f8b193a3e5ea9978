// Types under the names of <simd/simd.h>, and the structs of indirect commands.
// run: source_shared_header -b 0=arange:float32:48 -b 1=arange:float32:36 -b 2:out:float32:4x4 -b 3:out:uint32:3 -b 4:out:uint32:5 -b 5:out:float16:6 --grid 4
// let b = lambda i: 12 * i
// let m = lambda c, r: 4 * c + r
// let value = lambda i, r: sum(m(c, r) * [b(i), b(i) + 1, b(i) + 2, 1][c] for c in range(4))
// expect buffer 2: f(i) for i in 16: value(i // 4, i % 4) + b(i // 4) + 4 + [b(i // 4) + 8, b(i // 4) + 11][i % 2] + (16 + 20 + 24 if i % 4 == 0 else 0) + 28 + 31
// expect buffer 3: 2 3 4
// expect buffer 4: 36 4 0 4294967291 7
// expect buffer 5: 1 2 3 4 0.5 0.25
#include <metal_stdlib>
#import "source_shared_header.h"
using namespace metal;
using namespace simd;

kernel void source_shared_header(device const body *bodies [[buffer(0)]], constant uniforms &u [[buffer(1)]],
                                 device float4 *out [[buffer(2)]],
                                 device MTLDispatchThreadgroupsIndirectArguments &groups [[buffer(3)]],
                                 device MTLDrawIndexedPrimitivesIndirectArguments *draw [[buffer(4)]],
                                 device MTLQuadTessellationFactorsHalf *factors [[buffer(5)]],
                                 uint i [[thread_position_in_grid]]) {
  static_assert(is_same_v<simd_float4x4, float4x4> && is_same_v<simd::half4, vector_half4>, "one type, many names");
  simd_float4 at = simd_float4(bodies[i].position, 1);
  float3x3 n = u.normal;
  out[i] = u.model * at + bodies[i].weight.x + simd::float4(bodies[i].rest.x, bodies[i].rest.w, bodies[i].rest.x, bodies[i].rest.w);
  out[i].x += n[0].x + n[1].x + n[2].x;
  out[i] += u.small[0].x + u.small[1].y;
  if (i == 0) {
    groups.threadgroupsPerGrid[0] = 2;
    groups.threadgroupsPerGrid[1] = 3;
    groups.threadgroupsPerGrid[2] = 4;
    draw->indexCount = 36;
    draw->instanceCount = 4;
    draw->indexStart = 0;
    draw->baseVertex = -5;
    draw->baseInstance = 7;
    for (int k = 0; k < 4; k++) factors->edgeTessellationFactor[k] = k + 1;
    factors->insideTessellationFactor[0] = 0.5h;
    factors->insideTessellationFactor[1] = 0.25h;
  }
}
