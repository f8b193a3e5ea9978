/* Vectors of bfloats that are only extended to floats are loaded as words of two bfloats: a float is the word
 * shifted up, or its upper half in place. Of vectors of 16-bit numbers, the code generator takes each word
 * apart first, and NVIDIA's assembler extends an upper half by two or three instructions instead of one.
 *
 * Requires: accesses joined, LLVM's instcombine does not run again. Maintains: what the code does. */
#include "compiler/ptx/ptx.h"

#define UPPER_HALF 0xffff0000

static bool is_vector_of_halves(struct unit *unit, LLVMValueRef load) {
    LLVMTypeRef type = LLVMTypeOf(load);
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind &&
           LLVMGetElementType(type) == LLVMInt16TypeInContext(unit->context) &&
           LLVMGetVectorSize(type) % 2 == 0 && !LLVMGetVolatile(load) &&
           LLVMGetOrdering(load) == LLVMAtomicOrderingNotAtomic && ptx_only_parts_are_used(load);
}

static bool shifts_up(LLVMValueRef user) {
    uint64_t count;
    return LLVMIsAInstruction(user) && LLVMGetInstructionOpcode(user) == LLVMShl &&
           is_constant_integer(LLVMGetOperand(user, 1), &count) && count == 16;
}

/* Whether all that happens to an element is that it is extended to 32 bits and shifted to their upper half.
 */
static bool becomes_float(struct unit *unit, LLVMValueRef element) {
    for (LLVMUseRef use = LLVMGetFirstUse(element); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef wide = LLVMGetUser(use);
        if (!LLVMIsAZExtInst(wide) || LLVMTypeOf(wide) != type_i32(unit)) return false;
        for (LLVMUseRef shift = LLVMGetFirstUse(wide); shift; shift = LLVMGetNextUse(shift))
            if (!shifts_up(LLVMGetUser(shift)) || LLVMGetOperand(LLVMGetUser(shift), 0) != wide) return false;
    }
    return true;
}

static bool all_become_floats(struct unit *unit, LLVMValueRef load) {
    for (LLVMUseRef use = LLVMGetFirstUse(load); use; use = LLVMGetNextUse(use))
        if (!becomes_float(unit, LLVMGetUser(use))) return false;
    return true;
}

static LLVMValueRef load_words(struct unit *unit, LLVMValueRef load) {
    unsigned count = LLVMGetVectorSize(LLVMTypeOf(load)) / 2;
    LLVMTypeRef type = count == 1 ? type_i32(unit) : LLVMVectorType(type_i32(unit), count);
    LLVMPositionBuilderBefore(unit->builder, load);
    LLVMValueRef words = LLVMBuildLoad2(unit->builder, type, LLVMGetOperand(load, 0), "");
    LLVMSetAlignment(words, LLVMGetAlignment(load));
    return words;
}

/* Replaces the shifts of an element by what they make of its word. */
static void take_floats(struct unit *unit, LLVMValueRef words, LLVMValueRef element) {
    LLVMBuilderRef b = unit->builder;
    uint32_t at = (uint32_t)LLVMConstIntGetZExtValue(LLVMGetOperand(element, 1));
    LLVMPositionBuilderBefore(b, element);
    LLVMValueRef word = LLVMTypeOf(words) == type_i32(unit)
                            ? words
                            : LLVMBuildExtractElement(b, words, constant_i32(unit, at / 2), "");
    LLVMValueRef bits = at % 2 ? LLVMBuildAnd(b, word, constant_i32(unit, UPPER_HALF), "")
                               : LLVMBuildShl(b, word, constant_i32(unit, 16), "");
    for (LLVMUseRef use = LLVMGetFirstUse(element); use; use = LLVMGetNextUse(use))
        for (LLVMUseRef shift = LLVMGetFirstUse(LLVMGetUser(use)); shift; shift = LLVMGetNextUse(shift))
            LLVMReplaceAllUsesWith(LLVMGetUser(shift), bits);
}

smelt_status pass_ptx_bfloat_words(struct unit *unit) {
    bool any = false;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(load, block) {
        if (!LLVMIsALoadInst(load) || !is_vector_of_halves(unit, load) || !all_become_floats(unit, load))
            continue;
        LLVMValueRef words = load_words(unit, load);
        for (LLVMUseRef use = LLVMGetFirstUse(load); use; use = LLVMGetNextUse(use))
            take_floats(unit, words, LLVMGetUser(use));
        any = true;
    }
    return any ? ptx_run_passes(unit, "function(adce)") : SMELT_OK;
}
