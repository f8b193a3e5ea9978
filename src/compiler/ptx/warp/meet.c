/* If lanes come to a block from several others, while some lanes took another path, no lane knows which of
 * them come. If a mask depends on such a block, it gets another block before it, where all those lanes meet:
 * each brings the number of its destination, 0 for the block itself, and goes there. */
#include "compiler/ptx/warp/warp.h"

static bool has_operation(LLVMBasicBlockRef block) {
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (divergence_is_operation(instruction) && !divergence_is_barrier(instruction)) return true;
    }
    return false;
}

/* The first place on which the mask of `place` depends and whose own mask is unknown, or -1. */
static int find_unknown(const struct divergence *d, int place, bool *seen) {
    const struct path_block *block = &d->graph.blocks[place];
    int from, unknown = -1;
    if (seen[place]) return -1;
    seen[place] = true;
    switch (ptx_mask_source(d, place, &from)) {
    case MASK_FULL:
        return -1;
    case MASK_FROM_ABOVE:
    case MASK_OF_EDGE:
        return find_unknown(d, from, seen);
    case MASK_OF_ROUNDS:
        for (int p = 0; p < block->predecessor_count && unknown < 0; p++)
            unknown = find_unknown(d, block->predecessors[p], seen);
        return unknown;
    case MASK_UNKNOWN:
        break;
    }
    return place;
}

static bool others_wait(const struct divergence *d, int from) {
    for (int s = 0; s < d->graph.blocks[from].successor_count; s++)
        if (d->graph.blocks[d->graph.blocks[from].successors[s]].waits) return true;
    return false;
}

/* By place: lanes come here that left while others may go on to a barrier. */
static bool *find_ways_out(struct divergence *d) {
    bool *out = arena_alloc(&d->arena, (size_t)d->graph.block_count);
    for (int place = 0; out && place < d->graph.block_count; place++) {
        const struct path_block *block = &d->graph.blocks[place];
        for (int p = 0; p < block->predecessor_count && !block->waits; p++)
            out[place] |= out[block->predecessors[p]] || others_wait(d, block->predecessors[p]);
    }
    return out;
}

static int depth_of(const struct divergence *d, int place) {
    int depth = 0;
    for (int loop = d->graph.blocks[place].loop; loop >= 0; loop = d->graph.loops[loop].parent) depth++;
    return depth;
}

/* The last place that a path through the edge from `from` to `to` may have visited: the end of the loops that
 * the edge leaves. */
static int last_before(const struct divergence *d, int from, int to) {
    int last = from;
    for (int loop = d->graph.blocks[from].loop; loop >= 0 && !paths_within(&d->graph, to, loop);
         loop = d->graph.loops[loop].parent)
        last = d->graph.loops[loop].last;
    return last;
}

/* By place: the most barriers on any path to its end, without counting rounds. */
static int *find_levels(struct divergence *d) {
    int *level = arena_alloc(&d->arena, (size_t)d->graph.block_count * sizeof *level);
    for (int place = 0; level && place < d->graph.block_count; place++) {
        const struct path_block *block = &d->graph.blocks[place];
        for (int p = 0; p < block->predecessor_count; p++) {
            int from = block->predecessors[p], last = from < place ? last_before(d, from, place) : -1;
            for (; from <= last; from++)
                if (level[from] > level[place]) level[place] = level[from];
        }
        level[place] += divergence_has_barrier(block->block);
    }
    return level;
}

/* Exits come first, those of inner loops and early phases before others: their lanes must not be named where
 * others arrive after a barrier. */
static int find_unknown_way_out(struct divergence *d) {
    const bool *out = find_ways_out(d);
    const int *level = find_levels(d);
    int best = -1;
    for (int place = 0; out && level && place < d->graph.block_count; place++) {
        bool *seen = has_operation(d->graph.blocks[place].block) && !d->graph.blocks[place].waits
                         ? arena_alloc(&d->arena, (size_t)d->graph.block_count)
                         : NULL;
        int unknown = seen ? find_unknown(d, place, seen) : -1;
        if (unknown < 0 || !out[unknown]) continue;
        int deeper = best < 0 ? 1 : depth_of(d, unknown) - depth_of(d, best);
        if (deeper > 0 || (deeper == 0 && level[unknown] < level[best])) best = unknown;
    }
    return best;
}

static int find_unknown_anywhere(struct divergence *d) {
    bool *seen = arena_alloc(&d->arena, (size_t)d->graph.block_count);
    int unknown = find_unknown_way_out(d);
    for (int place = 0; seen && place < d->graph.block_count && unknown < 0; place++)
        if (has_operation(d->graph.blocks[place].block)) unknown = find_unknown(d, place, seen);
    return unknown;
}

static bool some_lanes_operate(const struct divergence *d) {
    for (int place = 0; place < d->graph.block_count; place++)
        if (has_operation(d->graph.blocks[place].block) && !divergence_reached_by_all(d, place)) return true;
    return false;
}

/* ---- The block before. */

struct meeting {
    struct unit *unit;
    const struct divergence *d;
    LLVMBasicBlockRef block;
    LLVMValueRef number;        /* the variable with the lane's destination */
    LLVMBasicBlockRef *targets; /* the destinations 0, 1, … */
    int target_count;
};

/* The places from which the block can be reached within the round, back to the block above. */
static void find_ways(const struct divergence *d, int place, bool *on_way, int *waiting) {
    int count = 0, above = divergence_place_above(d, place);
    waiting[count++] = place;
    while (count) {
        const struct path_block *block = &d->graph.blocks[waiting[--count]];
        for (int p = 0; p < block->predecessor_count; p++) {
            int from = block->predecessors[p];
            if (on_way[from]) continue;
            on_way[from] = true;
            if (from != above) waiting[count++] = from;
        }
    }
}

static int number_of(struct meeting *m, LLVMBasicBlockRef target) {
    for (int i = 0; i < m->target_count; i++)
        if (m->targets[i] == target) return i;
    m->targets[m->target_count] = target;
    return m->target_count++;
}

static void lead_here(struct meeting *m, int place, unsigned successor) {
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(m->d->graph.blocks[place].block);
    int number = number_of(m, LLVMGetSuccessor(branch, successor));
    LLVMBasicBlockRef edge = flow_split_edge(m->unit, m->d->graph.blocks[place].block, successor);
    LLVMValueRef on = LLVMGetBasicBlockTerminator(edge);
    LLVMPositionBuilderBefore(m->unit->builder, on);
    LLVMBuildStore(m->unit->builder, constant_i32(m->unit, (uint32_t)number), m->number);
    LLVMSetSuccessor(on, 0, m->block);
}

/* Each block reads the number itself, since another meeting may come between them. */
static void part_again(struct meeting *m) {
    LLVMBuilderRef b = m->unit->builder;
    LLVMBasicBlockRef block = m->block;
    LLVMPositionBuilderAtEnd(b, block);
    for (int i = 0; i + 1 < m->target_count; i++) {
        LLVMBasicBlockRef rest = m->targets[i + 1];
        if (i + 2 < m->target_count) {
            rest = LLVMAppendBasicBlockInContext(m->unit->context, m->unit->entry, "part");
            LLVMMoveBasicBlockAfter(rest, block);
        }
        LLVMPositionBuilderAtEnd(b, block);
        LLVMValueRef number = LLVMBuildLoad2(b, type_i32(m->unit), m->number, "");
        LLVMValueRef here = LLVMBuildICmp(b, LLVMIntEQ, number, constant_i32(m->unit, (uint32_t)i), "");
        divergence_mark_branch(m->unit, LLVMBuildCondBr(b, here, m->targets[i], rest));
        block = rest;
    }
    if (m->target_count == 1) LLVMBuildBr(b, m->targets[0]);
}

static smelt_status meet_before(struct divergence *d, int place) {
    struct unit *unit = d->unit;
    size_t count = (size_t)d->graph.block_count;
    bool *on_way = arena_alloc(&d->arena, count);
    int *waiting = arena_alloc(&d->arena, (count + 1) * sizeof *waiting);
    struct meeting m = {
        .unit = unit, .d = d, .targets = arena_alloc(&d->arena, (count + 1) * sizeof m.block)};
    if (d->arena.failed) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %zu blocks", count);
    find_ways(d, place, on_way, waiting);
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(unit->entry);
    LLVMPositionBuilderBefore(unit->builder, LLVMGetFirstInstruction(entry));
    m.number = LLVMBuildAlloca(unit->builder, type_i32(unit), "");
    m.block = LLVMAppendBasicBlockInContext(unit->context, unit->entry, "meet");
    LLVMMoveBasicBlockBefore(m.block, d->graph.blocks[place].block);
    (void)number_of(&m, d->graph.blocks[place].block);
    for (int from = 0; from < d->graph.block_count; from++) {
        if (!on_way[from]) continue;
        LLVMValueRef branch = LLVMGetBasicBlockTerminator(d->graph.blocks[from].block);
        for (unsigned s = 0; s < LLVMGetNumSuccessors(branch); s++) {
            int target = divergence_place(d, LLVMGetSuccessor(branch, s));
            bool ends = d->graph.blocks[target].leaf || paths_leave_for_good(&d->graph, from, target);
            if (target != place && (on_way[target] || ends)) continue;
            lead_here(&m, from, s);
        }
    }
    part_again(&m);
    return SMELT_OK;
}

/* ---- The pass. Each block gets at most one meeting, and values that cross blocks are in memory meanwhile.
 * If its mask is still unknown, masks.c reports it. */

static smelt_status meet_everywhere(struct unit *unit, struct divergence *d) {
    divergence_mark(d);
    divergence_free(d);
    TRY(ptx_run_passes(unit, "function(reg2mem)"));
    TRY(divergence_find_marked(unit, d));
    int most = d->graph.block_count;
    for (int place; most-- && (place = find_unknown_anywhere(d)) >= 0;) {
        TRY(meet_before(d, place));
        divergence_free(d);
        TRY(divergence_find_marked(unit, d));
        if (d->irreducible)
            return unit_fail(unit, SMELT_ERROR_UNSUPPORTED,
                             "the control flow to a simdgroup operation is too complex for GPUs");
    }
    divergence_free(d);
    TRY(unit_verify(unit));
    TRY(ptx_run_passes(unit, "function(mem2reg)"));
    return divergence_find_marked(unit, d);
}

smelt_status ptx_lanes_meet(struct unit *unit, struct divergence *d) {
    if (!d->irreducible && !some_lanes_operate(d)) return SMELT_OK;
    divergence_free(d);
    TRY(ptx_run_passes(unit, "function(lower-switch,fix-irreducible,loop-simplify)"));
    TRY(divergence_find(unit, d));
    if (d->irreducible)
        return unit_fail(unit, SMELT_ERROR_UNSUPPORTED, "its control flow jumps into the middle of a loop");
    return find_unknown_anywhere(d) < 0 ? SMELT_OK : meet_everywhere(unit, d);
}
