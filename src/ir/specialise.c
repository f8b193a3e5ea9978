/* What the code shape says about sizes becomes constants, before the optimiser runs: loops over them are then
 * unrolled, and positions in a row of known length are known.
 *
 * Requires: the module as declared. Maintains: what the code does in launches of that shape. */
#include "ir/pass.h"

#include <string.h>

static bool is_one_of(const char *name, const char *const *names) {
    for (; *names; names++)
        if (strcmp(name, *names) == 0) return true;
    return false;
}

/* The constant a call has in launches of this shape, or NULL. */
static LLVMValueRef known(struct unit *unit, LLVMValueRef call) {
    const struct code_shape *shape = &unit->request->shape;
    /* Codes for known sizes run full groups only, unless they are masked. */
    static const char *const sizes[] = {"__smelt_dispatch_threadgroup_size", NULL};
    static const char *const full_sizes[] = {"__smelt_dispatch_threadgroup_size", "__smelt_threadgroup_size",
                                             NULL};
    const char *name = called_name(call);
    uint64_t d;
    if (strcmp(name, "__smelt_position_in_threadgroup") == 0) {
        bool point = is_constant_integer(LLVMGetOperand(call, 0), &d) && d < 3 && shape->size[d] == 1;
        return point ? constant_i32(unit, 0) : NULL;
    }
    if (strcmp(name, "__smelt_simdgroup_count") == 0) {
        uint32_t threads = shape->size[0] * shape->size[1] * shape->size[2];
        return threads && !shape->masked ? constant_i32(unit, (threads + 31) / 32) : NULL;
    }
    if (!is_one_of(name, shape->masked ? sizes : full_sizes)) return NULL;
    if (!is_constant_integer(LLVMGetOperand(call, 0), &d) || d >= 3 || !shape->size[d]) return NULL;
    return constant_i32(unit, shape->size[d]);
}

smelt_status pass_specialise(struct unit *unit) {
    if (unit->engine != ENGINE_SIMD) return SMELT_OK;
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        FOR_EACH_BLOCK(block, f)
        FOR_EACH_INSTRUCTION(instruction, block) {
            if (!LLVMIsACallInst(instruction)) continue;
            LLVMValueRef value = known(unit, instruction);
            if (!value) continue;
            LLVMReplaceAllUsesWith(instruction, value);
            LLVMInstructionEraseFromParent(instruction);
        }
    }
    return SMELT_OK;
}
