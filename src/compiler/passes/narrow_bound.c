/* for (uint i = thread; i < count; i += threads), where count has 64 bits: LLVM widens i, and a wider number
 * may have wrapped around in some lanes only. Compared in its own bits, it is an index and nothing else, of
 * which the SIMD engine knows that its lanes are neighbours.
 *
 *   zext(i) < count    becomes    count >= 2^32 || i < trunc(count)
 *
 * Requires: optimised code. Establishes: comparisons at the ends of such loops' rounds have the index's bits.
 */
#include "compiler/pass.h"
#include "compiler/analysis/predicate.h"

#include <llvm-c/DebugInfo.h>

#define MOST_INDEX UINT32_MAX

static unsigned width_of(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : 0;
}

static bool feeds_phi(LLVMValueRef value) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use))
        if (LLVMIsAPHINode(LLVMGetUser(use))) return true;
    return false;
}

/* Whether the value is an index of 32 bits, widened, that the next round takes. */
static bool is_widened(LLVMValueRef value) {
    return LLVMIsAZExtInst(value) && width_of(value) == 64 && width_of(LLVMGetOperand(value, 0)) == 32 &&
           feeds_phi(value);
}

static bool is_order(LLVMIntPredicate predicate) {
    return predicate >= LLVMIntUGT && predicate <= LLVMIntULE;
}

/* The bound in the index's bits: one value for all comparisons, by which a loop is found to follow a guard
 * with its own bound. */
static LLVMValueRef narrowed(struct unit *unit, LLVMValueRef bound, LLVMTypeRef type) {
    LLVMBuilderRef b = unit->builder;
    LLVMBasicBlockRef place =
        LLVMIsAInstruction(bound) ? LLVMGetInstructionParent(bound) : LLVMGetEntryBasicBlock(unit->entry);
    LLVMValueRef next =
        LLVMIsAInstruction(bound) ? LLVMGetNextInstruction(bound) : LLVMGetFirstInstruction(place);
    while (LLVMIsAPHINode(next) || LLVMIsAAllocaInst(next)) next = LLVMGetNextInstruction(next);
    bool found = LLVMIsATruncInst(next) && LLVMGetOperand(next, 0) == bound && LLVMTypeOf(next) == type;
    if (found) return next;
    LLVMPositionBuilderBefore(b, next);
    return LLVMBuildTrunc(b, bound, type, "");
}

static void narrow(struct unit *unit, LLVMValueRef comparison, LLVMValueRef widened, LLVMValueRef bound,
                   LLVMIntPredicate predicate) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef index = LLVMGetOperand(widened, 0);
    bool below = predicate == LLVMIntULT || predicate == LLVMIntULE;
    LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(comparison));
    LLVMValueRef own_bound = narrowed(unit, bound, LLVMTypeOf(index));
    LLVMPositionBuilderBefore(b, comparison);
    LLVMValueRef most = LLVMConstInt(LLVMTypeOf(bound), MOST_INDEX, false);
    LLVMValueRef beyond = LLVMBuildICmp(b, below ? LLVMIntUGT : LLVMIntULE, bound, most, "");
    LLVMValueRef own = LLVMBuildICmp(b, predicate, index, own_bound, "");
    LLVMReplaceAllUsesWith(comparison,
                           below ? LLVMBuildOr(b, beyond, own, "") : LLVMBuildAnd(b, beyond, own, ""));
    LLVMInstructionEraseFromParent(comparison);
    LLVMSetCurrentDebugLocation2(b, NULL);
}

smelt_status pass_narrow_bound(struct unit *unit) {
    if (!unit->target->calls_runtime) return SMELT_OK;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        if (!LLVMIsAICmpInst(i) || !is_order(LLVMGetICmpPredicate(i))) continue;
        LLVMValueRef left = LLVMGetOperand(i, 0), right = LLVMGetOperand(i, 1);
        LLVMIntPredicate predicate = LLVMGetICmpPredicate(i);
        if (LLVMIsAConstant(left) || LLVMIsAConstant(right)) continue;
        if (is_widened(left))
            narrow(unit, i, left, right, predicate);
        else if (is_widened(right))
            narrow(unit, i, right, left, predicate_turned(predicate));
    }
    return SMELT_OK;
}
