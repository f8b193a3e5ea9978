/* Bfloats of a vector that was loaded become floats by one operation on the word that holds two of them.
 *
 * LLVM loads <8 x i16> as four words and splits each into registers of 16 bits. NVIDIA's assembler then
 * permutes the bytes of a word, and shifts the result, for the upper half of each: with a mask instead, the
 * word's upper half is the float.
 *
 * Requires: accesses joined. Maintains: what the code does. */
#include "compiler/ptx/ptx.h"

#define HALF 16 /* bits */

static LLVMValueRef only_user(LLVMValueRef value) {
    LLVMUseRef use = LLVMGetFirstUse(value);
    return use && !LLVMGetNextUse(use) ? LLVMGetUser(use) : NULL;
}

/* The bits of the float that a part of a vector becomes; NULL: the part is used otherwise, or more than once.
 */
static LLVMValueRef float_of(LLVMValueRef part) {
    uint64_t count;
    LLVMValueRef extended = only_user(part);
    if (!extended || !LLVMIsAZExtInst(extended) || LLVMGetIntTypeWidth(LLVMTypeOf(extended)) != 2 * HALF)
        return NULL;
    LLVMValueRef bits = only_user(extended);
    bool shifts = bits && LLVMIsABinaryOperator(bits) && LLVMGetInstructionOpcode(bits) == LLVMShl &&
                  LLVMGetOperand(bits, 0) == extended;
    return shifts && is_constant_integer(LLVMGetOperand(bits, 1), &count) && count == HALF ? bits : NULL;
}

/* Whether a load is of pairs of bfloats that all become floats and nothing else. One that is less aligned
 * than words would be taken apart again. */
static bool is_wanted(struct unit *unit, LLVMValueRef load) {
    LLVMTypeRef type = LLVMTypeOf(load);
    if (!LLVMIsALoadInst(load) || LLVMGetVolatile(load) || LLVMGetTypeKind(type) != LLVMVectorTypeKind ||
        LLVMGetElementType(type) != LLVMInt16TypeInContext(unit->context) || LLVMGetVectorSize(type) % 2 ||
        LLVMGetAlignment(load) < LLVMABISizeOfType(unit->layout, type) || !ptx_only_parts_are_used(load))
        return false;
    unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(load, 0)));
    if (space != PTX_GLOBAL && space != PTX_SHARED) return false;
    bool any = false;
    for (LLVMUseRef use = LLVMGetFirstUse(load); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef part = LLVMGetUser(use);
        if (!LLVMGetFirstUse(part)) continue;
        if (!float_of(part)) return false;
        any = true;
    }
    return any;
}

static void load_words(struct unit *unit, LLVMValueRef load) {
    LLVMBuilderRef b = unit->builder;
    unsigned words = LLVMGetVectorSize(LLVMTypeOf(load)) / 2;
    LLVMTypeRef i32 = type_i32(unit), type = words > 1 ? LLVMVectorType(i32, words) : i32;
    LLVMPositionBuilderBefore(b, load);
    LLVMValueRef loaded = LLVMBuildLoad2(b, type, LLVMGetOperand(load, 0), "");
    LLVMSetAlignment(loaded, LLVMGetAlignment(load));
    for (LLVMUseRef use = LLVMGetFirstUse(load); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef part = LLVMGetUser(use), value = float_of(part);
        uint32_t index = (uint32_t)LLVMConstIntGetZExtValue(LLVMGetOperand(part, 1));
        if (!value) continue;
        LLVMValueRef word =
            words > 1 ? LLVMBuildExtractElement(b, loaded, constant_i32(unit, index / 2), "") : loaded;
        LLVMValueRef bits = index % 2 ? LLVMBuildAnd(b, word, constant_i32(unit, UINT32_C(0xffff0000)), "")
                                      : LLVMBuildShl(b, word, constant_i32(unit, HALF), "");
        LLVMReplaceAllUsesWith(value, bits);
    }
}

smelt_status pass_ptx_halves(struct unit *unit) {
    bool any = false;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (!is_wanted(unit, instruction)) continue;
        load_words(unit, instruction);
        any = true;
    }
    return any ? ptx_run_passes(unit, "function(adce)") : SMELT_OK;
}
