/* A fixpoint: at first all values are equal in all lanes. When a branch turns out to depend on one that
 * differs, its paths are followed to where all lanes have met again (compiler/analysis/paths.c). The blocks
 * on the way run for some lanes only, and values differ where paths meet. A loop that lanes leave in
 * different rounds counts as a branch to its exits. The SIMD engine's compiler/simd/analysis/divergence.c is
 * the same analysis over shapes of values. */
#include "compiler/ptx/warp/divergence.h"

#include "compiler/analysis/phases.h"

#include <stdlib.h>
#include <string.h>

#define MARK "smelt.divergent"

/* ---- Blocks. */

/* The blocks reachable from a block, itself first, if they lead only to ends and are reached only through it.
 * 0: otherwise. */
static int find_way_to_end(const struct divergence *d, int place, int *way, bool *seen, const bool *ends) {
    int count = 0;
    bool alone = d->graph.blocks[place].predecessor_count == 1;
    way[count++] = place;
    seen[place] = true;
    for (int next = 0; next < count && alone; next++) {
        const struct path_block *block = &d->graph.blocks[way[next]];
        for (int s = 0; s < block->successor_count; s++) {
            int target = block->successors[s];
            if (seen[target] || ends[target]) continue;
            /* If `place` dominates the target, the target's dominator lies on every way from `place` to it,
             * so this walk has seen it. */
            alone &= seen[d->graph.blocks[target].dominator];
            seen[target] = true;
            way[count++] = target;
        }
    }
    for (int i = 0; i < count; i++) seen[way[i]] = false;
    return alone ? count : 0;
}

static bool operates(const struct divergence *d, const int *way, int count) {
    for (int i = 0; i < count; i++) FOR_EACH_INSTRUCTION(instruction, d->graph.blocks[way[i]].block) {
            if (divergence_is_operation(instruction)) return true;
        }
    return false;
}

/* By place: the block contains no operation, and none may follow. */
static void find_idle(const struct divergence *d, bool *idle) {
    for (int place = 0; place < d->graph.block_count; place++) idle[place] = !operates(d, &place, 1);
    for (bool changed = true; changed;) {
        changed = false;
        for (int place = d->graph.block_count - 1; place >= 0; place--) {
            bool before = idle[place];
            for (int s = 0; s < d->graph.blocks[place].successor_count; s++)
                idle[place] &= idle[d->graph.blocks[place].successors[s]];
            changed |= idle[place] != before;
        }
    }
}

/* Requires: find_waits. */
static void find_leaves(struct divergence *d) {
    size_t count = (size_t)d->graph.block_count;
    int *way = arena_alloc(&d->arena, count * sizeof *way);
    bool *seen = arena_alloc(&d->arena, count), *ends = arena_alloc(&d->arena, count);
    bool *idle = arena_alloc(&d->arena, count);
    if (d->arena.failed) return;
    find_idle(d, idle);
    for (int place = 0; place < d->graph.block_count; place++)
        ends[place] = divergence_is_end(d->graph.blocks[place].block);
    for (int place = 0; place < d->graph.block_count; place++) {
        struct path_block *block = &d->graph.blocks[place];
        block->leaf |= ends[place];
        bool alone = !block->waits && !idle[place] && find_way_to_end(d, place, way, seen, idle) &&
                     d->graph.blocks[block->predecessors[0]].loop == block->loop;
        block->apart = idle[place] || alone;
        if (block->leaf) continue;
        int blocks = find_way_to_end(d, place, way, seen, ends);
        for (int i = 0; !operates(d, way, blocks) && i < blocks; i++) d->graph.blocks[way[i]].leaf = true;
    }
}

static void find_waits(struct divergence *d) {
    for (int place = 0; place < d->graph.block_count; place++) {
        struct path_block *block = &d->graph.blocks[place];
        block->barrier = block->waits = divergence_has_barrier(block->block);
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (int place = d->graph.block_count - 1; place >= 0; place--) {
            struct path_block *block = &d->graph.blocks[place];
            bool before = block->waits;
            for (int s = 0; s < block->successor_count; s++)
                block->waits |= d->graph.blocks[block->successors[s]].waits;
            changed |= block->waits != before;
        }
    }
}

/* ---- Exits from loops with barriers. A lane that leaves such a loop to end, and first performs an operation
 * together with others, must not wait for lanes that go on to the barrier: its path counts as part of the
 * loop and of its round. */

static bool holds_barrier(const struct flow *flow, int loop) {
    for (int i = flow->loops[loop].header; i < flow->block_count; i++)
        if (flow_loop_within(flow, flow->blocks[i].loop, loop) &&
            divergence_has_barrier(flow->blocks[i].block))
            return true;
    return false;
}

/* The innermost loop with a barrier that the only edge to the block leaves, or -1. */
static int find_waiting_loop(const struct flow *flow, int index) {
    const struct flow_block *block = &flow->blocks[index];
    if (block->predecessor_count != 1 || divergence_is_end(block->block)) return -1;
    int loop = flow->blocks[block->predecessors[0]].loop;
    while (loop >= 0 && !flow_loop_within(flow, block->loop, loop)) {
        if (holds_barrier(flow, loop)) return loop;
        loop = flow->loops[loop].parent;
    }
    return -1;
}

/* The blocks reachable from the first, itself included, if they are reached only through it and contain no
 * barrier. 0: otherwise. */
static int find_last_way(const struct flow *flow, int first, int *way, bool *seen) {
    int count = 0;
    bool alone = true;
    way[count++] = first;
    seen[first] = true;
    for (int next = 0; next < count && alone; next++) {
        LLVMBasicBlockRef block = flow->blocks[way[next]].block;
        LLVMValueRef terminator = LLVMGetBasicBlockTerminator(block);
        alone = !divergence_has_barrier(block);
        for (unsigned s = 0; s < LLVMGetNumSuccessors(terminator); s++) {
            int target = flow_index(flow, LLVMGetSuccessor(terminator, s));
            if (seen[target] || divergence_is_end(flow->blocks[target].block)) continue;
            alone &= seen[flow->blocks[target].dominator]; /* as in find_way_to_end */
            seen[target] = true;
            way[count++] = target;
        }
    }
    for (int i = 0; i < count; i++) seen[way[i]] = false;
    return alone ? count : 0;
}

static void keep_ways_in_loops(struct divergence *d, struct flow *flow) {
    int *way = arena_alloc(&d->arena, (size_t)flow->block_count * sizeof *way);
    bool *seen = arena_alloc(&d->arena, (size_t)flow->block_count);
    for (int i = 0; way && seen && flow->loop_count && i < flow->block_count; i++) {
        int loop = find_waiting_loop(flow, i), outside = flow->blocks[i].loop;
        int count = loop < 0 ? 0 : find_last_way(flow, i, way, seen);
        for (int w = 0; w < count; w++) {
            struct flow_block *block = &flow->blocks[way[w]];
            int own = block->loop;
            if (own == outside) {
                block->loop = loop;
                continue;
            }
            while (flow->loops[own].parent != outside && flow->loops[own].parent != loop)
                own = flow->loops[own].parent;
            flow->loops[own].parent = loop;
        }
    }
}

static smelt_status find_blocks(struct divergence *d) {
    struct flow flow;
    TRY(flow_find(d->unit, d->unit->entry, &d->arena, &flow));
    d->irreducible = flow.irreducible;
    if (flow.irreducible) return SMELT_OK;
    keep_ways_in_loops(d, &flow);
    TRY(paths_open(d->unit, &flow, false, &d->arena, &d->graph));
    divergence_index_blocks(d);
    if (!d->arena.failed) find_waits(d);
    /* Operations are not seen in lowered code: any block may have one. */
    if (!d->arena.failed && !d->lowered) find_leaves(d);
    return d->arena.failed
               ? unit_fail(d->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %d blocks", flow.block_count)
               : SMELT_OK;
}

/* ---- The fixpoint. */

static bool analyse_block(struct divergence *d, int place) {
    struct path_block *block = &d->graph.blocks[place];
    bool changed = false;
    FOR_EACH_INSTRUCTION(instruction, block->block) {
        if (LLVMGetTypeKind(LLVMTypeOf(instruction)) != LLVMVoidTypeKind)
            changed |= divergence_add_bits(d, instruction, divergence_in_result(d, instruction, place));
    }
    LLVMValueRef terminator = LLVMGetBasicBlockTerminator(block->block);
    if (block->divergent || block->successor_count < 2) return changed;
    LLVMValueRef condition =
        LLVMIsABranchInst(terminator) ? LLVMGetCondition(terminator) : LLVMGetOperand(terminator, 0);
    if (!divergence_in_operand(d, condition, place)) return changed;
    paths_part(&d->graph, place);
    return true;
}

static smelt_status find(struct divergence *d) {
    TRY(find_blocks(d));
    for (bool changed = !d->irreducible; changed && !d->arena.failed;) {
        changed = false;
        for (int place = 0; place < d->graph.block_count; place++) changed |= analyse_block(d, place);
    }
    return d->arena.failed ? unit_fail(d->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for the analysis")
                           : SMELT_OK;
}

smelt_status divergence_find(struct unit *unit, struct divergence *d) {
    *d = (struct divergence){.unit = unit};
    return find(d);
}

smelt_status divergence_find_lowered(struct unit *unit, struct divergence *d) {
    *d = (struct divergence){.unit = unit, .lowered = true};
    return find(d);
}

smelt_status divergence_find_in_group(struct unit *unit, struct divergence *d) {
    *d = (struct divergence){.unit = unit, .in_group = true};
    return find(d);
}

/* ---- Marks: metadata, which stays on branches while blocks change around them. */

static unsigned mark_kind(struct unit *unit) {
    return LLVMGetMDKindIDInContext(unit->context, MARK, sizeof MARK - 1);
}

void divergence_mark_branch(struct unit *unit, LLVMValueRef branch) {
    LLVMMetadataRef node = LLVMMDNodeInContext2(unit->context, NULL, 0);
    LLVMSetMetadata(branch, mark_kind(unit), LLVMMetadataAsValue(unit->context, node));
}

void divergence_mark(const struct divergence *d) {
    for (int place = 0; place < d->graph.block_count; place++)
        if (d->graph.blocks[place].divergent)
            divergence_mark_branch(d->unit, LLVMGetBasicBlockTerminator(d->graph.blocks[place].block));
}

smelt_status divergence_find_marked(struct unit *unit, struct divergence *d) {
    *d = (struct divergence){.unit = unit};
    TRY(find_blocks(d));
    for (int place = 0; place < d->graph.block_count; place++) {
        LLVMValueRef terminator = LLVMGetBasicBlockTerminator(d->graph.blocks[place].block);
        if (LLVMGetMetadata(terminator, mark_kind(unit))) paths_part(&d->graph, place);
    }
    return d->arena.failed ? unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for the analysis")
                           : SMELT_OK;
}

void divergence_free(struct divergence *d) {
    arena_free(&d->arena);
}
