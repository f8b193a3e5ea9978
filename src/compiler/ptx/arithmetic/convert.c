/* Floats become 32-bit integers, clamped to the range, with NaN as 0, by a GPU's own conversion. LLVM's
 * passes take the intrinsic of that instruction for a conversion without clamping, and reduce uint(float(s))
 * to a widening of s; so it is inserted after them.
 *
 * Small integers become floats by a subtraction. The float 2^23 has its 23 lower bits for units: with an
 * integer in these bits it is 2^23 plus the integer, and 2^23 minus a constant offset is subtracted exactly.
 * The upper bits of 2^23 come with the instruction that masks the integer or extracts its bytes. An H200
 * subtracts 128 floats per clock and multiprocessor, but converts 62 integers of 32 bits and 16 narrower
 * ones, in the pipe of the logical operations that unpack weights. LLVM's passes and NVIDIA's assembler undo
 * ordinary extensions of narrow integers, so an instruction that permutes bytes extracts them.
 *
 * Requires: the module in its final form, before code generation. */
#include "compiler/ptx/ptx.h"

#include <stdio.h>
#include <string.h>

static const char *own_conversion(const char *name) {
    if (strcmp(name, "llvm.fptosi.sat.i32.f32") == 0) return "llvm.nvvm.f2i.rz";
    if (strcmp(name, "llvm.fptoui.sat.i32.f32") == 0) return "llvm.nvvm.f2ui.rz";
    return NULL;
}

/* ---- Narrow integers become floats. */

/* Neighbouring bytes of a word of 32 bits. */
struct part {
    LLVMValueRef word;
    unsigned first, bytes;
};

static bool is_operation(LLVMValueRef value, LLVMOpcode opcode) {
    return LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == opcode;
}

/* If `part->word` is another word shifted by whole bytes, takes the part from that word. */
static void skip_shift(struct part *part) {
    uint64_t bits;
    if (!is_operation(part->word, LLVMLShr) || !is_constant_integer(LLVMGetOperand(part->word, 1), &bits))
        return;
    if (bits % 8 || part->first + bits / 8 + part->bytes > LLVMGetIntTypeWidth(LLVMTypeOf(part->word)) / 8)
        return;
    part->first += (unsigned)bits / 8;
    part->word = LLVMGetOperand(part->word, 0);
}

/* Whether a value of 32 bits is one byte or two of a word, and 0 above. */
static bool find_masked(LLVMValueRef value, struct part *part) {
    uint64_t number;
    bool masked = is_operation(value, LLVMAnd), shifted = is_operation(value, LLVMLShr);
    if ((!masked && !shifted) || !is_constant_integer(LLVMGetOperand(value, 1), &number)) return false;
    if (number != (masked ? 0xff : 24) && number != (masked ? 0xffff : 16)) return false;
    unsigned bytes = masked ? (number == 0xff ? 1 : 2) : number == 24 ? 1 : 2;
    *part = (struct part){masked ? LLVMGetOperand(value, 0) : value, 0, bytes};
    skip_shift(part);
    return true;
}

/* Finds the bytes of an integer; false: it does not consist of one or two. */
static bool find_part(struct unit *unit, LLVMValueRef value, bool is_signed, struct part *part) {
    LLVMTypeRef type = LLVMTypeOf(value), i32 = type_i32(unit);
    if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind) return false;
    if (type == i32) return !is_signed && find_masked(value, part);
    unsigned width = LLVMGetIntTypeWidth(type);
    if (width != 8 && width != 16) return false;
    /* Of a word, or of half of one. */
    bool is_part = is_operation(value, LLVMTrunc) &&
                   (LLVMTypeOf(LLVMGetOperand(value, 0)) == i32 ||
                    LLVMTypeOf(LLVMGetOperand(value, 0)) == LLVMInt16TypeInContext(unit->context));
    *part = (struct part){is_part ? LLVMGetOperand(value, 0) : value, 0, width / 8};
    if (is_part) skip_shift(part);
    return true;
}

/* Of expressions of narrow integers that are computed in words instead. */
#define DEEPEST 4

static bool is_modular(LLVMValueRef value) {
    static const LLVMOpcode opcodes[] = {LLVMAdd, LLVMSub, LLVMMul, LLVMAnd, LLVMOr, LLVMXor};
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++)
        if (is_operation(value, opcodes[i])) return true;
    return false;
}

/* A word whose lower bytes are the integer; the others may be anything. */
static LLVMValueRef in_word(struct unit *unit, LLVMValueRef value, int depth) {
    LLVMBuilderRef b = unit->builder;
    LLVMUseRef use = LLVMGetFirstUse(value);
    bool alone = LLVMIsAInstruction(value) && use && !LLVMGetNextUse(use);
    if (is_operation(value, LLVMTrunc) && LLVMTypeOf(LLVMGetOperand(value, 0)) == type_i32(unit))
        return LLVMGetOperand(value, 0);
    if (depth < DEEPEST && is_modular(value) && alone)
        return LLVMBuildBinOp(b, LLVMGetInstructionOpcode(value),
                              in_word(unit, LLVMGetOperand(value, 0), depth + 1),
                              in_word(unit, LLVMGetOperand(value, 1), depth + 1), "");
    if (depth < DEEPEST && is_operation(value, LLVMSelect) && alone)
        return LLVMBuildSelect(b, LLVMGetOperand(value, 0),
                               in_word(unit, LLVMGetOperand(value, 1), depth + 1),
                               in_word(unit, LLVMGetOperand(value, 2), depth + 1), "");
    return LLVMBuildZExt(b, value, type_i32(unit), "");
}

static LLVMValueRef word_of(struct unit *unit, LLVMValueRef value) {
    return LLVMTypeOf(value) == type_i32(unit) ? value : in_word(unit, value, 0);
}

/* ---- Integers in the lower bits of the float 2^23. */

#define UNITS_BITS 23
#define UNITS_EXPONENT 0x4b000000 /* the bits of 2^23 */

/* The float of the integer whose sum with `offset` is in the lower bits of 2^23. */
static LLVMValueRef subtract_units(struct unit *unit, LLVMValueRef units, int32_t offset) {
    LLVMTypeRef type = LLVMFloatTypeInContext(unit->context);
    LLVMValueRef sum = LLVMBuildBitCast(unit->builder, units, type, "");
    return LLVMBuildFSub(unit->builder, sum, LLVMConstReal(type, 0x1p23 + offset), "");
}

/* Whether other integers are taken from the same word, so that one instruction flips all their signs. */
static bool is_shared(const struct part *part) {
    LLVMUseRef use = LLVMGetFirstUse(part->word);
    return use && LLVMGetNextUse(use);
}

/* Its bytes, zeros or its sign above them, and a conversion of 32 bits. */
static LLVMValueRef convert_extended(struct unit *unit, const struct part *part, bool is_signed,
                                     LLVMTypeRef type) {
    unsigned last = part->first + part->bytes - 1, fill = is_signed ? 8 | last : 4;
    uint32_t selection = 0;
    for (unsigned i = 0; i < 4; i++) selection |= (i < part->bytes ? part->first + i : fill) << 4 * i;
    LLVMValueRef operands[3] = {word_of(unit, part->word), constant_i32(unit, 0),
                                constant_i32(unit, selection)};
    LLVMValueRef word = build_function(unit, "llvm.nvvm.prmt", operands, 3);
    return is_signed ? LLVMBuildSIToFP(unit->builder, word, type, "")
                     : LLVMBuildUIToFP(unit->builder, word, type, "");
}

/* Whether a part is better subtracted than converted. An H200's product of MLX's unsigned bytes with a vector
 * took 24.9 us with conversions and 25.8 us with subtractions; q8_0's of signed ones 26.7 and 25.9 us. */
static bool gains_by_units(const struct part *part, bool is_signed, int32_t added) {
    return is_signed ? is_shared(part) : added != 0;
}

/* A signed integer has its sign bit flipped, which adds half of the range; so has each other byte or half of
 * the word, since one flip serves them all. */
static LLVMValueRef convert_part(struct unit *unit, const struct part *part, bool is_signed, int32_t added) {
    LLVMValueRef word = word_of(unit, part->word);
    int32_t offset = (!is_signed ? 0 : part->bytes == 1 ? 0x80 : 0x8000) - added;
    uint32_t signs = part->bytes == 1 ? 0x80808080 : part->first == 1 ? 0x00800000 : 0x80008000;
    if (is_signed) word = LLVMBuildXor(unit->builder, word, constant_i32(unit, signs), "");
    uint32_t bytes = part->bytes == 1 ? part->first | 4 << 4 : part->first | (part->first + 1) << 4;
    LLVMValueRef operands[3] = {word, constant_i32(unit, UNITS_EXPONENT),
                                constant_i32(unit, bytes | 4 << 8 | 7 << 12)};
    return subtract_units(unit, build_function(unit, "llvm.nvvm.prmt", operands, 3), offset);
}

static bool is_used_once(LLVMValueRef value) {
    LLVMUseRef use = LLVMGetFirstUse(value);
    return use && !LLVMGetNextUse(use);
}

/* Whether the value is masked by a constant of at most 22 bits for its one use: then one instruction can mask
 * it and add other bits. */
static bool is_masked(LLVMValueRef value) {
    uint64_t mask;
    return is_operation(value, LLVMAnd) && is_used_once(value) &&
           is_constant_integer(LLVMGetOperand(value, 1), &mask) && mask < 1u << (UNITS_BITS - 1);
}

/* A masked value with the bits of 2^23. Of two operations, NVIDIA's assembler would not make one. */
static LLVMValueRef add_exponent(struct unit *unit, LLVMValueRef masked) {
    LLVMValueRef word = word_of(unit, LLVMGetOperand(masked, 0));
    char text[64];
    snprintf(text, sizeof text, "lop3.b32 $0, $1, 0x%llx, 0x%x, 0xea;",
             LLVMConstIntGetZExtValue(LLVMGetOperand(masked, 1)), UNITS_EXPONENT);
    return ptx_assembly(unit, text, "=r,r", type_i32(unit), &word, 1, false);
}

/* Integers that are small by their masks. */
static LLVMValueRef convert_masked(struct unit *unit, LLVMValueRef value, int32_t added) {
    LLVMBuilderRef b = unit->builder;
    if (is_masked(value)) return subtract_units(unit, add_exponent(unit, value), -added);
    if (!is_operation(value, LLVMOr) || !is_used_once(value)) return NULL;
    LLVMValueRef first = LLVMGetOperand(value, 0), second = LLVMGetOperand(value, 1);
    if (!is_masked(first) || !is_masked(second)) return NULL;
    uint32_t mask = (uint32_t)LLVMConstIntGetZExtValue(LLVMGetOperand(first, 1));
    LLVMValueRef rest =
        LLVMBuildAnd(b, word_of(unit, LLVMGetOperand(first, 0)), constant_i32(unit, mask), "");
    return subtract_units(unit, LLVMBuildOr(b, rest, add_exponent(unit, second), ""), -added);
}

/* ---- Conversions. */

static LLVMValueRef convert_loaded(struct unit *unit, LLVMValueRef load, bool is_signed, LLVMTypeRef type) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef i32 = type_i32(unit);
    return is_signed ? LLVMBuildSIToFP(b, LLVMBuildSExt(b, load, i32, ""), type, "")
                     : LLVMBuildUIToFP(b, LLVMBuildZExt(b, load, i32, ""), type, "");
}

/* The number that is added to another integer for one conversion, which *value becomes; 0: none. */
static int32_t take_sum_apart(LLVMValueRef *value) {
    LLVMValueRef sum = *value, number = is_operation(sum, LLVMAdd) ? LLVMGetOperand(sum, 1) : NULL;
    if (!number || !LLVMIsAConstantInt(number) || !is_used_once(sum)) return 0;
    int64_t added = LLVMConstIntGetSExtValue(number);
    if (added <= -(1 << (UNITS_BITS - 1)) || added >= 1 << (UNITS_BITS - 1)) return 0;
    *value = LLVMGetOperand(sum, 0);
    return (int32_t)added;
}

static LLVMValueRef convert_small(struct unit *unit, LLVMValueRef conversion) {
    struct part part;
    bool is_signed = LLVMIsASIToFPInst(conversion) != NULL;
    LLVMValueRef value = LLVMGetOperand(conversion, 0);
    LLVMTypeRef type = LLVMTypeOf(conversion), i32 = type_i32(unit);
    if (LLVMGetTypeKind(type) != LLVMFloatTypeKind) return NULL;
    int32_t added = is_signed && LLVMTypeOf(value) == i32 ? take_sum_apart(&value) : 0;
    if (added && (LLVMIsAZExtInst(value) || LLVMIsASExtInst(value))) {
        is_signed = LLVMIsASExtInst(value) != NULL;
        value = LLVMGetOperand(value, 0);
    }
    bool narrow = LLVMTypeOf(value) != i32;
    if (!find_part(unit, value, is_signed, &part)) return narrow ? NULL : convert_masked(unit, value, added);
    if (narrow && LLVMIsALoadInst(value)) /* it extends what it loads */
        return added ? NULL : convert_loaded(unit, value, is_signed, type);
    LLVMValueRef masked = narrow && !is_signed ? convert_masked(unit, value, added) : NULL;
    if (masked) return masked;
    if (gains_by_units(&part, is_signed, added)) return convert_part(unit, &part, is_signed, added);
    return added ? NULL : convert_extended(unit, &part, is_signed, type);
}

static LLVMValueRef converted(struct unit *unit, LLVMValueRef value) {
    const char *own = own_conversion(called_name(value));
    LLVMPositionBuilderBefore(unit->builder, value);
    if (own) {
        LLVMValueRef operand = LLVMGetOperand(value, 0);
        return build_function(unit, own, &operand, 1);
    }
    bool integer = LLVMIsAUIToFPInst(value) || LLVMIsASIToFPInst(value);
    return integer ? convert_small(unit, value) : NULL;
}

smelt_status pass_ptx_convert(struct unit *unit) {
    for (LLVMValueRef function = LLVMGetFirstFunction(unit->module); function;
         function = LLVMGetNextFunction(function))
        FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(value, block) {
        LLVMValueRef own = converted(unit, value);
        if (!own) continue;
        LLVMReplaceAllUsesWith(value, own);
        LLVMInstructionEraseFromParent(value);
    }
    return SMELT_OK;
}
