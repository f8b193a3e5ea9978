/* Shifts of two words, llvm.fshl and llvm.fshr, become the GPU's funnel shift, one instruction. LLVM's code
 * generator uses it for rotations only, and expands a shift of two different words by a variable count into
 * four instructions.
 *
 * Requires: the module in its final form, before code generation. Maintains: what the code does. */
#include "compiler/ptx/ptx.h"

#include <string.h>

/* The instruction for a call. NULL: it is another call, or a rotation. */
static const char *instruction_for(LLVMValueRef call) {
    if (!LLVMIsACallInst(call) || LLVMGetOperand(call, 0) == LLVMGetOperand(call, 1)) return NULL;
    const char *name = called_name(call);
    if (strcmp(name, "llvm.fshr.i32") == 0) return "shf.r.wrap.b32 $0, $2, $1, $3;";
    return strcmp(name, "llvm.fshl.i32") == 0 ? "shf.l.wrap.b32 $0, $2, $1, $3;" : NULL;
}

smelt_status pass_ptx_funnel(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(call, block) {
        const char *text = instruction_for(call);
        if (!text) continue;
        LLVMValueRef operands[3] = {LLVMGetOperand(call, 0), LLVMGetOperand(call, 1),
                                    LLVMGetOperand(call, 2)};
        LLVMPositionBuilderBefore(unit->builder, call);
        LLVMReplaceAllUsesWith(call,
                               ptx_assembly(unit, text, "=r,r,r,r", type_i32(unit), operands, 3, false));
        LLVMInstructionEraseFromParent(call);
    }
    return SMELT_OK;
}
