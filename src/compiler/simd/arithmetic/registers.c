/* Vector registers hold nothing when the code begins. An x86 conversion of an integer to a float keeps the
 * upper part of the register that it writes, so it waits for what was computed in that register before. LLVM
 * takes a register that has not been written for long, or clears one first, but it assumes that nothing was
 * written before the function began. The last call may have written there what still waits for memory: the
 * calls for one gang after another, each of which starts with such a conversion, would wait for each other's
 * loads. Empty inline assembly that claims to write all registers makes LLVM clear them where that matters.
 *
 * On an Intel Xeon with AVX-512, code for AVX2, bench/kernels/sample_grid.metal took 8 instead of 12.5 ms,
 * and without tests of accesses 7.5 instead of 8.3.
 *
 * Requires: the complete code. Maintains: what it does. */
#include "compiler/pass.h"

#include <stdio.h>

static bool converts(LLVMValueRef function) {
    FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(i, block) {
        if ((LLVMIsASIToFPInst(i) || LLVMIsAUIToFPInst(i)) &&
            LLVMGetTypeKind(LLVMTypeOf(i)) != LLVMVectorTypeKind)
            return true;
    }
    return false;
}

static void claim_registers(struct unit *unit, int count) {
    char list[512] = "";
    size_t length = 0;
    for (int i = 0; i < count; i++)
        length += (size_t)snprintf(list + length, sizeof list - length, "%s~{xmm%d}", i ? "," : "", i);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(unit->context), NULL, 0, false);
    LLVMValueRef code =
        LLVMGetInlineAsm(type, "", 0, list, length, true, false, LLVMInlineAsmDialectATT, false);
    LLVMPositionBuilderBefore(unit->builder, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(unit->entry)));
    LLVMBuildCall2(unit->builder, type, code, NULL, 0, "");
}

smelt_status pass_simd_registers(struct unit *unit) {
    const struct compile_request *request = unit->request;
    if (converts(unit->entry))
        claim_registers(unit, simd_vector_bits(request->cpu, request->features) == 512 ? 32 : 16);
    return SMELT_OK;
}
