/* Floats become 32-bit integers, clamped to the range, with NaN as 0, by a GPU's own conversion. LLVM's
 * passes take the intrinsic of that instruction for a conversion without clamping, and reduce uint(float(s))
 * to a widening of s; so it is inserted after them.
 *
 * Requires: the module in its final form, before code generation. */
#include "compiler/ptx/ptx.h"

#include <string.h>

static const char *own_conversion(const char *name) {
    if (strcmp(name, "llvm.fptosi.sat.i32.f32") == 0) return "llvm.nvvm.f2i.rz";
    if (strcmp(name, "llvm.fptoui.sat.i32.f32") == 0) return "llvm.nvvm.f2ui.rz";
    return NULL;
}

smelt_status pass_ptx_convert(struct unit *unit) {
    for (LLVMValueRef function = LLVMGetFirstFunction(unit->module); function;
         function = LLVMGetNextFunction(function))
        FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(call, block) {
        const char *own = own_conversion(called_name(call));
        if (!own) continue;
        LLVMValueRef value = LLVMGetOperand(call, 0);
        LLVMPositionBuilderBefore(unit->builder, call);
        LLVMReplaceAllUsesWith(call, build_function(unit, own, &value, 1));
        LLVMInstructionEraseFromParent(call);
    }
    return SMELT_OK;
}
