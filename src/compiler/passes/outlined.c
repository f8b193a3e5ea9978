/* Kernels that would become too large by inlining, such as thousands of calls of precise functions. The SIMD
 * engine needs everything inlined and refuses them. In scalar code, functions without intrinsics and
 * threadgroup variables stay functions; all others are inlined as always.
 *
 * Requires: declare.c. Maintains: what the code does. */
#include "compiler/budget.h"
#include "compiler/analysis/callees.h"

static bool takes_pointer(LLVMValueRef function) {
    for (unsigned p = 0; p < LLVMCountParams(function); p++)
        if (LLVMGetTypeKind(LLVMTypeOf(LLVMGetParam(function, p))) == LLVMPointerTypeKind) return true;
    return false;
}

static bool has_threadgroup_variables(struct unit *unit) {
    for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module); g; g = LLVMGetNextGlobal(g))
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(g)) == THREADGROUP_SPACE) return true;
    return false;
}

/* If all calls pass the same threadgroup variable, the optimiser would use it instead of the parameter, but
 * only the entry can compute its address. It does not change functions that other modules may define, too. */
static void keep_parameters(LLVMValueRef function) {
    LLVMSetLinkage(function, LLVMLinkOnceODRLinkage);
    LLVMSetVisibility(function, LLVMHiddenVisibility);
}

static smelt_status outline(struct unit *unit, struct callees *callees) {
    TRY(callees_find(unit, callees));
    smelt_status status = budget_check(unit, BUDGET_INLINED, callees->first->instructions);
    if (status == SMELT_OK || unit->target->may_refuse) return status;
    unit->smaller = unit->refused = false;
    bool shared = has_threadgroup_variables(unit);
    for (struct callee *c = callees->first->next; c; c = c->next) {
        if (!c->plain || c->instructions <= FEW_INSTRUCTIONS) continue;
        callees_keep(unit, c->function);
        if (shared && takes_pointer(c->function)) keep_parameters(c->function);
    }
    return SMELT_OK;
}

smelt_status pass_outlined(struct unit *unit) {
    if (!unit->target->calls_runtime) return SMELT_OK;
    struct callees callees = {0};
    smelt_status status = outline(unit, &callees);
    arena_free(&callees.arena);
    return status;
}
