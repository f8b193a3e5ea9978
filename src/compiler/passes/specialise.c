/* What the code shape says about sizes becomes constants, before the optimiser runs: loops over them are then
 * unrolled, and positions in a row of known length are known.
 *
 * Requires: the module as declared. Maintains: what the code does in launches of that shape. */
#include "compiler/pass.h"

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

/* What an intrinsic's result lies below, in launches of this shape; 0: nothing is known. */
static uint64_t limit_of(struct unit *unit, const char *name) {
    static const struct {
        const char *name;
        uint32_t limit; /* 0: small grids' */
    } limits[] = {
        {"__smelt_position_in_threadgroup", 1024},
        {"__smelt_thread_index", 1024},
        {"__smelt_lane", 32},
        {"__smelt_simdgroup", 32},
        {"__smelt_simdgroup_count", 33},
        {"__smelt_threadgroup_size", 1025},
        {"__smelt_dispatch_threadgroup_size", 1025},
        {"__smelt_thread_position", 0},
        {"__smelt_threadgroup_position", 0},
        {"__smelt_grid_threads", 0},
        {"__smelt_grid_groups", 0},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (strcmp(name, limits[i].name) == 0)
            return limits[i].limit ? limits[i].limit : unit->request->shape.small ? INT32_MAX : 0;
    return 0;
}

/* Tells the optimiser: signed divisions of positions become unsigned ones, and widened indexes plain ones. */
static void limit_result(struct unit *unit, LLVMValueRef call) {
    uint64_t limit = limit_of(unit, called_name(call));
    if (!limit) return;
    LLVMMetadataRef ends[2] = {LLVMValueAsMetadata(constant_i32(unit, 0)),
                               LLVMValueAsMetadata(constant_i32(unit, (uint32_t)limit))};
    LLVMMetadataRef range = LLVMMDNodeInContext2(unit->context, ends, 2);
    LLVMSetMetadata(call, LLVMGetMDKindIDInContext(unit->context, "range", 5),
                    LLVMMetadataAsValue(unit->context, range));
}

smelt_status pass_specialise(struct unit *unit) {
    if (unit->engine == ENGINE_SCALAR) return SMELT_OK;
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        FOR_EACH_BLOCK(block, f)
        FOR_EACH_INSTRUCTION(instruction, block) {
            if (!LLVMIsACallInst(instruction)) continue;
            LLVMValueRef value = known(unit, instruction);
            if (!value) limit_result(unit, instruction);
            if (!value) continue;
            LLVMReplaceAllUsesWith(instruction, value);
            LLVMInstructionEraseFromParent(instruction);
        }
    }
    return SMELT_OK;
}
