/* Floats become 32-bit integers, clamped to the range, with NaN as 0, by a GPU's own conversion. LLVM's
 * passes take the intrinsic of that instruction for a conversion without clamping, and reduce uint(float(s))
 * to a widening of s; so it is inserted after them.
 *
 * Integers of 8 and 16 bits are extended to 32 bits before they become floats: per clock and multiprocessor,
 * an H200 converts 16 narrow integers, but 62 of 32 bits. LLVM's passes and NVIDIA's assembler undo ordinary
 * extensions, so an instruction that permutes bytes extends them.
 *
 * Requires: the module in its final form, before code generation. */
#include "compiler/ptx/ptx.h"

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
    if (bits % 8 || part->first + bits / 8 + part->bytes > 4) return;
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

/* Finds the bytes of an integer that is converted; false: it is converted as it is. */
static bool find_part(struct unit *unit, LLVMValueRef conversion, struct part *part) {
    LLVMValueRef value = LLVMGetOperand(conversion, 0);
    LLVMTypeRef type = LLVMTypeOf(value), i32 = type_i32(unit);
    if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind) return false;
    if (type == i32) return LLVMIsAUIToFPInst(conversion) && find_masked(value, part);
    unsigned width = LLVMGetIntTypeWidth(type);
    if (width != 8 && width != 16) return false;
    bool of_word = is_operation(value, LLVMTrunc) && LLVMTypeOf(LLVMGetOperand(value, 0)) == i32;
    *part = (struct part){of_word ? LLVMGetOperand(value, 0) : value, 0, width / 8};
    if (of_word) skip_shift(part);
    return true;
}

/* The selector of a permutation: the part's bytes, and zeros or the part's sign above them. */
static uint32_t selection_of(const struct part *part, bool is_signed) {
    unsigned last = part->first + part->bytes - 1, fill = is_signed ? 8 | last : 4;
    uint32_t selection = 0;
    for (unsigned i = 0; i < 4; i++) selection |= (i < part->bytes ? part->first + i : fill) << 4 * i;
    return selection;
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

static LLVMValueRef extend(struct unit *unit, const struct part *part, bool is_signed) {
    LLVMTypeRef i32 = type_i32(unit);
    if (LLVMIsALoadInst(part->word) && LLVMTypeOf(part->word) != i32) /* it extends what it loads */
        return is_signed ? LLVMBuildSExt(unit->builder, part->word, i32, "")
                         : LLVMBuildZExt(unit->builder, part->word, i32, "");
    LLVMValueRef word = LLVMTypeOf(part->word) == i32 ? part->word : in_word(unit, part->word, 0);
    LLVMValueRef operands[3] = {word, constant_i32(unit, 0),
                                constant_i32(unit, selection_of(part, is_signed))};
    return build_function(unit, "llvm.nvvm.prmt", operands, 3);
}

static LLVMValueRef convert_by_word(struct unit *unit, LLVMValueRef conversion) {
    struct part part;
    bool is_signed = LLVMIsASIToFPInst(conversion) != NULL;
    if (LLVMGetTypeKind(LLVMTypeOf(conversion)) != LLVMFloatTypeKind) return NULL;
    if (!find_part(unit, conversion, &part)) return NULL;
    LLVMValueRef word = extend(unit, &part, is_signed);
    return is_signed ? LLVMBuildSIToFP(unit->builder, word, LLVMTypeOf(conversion), "")
                     : LLVMBuildUIToFP(unit->builder, word, LLVMTypeOf(conversion), "");
}

static LLVMValueRef converted(struct unit *unit, LLVMValueRef value) {
    const char *own = own_conversion(called_name(value));
    LLVMPositionBuilderBefore(unit->builder, value);
    if (own) {
        LLVMValueRef operand = LLVMGetOperand(value, 0);
        return build_function(unit, own, &operand, 1);
    }
    bool integer = LLVMIsAUIToFPInst(value) || LLVMIsASIToFPInst(value);
    return integer ? convert_by_word(unit, value) : NULL;
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
