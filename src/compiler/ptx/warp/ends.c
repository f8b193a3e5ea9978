/* Compilers for GPUs let diverged lanes wait where their paths join, to continue together. A lane that only
 * has to end must not be held up by lanes that wait at a barrier for all lanes that have not ended. */
#include "compiler/analysis/phases.h"
#include "compiler/ptx/warp/warp.h"

static bool goes_on_without(const struct divergence *d, int place) {
    const struct path_block *block = &d->graph.blocks[place];
    return block->divergent || block->leaf || !divergence_reached_together(d, place);
}

static void end_here(struct unit *unit, LLVMBasicBlockRef block, unsigned successor) {
    LLVMBasicBlockRef edge = flow_split_edge(unit, block, successor);
    LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(edge));
    LLVMPositionBuilderAtEnd(unit->builder, edge);
    /* Not LLVM's own exit, before which it drops stores as if they were never read. */
    ptx_assembly(unit, "exit;", "~{memory}", NULL, NULL, 0, true);
    LLVMBuildUnreachable(unit->builder);
}

void ptx_end_lanes(const struct divergence *d) {
    for (int place = 0; place < d->graph.block_count; place++) {
        if (!goes_on_without(d, place)) continue;
        LLVMValueRef branch = LLVMGetBasicBlockTerminator(d->graph.blocks[place].block);
        for (unsigned s = 0; s < LLVMGetNumSuccessors(branch); s++)
            if (divergence_is_end(LLVMGetSuccessor(branch, s)))
                end_here(d->unit, d->graph.blocks[place].block, s);
    }
}

/* ---- Separate paths. */

/* A branch by which lanes leave for a path to the end while others may go on to a barrier. */
struct exit_edge {
    LLVMValueRef branch;
    unsigned successor;
    int target;
    struct phase phase;
    bool operates; /* an operation is performed together on the path */
};

struct parting {
    struct unit *unit;
    const struct divergence *d;
    bool *waits;    /* by place: a barrier may follow, */
    bool *operates; /* or a simdgroup operation */
    struct exit_edge *exits;
    int exit_count;
    int *way; /* the blocks of one path to the end, */
    int count;
    LLVMBasicBlockRef *copies; /* and, by place, their copies */
};

static bool some_wait(const struct divergence *d) {
    for (int place = 0; place < d->graph.block_count; place++)
        if (divergence_has_barrier(d->graph.blocks[place].block) && !divergence_reached_together(d, place))
            return true;
    return false;
}

static bool operates_here(LLVMBasicBlockRef block) {
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (divergence_is_operation(instruction) && !divergence_is_barrier(instruction)) return true;
    }
    return false;
}

static void find_what_comes(struct parting *p) {
    for (bool changed = true; changed;) {
        changed = false;
        for (int place = p->d->graph.block_count - 1; place >= 0; place--) {
            const struct path_block *block = &p->d->graph.blocks[place];
            bool waits = divergence_has_barrier(block->block), operates = operates_here(block->block);
            for (int s = 0; s < block->successor_count; s++) {
                waits |= p->waits[block->successors[s]];
                operates |= p->operates[block->successors[s]];
            }
            changed |= waits != p->waits[place] || operates != p->operates[place];
            p->waits[place] = waits;
            p->operates[place] = operates;
        }
    }
}

/* After the last barrier no lane waits any longer: paths that part there meet again. */
static void find_exits(struct parting *p, const struct flow *flow, const struct phases *phases) {
    const struct divergence *d = p->d;
    for (int place = 0; place < d->graph.block_count; place++) {
        LLVMValueRef branch = LLVMGetBasicBlockTerminator(d->graph.blocks[place].block);
        bool some_go_on = false;
        for (int s = 0; s < d->graph.blocks[place].successor_count; s++)
            some_go_on |= p->waits[d->graph.blocks[place].successors[s]];
        for (unsigned s = 0; some_go_on && s < LLVMGetNumSuccessors(branch); s++) {
            int target = divergence_place(d, LLVMGetSuccessor(branch, s));
            if (p->waits[target] || divergence_is_end(d->graph.blocks[target].block) ||
                phases_is_never(branch, s))
                continue;
            struct phase phase = phase_left(flow, phases, flow_index(flow, d->graph.blocks[place].block));
            p->exits[p->exit_count++] = (struct exit_edge){branch, s, target, phase, p->operates[target]};
        }
    }
}

static void list(struct parting *p, int place) {
    bool listed = divergence_is_end(p->d->graph.blocks[place].block);
    for (int i = 0; i < p->count && !listed; i++) listed = p->way[i] == place;
    if (!listed) p->way[p->count++] = place;
}

static void lead_to_copies(const struct parting *p, LLVMBasicBlockRef copy) {
    LLVMValueRef terminator = LLVMGetBasicBlockTerminator(copy);
    for (unsigned s = 0; s < LLVMGetNumSuccessors(terminator); s++) {
        LLVMBasicBlockRef own = p->copies[divergence_place(p->d, LLVMGetSuccessor(terminator, s))];
        if (own) LLVMSetSuccessor(terminator, s, own);
    }
}

static bool leave_together(const struct exit_edge *a, const struct exit_edge *b) {
    bool same_phase = a->phase.loop == b->phase.loop && a->phase.level == b->phase.level;
    return a == b || (a->operates && b->operates && same_phase);
}

/* The path of an exit, and of those that share it. */
static void copy_way(struct parting *p, const struct exit_edge *exit) {
    const struct divergence *d = p->d;
    p->count = 0;
    for (int e = 0; e < p->exit_count; e++)
        if (leave_together(exit, &p->exits[e])) list(p, p->exits[e].target);
    for (int next = 0; next < p->count; next++) {
        int place = p->way[next];
        p->copies[place] = LLVMAppendBasicBlockInContext(p->unit->context, p->unit->entry, "end");
        for (int s = 0; s < d->graph.blocks[place].successor_count; s++)
            list(p, d->graph.blocks[place].successors[s]);
    }
    for (int i = 0; i < p->count; i++)
        phases_copy_block(p->unit, d->graph.blocks[p->way[i]].block, p->copies[p->way[i]]);
    for (int i = 0; i < p->count; i++) lead_to_copies(p, p->copies[p->way[i]]);
    for (int e = 0; e < p->exit_count; e++)
        if (leave_together(exit, &p->exits[e]))
            LLVMSetSuccessor(p->exits[e].branch, p->exits[e].successor, p->copies[p->exits[e].target]);
    for (int i = 0; i < p->count; i++) p->copies[p->way[i]] = NULL;
}

/* Each exit from code that waits gets a copy of all that follows, with values between blocks in memory
 * meanwhile. Paths with operations get one copy for all lanes that leave in the same phase. */
static smelt_status part(struct unit *unit, struct divergence *d) {
    size_t count = (size_t)d->graph.block_count, edges = 1;
    struct flow flow;
    struct phases phases;
    TRY(flow_find(unit, unit->entry, &d->arena, &flow));
    for (int place = 0; place < d->graph.block_count; place++)
        edges += (size_t)d->graph.blocks[place].successor_count;
    struct parting p = {.unit = unit, .d = d, .waits = arena_alloc(&d->arena, count)};
    p.operates = arena_alloc(&d->arena, count);
    p.way = arena_alloc(&d->arena, count * sizeof *p.way);
    p.copies = arena_alloc(&d->arena, count * sizeof(LLVMBasicBlockRef));
    p.exits = arena_alloc(&d->arena, edges * sizeof *p.exits);
    if (!phases_find(&flow, &d->arena, &phases) || d->arena.failed)
        return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %zu blocks", count);
    find_what_comes(&p);
    find_exits(&p, &flow, &phases);
    for (int e = 0; e < p.exit_count; e++) {
        bool done = false;
        for (int before = 0; before < e; before++) done |= leave_together(&p.exits[before], &p.exits[e]);
        if (!done) copy_way(&p, &p.exits[e]);
    }
    return SMELT_OK;
}

smelt_status ptx_lanes_part(struct unit *unit, struct divergence *d) {
    TRY(divergence_find(unit, d));
    if (d->irreducible || !some_wait(d)) return SMELT_OK;
    divergence_free(d);
    TRY(ptx_run_passes(unit, "function(lower-switch,reg2mem)"));
    TRY(divergence_find(unit, d));
    TRY(part(unit, d));
    divergence_free(d);
    TRY(ptx_run_passes(unit, "function(mem2reg)"));
    return divergence_find(unit, d);
}
