/* A power of two moves from one factor of a product to the other, if that is a sum with a constant: a fused
 * multiply-add computes the scaled sum in one instruction. 0.5 * x * (1 + t), as in each GELU, becomes
 * x * fma(t, 0.5, 0.5).
 *
 * The bits are the same, since both factors are scaled without being rounded. x has been widened from 16
 * bits, so its smallest numbers are far above a float's. The sum is 0 or at least half a unit in the last
 * place of its constant.
 *
 * Requires: the module retargeted. Maintains: what the code does. */
#include "compiler/ptx/ptx.h"

#include <math.h>
#include <string.h>

/* Of the smallest bfloat, 2^-133, 2^-16 is the smallest float. */
#define LEAST_POWER 0x1p-16
/* Of the sum's constant. */
#define LEAST 0x1p-64
#define MOST 0x1p64

static bool is_binary(LLVMValueRef value, LLVMOpcode opcode) {
    return LLVMIsABinaryOperator(value) && LLVMGetInstructionOpcode(value) == opcode;
}

static bool has_one_use(LLVMValueRef value) {
    LLVMUseRef use = LLVMGetFirstUse(value);
    return use && !LLVMGetNextUse(use);
}

static bool is_number(LLVMValueRef value, double *number) {
    LLVMBool lost;
    if (!LLVMIsAConstantFP(value)) return false;
    *number = LLVMConstRealGetDouble(value, &lost);
    return true;
}

/* Whether a float was a half or a bfloat before. */
static bool is_widened(struct unit *unit, LLVMValueRef value) {
    if (LLVMIsAFPExtInst(value))
        return LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(value, 0))) == LLVMHalfTypeKind;
    LLVMValueRef bits = LLVMIsABitCastInst(value) ? LLVMGetOperand(value, 0) : NULL;
    return bits && LLVMTypeOf(bits) == type_i32(unit) && ptx_known_zeros(unit, bits) >= 16;
}

/* x of x * 2^-k; NULL: the value is something else. */
static LLVMValueRef scaled_by(struct unit *unit, LLVMValueRef value, double *power) {
    int exponent;
    if (!is_binary(value, LLVMFMul) || !has_one_use(value)) return NULL;
    for (unsigned i = 0; i < 2; i++) {
        LLVMValueRef x = LLVMGetOperand(value, i);
        if (is_number(LLVMGetOperand(value, 1 - i), power) && frexp(*power, &exponent) == 0.5 &&
            *power >= LEAST_POWER && *power < 1 && is_widened(unit, x))
            return x;
    }
    return NULL;
}

/* The sum of something and a constant, times the power; NULL: the value is something else. */
static LLVMValueRef scale_sum(struct unit *unit, LLVMValueRef value, double power) {
    bool subtracts = is_binary(value, LLVMFSub);
    double number;
    if (!(subtracts || is_binary(value, LLVMFAdd)) || !has_one_use(value)) return NULL;
    unsigned constant = LLVMIsAConstantFP(LLVMGetOperand(value, 0)) ? 0 : 1;
    if (!is_number(LLVMGetOperand(value, constant), &number) || (subtracts && constant == 1)) return NULL;
    if (fabs(number) < LEAST || fabs(number) > MOST) return NULL;
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMValueRef operands[3] = {LLVMGetOperand(value, 1 - constant),
                                LLVMConstReal(type, subtracts ? -power : power),
                                LLVMConstReal(type, number * power)};
    return build_intrinsic(unit, "llvm.fma", type, operands, 3);
}

static bool is_product(LLVMValueRef value) {
    const char *name = LLVMIsACallInst(value) ? called_name(value) : NULL;
    return is_binary(value, LLVMFMul) || (name && strcmp(name, "llvm.fma.f32") == 0);
}

static void move_power(struct unit *unit, LLVMValueRef product) {
    for (unsigned i = 0; i < 2; i++) {
        double power;
        LLVMValueRef x = scaled_by(unit, LLVMGetOperand(product, i), &power);
        if (!x) continue;
        LLVMPositionBuilderBefore(unit->builder, product);
        LLVMValueRef sum = scale_sum(unit, LLVMGetOperand(product, 1 - i), power);
        if (!sum) continue;
        LLVMSetOperand(product, i, x);
        LLVMSetOperand(product, 1 - i, sum);
        return;
    }
}

smelt_status pass_ptx_scaled(struct unit *unit) {
    LLVMTypeRef type = LLVMFloatTypeInContext(unit->context);
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block)
    if (LLVMTypeOf(instruction) == type && is_product(instruction)) move_power(unit, instruction);
    return SMELT_OK;
}
