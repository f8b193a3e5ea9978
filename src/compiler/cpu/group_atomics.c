/* Makes atomic operations on threadgroup memory plain on a CPU: one system thread runs a whole group, so no
 * other access can come between the load and the store.
 *
 * These are two passes, because the SIMD engine runs updates lane by lane and must recognise them:
 * pass_group_accesses, before the engine's own passes, changes loads and stores; pass_group_updates, on the
 * gang's code, changes atomicrmw and cmpxchg.
 *
 * Requires: threadgroup memory has its own address space. Maintains: what the code does. */
#include "compiler/combine.h"

static bool is_of_group(LLVMValueRef address) {
    return LLVMGetPointerAddressSpace(LLVMTypeOf(address)) == THREADGROUP_SPACE;
}

smelt_status pass_group_accesses(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        bool load = LLVMIsALoadInst(i) != NULL;
        if ((load || LLVMIsAStoreInst(i)) && is_of_group(LLVMGetOperand(i, load ? 0 : 1)) &&
            LLVMGetOrdering(i) == LLVMAtomicOrderingMonotonic)
            LLVMSetOrdering(i, LLVMAtomicOrderingNotAtomic);
    }
    return SMELT_OK;
}

/* The value that an update writes; NULL: an operation that Metal does not have for integers or floats. */
static LLVMValueRef build_updated(LLVMBuilderRef b, LLVMAtomicRMWBinOp operation, LLVMValueRef old,
                                  LLVMValueRef value) {
    if (operation == LLVMAtomicRMWBinOpXchg) return value;
    if (operation == LLVMAtomicRMWBinOpSub) return LLVMBuildSub(b, old, value, "");
    if (operation == LLVMAtomicRMWBinOpFSub) return LLVMBuildFSub(b, old, value, "");
    enum simd_operation combined = simdgroup_of_updates(operation);
    return combined == SIMD_EXCLUSIVE ? NULL : simdgroup_combine(b, combined, old, value);
}

static LLVMValueRef build_load(struct unit *unit, LLVMTypeRef type, LLVMValueRef update) {
    LLVMValueRef load = LLVMBuildLoad2(unit->builder, type, LLVMGetOperand(update, 0), "");
    LLVMSetAlignment(load, LLVMGetAlignment(update));
    LLVMSetVolatile(load, LLVMGetVolatile(update));
    return load;
}

static void build_store(struct unit *unit, LLVMValueRef value, LLVMValueRef update) {
    LLVMValueRef store = LLVMBuildStore(unit->builder, value, LLVMGetOperand(update, 0));
    LLVMSetAlignment(store, LLVMGetAlignment(update));
    LLVMSetVolatile(store, LLVMGetVolatile(update));
}

static void make_plain(struct unit *unit, LLVMValueRef update) {
    LLVMBuilderRef b = unit->builder;
    LLVMPositionBuilderBefore(b, update);
    LLVMValueRef first = LLVMGetOperand(update, 1), result;
    if (LLVMIsAAtomicRMWInst(update)) {
        result = build_load(unit, LLVMTypeOf(first), update);
        LLVMValueRef updated = build_updated(b, LLVMGetAtomicRMWBinOp(update), result, first);
        if (!updated) {
            LLVMInstructionEraseFromParent(result);
            return;
        }
        build_store(unit, updated, update);
    } else {
        LLVMValueRef old = build_load(unit, LLVMTypeOf(first), update);
        LLVMValueRef same = LLVMBuildICmp(b, LLVMIntEQ, old, first, "");
        build_store(unit, LLVMBuildSelect(b, same, LLVMGetOperand(update, 2), old, ""), update);
        result = LLVMBuildInsertValue(b, LLVMGetPoison(LLVMTypeOf(update)), old, 0, "");
        result = LLVMBuildInsertValue(b, result, same, 1, "");
    }
    LLVMReplaceAllUsesWith(update, result);
    LLVMInstructionEraseFromParent(update);
}

smelt_status pass_group_updates(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        if ((LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i)) && is_of_group(LLVMGetOperand(i, 0)))
            make_plain(unit, i);
    }
    return SMELT_OK;
}
