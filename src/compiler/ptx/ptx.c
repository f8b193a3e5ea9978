/* The order of the passes from a thread's optimised code to PTX. */
#include "compiler/ptx/ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

smelt_status pass_ptx(struct unit *unit) {
    unit->result->image.engine = unit->engine;
    TRY(measure_private_memory(unit));
    TRY(pass_ptx_inline(unit));
    TRY(pass_ptx_retarget(unit));
    TRY(pass_ptx_addresses(unit));
    TRY(run_ptx_passes(unit, "function(infer-address-spaces,instcombine<no-verify-fixpoint>,simplifycfg)"));
    TRY(pass_ptx_memory(unit));
    TRY(pass_ptx_unroll(unit));
    TRY(pass_ptx_division(unit));
    TRY(pass_ptx_matrix(unit));
    release_held(unit, unit->entry);
    TRY(pass_ptx_simdgroup(unit));
    /* Ways that were copied may leave blocks behind that nothing reaches. */
    TRY(run_ptx_passes(unit, "function(simplifycfg)"));
    TRY(pass_ptx_lower(unit));
    TRY(verify_module(unit));
    TRY(run_ptx_passes(unit, "function(sroa<modify-cfg>,infer-address-spaces,early-cse<memssa>,"
                             "instcombine<no-verify-fixpoint>,simplifycfg,gvn,dse,adce,loop-unroll<O3>,"
                             "instcombine<no-verify-fixpoint>,simplifycfg,early-cse<memssa>),globaldce"));
    TRY(pass_ptx_pack(unit));
    TRY(pass_ptx_atomics(unit));
    TRY(run_ptx_passes(unit, "function(adce)"));
    TRY(pass_ptx_align(unit));
    TRY(pass_ptx_convert(unit));
    TRY(pass_ptx_zero_signs(unit));
    return pass_ptx_code(unit);
}

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
