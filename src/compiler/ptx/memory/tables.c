/* Look-ups in constant tables of a few bytes, such as the levels of a 4-bit format, become permutations of
 * the table's words in registers. Lanes look up different elements, so each look-up would be a load from
 * device memory.
 *
 * Requires: the retargeted module, loops unrolled. Maintains: what the code does; beyond the table, a look-up
 * gives any byte. */
#include "compiler/ptx/ptx.h"

#define WORD_BYTES 4
#define PERMUTED_BYTES 8 /* from which one instruction chooses */
#define MOST_BYTES 16

/* The table from which a load reads the byte at `index`; NULL: it reads something else. */
static LLVMValueRef table_of(struct unit *unit, LLVMValueRef load, LLVMValueRef *index) {
    LLVMTypeRef byte = LLVMInt8TypeInContext(unit->context);
    LLVMValueRef address = LLVMIsALoadInst(load) ? LLVMGetOperand(load, 0) : NULL;
    if (!address || LLVMTypeOf(load) != byte || LLVMGetVolatile(load) || !LLVMIsAGetElementPtrInst(address))
        return NULL;
    LLVMValueRef table = LLVMGetOperand(address, 0);
    int operands = LLVMGetNumOperands(address);
    *index = LLVMGetOperand(address, (unsigned)operands - 1);
    if (!LLVMIsAGlobalVariable(table) || !LLVMIsGlobalConstant(table) || !LLVMGetInitializer(table))
        return NULL;
    LLVMTypeRef from = LLVMGetGEPSourceElementType(address), type = LLVMGlobalGetValueType(table);
    if (LLVMGetTypeKind(type) != LLVMArrayTypeKind || LLVMGetElementType(type) != byte) return NULL;
    if (LLVMGetArrayLength2(type) > MOST_BYTES || LLVMIsUndef(LLVMGetInitializer(table))) return NULL;
    if (operands == 2) return from == byte ? table : NULL;
    bool whole = operands == 3 && from == type && LLVMIsNull(LLVMGetOperand(address, 1));
    return whole ? table : NULL;
}

static LLVMValueRef word_of(struct unit *unit, LLVMValueRef table, unsigned word) {
    unsigned count = (unsigned)LLVMGetArrayLength2(LLVMGlobalGetValueType(table));
    LLVMValueRef values = LLVMGetInitializer(table);
    uint32_t bits = 0;
    for (unsigned i = word * WORD_BYTES; i < (word + 1) * WORD_BYTES && i < count; i++) {
        LLVMValueRef value = LLVMGetAggregateElement(values, i);
        if (LLVMIsAConstantInt(value))
            bits |= (uint32_t)LLVMConstIntGetZExtValue(value) << 8 * (i % WORD_BYTES);
    }
    return constant_i32(unit, bits);
}

/* A word whose lowest byte is the one at `place` (0 to 7) of two words. */
static LLVMValueRef permute(struct unit *unit, LLVMValueRef table, unsigned first, LLVMValueRef place) {
    LLVMValueRef operands[3] = {word_of(unit, table, first), word_of(unit, table, first + 1), place};
    return build_function(unit, "llvm.nvvm.prmt", operands, 3);
}

static LLVMValueRef as_word(struct unit *unit, LLVMValueRef index) {
    bool extended = LLVMIsAZExtInst(index) || LLVMIsASExtInst(index);
    LLVMValueRef narrow = extended ? LLVMGetOperand(index, 0) : index;
    if (LLVMTypeOf(narrow) == type_i32(unit)) return narrow;
    return LLVMBuildIntCast2(unit->builder, index, type_i32(unit), false, "");
}

static LLVMValueRef look_up(struct unit *unit, LLVMValueRef table, LLVMValueRef index) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef place = as_word(unit, index);
    if (LLVMGetArrayLength2(LLVMGlobalGetValueType(table)) <= PERMUTED_BYTES)
        return permute(unit, table, 0, place);
    LLVMValueRef low = LLVMBuildAnd(b, place, constant_i32(unit, PERMUTED_BYTES - 1), "");
    LLVMValueRef half = LLVMBuildAnd(b, place, constant_i32(unit, PERMUTED_BYTES), "");
    LLVMValueRef upper = LLVMBuildICmp(b, LLVMIntNE, half, constant_i32(unit, 0), "");
    LLVMValueRef first = permute(unit, table, 0, low), second = permute(unit, table, 2, low);
    return LLVMBuildSelect(b, upper, second, first, "");
}

smelt_status pass_ptx_tables(struct unit *unit) {
    LLVMValueRef index;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(load, block) {
        LLVMValueRef table = table_of(unit, load, &index);
        if (!table) continue;
        LLVMPositionBuilderBefore(unit->builder, load);
        LLVMValueRef word = look_up(unit, table, index);
        LLVMReplaceAllUsesWith(load, LLVMBuildTrunc(unit->builder, word, LLVMTypeOf(load), ""));
        LLVMInstructionEraseFromParent(load);
    }
    return SMELT_OK;
}
