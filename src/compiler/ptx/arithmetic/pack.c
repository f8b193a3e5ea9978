/* Two floats that are rounded to bfloat or half and put into one word: one conversion of both. A single float
 * is rounded to bfloat together with a zero in the lower half: the word is then the rounded float, without a
 * shift.
 *
 * Requires: the module retargeted and cleaned. Maintains: what the code does. */
#include "compiler/ptx/ptx.h"

#include <string.h>

static bool is_instruction(LLVMValueRef value, LLVMOpcode opcode) {
    return LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == opcode;
}

bool ptx_rounds_to_bfloat(LLVMValueRef value) {
    static const char conversion[] = "cvt.rn.bf16.f32";
    const char *text = ptx_assembly_text(value);
    return text && strncmp(text, conversion, strlen(conversion)) == 0;
}

/* The float from which a word's 16 bits were rounded; NULL: none. *brain: to bfloat. */
static LLVMValueRef rounded_from(LLVMValueRef word, bool *brain) {
    if (!is_instruction(word, LLVMZExt)) return NULL;
    LLVMValueRef bits = LLVMGetOperand(word, 0);
    *brain = ptx_rounds_to_bfloat(bits);
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

/* The word with the 16 bits in its upper half and zeros below: the shift of their extension; NULL: none. */
static LLVMValueRef shift_of(LLVMValueRef user) {
    LLVMUseRef use = is_instruction(user, LLVMZExt) ? LLVMGetFirstUse(user) : NULL;
    for (; use; use = LLVMGetNextUse(use)) {
        LLVMValueRef shift = LLVMGetUser(use);
        if (LLVMTypeOf(shift) == LLVMTypeOf(user) && shifted_up(shift) == user) return shift;
    }
    return NULL;
}

static bool is_widened(struct unit *unit, LLVMValueRef rounding) {
    for (LLVMUseRef use = LLVMGetFirstUse(rounding); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMTypeOf(user) == type_i32(unit) && shift_of(user)) return true;
    }
    return false;
}

/* Together with a zero: below the bits if the float is computed with, above them if it is only stored. */
static void round_alone(struct unit *unit, LLVMValueRef rounding) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef value = LLVMGetOperand(rounding, 0), sixteen = constant_i32(unit, 16);
    bool above = is_widened(unit, rounding);
    const char *text =
        above ? "cvt.rn.bf16x2.f32 $0, $1, 0f00000000;" : "cvt.rn.bf16x2.f32 $0, 0f00000000, $1;";
    LLVMPositionBuilderBefore(b, rounding);
    LLVMValueRef word = ptx_assembly(unit, text, "=r,f", type_i32(unit), &value, 1, false);
    if (above)
        for (LLVMUseRef use = LLVMGetFirstUse(rounding), next; use; use = next) {
            LLVMValueRef user = LLVMGetUser(use);
            next = LLVMGetNextUse(use);
            if (LLVMTypeOf(user) != type_i32(unit)) continue;
            for (LLVMValueRef shift = shift_of(user); shift; shift = shift_of(user)) {
                LLVMReplaceAllUsesWith(shift, word);
                LLVMInstructionEraseFromParent(shift);
            }
        }
    LLVMValueRef low = above ? LLVMBuildLShr(b, word, sixteen, "") : word;
    LLVMReplaceAllUsesWith(rounding, LLVMBuildTrunc(b, low, LLVMTypeOf(rounding), ""));
    LLVMInstructionEraseFromParent(rounding);
}

smelt_status pass_ptx_pack(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(word, block) {
        if (is_instruction(word, LLVMOr) && LLVMTypeOf(word) == type_i32(unit) && pack(unit, word))
            LLVMInstructionEraseFromParent(word);
    }
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(rounding, block) {
        if (ptx_rounds_to_bfloat(rounding) && LLVMGetFirstUse(rounding)) round_alone(unit, rounding);
    }
    return SMELT_OK;
}
