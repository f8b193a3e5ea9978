/* Loads of vectors of bits become loads of vectors of bytes. LLVM loads bits where only the lowest bit of
 * each byte is used, as of bools, but its code generator for PTX has no instruction for that.
 *
 * Requires: LLVM's instcombine does not run again. Establishes: no vector of bits that fill whole bytes is
 * loaded only for elements at constant indices. */
#include "compiler/ptx/ptx.h"

static bool is_vector_of_bits(struct unit *unit, LLVMValueRef load) {
    LLVMTypeRef type = LLVMTypeOf(load);
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind &&
           LLVMGetElementType(type) == LLVMInt1TypeInContext(unit->context) &&
           LLVMGetVectorSize(type) % 8 == 0;
}

/* The bit that `part` takes from the vector. */
static LLVMValueRef bit_of(struct unit *unit, LLVMValueRef bytes, LLVMValueRef part) {
    LLVMBuilderRef b = unit->builder;
    uint64_t at = LLVMConstIntGetZExtValue(LLVMGetOperand(part, 1));
    LLVMPositionBuilderBefore(b, part);
    LLVMValueRef byte = LLVMBuildExtractElement(b, bytes, constant_i32(unit, (uint32_t)at / 8), "");
    if (at % 8) byte = LLVMBuildLShr(b, byte, LLVMConstInt(LLVMTypeOf(byte), at % 8, false), "");
    return LLVMBuildTrunc(b, byte, LLVMInt1TypeInContext(unit->context), "");
}

static void load_bytes(struct unit *unit, LLVMValueRef load) {
    unsigned count = LLVMGetVectorSize(LLVMTypeOf(load)) / 8;
    LLVMTypeRef type = LLVMVectorType(LLVMInt8TypeInContext(unit->context), count);
    LLVMPositionBuilderBefore(unit->builder, load);
    LLVMValueRef bytes = LLVMBuildLoad2(unit->builder, type, LLVMGetOperand(load, 0), "");
    LLVMSetAlignment(bytes, LLVMGetAlignment(load));
    for (LLVMUseRef use = LLVMGetFirstUse(load); use; use = LLVMGetNextUse(use))
        LLVMReplaceAllUsesWith(LLVMGetUser(use), bit_of(unit, bytes, LLVMGetUser(use)));
}

smelt_status pass_ptx_bits(struct unit *unit) {
    bool any = false;
    for (LLVMValueRef function = LLVMGetFirstFunction(unit->module); function;
         function = LLVMGetNextFunction(function))
        FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(load, block) {
        if (!LLVMIsALoadInst(load) || !is_vector_of_bits(unit, load) || !ptx_only_parts_are_used(load))
            continue;
        load_bytes(unit, load);
        any = true;
    }
    return any ? ptx_run_passes(unit, "function(adce)") : SMELT_OK;
}
