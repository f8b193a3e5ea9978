/* The layout of sums. A product on tensor cores takes and returns its sums in the cores' layout; the code
 * around it has them in Metal's. Moving them at every product would cost more than the product. The moves are
 * therefore only marked at first, and then:
 *
 *  - a value that comes from the cores and goes straight back to them is not moved;
 *  - a phi with some values from the cores stays in their layout: its other values are moved where they are
 *    computed, and the phi is moved back behind it, so that a loop carries its sums as the cores want them;
 *  - a conversion of nothing but such a value is done before it is moved back;
 *  - values are moved back outside loops, as late as all lanes are still together.
 *
 * Where lanes are in the fragments' order both layouts are the same, and nothing moves. */
#include "compiler/ptx/matrix/matrix.h"

#include <stdio.h>
#include <stdlib.h>

static LLVMValueRef mark(struct matrices *m, enum intrinsic family, LLVMValueRef value) {
    char name[64], *type = LLVMPrintTypeToString(LLVMTypeOf(value));
    snprintf(name, sizeof name, "%s%s", intrinsic_traits(family)->name, type);
    LLVMDisposeMessage(type);
    return matrix_call(m->unit, name, LLVMTypeOf(value), &value, 1, true);
}

LLVMValueRef matrix_mark_to_tensor(struct matrices *m, LLVMValueRef value) {
    if (intrinsic_of(value) == INTRINSIC_FROM_TENSOR) return LLVMGetOperand(value, 0);
    return LLVMIsAConstant(value) ? value : mark(m, INTRINSIC_TO_TENSOR, value);
}

LLVMValueRef matrix_mark_from_tensor(struct matrices *m, LLVMValueRef value) {
    return mark(m, INTRINSIC_FROM_TENSOR, value);
}

/* ---- Moves that are not needed. */

static LLVMValueRef behind_phis(LLVMBasicBlockRef block) {
    LLVMValueRef instruction = LLVMGetFirstInstruction(block);
    while (LLVMIsAPHINode(instruction)) instruction = LLVMGetNextInstruction(instruction);
    return instruction;
}

static bool turn_phi(struct matrices *m, LLVMValueRef phi) {
    LLVMBuilderRef b = m->unit->builder;
    LLVMBasicBlockRef block = LLVMGetInstructionParent(phi);
    if (!matrix_is_together(m, block)) return false;
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++)
        if (!matrix_is_together(m, LLVMGetIncomingBlock(phi, i))) return false;
    LLVMPositionBuilderBefore(b, phi);
    LLVMValueRef turned = LLVMBuildPhi(b, LLVMTypeOf(phi), "");
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi, i);
        LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(from));
        LLVMValueRef value = LLVMGetIncomingValue(phi, i);
        value = value == phi ? turned : matrix_mark_to_tensor(m, value);
        LLVMAddIncoming(turned, &value, &from, 1);
    }
    LLVMPositionBuilderBefore(b, behind_phis(block));
    LLVMReplaceAllUsesWith(phi, matrix_mark_from_tensor(m, turned));
    LLVMInstructionEraseFromParent(phi);
    return true;
}

/* Whether it does the same to the value of any lane. */
static bool only_converts(LLVMValueRef instruction) {
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMFPTrunc:
    case LLVMFPExt:
    case LLVMFNeg:
    case LLVMTrunc:
        return true;
    case LLVMBitCast:
        return LLVMGetTypeKind(LLVMTypeOf(instruction)) != LLVMVectorTypeKind;
    case LLVMZExt:
        return LLVMGetIntTypeWidth(LLVMTypeOf(instruction)) <= 32;
    case LLVMShl:
    case LLVMLShr:
        return LLVMIsAConstant(LLVMGetOperand(instruction, 1));
    case LLVMCall:
        return matrix_is_assembly(instruction) && LLVMGetNumArgOperands(instruction) == 1;
    default:
        return false;
    }
}

static LLVMValueRef only_user(LLVMValueRef value) {
    LLVMUseRef use = LLVMGetFirstUse(value);
    return use && !LLVMGetNextUse(use) ? LLVMGetUser(use) : NULL;
}

#define MOST_STEPS 8 /* conversions, and phis, on the way to the tensor cores */

/* Whether a result goes to the tensor cores, in this round of a loop or in the next. LLVM may carry a sum as
 * an integer, and convert it each time. */
static bool is_for_tensor(LLVMValueRef value, int steps) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (intrinsic_of(user) == INTRINSIC_TO_TENSOR) return true;
        bool passes = LLVMIsAPHINode(user) || only_converts(user);
        if (passes && steps > 0 && is_for_tensor(user, steps - 1)) return true;
    }
    return false;
}

static bool turn_conversion(struct matrices *m, LLVMValueRef moved, LLVMValueRef conversion) {
    if (!only_converts(conversion) || !matrix_is_together(m, LLVMGetInstructionParent(conversion)))
        return false;
    if (only_user(moved) != conversion && !is_for_tensor(conversion, MOST_STEPS)) return false;
    LLVMPositionBuilderBefore(m->unit->builder, LLVMGetNextInstruction(conversion));
    LLVMValueRef back = matrix_mark_from_tensor(m, conversion);
    LLVMReplaceAllUsesWith(conversion, back);
    LLVMSetOperand(back, 0, conversion);
    LLVMSetOperand(conversion, 0, LLVMGetOperand(moved, 0));
    return true;
}

/* One step for one user of a value that was moved back; false: no step applies. */
static bool turn_user(struct matrices *m, LLVMValueRef moved) {
    for (LLVMUseRef use = LLVMGetFirstUse(moved); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (intrinsic_of(user) == INTRINSIC_TO_TENSOR) {
            LLVMReplaceAllUsesWith(user, LLVMGetOperand(moved, 0));
            LLVMInstructionEraseFromParent(user);
            return true;
        }
        if (LLVMIsAPHINode(user) ? turn_phi(m, user) : turn_conversion(m, moved, user)) return true;
    }
    return false;
}

/* ---- Moves that are made. */

static int loop_depth(const struct flow *flow, int block) {
    int depth = 0;
    for (int loop = flow->blocks[block].loop; loop >= 0; loop = flow->loops[loop].parent) depth++;
    return depth;
}

static int common_dominator(const struct flow *flow, int a, int b) {
    while (a != b) {
        if (a > b)
            a = flow->blocks[a].dominator;
        else
            b = flow->blocks[b].dominator;
    }
    return a;
}

/* Down to its users, as long as all lanes are together and no loop is entered. */
static void sink(struct matrices *m, LLVMValueRef moved) {
    const struct flow *flow = &m->flow;
    LLVMBuilderRef b = m->unit->builder;
    int home = flow_index(flow, LLVMGetInstructionParent(moved)), target = -1;
    for (LLVMUseRef use = LLVMGetFirstUse(moved); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        int block = -1;
        for (unsigned i = 0; LLVMIsAPHINode(user) && i < LLVMCountIncoming(user); i++)
            if (LLVMGetIncomingValue(user, i) == moved) {
                int from = flow_index(flow, LLVMGetIncomingBlock(user, i));
                block = block < 0 ? from : common_dominator(flow, block, from);
            }
        if (block < 0) block = flow_index(flow, LLVMGetInstructionParent(user));
        target = target < 0 ? block : common_dominator(flow, target, block);
    }
    while (target != home && (!matrix_is_together(m, flow->blocks[target].block) ||
                              loop_depth(flow, target) > loop_depth(flow, home)))
        target = flow->blocks[target].dominator;
    if (target == home) return;
    LLVMInstructionRemoveFromParent(moved);
    LLVMPositionBuilderBefore(b, behind_phis(flow->blocks[target].block));
    LLVMInsertIntoBuilder(b, moved);
}

static void make_move(struct matrices *m, LLVMValueRef marked) {
    LLVMBuilderRef b = m->unit->builder;
    bool back = intrinsic_of(marked) == INTRINSIC_FROM_TENSOR;
    if (m->ordered) {
        LLVMReplaceAllUsesWith(marked, LLVMGetOperand(marked, 0));
    } else if (LLVMGetFirstUse(marked)) {
        if (back) sink(m, marked);
        LLVMPositionBuilderBefore(b, marked);
        LLVMTypeRef type = LLVMTypeOf(marked);
        LLVMTypeRef bits =
            LLVMIntTypeInContext(m->unit->context, (unsigned)LLVMSizeOfTypeInBits(m->unit->layout, type));
        LLVMValueRef value = LLVMBuildBitCast(b, LLVMGetOperand(marked, 0), bits, "");
        value = LLVMBuildZExt(b, value, type_i32(m->unit), "");
        value = matrix_take_lanes(m, back ? SOURCE_BACK : SOURCE_ROW, value);
        value = LLVMBuildBitCast(b, LLVMBuildTrunc(b, value, bits, ""), type, "");
        LLVMReplaceAllUsesWith(marked, value);
    }
    LLVMInstructionEraseFromParent(marked);
}

/* All marks with this prefix, ended by NULL; to be freed. */
static LLVMValueRef *find_marks(struct matrices *m, enum intrinsic family) {
    size_t count = 0;
    LLVMValueRef *marks = NULL;
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1) marks = calloc(count + 1, sizeof(LLVMValueRef));
        if (pass == 1 && !marks) return NULL;
        count = 0;
        FOR_EACH_BLOCK(block, m->unit->entry)
        FOR_EACH_INSTRUCTION(instruction, block) {
            if (intrinsic_of(instruction) != family) continue;
            if (marks) marks[count] = instruction;
            count++;
        }
    }
    return marks;
}

static smelt_status no_memory(struct matrices *m) {
    return unit_fail(m->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for matrix products");
}

smelt_status matrix_resolve_sums(struct matrices *m) {
    for (bool changed = !m->ordered; changed;) {
        changed = false;
        LLVMValueRef *marks = find_marks(m, INTRINSIC_FROM_TENSOR);
        if (!marks) return no_memory(m);
        for (LLVMValueRef *mark = marks; *mark; mark++)
            while (turn_user(m, *mark)) changed = true;
        free(marks);
    }
    for (int back = 0; back < 2; back++) {
        LLVMValueRef *marks = find_marks(m, back ? INTRINSIC_FROM_TENSOR : INTRINSIC_TO_TENSOR);
        if (!marks) return no_memory(m);
        for (LLVMValueRef *mark = marks; *mark; mark++) make_move(m, *mark);
        free(marks);
    }
    return SMELT_OK;
}
