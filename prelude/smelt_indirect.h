// The arguments of draws, dispatches and tessellation that a kernel writes to a buffer for later commands. The layouts are
// those of the host's structs.
#pragma once

struct MTLDispatchThreadgroupsIndirectArguments {
  uint threadgroupsPerGrid[3];
};
struct MTLDispatchThreadsIndirectArguments {
  uint threadsPerGrid[3];
  uint threadsPerThreadgroup[3];
};
struct MTLDrawPrimitivesIndirectArguments {
  uint vertexCount;
  uint instanceCount;
  uint vertexStart;
  uint baseInstance;
};
struct MTLDrawIndexedPrimitivesIndirectArguments {
  uint indexCount;
  uint instanceCount;
  uint indexStart;
  int baseVertex;
  uint baseInstance;
};
struct MTLDrawPatchIndirectArguments {
  uint patchCount;
  uint instanceCount;
  uint patchStart;
  uint baseInstance;
};
struct MTLQuadTessellationFactorsHalf {
  half edgeTessellationFactor[4];
  half insideTessellationFactor[2];
};
struct MTLTriangleTessellationFactorsHalf {
  half edgeTessellationFactor[3];
  half insideTessellationFactor;
};
