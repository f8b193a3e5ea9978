/* A kernel may start before the previous one on its stream has ended: first of all, each thread waits until
 * that one has ended and what it wrote can be seen. So the launch, and the start of the threadgroups, overlap
 * with the end of the previous kernel. Chains of small kernels take half the time.
 *
 * The wait is the first instruction, and all threads execute it. A kernel has therefore not ended before the
 * previous one has, and what follows it on the stream may rely on both. No kernel allows the next one to
 * start before its own threadgroups have left: that one's would take registers, and chains of kernels that
 * are limited by memory were slower.
 *
 * Launched without the driver's attribute (device/cuda/launch.c), the wait does nothing.
 *
 * Requires: the module in its final form. Establishes: image.early. */
#include "compiler/ptx/ptx.h"

#include <string.h>

smelt_status pass_ptx_previous(struct unit *unit) {
    const struct code_shape *shape = &unit->request->shape;
    struct image *image = &unit->result->image;
    bool supported = strncmp(unit->request->cpu, "sm_9", 4) == 0;
    /* Whoever calls for such code waits for its launch. Some kernels of the library wait at a place of their
     * own. */
    if (!supported || shape->polled || shape->tested || image->early) return SMELT_OK;
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(unit->entry);
    LLVMPositionBuilderBefore(unit->builder, LLVMGetFirstInstruction(entry));
    ptx_assembly(unit, "griddepcontrol.wait;", "~{memory}", NULL, NULL, 0, true);
    image->early = true;
    return SMELT_OK;
}
