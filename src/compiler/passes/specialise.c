/* What the engine and the code shape fix becomes constant before the optimiser runs. Sizes: loops over them
 * are unrolled, and positions in a row of known length are known. The GPU's target: code for other targets is
 * removed.
 *
 * Requires: the module as declared. Maintains: what the code does in launches of that shape. */
#include "abi/simdgroup.h"
#include "compiler/pass.h"

#include <stdlib.h>
#include <string.h>

/* The constant result of a call in launches of this shape, or NULL. */
static LLVMValueRef known(struct unit *unit, LLVMValueRef call) {
    const struct code_shape *shape = &unit->request->shape;
    /* Codes for known sizes run full groups only, unless they are masked. */
    enum intrinsic intrinsic = intrinsic_of(call);
    uint64_t d;
    if (intrinsic == INTRINSIC_POSITION_IN_THREADGROUP) {
        bool point = is_constant_integer(LLVMGetOperand(call, 0), &d) && d < 3 && shape->size[d] == 1;
        return point ? constant_i32(unit, 0) : NULL;
    }
    if (intrinsic == INTRINSIC_SIMDGROUP_COUNT) {
        uint32_t threads = shape->size[0] * shape->size[1] * shape->size[2];
        return threads && !shape->masked ? constant_i32(unit, (threads + 31) / 32) : NULL;
    }
    if (intrinsic != INTRINSIC_DISPATCH_THREADGROUP_SIZE &&
        (shape->masked || intrinsic != INTRINSIC_THREADGROUP_SIZE))
        return NULL;
    if (!is_constant_integer(LLVMGetOperand(call, 0), &d) || d >= 3 || !shape->size[d]) return NULL;
    return constant_i32(unit, shape->size[d]);
}

/* A position's limit where the size of the threadgroup is known and all lanes of its simdgroups hold threads;
 * else 0. */
static uint64_t limit_by_size(struct unit *unit, LLVMValueRef call, enum intrinsic intrinsic) {
    const struct code_shape *shape = &unit->request->shape;
    uint64_t threads = (uint64_t)shape->size[0] * shape->size[1] * shape->size[2], d;
    if (shape->masked || !threads || threads % SIMDGROUP_LANES) return 0;
    if (intrinsic == INTRINSIC_THREAD_INDEX) return threads;
    if (intrinsic == INTRINSIC_SIMDGROUP) return threads / SIMDGROUP_LANES;
    bool position = intrinsic == INTRINSIC_POSITION_IN_THREADGROUP;
    return position && is_constant_integer(LLVMGetOperand(call, 0), &d) && d < 3 ? shape->size[d] : 0;
}

/* An exclusive upper limit of an intrinsic's result in launches of this shape; 0: none is known. */
static uint64_t limit_of(struct unit *unit, LLVMValueRef call, enum intrinsic intrinsic) {
    static const struct {
        enum intrinsic intrinsic;
        uint32_t limit; /* 0: the limit for small grids */
    } limits[] = {
        {INTRINSIC_POSITION_IN_THREADGROUP, 1024},
        {INTRINSIC_THREAD_INDEX, 1024},
        {INTRINSIC_LANE, 32},
        {INTRINSIC_SIMDGROUP, 32},
        {INTRINSIC_SIMDGROUP_COUNT, 33},
        {INTRINSIC_THREADGROUP_SIZE, 1025},
        {INTRINSIC_DISPATCH_THREADGROUP_SIZE, 1025},
        {INTRINSIC_THREAD_POSITION, 0},
        {INTRINSIC_THREADGROUP_POSITION, 0},
        {INTRINSIC_GRID_THREADS, 0},
        {INTRINSIC_GRID_GROUPS, 0},
    };
    uint64_t limit = limit_by_size(unit, call, intrinsic);
    if (limit) return limit;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (intrinsic == limits[i].intrinsic)
            return limits[i].limit ? limits[i].limit : unit->request->shape.small ? INT32_MAX : 0;
    return 0;
}

/* With it the optimiser turns signed divisions of positions into unsigned ones and simplifies widened
 * indexes. */
void specialise_limit(struct unit *unit, LLVMValueRef call) {
    uint64_t limit = limit_of(unit, call, intrinsic_of(call));
    if (!limit) return;
    LLVMMetadataRef ends[2] = {LLVMValueAsMetadata(constant_i32(unit, 0)),
                               LLVMValueAsMetadata(constant_i32(unit, (uint32_t)limit))};
    LLVMMetadataRef range = LLVMMDNodeInContext2(unit->context, ends, 2);
    LLVMSetMetadata(call, LLVMGetMDKindIDInContext(unit->context, "range", 5),
                    LLVMMetadataAsValue(unit->context, range));
}

/* Of "sm_90a": 901; of a CPU's: 0. */
static uint32_t gpu_target(const struct unit *unit) {
    const char *cpu = unit->request->cpu;
    if (!cpu || strncmp(cpu, "sm_", 3) != 0) return 0;
    char *end;
    uint32_t capability = (uint32_t)strtoul(cpu + 3, &end, 10);
    return capability * 10 + (*end == 'a');
}

/* Every simdgroup of every launch of this shape has all its threads. */
static bool has_whole_simdgroups(const struct code_shape *shape) {
    uint32_t threads = shape->size[0] * shape->size[1] * shape->size[2];
    return threads && threads % SIMDGROUP_LANES == 0 && !shape->masked;
}

static bool fold_query(struct unit *unit, enum intrinsic intrinsic, LLVMValueRef value) {
    LLVMValueRef query = intrinsic_function(unit->module, intrinsic);
    if (!query || !LLVMGetFirstUse(query)) return false;
    for (LLVMUseRef use = LLVMGetFirstUse(query), next; use; use = next) {
        next = LLVMGetNextUse(use);
        LLVMValueRef call = LLVMGetUser(use);
        if (!LLVMIsACallInst(call)) continue;
        LLVMReplaceAllUsesWith(call, value);
        LLVMInstructionEraseFromParent(call);
    }
    return true;
}

/* Code for other targets must not reach the passes that count, or look for barriers. */
static smelt_status fold_target(struct unit *unit) {
    uint32_t target = gpu_target(unit);
    bool whole = target && has_whole_simdgroups(&unit->request->shape);
    bool folded = fold_query(unit, INTRINSIC_GPU_TARGET, constant_i32(unit, target));
    folded |= fold_query(unit, INTRINSIC_WHOLE_WARPS, constant_i32(unit, whole));
    return folded ? run_passes(unit, "function(early-cse,simplifycfg),globaldce") : SMELT_OK;
}

smelt_status pass_specialise(struct unit *unit) {
    TRY(fold_target(unit));
    if (!unit->target->specialises) return SMELT_OK;
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        FOR_EACH_BLOCK(block, f)
        FOR_EACH_INSTRUCTION(instruction, block) {
            if (!LLVMIsACallInst(instruction)) continue;
            LLVMValueRef value = known(unit, instruction);
            if (!value) specialise_limit(unit, instruction);
            if (!value) continue;
            LLVMReplaceAllUsesWith(instruction, value);
            LLVMInstructionEraseFromParent(instruction);
        }
    }
    return SMELT_OK;
}
