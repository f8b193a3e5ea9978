/* Sums, differences and products of bfloats, which bfloat.c computes as floats and rounds, become bfloat
 * instructions of the GPU, of which NVIDIA's assembler joins two in one. The bits are the same: a float has
 * more than twice a bfloat's significant bits, so rounding to float first changes nothing. That does not hold
 * for a fused multiply-add, which stays one of floats.
 *
 * Requires: the module retargeted and cleaned. Maintains: what the code does. */
#include "compiler/ptx/ptx.h"

#define ONE 0x3f80
#define MINUS 0x8000

static LLVMTypeRef half_word(struct unit *unit) {
    return LLVMInt16TypeInContext(unit->context);
}

static LLVMValueRef constant_bits(struct unit *unit, uint32_t bits) {
    return LLVMConstInt(half_word(unit), bits, false);
}

static bool is_instruction(LLVMValueRef value, LLVMOpcode opcode) {
    return LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == opcode;
}

static bool has_constant(LLVMValueRef instruction, uint64_t number) {
    uint64_t found;
    return is_constant_integer(LLVMGetOperand(instruction, 1), &found) && found == number;
}

/* The bits of the bfloat from which a float was extended; NULL: it may not be one. Bits that are half of a
 * word are extracted where the builder stands. */
static LLVMValueRef bits_of(struct unit *unit, LLVMValueRef value) {
    if (LLVMIsAConstantFP(value)) {
        LLVMValueRef number = LLVMConstBitCast(value, type_i32(unit));
        uint64_t bits;
        return is_constant_integer(number, &bits) && !(bits & 0xffff) ? constant_bits(unit, bits >> 16)
                                                                      : NULL;
    }
    if (!is_instruction(value, LLVMBitCast)) return NULL;
    LLVMValueRef word = LLVMGetOperand(value, 0);
    if (LLVMTypeOf(word) != type_i32(unit)) return NULL;
    if (is_instruction(word, LLVMShl) && has_constant(word, 16)) {
        LLVMValueRef wide = LLVMGetOperand(word, 0);
        bool own = is_instruction(wide, LLVMZExt) && LLVMTypeOf(LLVMGetOperand(wide, 0)) == half_word(unit);
        return own ? LLVMGetOperand(wide, 0) : LLVMBuildTrunc(unit->builder, wide, half_word(unit), "");
    }
    if (!is_instruction(word, LLVMAnd) || !has_constant(word, 0xffff0000)) return NULL;
    LLVMValueRef high = LLVMBuildLShr(unit->builder, LLVMGetOperand(word, 0), constant_i32(unit, 16), "");
    return LLVMBuildTrunc(unit->builder, high, half_word(unit), "");
}

/* Whether a bfloat exists as bits, as one that was loaded does. One that was just rounded exists as a float,
 * and its bits would take an instruction (pack.c). */
static bool is_of_bits(LLVMValueRef bits) {
    return !LLVMIsAConstantInt(bits) && !ptx_rounds_to_bfloat(bits);
}

static bool is_only_rounded(LLVMValueRef value) {
    LLVMUseRef use = LLVMGetFirstUse(value);
    for (; use; use = LLVMGetNextUse(use))
        if (!ptx_rounds_to_bfloat(LLVMGetUser(use))) return false;
    return LLVMGetFirstUse(value) != NULL;
}

/* Finds the operands of the fused multiply-add that is equal to an operation; false: there is none. */
static bool as_multiply_add(struct unit *unit, LLVMValueRef operation, LLVMValueRef terms[3]) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(operation);
    if (opcode != LLVMFMul && opcode != LLVMFAdd && opcode != LLVMFSub) return false;
    if (LLVMGetTypeKind(LLVMTypeOf(operation)) != LLVMFloatTypeKind || !is_only_rounded(operation))
        return false;
    LLVMPositionBuilderBefore(unit->builder, operation);
    LLVMValueRef a = bits_of(unit, LLVMGetOperand(operation, 0)),
                 b = bits_of(unit, LLVMGetOperand(operation, 1));
    if (!a || !b || (!is_of_bits(a) && !is_of_bits(b))) return false;
    bool product = opcode == LLVMFMul, difference = opcode == LLVMFSub;
    terms[0] = difference ? b : a;
    terms[1] = product ? b : constant_bits(unit, difference ? ONE | MINUS : ONE);
    terms[2] = product ? constant_bits(unit, MINUS) : difference ? a : b;
    return true;
}

static void replace(struct unit *unit, LLVMValueRef operation, LLVMValueRef *terms) {
    LLVMValueRef result =
        ptx_assembly(unit, "fma.rn.bf16 $0, $1, $2, $3;", "=h,h,h,h", half_word(unit), terms, 3, false);
    for (LLVMUseRef use = LLVMGetFirstUse(operation); use; use = LLVMGetFirstUse(operation)) {
        LLVMValueRef rounding = LLVMGetUser(use);
        LLVMReplaceAllUsesWith(rounding, result);
        LLVMInstructionEraseFromParent(rounding);
    }
}

/* Removes extensions of bits that are no longer computed with as a float. */
static void erase_unused(LLVMValueRef value) {
    if (!LLVMIsAInstruction(value) || LLVMGetFirstUse(value)) return;
    if (!LLVMIsACastInst(value) && !is_instruction(value, LLVMShl) && !is_instruction(value, LLVMAnd)) return;
    LLVMValueRef from = LLVMGetOperand(value, 0);
    LLVMInstructionEraseFromParent(value);
    erase_unused(from);
}

static void erase_operation(LLVMValueRef operation) {
    LLVMValueRef a = LLVMGetOperand(operation, 0), b = LLVMGetOperand(operation, 1);
    LLVMInstructionEraseFromParent(operation);
    erase_unused(a);
    if (b != a) erase_unused(b);
}

smelt_status pass_ptx_bfloats(struct unit *unit) {
    LLVMValueRef terms[3];
    FOR_EACH_BLOCK(block, unit->entry)
    for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
        bool found = LLVMIsABinaryOperator(i) && as_multiply_add(unit, i, terms);
        if (found) replace(unit, i, terms);
        next = LLVMGetNextInstruction(i);
        if (found) erase_operation(i);
    }
    return SMELT_OK;
}
