/* Simdgroup operations become warp instructions over the lanes that perform them together.
 *
 * Requires: the retargeted module. Establishes: no simdgroup operations are left. */
#include "compiler/combine.h"
#include "compiler/ptx/warp/warp.h"

#include <string.h>

static smelt_status read_collective(struct unit *unit, LLVMValueRef call, uint64_t *operation,
                                    uint64_t *width) {
    if (simdgroup_arguments(call, operation, width)) return SMELT_OK;
    return unit_fail(unit, SMELT_ERROR_UNSUPPORTED, "arguments 0 and 1 of %s are not supported constants",
                     called_name(call));
}

static smelt_status lower_collective(struct ptx_operation *o, LLVMValueRef call, enum simd_kind kind,
                                     LLVMValueRef *result) {
    uint64_t code, width;
    TRY(read_collective(o->unit, call, &code, &width));
    enum simd_operation operation = (enum simd_operation)(code & ~(uint64_t)SIMD_EXCLUSIVE);
    LLVMValueRef value = LLVMGetOperand(call, 2);
    *result = kind == SIMD_REDUCE
                  ? ptx_reduce(o, operation, (unsigned)width, value)
                  : ptx_scan(o, operation, (code & SIMD_EXCLUSIVE) != 0, (unsigned)width, value);
    return SMELT_OK;
}

static smelt_status lower_operation(struct ptx_operation *o, LLVMValueRef call, enum simd_kind kind) {
    LLVMValueRef result = NULL;
    LLVMPositionBuilderBefore(o->unit->builder, call);
    switch (kind) {
    case SIMD_SHUFFLE:
        result = ptx_shuffle(o, LLVMGetOperand(call, 0), LLVMGetOperand(call, 1));
        break;
    case SIMD_BALLOT:
        result = ptx_ballot(o, LLVMGetOperand(call, 0));
        break;
    case SIMD_REDUCE:
    case SIMD_SCAN:
        TRY(lower_collective(o, call, kind, &result));
        break;
    case SIMD_MATRIX:
        return unit_fail(o->unit, SMELT_ERROR_UNSUPPORTED, "products of simdgroup matrices on GPUs");
    case SIMD_BARRIER:
        ptx_intrinsic(o->unit, "llvm.nvvm.bar.warp.sync", &o->lanes.mask, 1);
        break;
    }
    if (result) LLVMReplaceAllUsesWith(call, result);
    LLVMInstructionEraseFromParent(call);
    return SMELT_OK;
}

/* An aligned barrier requires all lanes of the warp together. */
static void lower_barrier(struct unit *unit, LLVMValueRef call) {
    LLVMPositionBuilderBefore(unit->builder, call);
    ptx_intrinsic(unit, "llvm.nvvm.barrier0", NULL, 0);
    LLVMInstructionEraseFromParent(call);
}

static smelt_status lower_block(struct ptx_masks *masks, int place) {
    struct unit *unit = masks->unit;
    struct ptx_operation o = {.unit = unit};
    FOR_EACH_INSTRUCTION(call, masks->d->graph.blocks[place].block) {
        enum simd_kind kind;
        if (divergence_is_barrier(call)) {
            if (divergence_reached_together(masks->d, place)) lower_barrier(unit, call);
            continue;
        }
        if (!simdgroup_kind(intrinsic_of(call), &kind)) continue;
        if (!o.lane) {
            o.lanes = ptx_lanes_at(masks, place);
            LLVMPositionBuilderBefore(unit->builder, call);
            o.lane = ptx_lane(unit);
            if (o.lanes.active) o.lanes.active = ptx_metal_vote(unit, o.lanes.active);
        }
        TRY(lower_operation(&o, call, kind));
    }
    return SMELT_OK;
}

/* LLVM keeps votes even if they are not used. */
static void drop_unused_votes(struct unit *unit) {
    for (bool changed = true; changed;) {
        changed = false;
        FOR_EACH_BLOCK(block, unit->entry)
        FOR_EACH_INSTRUCTION(call, block) {
            if (LLVMGetFirstUse(call) || strcmp(called_name(call), "llvm.nvvm.vote.ballot.sync") != 0)
                continue;
            LLVMInstructionEraseFromParent(call);
            changed = true;
        }
    }
}

static bool has_operations(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (divergence_is_operation(instruction)) return true;
    }
    return false;
}

static smelt_status lower_operations(struct unit *unit, struct divergence *d) {
    struct ptx_masks masks;
    TRY(ptx_lanes_part(unit, d));
    TRY(ptx_lanes_meet(unit, d));
    ptx_masks_start(&masks, d);
    for (int place = 0; place < d->graph.block_count && !d->arena.failed; place++)
        TRY(lower_block(&masks, place));
    if (d->arena.failed) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for masks");
    if (masks.unknown)
        return unit_fail(unit, SMELT_ERROR_UNSUPPORTED,
                         "the lanes that reach a simdgroup operation together are not known on GPUs: the "
                         "control flow to it is too complex");
    drop_unused_votes(unit);
    ptx_end_lanes(d);
    return SMELT_OK;
}

smelt_status pass_ptx_simdgroup(struct unit *unit) {
    struct divergence divergence = {0};
    hold_release(unit, unit->entry);
    if (!has_operations(unit)) return SMELT_OK;
    smelt_status status = lower_operations(unit, &divergence);
    divergence_free(&divergence);
    return status;
}
