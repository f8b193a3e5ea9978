/* A condition that chooses between two tests of the same outcome becomes one test.
 *
 *     if (up ? x > y : x < y) swap(x, y);
 *
 * LLVM makes three branches of it: one for `up`, and one per comparison. On a GPU, lanes that take different
 * branches wait for each other, and NVIDIA's assembler cannot replace such branches by predicates. Here both
 * comparisons are computed, and the condition chooses the result.
 *
 * Requires: the module lowered and cleaned. Maintains: what the code does. */
#include "compiler/ptx/ptx.h"

#define MOST_COMPUTED 6 /* instructions per test: lanes that choose the other test waste them */

/* Whether an instruction may be executed where the original code would skip it. */
static bool is_harmless(LLVMValueRef instruction) {
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMICmp:
    case LLVMFCmp:
    case LLVMAdd:
    case LLVMSub:
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
    case LLVMSelect:
    case LLVMZExt:
    case LLVMSExt:
    case LLVMTrunc:
    case LLVMFreeze:
        return LLVMGetTypeKind(LLVMTypeOf(instruction)) == LLVMIntegerTypeKind;
    default:
        return false;
    }
}

static bool is_conditional(LLVMValueRef terminator) {
    return LLVMIsABranchInst(terminator) && LLVMIsConditional(terminator);
}

/* Whether a block is a test that only the branch `from` leads to. */
static bool is_test(LLVMBasicBlockRef block, LLVMValueRef from) {
    LLVMUseRef use = LLVMGetFirstUse(LLVMBasicBlockAsValue(block));
    int count = 0;
    /* Phis do not use blocks, but other branches do. */
    if (!use || LLVMGetUser(use) != from || LLVMGetNextUse(use)) return false;
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (LLVMIsATerminatorInst(instruction)) return is_conditional(instruction);
        if (!is_harmless(instruction) || ++count > MOST_COMPUTED) return false;
    }
    return false;
}

static void move_before(struct unit *unit, LLVMBasicBlockRef block, LLVMValueRef place) {
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (LLVMIsATerminatorInst(instruction)) return;
        LLVMInstructionRemoveFromParent(instruction);
        LLVMPositionBuilderBefore(unit->builder, place);
        LLVMInsertIntoBuilder(unit->builder, instruction);
    }
}

/* The branch's condition chooses between the values that phis of a block have from the two tests. A phi
 * cannot lose an edge, so a copy replaces it; the condition itself may be one of them. */
static void choose_values(struct unit *unit, LLVMBasicBlockRef block, LLVMBasicBlockRef *tests,
                          LLVMValueRef branch) {
    LLVMBasicBlockRef from = LLVMGetInstructionParent(branch);
    FOR_EACH_INSTRUCTION(phi, block) {
        if (!LLVMIsAPHINode(phi)) break;
        LLVMPositionBuilderBefore(unit->builder, branch);
        LLVMValueRef chosen = LLVMBuildSelect(unit->builder, LLVMGetCondition(branch),
                                              phi_incoming(phi, tests[0]), phi_incoming(phi, tests[1]), "");
        LLVMPositionBuilderBefore(unit->builder, phi);
        LLVMValueRef copy = LLVMBuildPhi(unit->builder, LLVMTypeOf(phi), "");
        for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
            LLVMValueRef value = LLVMGetIncomingValue(phi, i);
            LLVMBasicBlockRef edge = LLVMGetIncomingBlock(phi, i);
            if (edge != tests[0] && edge != tests[1]) LLVMAddIncoming(copy, &value, &edge, 1);
        }
        LLVMAddIncoming(copy, &chosen, &from, 1);
        LLVMReplaceAllUsesWith(phi, copy);
        LLVMInstructionEraseFromParent(phi);
    }
}

static bool join_tests(struct unit *unit, LLVMBasicBlockRef block) {
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(block);
    if (!branch || !is_conditional(branch)) return false;
    LLVMBasicBlockRef tests[2] = {LLVMGetSuccessor(branch, 0), LLVMGetSuccessor(branch, 1)};
    if (tests[0] == tests[1] || !is_test(tests[0], branch) || !is_test(tests[1], branch)) return false;
    LLVMValueRef ends[2] = {LLVMGetBasicBlockTerminator(tests[0]), LLVMGetBasicBlockTerminator(tests[1])};
    LLVMBasicBlockRef yes = LLVMGetSuccessor(ends[0], 0), no = LLVMGetSuccessor(ends[0], 1);
    bool same = LLVMGetSuccessor(ends[1], 0) == yes && LLVMGetSuccessor(ends[1], 1) == no;
    bool crossed = LLVMGetSuccessor(ends[1], 0) == no && LLVMGetSuccessor(ends[1], 1) == yes;
    if (yes == no || (!same && !crossed)) return false;
    move_before(unit, tests[0], branch);
    move_before(unit, tests[1], branch);
    choose_values(unit, yes, tests, branch);
    choose_values(unit, no, tests, branch);
    LLVMBuilderRef b = unit->builder;
    LLVMPositionBuilderBefore(b, branch);
    LLVMValueRef first = LLVMGetCondition(ends[0]), second = LLVMGetCondition(ends[1]);
    if (crossed) second = LLVMBuildNot(b, second, "");
    /* The test that is not chosen may be poison, which a `select` does not pass on. */
    LLVMBuildCondBr(b, LLVMBuildSelect(b, LLVMGetCondition(branch), first, second, ""), yes, no);
    LLVMInstructionEraseFromParent(branch);
    LLVMDeleteBasicBlock(tests[0]);
    LLVMDeleteBasicBlock(tests[1]);
    return true;
}

smelt_status pass_ptx_choose(struct unit *unit) {
    LLVMBasicBlockRef next;
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(unit->entry); block; block = next) {
        bool joined = join_tests(unit, block);
        next = joined ? block : LLVMGetNextBasicBlock(block); /* a test may choose between tests */
    }
    return SMELT_OK;
}
