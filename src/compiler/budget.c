#include "compiler/budget.h"
#include "compiler/flow.h"

static const struct {
    uint64_t limit;
    const char *measure;
} budgets[] = {
    [BUDGET_INLINED] = {150000, "instructions after inlining"},
    [BUDGET_CERTAIN] = {37500, "instructions of a thread, not optimised"},
    [BUDGET_UNROLLED] = {60000, "instructions after unrolling"},
    [BUDGET_COPIES] = {96000, "instructions after unrolling times registers per value"},
    [BUDGET_THREAD] = {48000, "instructions of a thread times registers per value"},
    [BUDGET_BLOCKS] = {4000, "branches of a thread times registers per value"},
    [BUDGET_GANG] = {42000, "instructions of vector code"},
    [BUDGET_WRITTEN] = {126000, "instructions of vector code as it is written"},
    [BUDGET_SLOTS] = {29000000, "values between branches of vector code times branches"},
    [BUDGET_GPU] = {40000, "instructions of a thread"},
    [BUDGET_GPU_CERTAIN] = {40000, "instructions of a thread, not optimised"},
};

static bool budget_fits(enum budget budget, uint64_t size) {
    return size <= budgets[budget].limit;
}

smelt_status budget_check(struct unit *unit, enum budget budget, uint64_t size) {
    if (budget_fits(budget, size)) return SMELT_OK;
    unit->smaller = unit->form == FORM_BEST;
    unit->refused = !unit->smaller;
    return unit_fail(unit, SMELT_ERROR_UNSUPPORTED, "it is too large for %s: %s: %llu, at most %llu",
                     budget >= BUDGET_GPU ? "a GPU with its loops unrolled" : "vector code",
                     budgets[budget].measure, (unsigned long long)size,
                     (unsigned long long)budgets[budget].limit);
}

static uint64_t registers_per_value(struct unit *unit) {
    int bits = simd_vector_bits(unit->request->cpu, unit->request->features);
    return (uint64_t)(SIMDGROUP_LANES / (bits / 32));
}

smelt_status budget_check_inlined(struct unit *unit, uint64_t instructions) {
    return budget_check(unit, unit->target->calls_runtime ? BUDGET_CERTAIN : BUDGET_GPU_CERTAIN,
                        instructions);
}

/* If its functions were optimised first, unrolled code shrinks by less than half: its budget is twice that of
 * a thread. */
static enum budget budget_of_unrolled(struct unit *unit, uint64_t *size) {
    if (!unit->simplified || !unit->unrolls || !unit->target->may_refuse) return BUDGET_UNROLLED;
    *size *= registers_per_value(unit);
    return BUDGET_COPIES;
}

bool budget_fits_unrolled(struct unit *unit, uint64_t instructions) {
    enum budget budget = budget_of_unrolled(unit, &instructions);
    return budget_fits(budget, instructions);
}

smelt_status budget_check_unrolled(struct unit *unit, uint64_t instructions) {
    enum budget budget = budget_of_unrolled(unit, &instructions);
    return budget_check(unit, budget, instructions);
}

smelt_status budget_check_thread(struct unit *unit) {
    uint64_t blocks, instructions = budget_count(unit->entry, &blocks) - unit->test_instructions;
    uint64_t registers = registers_per_value(unit);
    TRY(budget_check(unit, BUDGET_THREAD, instructions * registers));
    return budget_check(unit, BUDGET_BLOCKS, blocks * registers);
}

bool budget_is_near(struct unit *unit) {
    uint64_t blocks, instructions = budget_count(unit->entry, &blocks);
    return instructions * registers_per_value(unit) > budgets[BUDGET_GANG].limit / 5;
}

static bool has_deep_loops(struct unit *unit) {
    struct arena arena = {0};
    struct flow flow;
    int deepest = 0;
    if (flow_find(unit, unit->entry, &arena, &flow) != SMELT_OK) flow.loop_count = 0;
    for (int loop = 0; loop < flow.loop_count && deepest <= DEEP_LOOPS; loop++) {
        int depth = 1;
        for (int outer = flow.loops[loop].parent; outer >= 0; outer = flow.loops[outer].parent) depth++;
        if (depth > deepest) deepest = depth;
    }
    arena_free(&arena);
    return deepest > DEEP_LOOPS;
}

bool budget_is_long(struct unit *unit) {
    return budget_count_all(unit->module) > LONG_THREAD || has_deep_loops(unit);
}

uint64_t budget_count(LLVMValueRef function, uint64_t *blocks) {
    uint64_t count = 0;
    *blocks = 0;
    FOR_EACH_BLOCK(block, function) {
        ++*blocks;
        FOR_EACH_INSTRUCTION(i, block) count++;
    }
    return count;
}

uint64_t budget_count_all(LLVMModuleRef module) {
    uint64_t count = 0, blocks;
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        count += budget_count(f, &blocks);
    return count;
}
