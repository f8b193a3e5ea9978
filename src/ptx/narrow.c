/* What NVIDIA's assembler (12.9 and 13.0 seen) gets wrong of 16-bit integers, avoided: they are computed in
 * 32 bits.
 *
 * Of max(x, 1) == 1 and the like it asks the instruction that computes the maximum which of the two it took,
 * and has the answer the wrong way round; of -x it forgets that -(-32768) is -32768 when a multiplication
 * widens it.
 *
 * Requires: the module in its last form, before code is made. Maintains: what the code does. */
#include "ptx/ptx.h"

#include <string.h>

struct extreme {
    const char *name; /* of the intrinsic, without its type */
    bool is_signed;
};

static const struct extreme extremes[] = {
    {"llvm.umax", false}, {"llvm.umin", false}, {"llvm.smax", true}, {"llvm.smin", true}};

static bool is_narrow(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) > 1 &&
           LLVMGetIntTypeWidth(type) <= 16;
}

static LLVMValueRef widen(struct unit *unit, LLVMValueRef value, bool is_signed) {
    return is_signed ? LLVMBuildSExt(unit->builder, value, type_i32(unit), "")
                     : LLVMBuildZExt(unit->builder, value, type_i32(unit), "");
}

static LLVMValueRef wide_extreme(struct unit *unit, LLVMValueRef call) {
    const char *name = called_name(call);
    for (size_t i = 0; i < sizeof extremes / sizeof *extremes; i++) {
        const struct extreme *e = &extremes[i];
        size_t length = strlen(e->name);
        if (strncmp(name, e->name, length) != 0 || name[length] != '.') continue;
        LLVMValueRef operands[2] = {widen(unit, LLVMGetOperand(call, 0), e->is_signed),
                                    widen(unit, LLVMGetOperand(call, 1), e->is_signed)};
        return build_intrinsic(unit, e->name, type_i32(unit), operands, 2);
    }
    return NULL;
}

/* LLVM would make a 16-bit negation of a 32-bit one whose upper half is thrown away, if it saw it. */
static LLVMValueRef wide_negation(struct unit *unit, LLVMValueRef instruction) {
    uint64_t zero;
    bool negates = LLVMGetInstructionOpcode(instruction) == LLVMSub &&
                   is_constant_integer(LLVMGetOperand(instruction, 0), &zero) && zero == 0;
    if (!negates) return NULL;
    LLVMValueRef operand = widen(unit, LLVMGetOperand(instruction, 1), false);
    return ptx_assembly(unit, "neg.s32 $0, $1;", "=r,r", type_i32(unit), &operand, 1, false);
}

smelt_status pass_ptx_narrow(struct unit *unit) {
    for (LLVMValueRef function = LLVMGetFirstFunction(unit->module); function;
         function = LLVMGetNextFunction(function))
        FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (!is_narrow(instruction)) continue;
        LLVMPositionBuilderBefore(unit->builder, instruction);
        LLVMValueRef wide = wide_extreme(unit, instruction);
        if (!wide) wide = wide_negation(unit, instruction);
        if (!wide) continue;
        LLVMReplaceAllUsesWith(instruction, LLVMBuildTrunc(unit->builder, wide, LLVMTypeOf(instruction), ""));
        LLVMInstructionEraseFromParent(instruction);
    }
    return SMELT_OK;
}
