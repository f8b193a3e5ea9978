// Metal's headers have structures of indirect commands, but not that of the stage-in region: programs define it.
// run: -b 0:out:uint32:18 --grid 1
// expect buffer 0: 1 2 3 4 5 6 4 3 0 0 7 8 9 0 0 0 0 0
#include <metal_stdlib>

struct MTLStageInRegionIndirectArguments {
    uint32_t stageInOrigin[3];
    uint32_t stageInSize[3];
};

struct commands {
    MTLStageInRegionIndirectArguments region;
    MTLDrawPrimitivesIndirectArguments draw;
    MTLDispatchThreadgroupsIndirectArguments dispatch;
};

kernel void own_indirect(device commands &out [[buffer(0)]]) {
    out.region = {{1, 2, 3}, {4, 5, 6}};
    out.draw = {4, 3, 0, 0};
    out.dispatch = {{7, 8, 9}};
}
