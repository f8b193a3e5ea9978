/* Builders for passes: PTX instructions, special registers. */
#include "compiler/ptx/ptx.h"

#include <stdio.h>

LLVMValueRef ptx_assembly(struct unit *unit, const char *text, const char *constraints, LLVMTypeRef result,
                          LLVMValueRef *arguments, unsigned count, bool effects) {
    LLVMValueRef call = build_assembly(unit, text, constraints, result, arguments, count, effects);
    if (!effects) return call;
    unsigned convergent = LLVMGetEnumAttributeKindForName("convergent", 10);
    LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(unit->context, convergent, 0));
    return call;
}

LLVMValueRef ptx_register(struct unit *unit, const char *name) {
    char full[80];
    snprintf(full, sizeof full, "llvm.nvvm.read.ptx.sreg.%s", name);
    return build_function(unit, full, NULL, 0);
}
