/* Loops whose rounds are known to be few: they need not poll whether the launch has been stopped. A poll
 * takes registers and keeps LLVM from joining rounds. */
#include "compiler/simd/simd.h"

#define FEW_ROUNDS 4096

static bool is_small(LLVMValueRef value) {
    return LLVMIsAConstantInt(value) && LLVMConstIntGetZExtValue(value) <= FEW_ROUNDS;
}

/* A loop of one block that counts up: in each round its condition compares the number before the round, or
 * the one after it, with the bound. */
struct count {
    uint64_t first, step, bound;
    bool after;
};

static bool find_count(LLVMBasicBlockRef block, LLVMValueRef condition, struct count *count) {
    LLVMValueRef counted = LLVMGetOperand(condition, 0), bound = LLVMGetOperand(condition, 1);
    bool after = LLVMIsAInstruction(counted) && LLVMGetInstructionOpcode(counted) == LLVMAdd;
    LLVMValueRef phi = after ? LLVMGetOperand(counted, 0) : counted;
    if (!LLVMIsAPHINode(phi) || LLVMGetInstructionParent(phi) != block || LLVMCountIncoming(phi) != 2)
        return false;
    unsigned back = LLVMGetIncomingBlock(phi, 0) == block ? 0 : 1;
    LLVMValueRef next = LLVMGetIncomingValue(phi, back), first = LLVMGetIncomingValue(phi, 1 - back);
    if (!LLVMIsAInstruction(next) || LLVMGetInstructionOpcode(next) != LLVMAdd ||
        LLVMGetOperand(next, 0) != phi)
        return false;
    LLVMValueRef step = LLVMGetOperand(next, 1);
    if ((after && counted != next) || !is_small(first) || !is_small(step) || !is_small(bound)) return false;
    *count = (struct count){LLVMConstIntGetZExtValue(first), LLVMConstIntGetZExtValue(step),
                            LLVMConstIntGetZExtValue(bound), after};
    return count->step > 0;
}

/* Whether the loop has at most two rounds: its condition is a phi, whose value after a first round leads out.
 */
static bool has_two_rounds(LLVMBasicBlockRef block, LLVMValueRef condition, bool again) {
    if (!LLVMIsAPHINode(condition) || LLVMGetInstructionParent(condition) != block) return false;
    LLVMValueRef next = phi_incoming(condition, block);
    return LLVMIsAConstantInt(next) && (LLVMConstIntGetZExtValue(next) != 0) != again;
}

bool simd_has_few_rounds(LLVMBasicBlockRef block) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    if (!LLVMIsABranchInst(end) || !LLVMIsConditional(end)) return false;
    LLVMValueRef condition = LLVMGetCondition(end);
    bool again = LLVMGetSuccessor(end, 0) == block; /* where it holds */
    struct count count;
    if (has_two_rounds(block, condition, again)) return true;
    if (!LLVMIsAICmpInst(condition) || !find_count(block, condition, &count)) return false;
    LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(condition, 0));
    if (LLVMGetIntTypeWidth(type) < 16) return false; /* it may wrap before it reaches the bound */
    uint64_t number = count.first + (count.after ? count.step : 0);
    switch (LLVMGetICmpPredicate(condition)) {
    case LLVMIntULT:
    case LLVMIntULE:
    case LLVMIntSLT:
    case LLVMIntSLE:
        return again;
    case LLVMIntUGT:
    case LLVMIntUGE:
    case LLVMIntSGT:
    case LLVMIntSGE:
        return !again;
    case LLVMIntEQ:
    case LLVMIntNE: {
        bool until = LLVMGetICmpPredicate(condition) == (again ? LLVMIntNE : LLVMIntEQ);
        return until && number <= count.bound && (count.bound - number) % count.step == 0;
    }
    default:
        return false;
    }
}
