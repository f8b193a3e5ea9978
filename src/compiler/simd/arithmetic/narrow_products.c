/* 64-bit products of which only the lower half is used: uint offset += i % sizes[d] * strides[d], where sizes
 * and strides have 64 bits. Vectors multiply those in several steps, of half as many lanes. The lower half of
 * sums, differences and products depends on the operands' lower halves alone.
 *
 * LLVM does the same (aggressive-instcombine), unless an operand is loaded.
 *
 * Requires: optimised code of one thread. Maintains: what it does. */
#include "compiler/pass.h"

#define NARROW 32
#define MOST_DEPTH 8

static unsigned width_of(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : 0;
}

static bool has_one_use(LLVMValueRef value) {
    LLVMUseRef use = LLVMGetFirstUse(value);
    return use && !LLVMGetNextUse(use);
}

/* Whether nothing but the truncation needs the step, which can be computed of lower halves. */
static bool is_step(LLVMValueRef value, int depth) {
    if (depth == MOST_DEPTH || !LLVMIsAInstruction(value) || !has_one_use(value)) return false;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMSelect:
        return true;
    default:
        return false;
    }
}

static unsigned first_operand(LLVMValueRef step) {
    return LLVMIsASelectInst(step) ? 1 : 0; /* after the condition */
}

static bool multiplies(LLVMValueRef value, int depth) {
    if (!is_step(value, depth)) return false;
    if (LLVMGetInstructionOpcode(value) == LLVMMul) return true;
    unsigned first = first_operand(value);
    return multiplies(LLVMGetOperand(value, first), depth + 1) ||
           multiplies(LLVMGetOperand(value, first + 1), depth + 1);
}

static LLVMValueRef narrow_operand(struct unit *unit, LLVMValueRef value, LLVMValueRef user, int depth);

/* Stands where the step did. */
static LLVMValueRef narrow_step(struct unit *unit, LLVMValueRef step, int depth) {
    LLVMBuilderRef b = unit->builder;
    unsigned first = first_operand(step);
    LLVMValueRef x = narrow_operand(unit, LLVMGetOperand(step, first), step, depth + 1);
    LLVMValueRef y = narrow_operand(unit, LLVMGetOperand(step, first + 1), step, depth + 1);
    LLVMPositionBuilderBefore(b, step);
    if (first) return LLVMBuildSelect(b, LLVMGetOperand(step, 0), x, y, "");
    return LLVMBuildBinOp(b, LLVMGetInstructionOpcode(step), x, y, "");
}

static LLVMValueRef narrow_operand(struct unit *unit, LLVMValueRef value, LLVMValueRef user, int depth) {
    if (is_step(value, depth)) return narrow_step(unit, value, depth);
    bool extended = LLVMIsAZExtInst(value) || LLVMIsASExtInst(value);
    if (extended && width_of(LLVMGetOperand(value, 0)) == NARROW) return LLVMGetOperand(value, 0);
    LLVMPositionBuilderBefore(unit->builder, user);
    return LLVMBuildTrunc(unit->builder, value, type_i32(unit), "");
}

/* The wide steps, from the last one on. */
static void erase_steps(LLVMValueRef value, int depth) {
    bool step = LLVMIsABinaryOperator(value) || LLVMIsASelectInst(value);
    if (depth == MOST_DEPTH || !step || LLVMGetFirstUse(value)) return;
    unsigned first = first_operand(value);
    LLVMValueRef x = LLVMGetOperand(value, first), y = LLVMGetOperand(value, first + 1);
    LLVMInstructionEraseFromParent(value);
    erase_steps(x, depth + 1);
    if (x != y) erase_steps(y, depth + 1);
}

smelt_status pass_simd_narrow_products(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry)
    for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
        next = LLVMGetNextInstruction(i);
        LLVMValueRef wide = LLVMIsATruncInst(i) ? LLVMGetOperand(i, 0) : NULL;
        if (!wide || width_of(i) != NARROW || width_of(wide) != 64 || !multiplies(wide, 0)) continue;
        LLVMReplaceAllUsesWith(i, narrow_step(unit, wide, 0));
        LLVMInstructionEraseFromParent(i);
        erase_steps(wide, 0);
    }
    return SMELT_OK;
}
