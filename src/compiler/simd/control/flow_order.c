/* The order of blocks (compiler/analysis/paths.h) and the layout of the new function, which has one item per
 * block and one for the end of each loop. Paths that only return come before the blocks next to them: a
 * lane's work on such a path must be done when other lanes reach a barrier.
 *
 * Requires: reducible control flow, loops with preheaders and one latch. */
#include "compiler/simd/simd.h"

int simd_place(struct simd *s, LLVMBasicBlockRef original) {
    return value_of(s, LLVMBasicBlockAsValue(original))->block;
}

/* ---- Ways that only return. */

enum mark { NO_MARK, RETURNS, WAITS };

static enum mark find_mark(LLVMBasicBlockRef block) {
    FOR_EACH_INSTRUCTION(call, block) {
        enum intrinsic intrinsic = intrinsic_of(call);
        if (intrinsic == INTRINSIC_THREAD_RETURN) return RETURNS;
        if (intrinsic == INTRINSIC_THREADGROUP_BARRIER || intrinsic == INTRINSIC_BARRIER_PASSES) return WAITS;
    }
    return NO_MARK;
}

/* By flow index: whether all paths from the block lead to an explicit return, or nowhere, and to no barrier.
 */
static bool *find_returns(struct simd *s) {
    const struct flow *flow = &s->flow;
    bool *returns = arena_alloc(&s->arena, (size_t)flow->block_count);
    enum mark *marks = arena_alloc(&s->arena, (size_t)flow->block_count * sizeof *marks);
    if (!returns || !marks) return NULL;
    for (int i = 0; i < flow->block_count; i++) {
        LLVMBasicBlockRef block = flow->blocks[i].block;
        marks[i] = find_mark(block);
        bool ends = LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(block)) == 0;
        returns[i] = marks[i] == RETURNS || (marks[i] == NO_MARK && !ends);
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = flow->block_count - 1; i >= 0; i--) {
            if (!returns[i] || marks[i] == RETURNS) continue;
            LLVMValueRef terminator = LLVMGetBasicBlockTerminator(flow->blocks[i].block);
            for (unsigned n = 0; n < LLVMGetNumSuccessors(terminator); n++)
                returns[i] &= returns[flow_index(flow, LLVMGetSuccessor(terminator, n))];
            changed |= !returns[i];
        }
    }
    return returns;
}

/* Of two successors, the one visited last comes first in reverse post-order. *changed: flow must be computed
 * again. */
static void put_returns_first(struct simd *s, const bool *returns, bool *changed) {
    LLVMBuilderRef b = s->unit->builder;
    *changed = false;
    for (int i = 0; i < s->flow.block_count; i++) {
        LLVMValueRef branch = LLVMGetBasicBlockTerminator(s->flow.blocks[i].block);
        if (!LLVMIsABranchInst(branch) || !LLVMIsConditional(branch)) continue;
        LLVMBasicBlockRef first = LLVMGetSuccessor(branch, 0), second = LLVMGetSuccessor(branch, 1);
        if (!returns[flow_index(&s->flow, first)] || returns[flow_index(&s->flow, second)]) continue;
        LLVMPositionBuilderBefore(b, branch);
        LLVMSetCondition(branch, LLVMBuildNot(b, LLVMGetCondition(branch), ""));
        LLVMSetSuccessor(branch, 0, second);
        LLVMSetSuccessor(branch, 1, first);
        *changed = true;
    }
}

/* ---- The layout. */

static void add_item(struct simd *s, int block, int loop) {
    s->items[s->item_count] = (struct item){.block = block, .loop = loop};
    if (block >= 0)
        s->blocks[block].item = s->item_count;
    else
        s->loops[loop].item = s->item_count;
    s->item_count++;
}

/* An item per block, and after a loop's last block one for its end. */
static void lay_out(struct simd *s, const bool *returns) {
    s->item_count = 0;
    for (int place = 0; place < s->paths.block_count; place++) {
        const struct path_block *path = &s->paths.blocks[place];
        s->blocks[place] = (struct block){.original = path->block, .returns = returns[path->flow]};
        add_item(s, place, -1);
        for (int loop = path->loop; loop >= 0 && s->paths.loops[loop].last == place;
             loop = s->paths.loops[loop].parent)
            add_item(s, -1, loop);
    }
}

smelt_status simd_order(struct simd *s) {
    TRY(flow_find(s->unit, s->entry, &s->arena, &s->flow));
    bool changed = false, *returns = find_returns(s);
    if (returns) put_returns_first(s, returns, &changed);
    if (changed) {
        TRY(flow_find(s->unit, s->entry, &s->arena, &s->flow));
        returns = find_returns(s);
    }
    int count = s->flow.block_count, loops = s->flow.loop_count;
    if (s->flow.irreducible) {
        simd_refuse(s, NULL, "its control flow jumps into the middle of a loop");
        return SMELT_OK;
    }
    TRY(paths_open(s->unit, &s->flow, true, &s->arena, &s->paths));
    s->blocks = arena_alloc(&s->arena, (size_t)count * sizeof *s->blocks);
    s->loops = arena_alloc(&s->arena, (size_t)(loops + 1) * sizeof *s->loops);
    s->items = arena_alloc(&s->arena, (size_t)(count + loops) * sizeof *s->items);
    if (!s->arena.failed) lay_out(s, returns);
    size_t words = (size_t)(s->item_count + 63) / 64;
    for (int i = 0; i < s->item_count; i++) s->items[i].pending = arena_alloc(&s->arena, words * 8);
    if (s->arena.failed)
        return unit_fail(s->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %d blocks", count);
    return SMELT_OK;
}
