/* Divisions in 64 bits of numbers that have 32 bits, and sums and products of which 32 bits are used.
 *
 * `index % shape[d] * strides[d]` is computed in 64 bits if shapes and strides have 64, though an index of 32
 * bits gives a quotient and a remainder of 32 bits, and an index of 32 bits is made of the result. LLVM's
 * code for such a division tests the divisor each time.
 *
 * Requires: no divisor is 0. Maintains: what the code does. */
#include "compiler/ptx/ptx.h"

#define DEPTH 8
#define MOST_NARROWED 256 /* instructions, of one number */

/* ---- Divisions. */

static bool has_32_bits(LLVMValueRef value, int depth) {
    uint64_t number;
    if (is_constant_integer(value, &number)) return number <= UINT32_MAX;
    if (!LLVMIsAInstruction(value) || depth == 0) return false;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMZExt:
        return LLVMGetIntTypeWidth(LLVMTypeOf(LLVMGetOperand(value, 0))) <= 32;
    case LLVMAnd:
        return has_32_bits(LLVMGetOperand(value, 1), depth - 1);
    case LLVMFreeze:
    case LLVMUDiv:
    case LLVMURem:
        return has_32_bits(LLVMGetOperand(value, 0), depth - 1);
    case LLVMSelect:
        return has_32_bits(LLVMGetOperand(value, 1), depth - 1) &&
               has_32_bits(LLVMGetOperand(value, 2), depth - 1);
    default:
        return false;
    }
}

static bool is_wide_division(struct unit *unit, LLVMValueRef i) {
    if (!LLVMIsABinaryOperator(i) || LLVMTypeOf(i) != type_i64(unit)) return false;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
    return (opcode == LLVMUDiv || opcode == LLVMURem) && !LLVMIsAConstant(LLVMGetOperand(i, 1)) &&
           has_32_bits(LLVMGetOperand(i, 0), DEPTH);
}

static LLVMValueRef divide(struct unit *unit, LLVMValueRef division) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef i32 = type_i32(unit), i64 = type_i64(unit);
    LLVMValueRef dividend = LLVMGetOperand(division, 0), divisor = LLVMGetOperand(division, 1);
    bool quotient = LLVMGetInstructionOpcode(division) == LLVMUDiv;
    LLVMPositionBuilderBefore(b, division);
    LLVMValueRef greater = LLVMBuildICmp(b, LLVMIntUGT, divisor, LLVMConstInt(i64, UINT32_MAX, false), "");
    LLVMValueRef low =
        LLVMBuildSelect(b, greater, constant_i32(unit, 1), LLVMBuildTrunc(b, divisor, i32, ""), "");
    LLVMValueRef number = LLVMBuildTrunc(b, dividend, i32, "");
    LLVMValueRef narrow = quotient ? LLVMBuildUDiv(b, number, low, "") : LLVMBuildURem(b, number, low, "");
    return LLVMBuildSelect(b, greater, quotient ? LLVMConstNull(i64) : dividend,
                           LLVMBuildZExt(b, narrow, i64, ""), "");
}

/* ---- The low 32 bits of a number of 64. */

/* How many instructions compute the low bits in 32 bits; 0: the number has a product of 64 bits nowhere. */
static int count_narrowed(LLVMValueRef value, bool *product, int depth) {
    if (!LLVMIsAInstruction(value) || depth == 0) return 1;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    *product |= opcode == LLVMMul;
    if (opcode == LLVMSelect)
        return count_narrowed(LLVMGetOperand(value, 1), product, depth - 1) +
               count_narrowed(LLVMGetOperand(value, 2), product, depth - 1);
    if (opcode != LLVMMul && opcode != LLVMAdd && opcode != LLVMSub) return 1;
    return count_narrowed(LLVMGetOperand(value, 0), product, depth - 1) +
           count_narrowed(LLVMGetOperand(value, 1), product, depth - 1);
}

static LLVMValueRef low_bits(struct unit *unit, LLVMValueRef value, int depth) {
    LLVMBuilderRef b = unit->builder;
    LLVMOpcode opcode = LLVMIsAInstruction(value) && depth ? LLVMGetInstructionOpcode(value) : LLVMRet;
    LLVMValueRef first, second;
    switch (opcode) {
    case LLVMSelect:
        first = low_bits(unit, LLVMGetOperand(value, 1), depth - 1);
        second = low_bits(unit, LLVMGetOperand(value, 2), depth - 1);
        return LLVMBuildSelect(b, LLVMGetOperand(value, 0), first, second, "");
    case LLVMMul:
    case LLVMAdd:
    case LLVMSub:
        first = low_bits(unit, LLVMGetOperand(value, 0), depth - 1);
        second = low_bits(unit, LLVMGetOperand(value, 1), depth - 1);
        return LLVMBuildBinOp(b, opcode, first, second, "");
    default:
        return LLVMBuildTrunc(b, value, type_i32(unit), "");
    }
}

static bool is_low_product(struct unit *unit, LLVMValueRef i) {
    bool product = false;
    if (!LLVMIsATruncInst(i) || LLVMTypeOf(i) != type_i32(unit)) return false;
    LLVMValueRef wide = LLVMGetOperand(i, 0);
    return LLVMTypeOf(wide) == type_i64(unit) && count_narrowed(wide, &product, DEPTH) < MOST_NARROWED &&
           product;
}

smelt_status pass_ptx_quotients(struct unit *unit) {
    bool any = false;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        LLVMValueRef value = NULL;
        if (is_wide_division(unit, i)) {
            value = divide(unit, i);
        } else if (is_low_product(unit, i)) {
            LLVMPositionBuilderBefore(unit->builder, i);
            value = low_bits(unit, LLVMGetOperand(i, 0), DEPTH);
        }
        if (!value) continue;
        LLVMReplaceAllUsesWith(i, value);
        LLVMInstructionEraseFromParent(i);
        any = true;
    }
    return any ? ptx_run_passes(unit, "function(instcombine<no-verify-fixpoint>,early-cse<memssa>,adce)")
               : SMELT_OK;
}
