/* Compilers for GPUs hold lanes that went different ways where the ways join, to run on together. A lane that
 * has nothing left to do but to end must not be held by lanes that wait at a barrier for all that have not
 * ended. */
#include "ptx/warp.h"

static bool goes_on_without(const struct divergence *d, int place) {
    const struct divergence_block *block = &d->blocks[place];
    return block->divergent || block->leaf || !is_reached_by_all(d, place);
}

static void end_here(struct unit *unit, LLVMBasicBlockRef block, unsigned successor) {
    LLVMBasicBlockRef edge = split_edge(unit, block, successor);
    LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(edge));
    LLVMPositionBuilderAtEnd(unit->builder, edge);
    /* Not LLVM's own exit, before which it drops stores as if nobody read them. */
    ptx_assembly(unit, "exit;", "~{memory}", NULL, NULL, 0, true);
    LLVMBuildUnreachable(unit->builder);
}

void ptx_end_lanes(const struct divergence *d) {
    for (int place = 0; place < d->block_count; place++) {
        if (!goes_on_without(d, place)) continue;
        LLVMValueRef branch = LLVMGetBasicBlockTerminator(d->blocks[place].block);
        for (unsigned s = 0; s < LLVMGetNumSuccessors(branch); s++)
            if (is_end(LLVMGetSuccessor(branch, s))) end_here(d->unit, d->blocks[place].block, s);
    }
}

/* ---- Ways of their own. */

struct parting {
    struct unit *unit;
    const struct divergence *d;
    bool *waits; /* by place: a barrier may come */
    int *way;    /* the blocks of one way to the end, */
    int count;
    LLVMBasicBlockRef *copies; /* and, by place, their copies */
};

static bool some_wait(const struct divergence *d) {
    for (int place = 0; place < d->block_count; place++)
        if (has_threadgroup_barrier(d->blocks[place].block) && !is_reached_by_all(d, place)) return true;
    return false;
}

static void find_waits(struct parting *p) {
    for (bool changed = true; changed;) {
        changed = false;
        for (int place = p->d->block_count - 1; place >= 0; place--) {
            const struct divergence_block *block = &p->d->blocks[place];
            bool waits = has_threadgroup_barrier(block->block);
            for (int s = 0; s < block->successor_count; s++) waits |= p->waits[block->successors[s]];
            changed |= waits != p->waits[place];
            p->waits[place] = waits;
        }
    }
}

static void copy_block(const struct parting *p, LLVMBasicBlockRef block, LLVMBasicBlockRef copy) {
    LLVMBuilderRef b = p->unit->builder;
    LLVMPositionBuilderAtEnd(b, copy);
    FOR_EACH_INSTRUCTION(instruction, block) {
        LLVMInsertIntoBuilder(b, LLVMInstructionClone(instruction));
    }
    /* Values do not cross blocks: operands are those of the same block, at the same place. */
    LLVMValueRef to = LLVMGetFirstInstruction(copy);
    for (LLVMValueRef from = LLVMGetFirstInstruction(block); from; from = LLVMGetNextInstruction(from)) {
        LLVMValueRef user = LLVMGetNextInstruction(to);
        for (; user; user = LLVMGetNextInstruction(user))
            for (int o = 0; o < LLVMGetNumOperands(user); o++)
                if (LLVMGetOperand(user, (unsigned)o) == from) LLVMSetOperand(user, (unsigned)o, to);
        to = LLVMGetNextInstruction(to);
    }
    LLVMValueRef terminator = LLVMGetBasicBlockTerminator(copy);
    for (unsigned s = 0; s < LLVMGetNumSuccessors(terminator); s++) {
        LLVMBasicBlockRef own = p->copies[place_of(p->d, LLVMGetSuccessor(terminator, s))];
        if (own) LLVMSetSuccessor(terminator, s, own);
    }
}

static void copy_way(struct parting *p, LLVMValueRef branch, unsigned successor) {
    const struct divergence *d = p->d;
    p->count = 0;
    p->way[p->count++] = place_of(d, LLVMGetSuccessor(branch, successor));
    for (int next = 0; next < p->count; next++) {
        int place = p->way[next];
        p->copies[place] = LLVMAppendBasicBlockInContext(p->unit->context, p->unit->entry, "end");
        for (int s = 0; s < d->blocks[place].successor_count; s++) {
            int target = d->blocks[place].successors[s];
            bool listed = is_end(d->blocks[target].block);
            for (int i = 0; i < p->count && !listed; i++) listed = p->way[i] == target;
            if (!listed) p->way[p->count++] = target;
        }
    }
    for (int i = 0; i < p->count; i++) copy_block(p, d->blocks[p->way[i]].block, p->copies[p->way[i]]);
    LLVMSetSuccessor(branch, successor, p->copies[p->way[0]]);
    for (int i = 0; i < p->count; i++) p->copies[p->way[i]] = NULL;
}

/* Each way out of what waits gets a copy of all that follows, with values between blocks in memory meanwhile.
 */
static smelt_status part(struct unit *unit, struct divergence *d) {
    size_t count = (size_t)d->block_count;
    struct parting p = {.unit = unit, .d = d, .waits = arena_alloc(&d->arena, count)};
    p.way = arena_alloc(&d->arena, count * sizeof *p.way);
    p.copies = arena_alloc(&d->arena, count * sizeof(LLVMBasicBlockRef));
    if (d->arena.failed) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %zu blocks", count);
    find_waits(&p);
    for (int place = 0; place < d->block_count; place++) {
        LLVMValueRef branch = LLVMGetBasicBlockTerminator(d->blocks[place].block);
        bool some_go_on = false;
        for (int s = 0; s < d->blocks[place].successor_count; s++)
            some_go_on |= p.waits[d->blocks[place].successors[s]];
        /* Behind the last barrier nobody waits any more: ways that part there meet again. */
        for (unsigned s = 0; some_go_on && s < LLVMGetNumSuccessors(branch); s++) {
            int target = place_of(d, LLVMGetSuccessor(branch, s));
            if (p.waits[target] || is_end(d->blocks[target].block)) continue;
            copy_way(&p, branch, s);
        }
    }
    return SMELT_OK;
}

smelt_status ptx_lanes_part(struct unit *unit, struct divergence *d) {
    TRY(divergence_find(unit, d));
    if (d->irreducible || !some_wait(d)) return SMELT_OK;
    divergence_free(d);
    TRY(run_ptx_passes(unit, "function(lower-switch,reg2mem)"));
    TRY(divergence_find(unit, d));
    TRY(part(unit, d));
    divergence_free(d);
    TRY(run_ptx_passes(unit, "function(mem2reg)"));
    return divergence_find(unit, d);
}
