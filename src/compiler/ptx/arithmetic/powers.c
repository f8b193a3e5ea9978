/* Products by 2^k where k <= 0 is known. The prelude's exponentials multiply by two factors, as a float holds
 * neither 2^-150 nor 2^128 (power_of_two_parts of prelude/smelt_float_exp.h):
 *
 *     first  = (bits(z) << 22) & 0x7f800000
 *     second = (bits(z) << 23) - first                z = 3 * 2^22 + 254 + k, -254 <= k <= 128
 *     p * first * second
 *
 * For k <= 0, the factors 2^(k + 127) and 2^-127 suffice, and the second one is constant; k = -254 gives 0 in
 * both forms. p < 2, so no product overflows, and only the last one is rounded, if p has been.
 *
 * Requires: the module lowered and cleaned; floors.c has removed the comparisons that it can. Maintains: what
 * the code does. */
#include "compiler/ptx/arithmetic/ranges.h"

#include <string.h>

#define DEEPEST 10
#define EXPONENT 0x7f800000u
#define LEAST_Z 0x1.8p23           /* for k = -254 */
#define GREATEST_Z (LEAST_Z + 254) /* for k = 0 */

static bool is_constant(LLVMValueRef value, uint64_t expected) {
    uint64_t constant;
    return is_constant_integer(value, &constant) && constant == expected;
}

/* The operand of an instruction of this kind that has a constant, `expected`, as its second operand. */
static LLVMValueRef operand_of(LLVMValueRef value, LLVMOpcode opcode, uint64_t expected) {
    bool fits = LLVMIsABinaryOperator(value) && LLVMGetInstructionOpcode(value) == opcode &&
                is_constant(LLVMGetOperand(value, 1), expected);
    return fits ? LLVMGetOperand(value, 0) : NULL;
}

static LLVMValueRef bits_of(LLVMValueRef value) {
    return LLVMIsABitCastInst(value) ? LLVMGetOperand(value, 0) : NULL;
}

/* z's bits, if the floats are the two factors of its power. */
static LLVMValueRef power_of(LLVMValueRef first, LLVMValueRef second) {
    LLVMValueRef exponent = bits_of(first), rest = bits_of(second);
    if (!exponent || !rest || !LLVMIsABinaryOperator(rest)) return NULL;
    LLVMValueRef shifted = operand_of(exponent, LLVMAnd, EXPONENT);
    LLVMValueRef power = shifted ? operand_of(shifted, LLVMShl, 22) : NULL;
    if (!power || LLVMGetInstructionOpcode(rest) != LLVMSub || LLVMGetOperand(rest, 1) != exponent)
        return NULL;
    return operand_of(LLVMGetOperand(rest, 0), LLVMShl, 23) == power ? power : NULL;
}

static bool is_at_most_one(LLVMValueRef power) {
    LLVMValueRef z = bits_of(power);
    if (!z || LLVMGetTypeKind(LLVMTypeOf(z)) != LLVMFloatTypeKind) return false;
    struct range range = ptx_range_of(z, DEEPEST);
    return range.low >= LEAST_Z && range.high <= GREATEST_Z;
}

static bool has_other_uses(LLVMValueRef value) {
    return LLVMGetNextUse(LLVMGetFirstUse(value)) != NULL;
}

/* p * first, or fma(e, first, first): the index of `first` among its operands; -1: it is neither. */
static int index_of_factor(LLVMValueRef scaled, LLVMValueRef second) {
    bool product = LLVMIsABinaryOperator(scaled) && LLVMGetInstructionOpcode(scaled) == LLVMFMul;
    if (!product && !(LLVMIsACallInst(scaled) && strcmp(called_name(scaled), "llvm.fma.f32") == 0)) return -1;
    for (int i = 0; i < 2; i++) {
        LLVMValueRef first = LLVMGetOperand(scaled, (unsigned)i);
        if ((product || LLVMGetOperand(scaled, 2) == first) && power_of(first, second)) return i;
    }
    return -1;
}

/* One of the product's operands has been scaled, the other one is the second factor. */
static bool shorten(struct unit *unit, LLVMValueRef product, unsigned second_index) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef scaled = LLVMGetOperand(product, 1 - second_index);
    LLVMValueRef second = LLVMGetOperand(product, second_index);
    int index = index_of_factor(scaled, second);
    if (index < 0 || has_other_uses(scaled)) return false;
    LLVMValueRef power = power_of(LLVMGetOperand(scaled, (unsigned)index), second);
    if (!is_at_most_one(power)) return false;
    LLVMPositionBuilderBefore(b, scaled);
    LLVMTypeRef type = LLVMTypeOf(product);
    LLVMValueRef exponent = LLVMBuildShl(b, power, LLVMConstInt(LLVMTypeOf(power), 23, false), "exponent");
    LLVMValueRef factor = LLVMBuildBitCast(b, exponent, type, "factor");
    LLVMSetOperand(scaled, (unsigned)index, factor);
    if (LLVMIsACallInst(scaled)) LLVMSetOperand(scaled, 2, factor);
    LLVMSetOperand(product, second_index, LLVMConstReal(type, 0x1p-127));
    return true;
}

smelt_status pass_ptx_powers(struct unit *unit) {
    int found = 0;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(product, block) {
        if (LLVMGetInstructionOpcode(product) != LLVMFMul) continue;
        if (shorten(unit, product, 1) || shorten(unit, product, 0)) found++;
    }
    return found ? ptx_run_passes(unit, "function(adce)") : SMELT_OK;
}
