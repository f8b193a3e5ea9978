/* Threadgroup memory that parts of the prelude share: all calls of __smelt_staging get the same variable, of
 * the largest size that one asks for.
 *
 * Requires: inlined code; sizes are constants. Establishes: no call of __smelt_staging is left. */
#include "compiler/pass.h"

#define STAGING_ALIGNMENT 1024 /* of swizzled rows, for tensor copies and matrix descriptors */

LLVMValueRef staging_variable(struct unit *unit, const char *name, uint64_t bytes) {
    LLVMTypeRef type = LLVMArrayType2(LLVMInt8TypeInContext(unit->context), bytes);
    LLVMValueRef memory = LLVMAddGlobalInAddressSpace(unit->module, type, name, THREADGROUP_SPACE);
    LLVMSetInitializer(memory, LLVMGetUndef(type));
    LLVMSetLinkage(memory, LLVMInternalLinkage);
    LLVMSetAlignment(memory, STAGING_ALIGNMENT);
    return memory;
}

smelt_status pass_staging(struct unit *unit) {
    LLVMValueRef query = intrinsic_function(unit->module, INTRINSIC_STAGING);
    uint64_t most = 0, bytes;
    if (!query || !LLVMGetFirstUse(query)) return SMELT_OK;
    for (LLVMUseRef use = LLVMGetFirstUse(query); use; use = LLVMGetNextUse(use)) {
        if (!is_constant_integer(LLVMGetOperand(LLVMGetUser(use), 0), &bytes))
            return unit_fail(unit, SMELT_ERROR_INTERNAL, "the size of staging memory is not a constant");
        if (bytes > most) most = bytes;
    }
    LLVMValueRef memory = staging_variable(unit, INTRINSIC_PREFIX "staging_memory", most);
    for (LLVMUseRef use = LLVMGetFirstUse(query), next; use; use = next) {
        next = LLVMGetNextUse(use);
        LLVMValueRef call = LLVMGetUser(use);
        LLVMReplaceAllUsesWith(call, memory);
        LLVMInstructionEraseFromParent(call);
    }
    return SMELT_OK;
}
