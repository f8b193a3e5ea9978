#include "compiler/budget.h"
#include "compiler/analysis/flow.h"

#include <stdio.h>
#include <stdlib.h>

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

smelt_status budget_reduce(struct unit *unit, const char *less, const char *measure, uint64_t size,
                           uint64_t limit) {
    char *before = unit->result->image.reduced, *after = NULL;
    int length = asprintf(&after, "%s%s%s: %s: %llu, at most %llu", before ? before : "", before ? "; " : "",
                          less, measure, (unsigned long long)size, (unsigned long long)limit);
    if (length < 0) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for a note of its size");
    unit->result->image.reduced = after;
    free(before);
    return SMELT_OK;
}

/* The most loops within one another. */
static uint64_t depth_of_loops(struct unit *unit) {
    struct arena arena = {0};
    struct flow flow;
    int deepest = 0;
    if (flow_find(unit, unit->entry, &arena, &flow) != SMELT_OK) flow.loop_count = 0;
    for (int loop = 0; loop < flow.loop_count; loop++) {
        int depth = 1;
        for (int outer = flow.loops[loop].parent; outer >= 0; outer = flow.loops[outer].parent) depth++;
        if (depth > deepest) deepest = depth;
    }
    arena_free(&arena);
    return (uint64_t)deepest;
}

smelt_status budget_find_long(struct unit *unit, bool *is) {
    static const char less[] = "fewer passes optimise it";
    uint64_t instructions = budget_count_all(unit->module), depth = depth_of_loops(unit), open = 0;
    if (unit->target->calls_runtime) TRY(unrolled_count_open(unit, &open));
    *is = instructions > LONG_THREAD || depth > DEEP_LOOPS || open > MANY_OPEN_LOOPS;
    if (instructions > LONG_THREAD)
        TRY(budget_reduce(unit, less, "instructions of a thread, not optimised", instructions, LONG_THREAD));
    else if (depth > DEEP_LOOPS)
        TRY(budget_reduce(unit, less, "loops within one another", depth, DEEP_LOOPS));
    else if (open > MANY_OPEN_LOOPS)
        TRY(budget_reduce(unit, less, "loops of unknown rounds", open, MANY_OPEN_LOOPS));
    return SMELT_OK;
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
