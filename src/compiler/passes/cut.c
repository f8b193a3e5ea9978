/* Long blocks are cut into pieces. LLVM's code generator takes a block as a whole: instruction selection
 * looks at all accesses of a block for each of them, and scheduling and the splitting of live ranges take a
 * time that grows with the square of its length. Unrolled code has blocks of 40,000 instructions.
 *
 * Between two pieces, a branch that is never taken leads through a block that does nothing. LLVM would join
 * pieces that only follow one another, and if the branch left for good, it would move all code that only
 * later pieces need past it, into one block again. It cannot prove that the branch is not taken: the entry
 * compares its context with a null pointer, other functions a number that has passed through empty inline
 * assembly.
 *
 * Long rows of loops are cut, too. Before LLVM changes a loop, it finds the conditions that hold there: it
 * looks at all branches back to the last block where paths meet. If one condition, such as a shared number of
 * rounds, lets all loops run, that block is the start of the row unless cuts come between.
 *
 * On GPUs, the pieces shorten a search: where LLVM joins accesses to neighbouring addresses, it looks, for
 * each group of accesses, at all instructions between them. A plain branch between pieces suffices there, as
 * no pass joins the pieces again before that.
 *
 * Requires: the lowered entry. Maintains: what the code does. */
#include "compiler/budget.h"
#include "compiler/analysis/flow.h"
#include "compiler/pass.h"

#include <string.h>

static LLVMValueRef weights(struct unit *unit) {
    LLVMMetadataRef parts[3] = {LLVMMDStringInContext2(unit->context, "branch_weights", 14),
                                LLVMValueAsMetadata(constant_i32(unit, 1)),
                                LLVMValueAsMetadata(constant_i32(unit, 1 << 20))};
    return LLVMMetadataAsValue(unit->context, LLVMMDNodeInContext2(unit->context, parts, 3));
}

static LLVMValueRef build_never(struct unit *unit, LLVMValueRef function) {
    LLVMBuilderRef b = unit->builder;
    if (function == unit->entry) return LLVMBuildIsNull(b, LLVMGetParam(function, 0), "");
    LLVMValueRef zero = constant_i32(unit, 0);
    LLVMValueRef same = build_assembly(unit, "", "=r,0", type_i32(unit), &zero, 1, false);
    return LLVMBuildICmp(b, LLVMIntNE, same, zero, "");
}

static void cut_before(struct unit *unit, LLVMValueRef instruction) {
    LLVMBuilderRef b = unit->builder;
    LLVMBasicBlockRef first = LLVMGetInstructionParent(instruction);
    LLVMBasicBlockRef second = flow_split_block(unit, instruction);
    if (!unit->target->calls_runtime) return;
    LLVMValueRef function = LLVMGetBasicBlockParent(first);
    LLVMBasicBlockRef absent = LLVMAppendBasicBlockInContext(unit->context, function, "absent");
    LLVMPositionBuilderAtEnd(b, absent);
    (void)build_assembly(unit, "", "", NULL, NULL, 0, true);
    LLVMBuildBr(b, second);
    LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(first));
    LLVMPositionBuilderAtEnd(b, first);
    LLVMValueRef branch = LLVMBuildCondBr(b, build_never(unit, function), absent, second);
    LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(unit->context, "prof", 4), weights(unit));
}

static bool may_move(LLVMValueRef i) {
    return !LLVMIsAPHINode(i) && !LLVMIsAAllocaInst(i) && !LLVMIsATerminatorInst(i);
}

/* From the last piece to the first, so that each instruction moves once. */
static void cut_block(struct unit *unit, LLVMBasicBlockRef block) {
    int count = 0;
    FOR_EACH_INSTRUCTION(i, block) count++;
    if (count <= LONG_BLOCK) return;
    int pieces = (count + CUT_BLOCK - 1) / CUT_BLOCK, length = count / pieces, at = 0;
    for (LLVMValueRef i = LLVMGetLastInstruction(block), before; i; i = before) {
        before = LLVMGetPreviousInstruction(i);
        if (++at < length || !may_move(i) || !before || !may_move(before)) continue;
        cut_before(unit, i);
        at = 0;
    }
}

smelt_status pass_cut(struct unit *unit) {
    if (unit->target->calls_runtime) TRY(landmarks_visit(unit, cut_before));
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
        FOR_EACH_BLOCK(block, f) cut_block(unit, block);
    return SMELT_OK;
}
