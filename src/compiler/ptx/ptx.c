/* The order of the passes from a thread's optimised code to PTX. */
#include "compiler/ptx/ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct pass ptx_passes[] = {
    PASS(NULL, measure_private_memory),
    PASS("ptx-inline", pass_ptx_inline),
    PASS("ptx-retarget", pass_ptx_retarget),
    PASS("ptx-addresses", pass_ptx_addresses),
    LLVM_PASSES("function(infer-address-spaces,instcombine<no-verify-fixpoint>,simplifycfg)"),
    PASS("ptx-memory-inlined", pass_ptx_memory),
    PASS("ptx-unroll", pass_ptx_unroll),
    PASS("ptx-division", pass_ptx_division),
    PASS("ptx-matrix", pass_ptx_matrix),
    PASS("ptx-simdgroup", pass_ptx_simdgroup),
    /* Ways that were copied may leave blocks behind that nothing reaches. */
    LLVM_PASSES("function(simplifycfg)"),
    PASS("ptx-lower", pass_ptx_lower),
    PASS(NULL, verify_module),
    LLVM_PASSES("function(sroa<modify-cfg>,infer-address-spaces,early-cse<memssa>,"
                "instcombine<no-verify-fixpoint>,simplifycfg,gvn,dse,adce,loop-unroll<O3>,"
                "instcombine<no-verify-fixpoint>,simplifycfg,early-cse<memssa>),globaldce"),
    PASS("ptx-pack", pass_ptx_pack),
    PASS("ptx-atomics", pass_ptx_atomics),
    LLVM_PASSES("function(adce)"),
    PASS("ptx-align", pass_ptx_align),
    PASS("ptx-convert", pass_ptx_convert),
    PASS("ptx-zero-signs", pass_ptx_zero_signs),
    PASS("ptx-code", pass_ptx_code),
    {0}};

LLVMValueRef ptx_assembly(struct unit *unit, const char *text, const char *constraints, LLVMTypeRef result,
                          LLVMValueRef *arguments, unsigned count, bool effects) {
    LLVMValueRef call = build_assembly(unit, text, constraints, result, arguments, count, effects);
    if (!effects) return call;
    unsigned convergent = LLVMGetEnumAttributeKindForName("convergent", 10);
    LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(unit->context, convergent, 0));
    return call;
}

LLVMValueRef ptx_register(struct unit *unit, const char *name) {
    char full[80];
    snprintf(full, sizeof full, "llvm.nvvm.read.ptx.sreg.%s", name);
    return build_function(unit, full, NULL, 0);
}
