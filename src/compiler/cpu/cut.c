/* Long blocks are cut in pieces. LLVM's code generator takes a block as a whole: instruction selection looks
 * at all accesses of a block for each of them, and scheduling and the splitting of live ranges take a time
 * that grows with the square of its length. Unrolled code has blocks of 40,000 instructions.
 *
 * A piece ends with a branch that is never taken. LLVM cannot prove this: the branch compares the code's
 * context with a null pointer. LLVM would join blocks that only follow one another.
 *
 * Requires: the lowered entry. Maintains: what the code does. */
#include "compiler/budget.h"
#include "compiler/flow.h"
#include "compiler/pass.h"

#include <string.h>

struct cutting {
    struct unit *unit;
    LLVMBasicBlockRef end; /* where the branches would lead; NULL: there are none yet */
};

static void make_end(struct cutting *c) {
    LLVMBuilderRef b = c->unit->builder;
    c->end = LLVMAppendBasicBlockInContext(c->unit->context, c->unit->entry, "absent");
    LLVMPositionBuilderAtEnd(b, c->end);
    LLVMBuildRetVoid(b);
}

static LLVMValueRef weights(struct unit *unit) {
    LLVMMetadataRef parts[3] = {LLVMMDStringInContext2(unit->context, "branch_weights", 14),
                                LLVMValueAsMetadata(constant_i32(unit, 1)),
                                LLVMValueAsMetadata(constant_i32(unit, 1 << 20))};
    return LLVMMetadataAsValue(unit->context, LLVMMDNodeInContext2(unit->context, parts, 3));
}

static void cut_before(struct cutting *c, LLVMValueRef instruction) {
    LLVMBuilderRef b = c->unit->builder;
    if (!c->end) make_end(c);
    LLVMBasicBlockRef first = LLVMGetInstructionParent(instruction);
    LLVMBasicBlockRef second = flow_split_block(c->unit, instruction);
    LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(first));
    LLVMPositionBuilderAtEnd(b, first);
    LLVMValueRef branch =
        LLVMBuildCondBr(b, LLVMBuildIsNull(b, LLVMGetParam(c->unit->entry, 0), ""), c->end, second);
    LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(c->unit->context, "prof", 4), weights(c->unit));
}

static bool may_move(LLVMValueRef i) {
    return !LLVMIsAPHINode(i) && !LLVMIsAAllocaInst(i) && !LLVMIsATerminatorInst(i);
}

/* From the last piece to the first, so that each instruction moves once. */
static void cut_block(struct cutting *c, LLVMBasicBlockRef block) {
    int count = 0;
    FOR_EACH_INSTRUCTION(i, block) count++;
    if (count <= LONG_BLOCK) return;
    int pieces = (count + CUT_BLOCK - 1) / CUT_BLOCK, length = count / pieces, at = 0;
    for (LLVMValueRef i = LLVMGetLastInstruction(block), before; i; i = before) {
        before = LLVMGetPreviousInstruction(i);
        if (++at < length || !may_move(i) || !before || !may_move(before)) continue;
        cut_before(c, i);
        at = 0;
    }
}

smelt_status pass_cut(struct unit *unit) {
    struct cutting c = {.unit = unit};
    FOR_EACH_BLOCK(block, unit->entry) cut_block(&c, block);
    return SMELT_OK;
}
