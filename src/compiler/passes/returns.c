/* A `return` in a function called by the kernel ends the thread if only the kernel's end follows: kernels are
 * often a few lines around such a function. The rewriter marks returns of void functions by
 * __smelt_function_return; this pass replaces each mark by __smelt_thread_return, or removes it.
 *
 * If the kernel goes on, even without a barrier, a thread that misses a barrier remains an error: its later
 * work would have no order relative to the others' work.
 *
 * Requires: functions inlined, so that marks are in the entry; function constants folded. Establishes: no
 * marks. */
#include "compiler/analysis/flow.h"
#include "compiler/pass.h"

#include <string.h>

/* An effect that a thread could no longer have after it has ended. */
static bool has_effect(LLVMValueRef i) {
    static const char *const harmless[] = {"llvm.dbg.", "llvm.lifetime.", "llvm.assume"};
    if (LLVMIsAStoreInst(i) || LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i) || LLVMIsAFenceInst(i))
        return true;
    if (!LLVMIsACallInst(i)) return false;
    if (intrinsic_traits(intrinsic_of(i))->kind == OF_RETURN) return false;
    const char *name = called_name(i);
    for (size_t n = 0; n < sizeof harmless / sizeof *harmless; n++)
        if (strncmp(name, harmless[n], strlen(harmless[n])) == 0) return false;
    return true;
}

bool returns_has_effect(LLVMBasicBlockRef block) {
    FOR_EACH_INSTRUCTION(i, block) {
        if (has_effect(i)) return true;
    }
    return false;
}

/* By block: whether the block, or one after it, has such an effect. */
static bool *find_effects(const struct flow *flow, struct arena *arena) {
    bool *effects = arena_alloc(arena, (size_t)flow->block_count);
    for (int i = 0; effects && i < flow->block_count; i++)
        effects[i] = returns_has_effect(flow->blocks[i].block);
    if (effects) flow_spread(flow, effects);
    return effects;
}

static bool effect_behind(const struct flow *flow, const bool *effects, LLVMValueRef mark) {
    for (LLVMValueRef i = LLVMGetNextInstruction(mark); i; i = LLVMGetNextInstruction(i))
        if (has_effect(i)) return true;
    LLVMValueRef terminator = LLVMGetBasicBlockTerminator(LLVMGetInstructionParent(mark));
    for (unsigned s = 0; s < LLVMGetNumSuccessors(terminator); s++)
        if (effects[flow_index(flow, LLVMGetSuccessor(terminator, s))]) return true;
    return false;
}

static bool is_reachable(const struct flow *flow, LLVMValueRef instruction) {
    return flow_index(flow, LLVMGetInstructionParent(instruction)) >= 0;
}

static smelt_status drop_marks(struct unit *unit, LLVMValueRef mark, struct arena *arena) {
    struct flow flow;
    TRY(flow_find(unit, unit->entry, arena, &flow));
    const bool *effects = find_effects(&flow, arena);
    if (!effects)
        return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %d blocks", flow.block_count);
    for (LLVMUseRef use = LLVMGetFirstUse(mark), next; use; use = next) {
        next = LLVMGetNextUse(use);
        LLVMValueRef call = LLVMGetUser(use);
        LLVMValueRef function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(call));
        if (function != unit->entry || !is_reachable(&flow, call) || effect_behind(&flow, effects, call))
            LLVMInstructionEraseFromParent(call);
    }
    return SMELT_OK;
}

smelt_status pass_returns(struct unit *unit) {
    LLVMValueRef mark = intrinsic_function(unit->module, INTRINSIC_FUNCTION_RETURN);
    LLVMValueRef end = intrinsic_function(unit->module, INTRINSIC_THREAD_RETURN);
    if (!mark) return SMELT_OK;
    struct arena arena = {0};
    smelt_status status = drop_marks(unit, mark, &arena);
    arena_free(&arena);
    TRY(status);
    const char *name = intrinsic_traits(INTRINSIC_THREAD_RETURN)->name;
    if (end)
        LLVMReplaceAllUsesWith(mark, end);
    else
        LLVMSetValueName2(mark, name, strlen(name));
    return SMELT_OK;
}
