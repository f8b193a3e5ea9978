/* In the plain form, loops are not unrolled because the source asks for it (`#pragma unroll`): the notes on
 * their branches are removed, and LLVM decides by its own limits.
 *
 * Requires: the module as clang wrote it. */
#include "compiler/pass.h"

static void forget_requests(struct unit *unit, LLVMValueRef function) {
    unsigned kind = LLVMGetMDKindIDInContext(unit->context, "llvm.loop", 9);
    FOR_EACH_BLOCK(block, function) {
        LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
        if (end) LLVMSetMetadata(end, kind, NULL);
    }
}

smelt_status pass_rolled(struct unit *unit) {
    if (unit->form == FORM_BEST) return SMELT_OK;
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
        forget_requests(unit, f);
    return SMELT_OK;
}
