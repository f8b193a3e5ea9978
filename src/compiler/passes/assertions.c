/* assert(condition) in a kernel is
 *     is_checked() && !condition ? assertion("condition") : …
 * (prelude/smelt_macros.h). is_checked becomes a constant of the engine. Engines that do not check lose the
 * condition, and all that was computed for it. The same holds for what fences tell the checker
 * (prelude/metal_atomic).
 *
 * Requires: pass_declare. Establishes: is_checked is called nowhere, assertion and checked_fence only where
 * the engine checks; check/accesses.c replaces them there. */
#include "compiler/engine.h"
#include "compiler/pass.h"

/* Whether there was a call of it. value NULL: its calls return nothing. */
static bool replace_calls(struct unit *unit, enum intrinsic intrinsic, LLVMValueRef value) {
    bool any = false;
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
        FOR_EACH_BLOCK(block, f)
    FOR_EACH_INSTRUCTION(call, block) {
        if (intrinsic_of(call) != intrinsic) continue;
        any = true;
        if (value) LLVMReplaceAllUsesWith(call, value);
        LLVMInstructionEraseFromParent(call);
    }
    return any;
}

smelt_status pass_assertions(struct unit *unit) {
    bool asserts = unit->target->asserts;
    LLVMValueRef answer = LLVMConstInt(LLVMInt1TypeInContext(unit->context), asserts, false);
    replace_calls(unit, INTRINSIC_IS_CHECKED, answer);
    if (asserts) return SMELT_OK;
    bool any = replace_calls(unit, INTRINSIC_ASSERTION, NULL);
    any |= replace_calls(unit, INTRINSIC_CHECKED_FENCE, NULL);
    if (!any) return SMELT_OK;
    return run_passes(unit, "function(simplifycfg),globaldce");
}
