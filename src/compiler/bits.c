/* Moves, loads and stores bfloats as their bits. On CPUs without instructions for bfloat, the code generator
 * would otherwise keep each one as a float and call a library function to convert it back.
 *
 * Requires: bfloat arithmetic lowered. Establishes: only arguments, results of calls, parts of structures,
 * and casts of these have bfloat types or vectors of them. */
#include "compiler/pass.h"

static bool is_number(LLVMTypeRef type) {
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) type = LLVMGetElementType(type);
    return LLVMGetTypeKind(type) == LLVMBFloatTypeKind;
}

static bool holds_number(LLVMValueRef value) {
    return is_number(LLVMTypeOf(value));
}

static LLVMTypeRef type_of_bits(struct unit *unit, LLVMTypeRef type) {
    LLVMTypeRef i16 = LLVMInt16TypeInContext(unit->context);
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMVectorType(i16, LLVMGetVectorSize(type)) : i16;
}

/* The operand of a cast from bits; other values themselves. */
static LLVMValueRef origin_of(LLVMValueRef value) {
    while (LLVMIsABitCastInst(value) && holds_number(value)) value = LLVMGetOperand(value, 0);
    return value;
}

static LLVMValueRef cast_bits(struct unit *unit, LLVMValueRef value, LLVMTypeRef type) {
    LLVMValueRef origin = origin_of(value);
    return LLVMTypeOf(origin) == type ? origin : LLVMBuildBitCast(unit->builder, origin, type, "");
}

static LLVMValueRef operand_bits(struct unit *unit, LLVMValueRef instruction, unsigned index) {
    LLVMValueRef operand = LLVMGetOperand(instruction, index);
    return cast_bits(unit, operand, type_of_bits(unit, LLVMTypeOf(operand)));
}

/* ---- Memory. */

static void copy_access(LLVMValueRef from, LLVMValueRef to) {
    LLVMSetAlignment(to, LLVMGetAlignment(from));
    LLVMSetVolatile(to, LLVMGetVolatile(from));
    if (LLVMGetOrdering(from) == LLVMAtomicOrderingNotAtomic) return;
    LLVMSetOrdering(to, LLVMGetOrdering(from));
    LLVMSetAtomicSingleThread(to, LLVMIsAtomicSingleThread(from));
}

static LLVMValueRef load_bits(struct unit *unit, LLVMValueRef load) {
    LLVMTypeRef type = type_of_bits(unit, LLVMTypeOf(load));
    LLVMValueRef bits = LLVMBuildLoad2(unit->builder, type, LLVMGetOperand(load, 0), "");
    copy_access(load, bits);
    return bits;
}

static LLVMValueRef store_bits(struct unit *unit, LLVMValueRef store) {
    LLVMValueRef bits = LLVMBuildStore(unit->builder, operand_bits(unit, store, 0), LLVMGetOperand(store, 1));
    copy_access(store, bits);
    return bits;
}

/* ---- Values. */

static LLVMValueRef shuffle_bits(struct unit *unit, LLVMValueRef shuffle) {
    LLVMTypeRef i32 = type_i32(unit);
    LLVMValueRef mask[64];
    unsigned count = LLVMGetNumMaskElements(shuffle);
    if (count > sizeof mask / sizeof *mask) return NULL;
    for (unsigned i = 0; i < count; i++) {
        int place = LLVMGetMaskValue(shuffle, i);
        mask[i] = place < 0 ? LLVMGetPoison(i32) : constant_i32(unit, (uint32_t)place);
    }
    return LLVMBuildShuffleVector(unit->builder, operand_bits(unit, shuffle, 0),
                                  operand_bits(unit, shuffle, 1), LLVMConstVector(mask, count), "");
}

/* The bits of an instruction's result; for a store, the new store. NULL: the instruction computes. */
static LLVMValueRef moved_bits(struct unit *unit, LLVMValueRef i) {
    LLVMBuilderRef b = unit->builder;
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMSelect:
        return LLVMBuildSelect(b, LLVMGetOperand(i, 0), operand_bits(unit, i, 1), operand_bits(unit, i, 2),
                               "");
    case LLVMFreeze:
        return LLVMBuildFreeze(b, operand_bits(unit, i, 0), "");
    case LLVMLoad:
        return load_bits(unit, i);
    case LLVMStore:
        return store_bits(unit, i);
    case LLVMExtractElement:
        return LLVMBuildExtractElement(b, operand_bits(unit, i, 0), LLVMGetOperand(i, 1), "");
    case LLVMInsertElement:
        return LLVMBuildInsertElement(b, operand_bits(unit, i, 0), operand_bits(unit, i, 1),
                                      LLVMGetOperand(i, 2), "");
    case LLVMShuffleVector:
        return shuffle_bits(unit, i);
    default:
        return NULL;
    }
}

static void move_as_bits(struct unit *unit, LLVMValueRef instruction) {
    bool stores = LLVMIsAStoreInst(instruction) && holds_number(LLVMGetOperand(instruction, 0));
    if (!stores && !holds_number(instruction)) return;
    LLVMPositionBuilderBefore(unit->builder, instruction);
    LLVMValueRef bits = moved_bits(unit, instruction);
    if (!bits) return;
    if (!stores)
        LLVMReplaceAllUsesWith(instruction,
                               LLVMBuildBitCast(unit->builder, bits, LLVMTypeOf(instruction), ""));
    LLVMInstructionEraseFromParent(instruction);
}

static LLVMValueRef first_behind_phis(LLVMValueRef phi) {
    while (LLVMIsAPHINode(phi)) phi = LLVMGetNextInstruction(phi);
    return phi;
}

static void lower_phi(struct unit *unit, LLVMValueRef phi) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef type = type_of_bits(unit, LLVMTypeOf(phi));
    LLVMPositionBuilderBefore(b, phi);
    LLVMValueRef bits = LLVMBuildPhi(b, type, "");
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi, i);
        LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(from));
        LLVMValueRef incoming = cast_bits(unit, LLVMGetIncomingValue(phi, i), type);
        LLVMAddIncoming(bits, &incoming, &from, 1);
    }
    LLVMPositionBuilderBefore(b, first_behind_phis(phi));
    LLVMReplaceAllUsesWith(phi, LLVMBuildBitCast(b, bits, LLVMTypeOf(phi), ""));
    LLVMInstructionEraseFromParent(phi);
}

/* ---- Casts: a cast from bits to bfloat and back is the original value. */

static bool shorten_cast(struct unit *unit, LLVMValueRef cast) {
    if (!LLVMIsABitCastInst(cast)) return false;
    LLVMValueRef operand = LLVMGetOperand(cast, 0);
    if (!LLVMGetFirstUse(cast)) {
        if (!holds_number(cast) && !holds_number(operand)) return false;
        LLVMInstructionEraseFromParent(cast);
        return true;
    }
    if (origin_of(operand) == operand) return false;
    LLVMPositionBuilderBefore(unit->builder, cast);
    LLVMReplaceAllUsesWith(cast, cast_bits(unit, operand, LLVMTypeOf(cast)));
    LLVMInstructionEraseFromParent(cast);
    return true;
}

static bool shorten_casts(struct unit *unit, LLVMValueRef function) {
    bool changed = false;
    FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(instruction, block) changed |= shorten_cast(unit, instruction);
    return changed;
}

void bits_move_bfloats(struct unit *unit, LLVMValueRef function) {
    FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(instruction, block) move_as_bits(unit, instruction);
    FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(phi, block) {
        if (!LLVMIsAPHINode(phi)) break;
        if (holds_number(phi)) lower_phi(unit, phi);
    }
    while (shorten_casts(unit, function)) continue;
}
