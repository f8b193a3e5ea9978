/* Measures what a kernel becomes when its loops are unrolled as the source asks for, before LLVM optimises
 * all of that: of 256-bit arithmetic in limbs, a few thousand instructions become a hundred thousand, whose
 * optimisation takes 20 seconds. The loops are unrolled in a copy, which is then dropped.
 *
 * Requires: everything inlined, variables in registers. Maintains: everything. */
#include "compiler/budget.h"

/* Smaller kernels need not be copied: LLVM unrolls no loop to more than 16,384 instructions. */
#define FEW_INSTRUCTIONS 60

static smelt_status measure(struct unit *unit, uint64_t *size) {
    uint64_t blocks;
    LLVMModuleRef module = unit->module;
    unit->module = LLVMCloneModule(module);
    smelt_status status = run_passes(unit, "function(loop(loop-rotate,indvars,loop-unroll-full))");
    LLVMValueRef entry = LLVMGetNamedFunction(unit->module, ENTRY_NAME);
    *size = entry ? budget_count(entry, &blocks) : 0;
    LLVMDisposeModule(unit->module);
    unit->module = module;
    return status;
}

smelt_status pass_unrolled(struct unit *unit) {
    uint64_t blocks, size;
    if (unit->form != FORM_BEST || !unit->target->calls_runtime ||
        budget_count(unit->entry, &blocks) < FEW_INSTRUCTIONS)
        return SMELT_OK;
    TRY(measure(unit, &size));
    return budget_check(unit, BUDGET_UNROLLED, size);
}
