/* Fused multiply-adds where the CPU has no instruction for them. The code generator would take each vector
 * apart and call fmaf for each lane: a product of simdgroup matrices would become thousands of calls.
 * Instead, one function of the runtime takes four lanes at a time (abi/vector_math.h). It gives the same
 * bits.
 *
 * Requires: the gang's code. Establishes: it has no llvm.fma of four floats unless the CPU has FMA. */
#include "compiler/simd/simd.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

static bool has_fma(const struct compile_request *request) {
    return simd_vector_bits(request->cpu, request->features) > 128;
}

static LLVMValueRef fma_of_4(struct unit *unit, LLVMTypeRef type) {
    static const char name[] = "smelt_runtime_fma_4";
    static const char *const promises[] = {"nounwind", "willreturn", "nosync", "nofree", "nocallback"};
    LLVMValueRef function = LLVMGetNamedFunction(unit->module, name);
    if (function) return function;
    function = LLVMAddFunction(unit->module, name, type);
    for (size_t i = 0; i < sizeof promises / sizeof *promises; i++) {
        unsigned kind = LLVMGetEnumAttributeKindForName(promises[i], strlen(promises[i]));
        LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                LLVMCreateEnumAttribute(unit->context, kind, 0));
    }
    unsigned memory = LLVMGetEnumAttributeKindForName("memory", 6);
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(unit->context, memory, 0 /* none */));
    return function;
}

smelt_status pass_simd_fused(struct unit *unit) {
    if (has_fma(unit->request)) return SMELT_OK;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        if (!LLVMIsACallInst(i) || strcmp(called_name(i), "llvm.fma.v4f32") != 0) continue;
        LLVMTypeRef type = LLVMGetCalledFunctionType(i);
        LLVMValueRef arguments[3];
        for (unsigned o = 0; o < 3; o++) arguments[o] = LLVMGetOperand(i, o);
        LLVMPositionBuilderBefore(unit->builder, i);
        LLVMSetCurrentDebugLocation2(unit->builder, LLVMInstructionGetDebugLoc(i));
        LLVMValueRef call = LLVMBuildCall2(unit->builder, type, fma_of_4(unit, type), arguments, 3, "");
        LLVMReplaceAllUsesWith(i, call);
        LLVMInstructionEraseFromParent(i);
    }
    LLVMSetCurrentDebugLocation2(unit->builder, NULL);
    return SMELT_OK;
}
