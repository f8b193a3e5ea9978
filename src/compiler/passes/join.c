/* Threadgroups of one thread: the CPU joins neighbours to larger groups, whose threads are the lanes of
 * gangs. A thread then still sees a group of its own, at the position that is now its own in the grid.
 *
 * Threadgroups of several rows: a gang may lie in one row if the kernel cannot tell which threads are lanes
 * of one simdgroup.
 *
 * Nothing is done to a kernel that has threadgroup memory, a barrier or a simdgroup operation.
 *
 * Requires: inlined, optimised code. Establishes: image.joined, if the code's shape asks for it and the
 * kernel can be joined; no call then refers to groups. image.by_rows, likewise. */
#include "compiler/pass.h"

#include <llvm-c/DebugInfo.h>

static bool threads_are_apart(const struct unit *unit) {
    for (LLVMValueRef variable = LLVMGetFirstGlobal(unit->module); variable;
         variable = LLVMGetNextGlobal(variable))
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(variable)) == THREADGROUP_SPACE &&
            LLVMGetFirstUse(variable))
            return false;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(call, block) {
        enum intrinsic intrinsic = intrinsic_of(call);
        enum intrinsic_kind kind = intrinsic_traits(intrinsic)->kind;
        if (intrinsic == INTRINSIC_THREADGROUP_ADDRESS || kind == OF_BARRIER || kind == OF_SIMDGROUP ||
            kind == OF_TILE || kind == OF_PASS)
            return false;
    }
    return true;
}

/* What the call gives to a thread that is a group; NULL: it stays. */
static LLVMValueRef value_of(struct unit *unit, LLVMValueRef call) {
    LLVMTypeRef type = LLVMTypeOf(call);
    switch (intrinsic_of(call)) {
    case INTRINSIC_POSITION_IN_THREADGROUP:
    case INTRINSIC_THREAD_INDEX:
    case INTRINSIC_LANE:
    case INTRINSIC_SIMDGROUP:
        return LLVMConstInt(type, 0, false);
    case INTRINSIC_THREADGROUP_SIZE:
    case INTRINSIC_DISPATCH_THREADGROUP_SIZE:
    case INTRINSIC_SIMDGROUP_COUNT:
        return LLVMConstInt(type, 1, false);
    case INTRINSIC_THREADGROUP_POSITION:
        return intrinsic_declare(unit->module, INTRINSIC_THREAD_POSITION, LLVMGetCalledFunctionType(call));
    case INTRINSIC_GRID_GROUPS:
        return intrinsic_declare(unit->module, INTRINSIC_GRID_THREADS, LLVMGetCalledFunctionType(call));
    default:
        return NULL;
    }
}

/* Without masked accesses, each lane that is off costs as much as one that is on. */
static bool rows_pay(const struct unit *unit) {
    const struct compile_request *request = unit->request;
    int bits = simd_vector_bits(request->cpu, request->features);
    return bits >= 256 &&
           (request->shape.by_rows == BY_ROWS || (request->shape.by_rows == BY_SHORT_ROWS && bits == 512));
}

smelt_status pass_join(struct unit *unit) {
    const struct code_shape *shape = &unit->request->shape;
    if ((!shape->joined && !shape->by_rows) || !threads_are_apart(unit)) return SMELT_OK;
    unit->result->image.by_rows = rows_pay(unit) && !intrinsic_in_function(unit->entry, INTRINSIC_LANE) &&
                                  !intrinsic_in_function(unit->entry, INTRINSIC_SIMDGROUP);
    if (!shape->joined) return SMELT_OK;
    unit->result->image.joined = true;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(call, block) {
        LLVMValueRef value = LLVMIsACallInst(call) ? value_of(unit, call) : NULL;
        if (!value) continue;
        if (LLVMIsAFunction(value)) {
            LLVMValueRef dimension = LLVMGetOperand(call, 0);
            LLVMPositionBuilderBefore(unit->builder, call);
            LLVMSetCurrentDebugLocation2(unit->builder, LLVMInstructionGetDebugLoc(call));
            value = LLVMBuildCall2(unit->builder, LLVMGetCalledFunctionType(call), value, &dimension, 1, "");
        }
        LLVMReplaceAllUsesWith(call, value);
        LLVMInstructionEraseFromParent(call);
    }
    LLVMSetCurrentDebugLocation2(unit->builder, NULL);
    return run_passes(unit, "function(early-cse,instcombine<no-verify-fixpoint>,simplifycfg)");
}
