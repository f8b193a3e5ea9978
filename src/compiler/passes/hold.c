/* Which lanes perform a simdgroup function together depends on the loops around it. leave.c and part.c have
 * determined these loops, and they must not change. In `if (c) s = simd_sum(x); if (c) return;` the sum
 * belongs to the rounds of the loop around it. LLVM, on CPUs more often than on GPUs, sees that threads that
 * execute the sum then return: it would move the sum behind the loop, for all threads that ever leave.
 *
 * Therefore the condition of such an exit is hidden from LLVM: it passes through a function with no known
 * properties, until no remaining pass can redirect branches. This has a cost only if some lanes perform a
 * simdgroup function in some rounds and some lanes leave before others.
 *
 * Requires: functions inlined. Maintains: all else. */
#include "compiler/pass.h"
#include "compiler/analysis/phases.h"
#include "compiler/analysis/uniform.h"

#include <stdio.h>
#include <string.h>

static bool brings_lanes_together(LLVMBasicBlockRef block) {
    FOR_EACH_INSTRUCTION(call, block) {
        if (intrinsic_is_of_simdgroup(intrinsic_of(call))) return true;
    }
    return false;
}

/* ---- Whether some lanes of a round perform what others do not. */

/* By block of the loop: */
struct deciding {
    const struct flow *flow;
    int loop;
    bool *listed; /* branching here decides which threads perform a simdgroup function */
    bool *misses; /* from here a round may end without reaching a certain block */
    bool *comes;  /* one of its successors must lead to that block, */
    bool *passes; /* and one may miss it */
    int *blocks, count;
};

static void add(struct deciding *d, int block) {
    if (!d->listed[block]) d->blocks[d->count++] = block;
    d->listed[block] = true;
}

static bool is_back_edge(const struct deciding *d, int from, int to) {
    return to == d->flow->loops[d->loop].header && flow_block_within(d->flow, from, d->loop);
}

/* Marks the blocks from which the loop's header can be reached without passing `block`. */
static void find_misses(struct deciding *d, int block) {
    const struct flow *flow = d->flow;
    const struct flow_loop *l = &flow->loops[d->loop];
    memset(d->misses, 0, (size_t)flow->block_count);
    for (int i = 0; i < l->latch_count; i++) d->misses[l->latches[i]] = l->latches[i] != block;
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = flow->block_count - 1; i > l->header; i--)
            for (int p = 0; d->misses[i] && p < flow->blocks[i].predecessor_count; p++) {
                int from = flow->blocks[i].predecessors[p];
                if (from == block || d->misses[from] || !flow_block_within(flow, from, d->loop)) continue;
                d->misses[from] = changed = true;
            }
    }
}

/* Adds the blocks whose branches decide whether a thread reaches `block`. True: threads diverge at one of
 * them. */
static bool add_deciding(struct deciding *d, int block) {
    const struct flow *flow = d->flow;
    find_misses(d, block);
    memset(d->comes, 0, (size_t)flow->block_count);
    memset(d->passes, 0, (size_t)flow->block_count);
    for (int i = 0; i < flow->block_count; i++)
        for (int p = 0; flow_block_within(flow, i, d->loop) && p < flow->blocks[i].predecessor_count; p++) {
            int from = flow->blocks[i].predecessors[p];
            bool misses = is_back_edge(d, from, i) || d->misses[i];
            *(misses ? &d->passes[from] : &d->comes[from]) = true;
        }
    for (int i = 0; i < flow->block_count; i++) {
        if (i == block || !d->comes[i] || !d->passes[i] || !flow_block_within(flow, i, d->loop)) continue;
        if (uniform_splits_threads(flow, LLVMGetBasicBlockTerminator(flow->blocks[i].block))) return true;
        add(d, i);
    }
    return false;
}

static bool list_functions(struct deciding *d) {
    const struct flow *flow = d->flow;
    memset(d->listed, 0, (size_t)flow->block_count);
    d->count = 0;
    for (int i = 0; i < flow->block_count; i++)
        if (flow_block_within(flow, i, d->loop) && brings_lanes_together(flow->blocks[i].block)) add(d, i);
    return d->count > 0;
}

/* Only then does it matter that other threads that leave the loop perform it at another time. Requires:
 * list_functions. */
static bool may_lose_functions(struct deciding *d) {
    for (int next = 0; next < d->count; next++)
        if (add_deciding(d, d->blocks[next])) return true;
    return false;
}

/* ---- Exits. */

/* Whether some threads leave the loop there while others stay. */
static bool is_exit(const struct flow *flow, int loop, LLVMValueRef end) {
    unsigned leave = 0, count = LLVMGetNumSuccessors(end);
    for (unsigned s = 0; s < count; s++)
        leave += !flow_block_within(flow, flow_index(flow, LLVMGetSuccessor(end, s)), loop);
    return leave > 0 && leave < count && uniform_splits_threads(flow, end);
}

static bool is_held(LLVMValueRef value) {
    return intrinsic_of(value) == INTRINSIC_HELD;
}

/* Every call has its own number, so that LLVM does not merge two of them. */
static LLVMValueRef build_held(struct unit *unit, LLVMValueRef value, uint32_t number) {
    LLVMTypeRef type = LLVMTypeOf(value), parameters[2] = {type, type_i32(unit)};
    LLVMTypeRef function_type = LLVMFunctionType(type, parameters, 2, false);
    LLVMValueRef operands[2] = {value, constant_i32(unit, number)};
    char name[40];
    snprintf(name, sizeof name, "%s%u", intrinsic_traits(INTRINSIC_HELD)->name, LLVMGetIntTypeWidth(type));
    LLVMValueRef function = LLVMGetNamedFunction(unit->module, name);
    if (!function) {
        function = LLVMAddFunction(unit->module, name, function_type);
        declare_pure(unit, function);
    }
    return LLVMBuildCall2(unit->builder, function_type, function, operands, 2, "");
}

static void hold_exit(struct unit *unit, LLVMValueRef end, uint32_t number) {
    LLVMValueRef condition = LLVMGetOperand(end, 0); /* the condition of branches and switches alike */
    if (is_held(condition)) return;
    LLVMPositionBuilderBefore(unit->builder, end);
    LLVMSetOperand(end, 0, build_held(unit, condition, number));
}

static bool is_branch(LLVMValueRef end) {
    return LLVMIsASwitchInst(end) || (LLVMIsABranchInst(end) && LLVMIsConditional(end));
}

static bool is_held_exit(const struct flow *flow, int loop, int block) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(flow->blocks[block].block);
    return flow_block_within(flow, block, loop) && is_branch(end) && is_exit(flow, loop, end);
}

static bool has_exit(const struct flow *flow, int loop) {
    for (int i = 0; i < flow->block_count; i++)
        if (is_held_exit(flow, loop, i)) return true;
    return false;
}

static void hold_exits(struct unit *unit, const struct flow *flow, int loop) {
    for (int i = 0; i < flow->block_count; i++)
        if (is_held_exit(flow, loop, i))
            hold_exit(unit, LLVMGetBasicBlockTerminator(flow->blocks[i].block), (uint32_t)i);
}

static smelt_status hold(struct unit *unit, struct arena *arena) {
    struct flow flow;
    TRY(flow_find(unit, unit->entry, arena, &flow));
    size_t count = (size_t)flow.block_count;
    struct deciding d = {&flow,
                         0,
                         arena_alloc(arena, count),
                         arena_alloc(arena, count),
                         arena_alloc(arena, count),
                         arena_alloc(arena, count),
                         arena_alloc(arena, count * sizeof(int)),
                         0};
    if (arena->failed)
        return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %d blocks", flow.block_count);
    for (d.loop = 0; d.loop < flow.loop_count; d.loop++)
        if (list_functions(&d) && has_exit(&flow, d.loop) && may_lose_functions(&d))
            hold_exits(unit, &flow, d.loop);
    return SMELT_OK;
}

smelt_status pass_hold(struct unit *unit) {
    struct arena arena = {0};
    smelt_status status = hold(unit, &arena);
    arena_free(&arena);
    return status;
}

/* On a copy of the branch, LLVM could derive the condition's value only now; it must not. */
static LLVMValueRef build_hidden(struct unit *unit, LLVMValueRef constant) {
    LLVMTypeRef type = LLVMTypeOf(constant);
    LLVMValueRef never = phases_build_never(unit);
    if (LLVMTypeOf(never) != type) never = LLVMBuildZExt(unit->builder, never, type, "");
    return LLVMBuildXor(unit->builder, never, constant, "");
}

void hold_release(struct unit *unit, LLVMValueRef function) {
    FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(call, block) {
        if (!is_held(call)) continue;
        LLVMValueRef value = LLVMGetOperand(call, 0);
        LLVMPositionBuilderBefore(unit->builder, call);
        if (LLVMIsConstant(value)) value = build_hidden(unit, value);
        LLVMReplaceAllUsesWith(call, value);
        LLVMInstructionEraseFromParent(call);
    }
}
