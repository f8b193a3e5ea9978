/* Gives function constants (symbols smelt_constant_<index>) their values, so that the optimiser folds them.
 */
#include "ir/pass.h"

#include <stdlib.h>
#include <string.h>

#define PREFIX "smelt_constant_"

static const smelt_constant *find(const struct compile_request *request, long index) {
    for (const smelt_constant *c = request->constants; c && c->dtype != SMELT_NO_DTYPE; c++)
        if (c->index == index) return c;
    return NULL;
}

static LLVMValueRef value_as(LLVMTypeRef type, const smelt_constant *constant) {
    bool real = constant->dtype == SMELT_FLOAT16 || constant->dtype == SMELT_BFLOAT16 ||
                constant->dtype == SMELT_FLOAT32 || constant->dtype == SMELT_FLOAT64;
    switch (LLVMGetTypeKind(type)) {
    case LLVMIntegerTypeKind: {
        long long integer = real ? (long long)constant->value.real : constant->value.integer;
        if (constant->dtype == SMELT_BOOL) integer = integer != 0;
        return LLVMConstInt(type, (unsigned long long)integer, true);
    }
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind:
    case LLVMFloatTypeKind:
        return LLVMConstReal(type, real ? constant->value.real : (double)constant->value.integer);
    default:
        return NULL;
    }
}

/* is_function_constant_defined(x) → whether a value was given. */
static void fold_defined(struct unit *unit, LLVMValueRef global, bool defined) {
    LLVMValueRef query = LLVMGetNamedFunction(unit->module, "__smelt_constant_defined");
    if (!query) return;
    for (LLVMUseRef use = LLVMGetFirstUse(query), next; use; use = next) {
        next = LLVMGetNextUse(use);
        LLVMValueRef call = LLVMGetUser(use);
        if (!LLVMIsACallInst(call)) continue;
        LLVMValueRef argument = LLVMGetOperand(call, 0);
        while (LLVMIsAConstantExpr(argument) || LLVMIsAAddrSpaceCastInst(argument))
            argument = LLVMGetOperand(argument, 0);
        if (argument != global) continue;
        LLVMReplaceAllUsesWith(call, LLVMConstInt(LLVMTypeOf(call), defined, false));
        LLVMInstructionEraseFromParent(call);
    }
}

smelt_status pass_constants(struct unit *unit) {
    for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module), next; g; g = next) {
        next = LLVMGetNextGlobal(g);
        size_t length;
        const char *name = LLVMGetValueName2(g, &length);
        /* asm("…") names carry \1: no mangling. */
        if (*name == 1) name++;
        if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 || !LLVMIsDeclaration(g)) continue;
        char *end;
        long index = strtol(name + strlen(PREFIX), &end, 10);
        if (*end)
            return unit_fail(unit, SMELT_ERROR_UNSUPPORTED,
                             "function constant index '%s' is not a literal number", name + strlen(PREFIX));
        const smelt_constant *constant = find(unit->request, index);
        fold_defined(unit, g, constant != NULL);
        if (!constant) {
            if (!LLVMGetFirstUse(g)) continue;
            LLVMSetInitializer(g, LLVMGetUndef(LLVMGlobalGetValueType(g)));
        } else {
            LLVMValueRef value = value_as(LLVMGlobalGetValueType(g), constant);
            if (!value)
                return unit_fail(unit, SMELT_ERROR_UNSUPPORTED, "function constant %ld is not a scalar",
                                 index);
            LLVMSetInitializer(g, value);
        }
        LLVMSetGlobalConstant(g, true);
        LLVMSetLinkage(g, LLVMInternalLinkage);
    }
    return SMELT_OK;
}
