/* Counters of loops over a range that each thread loads, as in sparse matrices and segments of an array:
 * for (int k = start[i]; k < start[i + 1]; k++). LLVM widens them to 64 bits, which costs a scalar nothing.
 * In vectors, they take two registers and gathers of half as many lanes. Here they have 32 bits again.
 *
 * The counter is start, start + 1, …, as far as end, where the loop is left, and a branch before the loop has
 * compared the two as numbers of 32 bits: start < end. So no number between them wraps around.
 *
 * Requires: optimised code of one thread. Maintains: what it does. */
#include "compiler/analysis/flow.h"
#include "compiler/pass.h"
#include "compiler/analysis/uniform.h"

#define MOST_DEPTH 4

struct counter {
    LLVMValueRef phi, next, test; /* the counter, plus 1, which is compared with the end */
    LLVMValueRef start, end;      /* of 32 bits */
    LLVMOpcode widened;           /* LLVMSExt or LLVMZExt, of both */
    unsigned entry;               /* the phi's value from outside of the loop */
};

/* Whether threads compute the value from what they load apart from each other. */
static bool is_loaded(const struct flow *flow, LLVMValueRef value, int depth) {
    if (LLVMIsALoadInst(value)) return !uniform_is(flow, value);
    if (depth == MOST_DEPTH || !LLVMIsABinaryOperator(value)) return false;
    return is_loaded(flow, LLVMGetOperand(value, 0), depth + 1) ||
           is_loaded(flow, LLVMGetOperand(value, 1), depth + 1);
}

/* Whether the counter is only counted on and an index of addresses: other arithmetic would be widened later.
 */
static bool is_index(LLVMValueRef phi, LLVMValueRef next) {
    for (LLVMUseRef use = LLVMGetFirstUse(phi); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (user != next && !LLVMIsAGetElementPtrInst(user)) return false;
    }
    return true;
}

static bool is_widened(LLVMValueRef value, LLVMOpcode *opcode, LLVMValueRef *narrow) {
    if (!LLVMIsASExtInst(value) && !LLVMIsAZExtInst(value)) return false;
    *opcode = LLVMGetInstructionOpcode(value);
    *narrow = LLVMGetOperand(value, 0);
    return LLVMGetIntTypeWidth(LLVMTypeOf(*narrow)) == 32;
}

/* phi + 1 */
static bool is_next(LLVMValueRef value, LLVMValueRef phi) {
    return LLVMIsABinaryOperator(value) && LLVMGetInstructionOpcode(value) == LLVMAdd &&
           LLVMGetOperand(value, 0) == phi && LLVMIsAConstantInt(LLVMGetOperand(value, 1)) &&
           LLVMConstIntGetZExtValue(LLVMGetOperand(value, 1)) == 1;
}

/* The only comparison of the counter's next value, with the end; or NULL. */
static LLVMValueRef test_of(LLVMValueRef next) {
    LLVMValueRef test = NULL;
    for (LLVMUseRef use = LLVMGetFirstUse(next); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (!LLVMIsAICmpInst(user)) continue;
        if (test || LLVMGetOperand(user, 0) != next) return NULL;
        test = user;
    }
    if (!test) return NULL;
    return test;
}

/* Whether each round ends with the test, and another follows only if the next value is not the end. */
static bool ends_rounds(const struct counter *c) {
    LLVMBasicBlockRef header = LLVMGetInstructionParent(c->phi);
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(c->phi, 1 - c->entry));
    if (!LLVMIsABranchInst(branch) || !LLVMIsConditional(branch) || LLVMGetCondition(branch) != c->test)
        return false;
    LLVMIntPredicate predicate = LLVMGetICmpPredicate(c->test);
    unsigned leaves = predicate == LLVMIntEQ ? 0 : 1;
    return (predicate == LLVMIntEQ || predicate == LLVMIntNE) && LLVMGetSuccessor(branch, leaves) != header;
}

/* Whether the branch at the end of `from` leads to `to` only if start < end. */
static bool guards(const struct counter *c, LLVMBasicBlockRef from, LLVMBasicBlockRef to) {
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(from);
    if (!LLVMIsABranchInst(branch) || !LLVMIsConditional(branch)) return false;
    LLVMValueRef when = LLVMGetCondition(branch);
    bool on_true = LLVMGetSuccessor(branch, 0) == to;
    if (!LLVMIsAICmpInst(when) || LLVMGetSuccessor(branch, 0) == LLVMGetSuccessor(branch, 1)) return false;
    LLVMIntPredicate less = c->widened == LLVMSExt ? LLVMIntSLT : LLVMIntULT,
                     greater = c->widened == LLVMSExt ? LLVMIntSGT : LLVMIntUGT,
                     found = LLVMGetICmpPredicate(when);
    LLVMValueRef a = LLVMGetOperand(when, 0), b = LLVMGetOperand(when, 1);
    return on_true && ((found == less && a == c->start && b == c->end) ||
                       (found == greater && a == c->end && b == c->start));
}

static LLVMBasicBlockRef only_predecessor(LLVMBasicBlockRef block) {
    LLVMBasicBlockRef found = NULL;
    for (LLVMUseRef use = LLVMGetFirstUse(LLVMBasicBlockAsValue(block)); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (!LLVMIsATerminatorInst(user)) continue;
        if (found && found != LLVMGetInstructionParent(user)) return NULL;
        found = LLVMGetInstructionParent(user);
    }
    return found;
}

static bool is_guarded(const struct counter *c) {
    LLVMBasicBlockRef to = LLVMGetInstructionParent(c->phi), from = LLVMGetIncomingBlock(c->phi, c->entry);
    for (int step = 0; from && step < MOST_DEPTH; step++) {
        if (guards(c, from, to)) return true;
        to = from;
        from = only_predecessor(from);
    }
    return false;
}

static bool find_counter(const struct flow *flow, LLVMValueRef phi, struct counter *c) {
    LLVMTypeRef type = LLVMTypeOf(phi);
    if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(type) != 64 ||
        LLVMCountIncoming(phi) != 2)
        return false;
    *c = (struct counter){.phi = phi};
    if (is_next(LLVMGetIncomingValue(phi, 0), phi)) c->entry = 1;
    c->next = LLVMGetIncomingValue(phi, 1 - c->entry);
    LLVMOpcode opcode;
    if (!is_next(c->next, phi) || !is_widened(LLVMGetIncomingValue(phi, c->entry), &c->widened, &c->start))
        return false;
    c->test = test_of(c->next);
    return c->test && is_widened(LLVMGetOperand(c->test, 1), &opcode, &c->end) && opcode == c->widened &&
           ends_rounds(c) && is_index(phi, c->next) && is_loaded(flow, c->start, 0) && is_guarded(c);
}

/* Replaces the wide counter by the narrow one, widened. */
static void narrow(struct unit *unit, const struct counter *c) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef i32 = type_i32(unit), i64 = type_i64(unit);
    LLVMPositionBuilderBefore(b, c->phi);
    LLVMValueRef phi = LLVMBuildPhi(b, i32, ""), place = c->phi;
    while (LLVMIsAPHINode(place)) place = LLVMGetNextInstruction(place);
    LLVMPositionBuilderBefore(b, place);
    LLVMValueRef wide = LLVMBuildCast(b, c->widened, phi, i64, "");
    LLVMPositionBuilderBefore(b, c->next);
    LLVMValueRef next = LLVMBuildAdd(b, phi, constant_i32(unit, 1), "");
    LLVMSetNSW(next, c->widened == LLVMSExt);
    LLVMSetNUW(next, c->widened == LLVMZExt);
    LLVMValueRef wide_next = LLVMBuildCast(b, c->widened, next, i64, "");
    LLVMPositionBuilderBefore(b, c->test);
    LLVMValueRef test = LLVMBuildICmp(b, LLVMGetICmpPredicate(c->test), next, c->end, "");
    LLVMValueRef values[2] = {c->start, next};
    LLVMBasicBlockRef blocks[2] = {LLVMGetIncomingBlock(c->phi, c->entry),
                                   LLVMGetIncomingBlock(c->phi, 1 - c->entry)};
    LLVMAddIncoming(phi, values, blocks, 2);
    LLVMReplaceAllUsesWith(c->test, test);
    LLVMInstructionEraseFromParent(c->test);
    LLVMReplaceAllUsesWith(c->phi, wide);
    LLVMReplaceAllUsesWith(c->next, wide_next);
    LLVMInstructionEraseFromParent(c->phi);
    LLVMInstructionEraseFromParent(c->next);
    if (!LLVMGetFirstUse(wide_next)) LLVMInstructionEraseFromParent(wide_next);
}

smelt_status pass_simd_counters(struct unit *unit) {
    struct arena arena = {0};
    struct flow flow;
    smelt_status status = flow_find(unit, unit->entry, &arena, &flow);
    FOR_EACH_BLOCK(block, unit->entry)
    for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; status == SMELT_OK && i && LLVMIsAPHINode(i);
         i = next) {
        struct counter counter;
        next = LLVMGetNextInstruction(i);
        if (find_counter(&flow, i, &counter)) narrow(unit, &counter);
    }
    arena_free(&arena);
    return status;
}
