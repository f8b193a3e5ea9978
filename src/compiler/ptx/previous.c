/* A kernel may start before the previous one on its stream has ended: first of all, each thread waits until
 * that one has ended and what it wrote can be seen. So the launch, and the start of the threadgroups, overlap
 * with the end of the previous kernel. Chains of small kernels take half the time.
 *
 * The wait is the first instruction, and all threads execute it. A kernel has therefore not ended before the
 * previous one has, and what follows it on the stream may rely on both.
 *
 * A kernel without loops, of few threadgroups, lets the next one's start as soon as its own have begun to
 * load: they find room beside these, and wait. Since this comes after the wait, the kernel before has ended:
 * no more than two kernels of a stream have threadgroups at once. No other kernel lets the next one start
 * before its own threadgroups have left: the next one's would take registers from them, and from other
 * streams for as long as they wait; and chains of kernels that are limited by memory were slower.
 *
 * Launched without the driver's attribute (device/cuda/launch.c), neither instruction does anything.
 *
 * Requires: the module in its final form. Establishes: image.early. */
#include "abi/cuda_parameters.h"
#include "compiler/analysis/flow.h"
#include "compiler/ptx/ptx.h"

#include <stddef.h>
#include <string.h>

/* Where many blocks would need the instruction, they are short conditional loads, which NVIDIA's assembler
 * makes predicated ones unless something else is in their blocks. */
#define MOST_PLACES 2

static LLVMValueRef last_load(LLVMBasicBlockRef block) {
    LLVMValueRef last = NULL;
    FOR_EACH_INSTRUCTION(i, block) {
        if (ptx_is_load(i)) last = i;
    }
    return last;
}

static void let_next_start_after(struct unit *unit, LLVMValueRef load) {
    LLVMPositionBuilderBefore(unit->builder, LLVMGetNextInstruction(load));
    LLVMValueRef few = ptx_parameter(unit, type_i32(unit), offsetof(struct cuda_parameters, few));
    ptx_assembly(unit, "{ .reg .pred few; setp.ne.u32 few, $0, 0; @few griddepcontrol.launch_dependents; }",
                 "r,~{memory}", NULL, &few, 1, true);
}

/* After the loads of each block that no other such block always precedes, if these are few. */
static smelt_status let_next_start(struct unit *unit) {
    struct arena arena = {0};
    struct flow flow;
    LLVMValueRef loads[MOST_PLACES];
    int places[MOST_PLACES], count = 0;
    smelt_status status = flow_find(unit, unit->entry, &arena, &flow);
    for (int i = 0; status == SMELT_OK && !flow.loop_count && i < flow.block_count; i++) {
        LLVMValueRef load = last_load(flow.blocks[i].block);
        bool preceded = false;
        for (int k = 0; load && k < count; k++) preceded |= flow_dominates(&flow, places[k], i);
        if (!load || preceded) continue;
        if (count == MOST_PLACES) {
            count = 0;
            break;
        }
        loads[count] = load;
        places[count++] = i;
    }
    for (int k = 0; k < count; k++) let_next_start_after(unit, loads[k]);
    arena_free(&arena);
    return status;
}

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
    /* The grids of coarsened code are large. */
    return image->coarse[0] ? SMELT_OK : let_next_start(unit);
}
