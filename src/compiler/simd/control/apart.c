/* The code of tests that hardly ever run (inside.c) computes its addresses itself. Otherwise all addresses of
 * a block would wait in registers until its tests have been passed, and many would wait on the stack.
 *
 * For a block that branches to a test: what it computes only for the test and for the block behind the test
 * is copied to the test, and moves to its first use behind it. */
#include "compiler/simd/simd.h"

enum { MOST_BLOCKS = 512 };

/* The blocks of a test: all ways to them lead through the first one, whose only predecessor is `head`. */
struct rare {
    LLVMBasicBlockRef head, after, blocks[MOST_BLOCKS];
    int count;
};

static bool is_rare(const struct rare *r, LLVMBasicBlockRef block) {
    for (int i = 0; i < r->count; i++)
        if (r->blocks[i] == block) return true;
    return false;
}

/* Whether all predecessors of the block are the head or of the test. */
static bool follows(const struct rare *r, LLVMBasicBlockRef block, bool from_head) {
    LLVMValueRef value = LLVMBasicBlockAsValue(block);
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (!LLVMIsAInstruction(user)) return false;
        if (LLVMIsAPHINode(user)) continue;
        LLVMBasicBlockRef from = LLVMGetInstructionParent(user);
        if (!is_rare(r, from) && !(from_head && from == r->head)) return false;
    }
    return true;
}

static bool add_successors(struct rare *r, LLVMBasicBlockRef block) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    for (unsigned i = 0; i < LLVMGetNumSuccessors(end); i++) {
        LLVMBasicBlockRef to = LLVMGetSuccessor(end, i);
        if (to == r->after || is_rare(r, to) || !follows(r, to, false)) continue;
        if (r->count == MOST_BLOCKS) return false;
        r->blocks[r->count++] = to;
    }
    return true;
}

/* Whether the head's branch leads to a test, and around it to `after`. */
static bool find_rare(struct rare *r, LLVMBasicBlockRef head, unsigned way) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(head);
    LLVMBasicBlockRef first = LLVMGetSuccessor(end, way);
    *r = (struct rare){.head = head, .after = LLVMGetSuccessor(end, 1 - way)};
    if (first == r->after || first == head || r->after == head) return false;
    if (!follows(r, first, true) || LLVMIsAPHINode(LLVMGetFirstInstruction(first))) return false;
    r->blocks[r->count++] = first;
    for (int i = 0; i < r->count; i++)
        if (!add_successors(r, r->blocks[i])) return false;
    return follows(r, r->after, true);
}

static bool is_computation(LLVMValueRef i) {
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
    case LLVMLShr:
    case LLVMAShr:
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
    case LLVMZExt:
    case LLVMSExt:
    case LLVMTrunc:
    case LLVMPtrToInt:
    case LLVMIntToPtr:
    case LLVMGetElementPtr:
    case LLVMICmp:
    case LLVMSelect:
    case LLVMInsertElement:
    case LLVMExtractElement:
    case LLVMShuffleVector:
        return true;
    default:
        return false;
    }
}

/* Whether the test uses the value, or only values that move do: those are in no block. All other uses must be
 * behind the test. Phis keep a value where it is. */
static bool may_move(const struct rare *r, LLVMValueRef value, bool *tested) {
    bool behind = false;
    *tested = false;
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMIsAPHINode(user)) return false;
        LLVMBasicBlockRef block = LLVMGetInstructionParent(user);
        if (block && is_rare(r, block))
            *tested = true;
        else if (block && block != r->after)
            return false;
        else if (block)
            behind = true;
    }
    return *tested || !behind;
}

static void copy_to_test(struct simd *s, const struct rare *r, LLVMValueRef value) {
    LLVMValueRef copy = LLVMInstructionClone(value);
    LLVMPositionBuilderBefore(s->unit->builder, LLVMGetFirstInstruction(r->blocks[0]));
    LLVMInsertIntoBuilder(s->unit->builder, copy);
    for (LLVMUseRef use = LLVMGetFirstUse(value), next; use; use = next) {
        LLVMValueRef user = LLVMGetUser(use);
        LLVMBasicBlockRef block = LLVMGetInstructionParent(user);
        next = LLVMGetNextUse(use);
        if (!block || !is_rare(r, block)) continue;
        for (int i = 0; i < LLVMGetNumOperands(user); i++)
            if (LLVMGetOperand(user, (unsigned)i) == value) LLVMSetOperand(user, (unsigned)i, copy);
        next = LLVMGetFirstUse(value); /* the list has changed */
    }
}

/* The value is in no block: it moves before `place`, after the values it is computed from. */
static void put(struct simd *s, LLVMValueRef value, LLVMValueRef place) {
    if (!LLVMIsAInstruction(value) || LLVMGetInstructionParent(value)) return;
    for (int i = 0; i < LLVMGetNumOperands(value); i++) put(s, LLVMGetOperand(value, (unsigned)i), place);
    LLVMPositionBuilderBefore(s->unit->builder, place);
    LLVMInsertIntoBuilder(s->unit->builder, value);
}

static void move_to_uses(struct simd *s, const struct rare *r) {
    FOR_EACH_INSTRUCTION(i, r->after) {
        if (LLVMIsAPHINode(i)) continue;
        for (int n = 0; n < LLVMGetNumOperands(i); n++) put(s, LLVMGetOperand(i, (unsigned)n), i);
    }
}

static void keep_apart(struct simd *s, struct rare *r) {
    bool tested;
    for (LLVMValueRef i = LLVMGetBasicBlockTerminator(r->head), before; i; i = before) {
        before = LLVMGetPreviousInstruction(i);
        if (!is_computation(i) || !LLVMGetFirstUse(i) || !may_move(r, i, &tested)) continue;
        if (tested) copy_to_test(s, r, i);
        if (LLVMGetFirstUse(i))
            LLVMInstructionRemoveFromParent(i);
        else
            LLVMInstructionEraseFromParent(i);
    }
    move_to_uses(s, r);
}

void simd_keep_tests_apart(struct simd *s) {
    struct rare rare;
    unsigned weights = LLVMGetMDKindIDInContext(s->unit->context, "prof", 4);
    LLVMSetCurrentDebugLocation2(s->unit->builder, NULL);
    FOR_EACH_BLOCK(block, s->unit->entry) {
        LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
        if (!LLVMIsABranchInst(end) || !LLVMIsConditional(end) || !LLVMGetMetadata(end, weights)) continue;
        if (find_rare(&rare, block, 0) || find_rare(&rare, block, 1)) keep_apart(s, &rare);
    }
}
