// The same in a kernel without a barrier, whose gangs run one after another.
// finding: SM005: it stores what threadgroup memory begins with
// run: -b 0:out:uint32:512 --grid 512 --threadgroup 32
// expect buffer 0: f(i) for i in 512: 4294967295
// cpu-only: what GPUs begin with is open
#include <metal_stdlib>
using namespace metal;

kernel void begins(device uint *first [[buffer(0)]], uint i [[thread_position_in_grid]],
                   uint t [[thread_position_in_threadgroup]]) {
  threadgroup uint own[64];
  first[i] = own[t + 32];
  own[t + 32] = i;
}
