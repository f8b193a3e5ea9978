/* Floats as 32-bit integers, cut to the range, NaN as 0: a GPU's own conversion is just that. LLVM's passes
 * take the intrinsic of that instruction for a conversion that knows no range, and of uint(float(s)) keep
 * only the widening of s; so it is put in when they have ended.
 *
 * Requires: the module in its last form, before code is made. */
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
