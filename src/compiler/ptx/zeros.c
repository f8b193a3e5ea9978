/* Zeros at the end of what kernels get from outside: it is aligned as far as the launch says. Buffers begin
 * at multiples of 16 where the shape is `aligned` (lower.c marks the loads of their addresses), threadgroup
 * memory always does. */
#include "compiler/ptx/ptx.h"
#include "compiler/analysis/zeros.h"

/* The promise of a load of a pointer (!align). */
static unsigned zeros_of_loaded(struct unit *unit, LLVMValueRef load) {
    LLVMValueRef node = LLVMGetMetadata(load, LLVMGetMDKindIDInContext(unit->context, "align", 5)), number;
    uint64_t align;
    if (!node || LLVMGetMDNodeNumOperands(node) != 1) return 0;
    LLVMGetMDNodeOperands(node, &number);
    return is_constant_integer(number, &align) ? zeros_of_number(align) : 0;
}

static unsigned zeros_of_source(void *context, LLVMValueRef value) {
    struct unit *unit = context;
    if (value == LLVMGetParam(unit->entry, 0)) return 4; /* code.c */
    if (LLVMIsAAllocaInst(value)) return zeros_of_number(LLVMGetAlignment(value));
    if (LLVMIsALoadInst(value)) return zeros_of_loaded(unit, value);
    if (!LLVMIsAGlobalVariable(value)) return 0;
    unsigned own = LLVMGetAlignment(value) ? zeros_of_number(LLVMGetAlignment(value)) : 0;
    bool shared = LLVMGetPointerAddressSpace(LLVMTypeOf(value)) == PTX_SHARED; /* lower.c */
    return shared && own < 4 ? 4 : own;
}

unsigned ptx_known_zeros(struct unit *unit, LLVMValueRef value) {
    struct zeros_rules rules = {.of_source = zeros_of_source, .context = unit, .addresses = unit->layout};
    return zeros_of_value(&rules, value);
}
