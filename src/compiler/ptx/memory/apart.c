/* Whether two accesses can touch the same memory, by what their addresses are based on. */
#include "compiler/analysis/base.h"
#include "compiler/ptx/ptx.h"

static unsigned space_of(LLVMValueRef address) {
    return LLVMGetPointerAddressSpace(LLVMTypeOf(address));
}

bool ptx_are_apart(struct unit *unit, LLVMValueRef loaded, LLVMValueRef stored) {
    struct base a = base_of(unit, loaded), b = base_of(unit, stored);
    unsigned from = space_of(loaded), to = space_of(stored);
    if (from && to && from != to) return true;
    if (a.kind == BASE_CONSTANT) return true;
    if (a.kind == BASE_PRIVATE || b.kind == BASE_PRIVATE)
        return a.kind != BASE_UNKNOWN && b.kind != BASE_UNKNOWN && a.variable != b.variable;
    return base_are_distinct(unit, &a, &b);
}
