/* Removes calls that only advise a compiler or a processor. The engines have no code for them, and loops with
 * unknown calls are not vectorised. What replaces each:
 *
 *   __builtin_prefetch                         nothing: the optimiser moves no load across it
 *   __builtin_annotation, annotate(…)          the value itself
 *   __builtin_canonicalize                     the value itself: all floats are canonical
 *   __builtin_expect, …_with_probability       weights of branches
 *
 * Requires: nothing. Establishes: none of these is called. */
#include "compiler/pass.h"

#include <string.h>

static bool starts_with(LLVMValueRef function, const char *prefix) {
    size_t length;
    const char *name = LLVMGetValueName2(function, &length);
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static void remove_calls(LLVMValueRef function) {
    for (LLVMUseRef use; (use = LLVMGetFirstUse(function));) {
        LLVMValueRef call = LLVMGetUser(use);
        if (LLVMGetTypeKind(LLVMTypeOf(call)) != LLVMVoidTypeKind)
            LLVMReplaceAllUsesWith(call, LLVMGetOperand(call, 0));
        LLVMInstructionEraseFromParent(call);
    }
}

smelt_status pass_hints(struct unit *unit) {
    static const char *const removed[] = {"llvm.prefetch.", "llvm.annotation.", "llvm.ptr.annotation.",
                                          "llvm.var.annotation", "llvm.canonicalize."};
    bool expects = false;
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        if (!LLVMIsDeclaration(f)) continue;
        expects |= starts_with(f, "llvm.expect.");
        for (size_t i = 0; i < sizeof removed / sizeof *removed; i++)
            if (starts_with(f, removed[i])) remove_calls(f);
    }
    return expects ? run_passes(unit, "function(lower-expect)") : SMELT_OK;
}
