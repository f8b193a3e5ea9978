/* Two floats that are rounded to bfloat or half and put into one word: one conversion of both.
 *
 * Requires: the module retargeted and cleaned. Maintains: what the code does. */
#include "compiler/ptx/ptx.h"

#include <string.h>

static bool is_instruction(LLVMValueRef value, LLVMOpcode opcode) {
    return LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == opcode;
}

/* compiler/passes/bfloat.c's conversion. */
static bool is_rounding_to_bfloat(LLVMValueRef value) {
    static const char text[] = "cvt.rn.bf16.f32";
    size_t length;
    if (!LLVMIsACallInst(value) || !LLVMIsAInlineAsm(LLVMGetCalledValue(value))) return false;
    return strncmp(LLVMGetInlineAsmAsmString(LLVMGetCalledValue(value), &length), text, strlen(text)) == 0;
}

/* The float from which a word's 16 bits were rounded; NULL: none. *brain: to bfloat. */
static LLVMValueRef rounded_from(LLVMValueRef word, bool *brain) {
    if (!is_instruction(word, LLVMZExt)) return NULL;
    LLVMValueRef bits = LLVMGetOperand(word, 0);
    *brain = is_rounding_to_bfloat(bits);
    if (*brain) return LLVMGetOperand(bits, 0);
    if (!is_instruction(bits, LLVMBitCast)) return NULL;
    LLVMValueRef rounding = LLVMGetOperand(bits, 0);
    bool half = is_instruction(rounding, LLVMFPTrunc) &&
                LLVMGetTypeKind(LLVMTypeOf(rounding)) == LLVMHalfTypeKind &&
                LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(rounding, 0))) == LLVMFloatTypeKind;
    return half ? LLVMGetOperand(rounding, 0) : NULL;
}

/* The operand that is shifted left by 16; NULL: none. */
static LLVMValueRef shifted_up(LLVMValueRef value) {
    uint64_t count;
    bool shifted = is_instruction(value, LLVMShl) && is_constant_integer(LLVMGetOperand(value, 1), &count);
    return shifted && count == 16 ? LLVMGetOperand(value, 0) : NULL;
}

static bool pack(struct unit *unit, LLVMValueRef word) {
    for (unsigned side = 0; side < 2; side++) {
        LLVMValueRef up = shifted_up(LLVMGetOperand(word, side)), low = LLVMGetOperand(word, 1 - side);
        bool brain, low_brain;
        LLVMValueRef high_float = up ? rounded_from(up, &brain) : NULL;
        LLVMValueRef low_float = high_float ? rounded_from(low, &low_brain) : NULL;
        if (!low_float || brain != low_brain) continue;
        LLVMValueRef floats[2] = {high_float, low_float};
        LLVMPositionBuilderBefore(unit->builder, word);
        const char *text = brain ? "cvt.rn.bf16x2.f32 $0, $1, $2;" : "cvt.rn.f16x2.f32 $0, $1, $2;";
        LLVMReplaceAllUsesWith(word, ptx_assembly(unit, text, "=r,f,f", type_i32(unit), floats, 2, false));
        return true;
    }
    return false;
}

smelt_status pass_ptx_pack(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(word, block) {
        if (is_instruction(word, LLVMOr) && LLVMTypeOf(word) == type_i32(unit) && pack(unit, word))
            LLVMInstructionEraseFromParent(word);
    }
    return SMELT_OK;
}
