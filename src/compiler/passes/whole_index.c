/* tile[i / 24][i % 24], of rows of 24 elements, is element i of the tile: an address without a division,
 * which engines see is the next element's for the next i.
 *
 * Requires: inlined code, before the optimiser divides numbers of fewer bits, which hide i. */
#include "compiler/pass.h"

#include <llvm-c/DebugInfo.h>

struct division {
    LLVMValueRef divided;
    uint64_t divisor;
    bool is_signed;
};

static bool constant_operand(LLVMValueRef i, uint64_t *out) {
    return LLVMIsABinaryOperator(i) && is_constant_integer(LLVMGetOperand(i, 1), out);
}

static unsigned width_of(LLVMValueRef value) {
    return LLVMGetIntTypeWidth(LLVMTypeOf(value));
}

static bool is_quotient(LLVMValueRef i, struct division *out) {
    uint64_t c = 0;
    if (!constant_operand(i, &c)) return false;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
    *out = (struct division){LLVMGetOperand(i, 0), c, opcode == LLVMSDiv};
    if (opcode == LLVMLShr) out->divisor = c < width_of(i) ? UINT64_C(1) << c : 0;
    return opcode == LLVMUDiv || opcode == LLVMSDiv || opcode == LLVMLShr;
}

/* x - x / c * c. */
static bool is_difference(LLVMValueRef i, const struct division *of) {
    if (!LLVMIsABinaryOperator(i) || LLVMGetInstructionOpcode(i) != LLVMAdd) return false;
    for (unsigned o = 0; o < 2; o++) {
        LLVMValueRef product = LLVMGetOperand(i, o);
        struct division quotient;
        if (LLVMGetOperand(i, 1 - o) != of->divided || !LLVMIsABinaryOperator(product) ||
            LLVMGetInstructionOpcode(product) != LLVMMul || !LLVMIsAConstantInt(LLVMGetOperand(product, 1)))
            continue;
        uint64_t factor = (uint64_t)LLVMConstIntGetSExtValue(LLVMGetOperand(product, 1));
        if (factor == -of->divisor && is_quotient(LLVMGetOperand(product, 0), &quotient) &&
            quotient.divided == of->divided && quotient.divisor == of->divisor &&
            quotient.is_signed == of->is_signed)
            return true;
    }
    return false;
}

static bool is_remainder(LLVMValueRef i, const struct division *of) {
    uint64_t c = 0;
    if (is_difference(i, of)) return true;
    if (!constant_operand(i, &c) || LLVMGetOperand(i, 0) != of->divided) return false;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
    if (opcode == LLVMAnd) return !of->is_signed && c + 1 == of->divisor;
    return opcode == (of->is_signed ? LLVMSRem : LLVMURem) && c == of->divisor;
}

/* An index before it was widened. Those that are not negative are widened either way. */
static LLVMValueRef narrow(LLVMValueRef index, bool is_signed) {
    if (LLVMIsASExtInst(index) || (!is_signed && LLVMIsAZExtInst(index))) return LLVMGetOperand(index, 0);
    return index;
}

/* The two last indexes of an address are quotient and remainder by the length of a row. */
static bool find_division(LLVMValueRef gep, struct division *out, LLVMTypeRef *element) {
    int last = LLVMGetNumOperands(gep) - 1;
    if (last < 2) return false;
    LLVMTypeRef row = LLVMGetGEPSourceElementType(gep);
    for (int o = 2; o < last; o++) {
        if (LLVMGetTypeKind(row) != LLVMArrayTypeKind) return false;
        row = LLVMGetElementType(row);
    }
    if (LLVMGetTypeKind(row) != LLVMArrayTypeKind) return false;
    *element = LLVMGetElementType(row);
    LLVMValueRef high = LLVMGetOperand(gep, (unsigned)last - 1), low = LLVMGetOperand(gep, (unsigned)last);
    LLVMValueRef quotient = LLVMIsASExtInst(high) || LLVMIsAZExtInst(high) ? LLVMGetOperand(high, 0) : high;
    return is_quotient(quotient, out) && out->divisor >= 2 && out->divisor == LLVMGetArrayLength2(row) &&
           out->divisor <= UINT64_C(1) << (width_of(quotient) - 1) &&
           narrow(high, out->is_signed) == quotient && is_remainder(narrow(low, out->is_signed), out);
}

static void rewrite(struct unit *unit, LLVMValueRef gep, const struct division *division,
                    LLVMTypeRef element) {
    LLVMBuilderRef b = unit->builder;
    LLVMPositionBuilderBefore(b, gep);
    LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(gep));
    LLVMValueRef index = division->divided, indexes[8], address = LLVMGetOperand(gep, 0);
    if (width_of(index) < 64)
        index = LLVMBuildCast(b, division->is_signed ? LLVMSExt : LLVMZExt, index, type_i64(unit), "");
    int before = LLVMGetNumOperands(gep) - 3;
    bool first = true; /* the array is the first one at its address */
    for (int o = 0; o < before; o++) {
        indexes[o] = LLVMGetOperand(gep, (unsigned)o + 1);
        first &= LLVMIsAConstantInt(indexes[o]) && LLVMIsNull(indexes[o]);
    }
    if (!first)
        address = LLVMBuildGEP2(b, LLVMGetGEPSourceElementType(gep), address, indexes, (unsigned)before, "");
    address = LLVMBuildGEP2(b, element, address, &index, 1, "");
    if (LLVMIsAGetElementPtrInst(address)) LLVMSetIsInBounds(address, LLVMIsInBounds(gep));
    LLVMReplaceAllUsesWith(gep, address);
}

smelt_status pass_whole_index(struct unit *unit) {
    if (!unit->target->joins_indexes) return SMELT_OK;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        struct division division;
        LLVMTypeRef element;
        if (LLVMIsAGetElementPtrInst(i) && LLVMGetNumOperands(i) <= 10 &&
            LLVMGetTypeKind(LLVMTypeOf(i)) == LLVMPointerTypeKind && find_division(i, &division, &element))
            rewrite(unit, i, &division, element);
    }
    LLVMSetCurrentDebugLocation2(unit->builder, NULL);
    return SMELT_OK;
}
