/* Neighbouring narrow accesses of a thread become one of up to 16 bytes.
 *
 * Kernels load through pointers to floats, halfs or bytes; the address is often a multiple of 4, 8 or 16
 * bytes nevertheless. Where that can be proved (zeros.c), the access claims it, and LLVM joins it with its
 * neighbours.
 *
 * Requires: the module lowered and cleaned. Establishes: scalar accesses claim the alignment that their
 * addresses have. */
#include "compiler/ptx/ptx.h"

#define WIDEST_ZEROS 4 /* 16 bytes: more than that no access has */

static LLVMValueRef address_of(LLVMValueRef access) {
    return LLVMGetOperand(access, LLVMIsALoadInst(access) ? 0 : 1);
}

static LLVMTypeRef accessed_type(LLVMValueRef access) {
    return LLVMTypeOf(LLVMIsALoadInst(access) ? access : LLVMGetOperand(access, 0));
}

/* An access that may be part of a wider one. */
static bool is_narrow(struct unit *unit, LLVMValueRef access) {
    if (!LLVMIsALoadInst(access) && !LLVMIsAStoreInst(access)) return false;
    if (LLVMGetVolatile(access) || LLVMGetOrdering(access) != LLVMAtomicOrderingNotAtomic) return false;
    unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(address_of(access)));
    return (space == PTX_GLOBAL || space == PTX_SHARED) &&
           LLVMStoreSizeOfType(unit->layout, accessed_type(access)) <= 8;
}

/* Whether it now claims more than it is wide. */
static bool claim(struct unit *unit, LLVMValueRef access) {
    unsigned zeros = ptx_known_zeros(unit, address_of(access));
    unsigned bytes = 1u << (zeros < WIDEST_ZEROS ? zeros : WIDEST_ZEROS);
    if (bytes <= LLVMGetAlignment(access)) return false;
    LLVMSetAlignment(access, bytes);
    return bytes > LLVMStoreSizeOfType(unit->layout, accessed_type(access));
}

bool ptx_only_parts_are_used(LLVMValueRef vector) {
    for (LLVMUseRef use = LLVMGetFirstUse(vector); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (!LLVMIsAExtractElementInst(user) || !LLVMIsAConstantInt(LLVMGetOperand(user, 1))) return false;
    }
    return true;
}

/* Two bytes: LLVM would convert between a vector of them and an integer through memory. */
static bool load_pair(struct unit *unit, LLVMValueRef load) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef type = LLVMTypeOf(load), i16 = LLVMInt16TypeInContext(unit->context);
    LLVMTypeRef byte = LLVMInt8TypeInContext(unit->context);
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind || LLVMGetVectorSize(type) != 2 ||
        LLVMGetElementType(type) != byte || LLVMGetAlignment(load) < 2 ||
        !ptx_known_zeros(unit, LLVMGetOperand(load, 0)) || !ptx_only_parts_are_used(load))
        return false;
    LLVMPositionBuilderBefore(b, load);
    LLVMValueRef word = LLVMBuildLoad2(b, i16, LLVMGetOperand(load, 0), ""), parts[2];
    LLVMSetAlignment(word, LLVMGetAlignment(load));
    parts[0] = LLVMBuildTrunc(b, word, byte, "");
    parts[1] = LLVMBuildTrunc(b, LLVMBuildLShr(b, word, LLVMConstInt(i16, 8, false), ""), byte, "");
    /* What is then unused goes with the next pass. */
    for (LLVMUseRef use = LLVMGetFirstUse(load); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef part = LLVMGetUser(use);
        LLVMReplaceAllUsesWith(part, parts[LLVMConstIntGetZExtValue(LLVMGetOperand(part, 1)) & 1]);
    }
    return true;
}

smelt_status ptx_join_narrow(struct unit *unit) {
    bool any = false;
    TRY(ptx_join_accesses(unit));
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (LLVMIsALoadInst(instruction) && load_pair(unit, instruction)) any = true;
    }
    return any ? ptx_run_passes(unit, "function(adce)") : SMELT_OK;
}

smelt_status pass_ptx_neighbours(struct unit *unit) {
    bool any = false;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (is_narrow(unit, instruction) && claim(unit, instruction)) any = true;
    }
    if (!any) return SMELT_OK;
    TRY(ptx_join_narrow(unit));
    return ptx_run_passes(unit, unit->long_thread ? "function(early-cse)"
                                                  : "function(instcombine<no-verify-fixpoint>,early-cse)");
}
