#include "compiler/analysis/flow.h"

#include <stdlib.h>
#include <string.h>

static int compare_lookup(const void *a, const void *b) {
    const struct flow_lookup *p = a, *q = b;
    return p->block < q->block ? -1 : p->block > q->block;
}

static struct flow_lookup *look_up(struct flow_lookup *table, int count, LLVMBasicBlockRef block) {
    struct flow_lookup key = {block, 0};
    return bsearch(&key, table, (size_t)count, sizeof *table, compare_lookup);
}

static int find(struct flow_lookup *table, int count, LLVMBasicBlockRef block) {
    const struct flow_lookup *hit = look_up(table, count, block);
    return hit ? hit->index : -1;
}

int flow_index(const struct flow *flow, LLVMBasicBlockRef block) {
    return find(flow->table, flow->table_count, block);
}

/* Depth-first without recursion; returns the number of blocks in `order`. */
static int post_order(LLVMValueRef function, struct flow_lookup *table, int count, struct arena *arena,
                      LLVMBasicBlockRef *order) {
    struct frame {
        LLVMBasicBlockRef block;
        unsigned next;
    } *stack = arena_alloc(arena, (size_t)(count + 1) * sizeof *stack);
    bool *seen = arena_alloc(arena, (size_t)count);
    if (!stack || !seen) return -1;
    int depth = 0, placed = 0;
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(function);
    stack[depth++] = (struct frame){entry, 0};
    seen[find(table, count, entry)] = true;
    while (depth) {
        struct frame *top = &stack[depth - 1];
        LLVMValueRef terminator = LLVMGetBasicBlockTerminator(top->block);
        if (top->next == LLVMGetNumSuccessors(terminator)) {
            order[placed++] = top->block;
            depth--;
            continue;
        }
        LLVMBasicBlockRef successor = LLVMGetSuccessor(terminator, top->next++);
        int index = find(table, count, successor);
        if (seen[index]) continue;
        seen[index] = true;
        stack[depth++] = (struct frame){successor, 0};
    }
    return placed;
}

/* Cooper, Harvey, Kennedy: "A simple, fast dominance algorithm". Indexes are reverse post-order. */
static int intersect(const struct flow *flow, int a, int b) {
    while (a != b) {
        while (a > b) a = flow->blocks[a].dominator;
        while (b > a) b = flow->blocks[b].dominator;
    }
    return a;
}

static void find_dominators(struct flow *flow) {
    for (int i = 0; i < flow->block_count; i++) flow->blocks[i].dominator = -1;
    flow->blocks[0].dominator = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 1; i < flow->block_count; i++) {
            struct flow_block *block = &flow->blocks[i];
            int dominator = -1;
            for (int p = 0; p < block->predecessor_count; p++) {
                int predecessor = block->predecessors[p];
                if (flow->blocks[predecessor].dominator < 0) continue;
                dominator = dominator < 0 ? predecessor : intersect(flow, dominator, predecessor);
            }
            if (dominator != block->dominator) {
                block->dominator = dominator;
                changed = true;
            }
        }
    }
}

bool flow_dominates(const struct flow *flow, int above, int below) {
    while (below > above) below = flow->blocks[below].dominator;
    return below == above;
}

bool flow_loop_within(const struct flow *flow, int loop, int outer) {
    while (loop >= 0 && loop != outer) loop = flow->loops[loop].parent;
    return loop == outer;
}

bool flow_block_within(const struct flow *flow, int block, int loop) {
    return flow_loop_within(flow, block < 0 ? -1 : flow->blocks[block].loop, loop);
}

/* Headers in reverse post-order come before the headers inside their loops, so outer loops come first and an
 * inner loop simply overwrites the membership of its blocks. */
static bool find_loops(struct flow *flow, struct arena *arena) {
    int count = flow->block_count;
    int *work = arena_alloc(arena, (size_t)count * sizeof *work);
    int *member = arena_alloc(arena, (size_t)count * sizeof *member);
    flow->loops = arena_alloc(arena, (size_t)count * sizeof *flow->loops);
    if (!work || !member || !flow->loops) return false;
    for (int i = 0; i < count; i++) {
        flow->blocks[i].loop = -1;
        member[i] = -1;
    }
    for (int header = 0; header < count; header++) {
        const struct flow_block *block = &flow->blocks[header];
        struct flow_loop loop = {.header = header, .parent = block->loop};
        loop.latches = arena_alloc(arena, (size_t)(block->predecessor_count + 1) * sizeof(int));
        if (!loop.latches) return false;
        for (int p = 0; p < block->predecessor_count; p++) {
            if (block->predecessors[p] < header) continue;
            if (flow_dominates(flow, header, block->predecessors[p]))
                loop.latches[loop.latch_count++] = block->predecessors[p];
            else
                flow->irreducible = true;
        }
        if (!loop.latch_count) continue;
        int number = flow->loop_count++;
        flow->loops[number] = loop;
        int depth = 0;
        member[header] = number;
        flow->blocks[header].loop = number;
        for (int l = 0; l < loop.latch_count; l++)
            if (member[loop.latches[l]] != number) {
                member[loop.latches[l]] = number;
                work[depth++] = loop.latches[l];
            }
        while (depth) {
            int inside = work[--depth];
            flow->blocks[inside].loop = number;
            const struct flow_block *b = &flow->blocks[inside];
            for (int p = 0; p < b->predecessor_count; p++) {
                if (member[b->predecessors[p]] == number) continue;
                member[b->predecessors[p]] = number;
                work[depth++] = b->predecessors[p];
            }
        }
    }
    return true;
}

smelt_status flow_find(struct unit *unit, LLVMValueRef function, struct arena *arena, struct flow *flow) {
    *flow = (struct flow){0};
    int count = (int)LLVMCountBasicBlocks(function);
    struct flow_lookup *table = arena_alloc(arena, (size_t)count * sizeof *table);
    LLVMBasicBlockRef *order = arena_alloc(arena, (size_t)count * sizeof *order);
    flow->blocks = arena_alloc(arena, (size_t)count * sizeof *flow->blocks);
    if (!table || !order || !flow->blocks)
        return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %d blocks", count);
    int i = 0;
    FOR_EACH_BLOCK(block, function) {
        table[i] = (struct flow_lookup){block, i};
        i++;
    }
    qsort(table, (size_t)count, sizeof *table, compare_lookup);
    for (i = 0; i < count; i++) table[i].index = i;
    int placed = post_order(function, table, count, arena, order);
    if (placed < 0) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %d blocks", count);
    flow->block_count = placed;
    flow->table = table;
    flow->table_count = count;
    for (i = 0; i < count; i++) table[i].index = -1;
    for (i = 0; i < placed; i++) {
        flow->blocks[i].block = order[placed - 1 - i];
        look_up(table, count, flow->blocks[i].block)->index = i;
    }
    /* Predecessors: count, then fill. */
    for (int pass = 0; pass < 2; pass++) {
        for (i = 0; i < placed; i++) {
            LLVMValueRef terminator = LLVMGetBasicBlockTerminator(flow->blocks[i].block);
            for (unsigned s = 0; s < LLVMGetNumSuccessors(terminator); s++) {
                struct flow_block *to = &flow->blocks[find(table, count, LLVMGetSuccessor(terminator, s))];
                if (pass) to->predecessors[to->predecessor_count] = i;
                to->predecessor_count++;
            }
        }
        for (i = 0; !pass && i < placed; i++) {
            struct flow_block *block = &flow->blocks[i];
            block->predecessors = arena_alloc(arena, (size_t)(block->predecessor_count + 1) * sizeof(int));
            block->predecessor_count = 0;
        }
    }
    if (arena->failed) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %d blocks", count);
    find_dominators(flow);
    if (!find_loops(flow, arena))
        return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %d blocks", count);
    return SMELT_OK;
}

void *flow_begin(struct unit *unit, struct arena *arena, struct flow *flow, size_t bytes,
                 smelt_status *status) {
    *status = flow_find(unit, unit->entry, arena, flow);
    void *own = *status == SMELT_OK ? arena_alloc(arena, bytes) : NULL;
    if (*status == SMELT_OK && !own)
        *status = unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for a pass: %zu bytes", bytes);
    return own;
}

smelt_status flow_make_reducible(struct unit *unit) {
    struct arena arena = {0};
    struct flow flow;
    smelt_status status = flow_find(unit, unit->entry, &arena, &flow);
    arena_free(&arena);
    TRY(status);
    /* LLVM's pass redirects branches only: it crashes on a switch into such a loop. */
    return flow.irreducible ? run_passes(unit, "function(lower-switch,fix-irreducible)") : SMELT_OK;
}

smelt_status flow_count_loops(struct unit *unit, int *loops) {
    struct arena arena = {0};
    struct flow flow;
    smelt_status status = flow_find(unit, unit->entry, &arena, &flow);
    *loops = flow.loop_count + flow.irreducible;
    arena_free(&arena);
    return status;
}

void flow_spread(const struct flow *flow, bool *holds) {
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = flow->block_count - 1; i >= 0; i--)
            for (int p = 0; holds[i] && p < flow->blocks[i].predecessor_count; p++) {
                changed |= !holds[flow->blocks[i].predecessors[p]];
                holds[flow->blocks[i].predecessors[p]] = true;
            }
    }
}

/* LLVM-C cannot change a phi's incoming block: build it again. `once`: only one of several equal edges moves.
 */
static void move_phi_edges(struct unit *unit, LLVMBasicBlockRef block, LLVMBasicBlockRef from,
                           LLVMBasicBlockRef to, bool once) {
    for (LLVMValueRef phi = LLVMGetFirstInstruction(block), next; phi && LLVMIsAPHINode(phi); phi = next) {
        next = LLVMGetNextInstruction(phi);
        LLVMPositionBuilderBefore(unit->builder, phi);
        LLVMValueRef copy = LLVMBuildPhi(unit->builder, LLVMTypeOf(phi), "");
        bool moved = false;
        for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
            LLVMBasicBlockRef incoming = LLVMGetIncomingBlock(phi, i);
            LLVMValueRef value = LLVMGetIncomingValue(phi, i);
            if (value == phi) value = copy;
            if (incoming == from && !(once && moved)) {
                incoming = to;
                moved = true;
            }
            LLVMAddIncoming(copy, &value, &incoming, 1);
        }
        LLVMReplaceAllUsesWith(phi, copy);
        LLVMInstructionEraseFromParent(phi);
    }
}

LLVMBasicBlockRef flow_split_edge(struct unit *unit, LLVMBasicBlockRef from, unsigned successor) {
    LLVMValueRef terminator = LLVMGetBasicBlockTerminator(from);
    LLVMBasicBlockRef target = LLVMGetSuccessor(terminator, successor);
    LLVMBasicBlockRef middle =
        LLVMAppendBasicBlockInContext(unit->context, LLVMGetBasicBlockParent(from), "edge");
    LLVMMoveBasicBlockAfter(middle, from);
    LLVMSetSuccessor(terminator, successor, middle);
    move_phi_edges(unit, target, from, middle, true);
    LLVMPositionBuilderAtEnd(unit->builder, middle);
    LLVMBuildBr(unit->builder, target);
    return middle;
}

LLVMBasicBlockRef flow_split_block(struct unit *unit, LLVMValueRef instruction) {
    LLVMBasicBlockRef first = LLVMGetInstructionParent(instruction);
    LLVMBasicBlockRef second =
        LLVMAppendBasicBlockInContext(unit->context, LLVMGetBasicBlockParent(first), "rest");
    LLVMMoveBasicBlockAfter(second, first);
    LLVMValueRef terminator = LLVMGetBasicBlockTerminator(first);
    for (unsigned s = 0; s < LLVMGetNumSuccessors(terminator); s++)
        move_phi_edges(unit, LLVMGetSuccessor(terminator, s), first, second, false);
    LLVMPositionBuilderAtEnd(unit->builder, second);
    for (LLVMValueRef i = instruction, next; i; i = next) {
        next = LLVMGetNextInstruction(i);
        LLVMInstructionRemoveFromParent(i);
        build_kept(unit->builder, i);
    }
    LLVMPositionBuilderAtEnd(unit->builder, first);
    LLVMBuildBr(unit->builder, second);
    return second;
}
