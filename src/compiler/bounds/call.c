/* Calls of the intrinsics that stand for tests until an engine lowers them. */
#include "compiler/bounds/bounds.h"

#include <stdio.h>

LLVMValueRef bounds_intrinsic(struct bounds *b, enum intrinsic intrinsic, LLVMTypeRef result,
                              LLVMValueRef *arguments, unsigned count) {
    LLVMTypeRef types[INSIDE_OPERANDS];
    char name[64];
    for (unsigned i = 0; i < count; i++) types[i] = LLVMTypeOf(arguments[i]);
    bool family =
        intrinsic == INTRINSIC_INSIDE || intrinsic == INTRINSIC_LEAVES || intrinsic == INTRINSIC_ALIGNED;
    const char *own = intrinsic_traits(intrinsic)->name;
    if (family)
        snprintf(name, sizeof name, "%s%u", own, LLVMGetPointerAddressSpace(types[0]));
    else
        snprintf(name, sizeof name, "%s", own);
    LLVMTypeRef type = LLVMFunctionType(result, types, count, false);
    LLVMValueRef function = LLVMGetNamedFunction(b->unit->module, name);
    if (!function) {
        function = LLVMAddFunction(b->unit->module, name, type);
        if (intrinsic_traits(intrinsic)->purity == PURE) declare_pure(b->unit, function);
    }
    return LLVMBuildCall2(b->unit->builder, type, function, arguments, count, "");
}
