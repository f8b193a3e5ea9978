/* Masks of simdgroup operations: a value carried by control flow, with a vote where lanes diverge (see
 * warp.h). */
#include "compiler/ptx/warp/warp.h"

enum mask_source ptx_mask_source(const struct divergence *d, int place, int *from) {
    const struct path_block *block = &d->graph.blocks[place];
    bool header = block->loop >= 0 && d->graph.loops[block->loop].header == place;
    *from = -1;
    if (divergence_reached_by_all(d, place)) return MASK_FULL;
    if (header && d->graph.loops[block->loop].divergent) return MASK_OF_ROUNDS;
    int level = header ? d->graph.loops[block->loop].parent : block->loop, entries = 0, entry = -1;
    int above = divergence_place_above(d, place);
    if (divergence_reached_from(d, above, place)) {
        *from = above;
        return MASK_FROM_ABOVE;
    }
    for (int p = 0; p < block->predecessor_count; p++) {
        if (header && paths_within(&d->graph, block->predecessors[p], block->loop)) continue;
        entry = block->predecessors[p];
        entries++;
    }
    if (entries != 1 || d->graph.blocks[entry].loop != level) return MASK_UNKNOWN;
    *from = entry;
    return MASK_OF_EDGE;
}

void ptx_masks_start(struct ptx_masks *m, struct divergence *d) {
    *m = (struct ptx_masks){.unit = d->unit, .d = d, .full = constant_i32(d->unit, 0xffffffffu)};
    m->of_block = arena_alloc(&d->arena, (size_t)d->graph.block_count * sizeof *m->of_block);
    m->of_edge = arena_alloc(&d->arena, 2 * (size_t)d->graph.block_count * sizeof *m->of_edge);
}

static LLVMValueRef vote(struct ptx_masks *m, LLVMValueRef mask, LLVMValueRef condition) {
    return ptx_vote(m->unit, mask, condition);
}

static LLVMValueRef yes(struct ptx_masks *m) {
    return LLVMConstAllOnes(LLVMInt1TypeInContext(m->unit->context));
}

static LLVMValueRef mask_of_block(struct ptx_masks *m, int place);

/* The lanes that go from one block to another. */
static LLVMValueRef mask_of_edge(struct ptx_masks *m, int from, int to) {
    const struct divergence *d = m->d;
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(d->graph.blocks[from].block);
    LLVMBuilderRef b = m->unit->builder;
    LLVMValueRef mask = mask_of_block(m, from);
    if (!d->graph.blocks[from].divergent) return mask;
    unsigned successor = LLVMGetSuccessor(branch, 0) == d->graph.blocks[to].block ? 0 : 1;
    LLVMValueRef *known = &m->of_edge[2 * from + (int)successor], made = *known;
    if (made) return made;
    LLVMPositionBuilderBefore(b, branch);
    LLVMValueRef condition = LLVMGetCondition(branch);
    *known = vote(m, mask, successor == 0 ? condition : LLVMBuildNot(b, condition, ""));
    return *known;
}

static LLVMValueRef existing_lanes(struct ptx_masks *m);

/* Edges that no thread takes are not among the predecessors. */
static void add_never_taken(struct ptx_masks *m, int place, LLVMValueRef phi) {
    const struct path_block *block = &m->d->graph.blocks[place];
    for (int from = 0; from < m->d->graph.block_count; from++) {
        LLVMBasicBlockRef before = m->d->graph.blocks[from].block;
        LLVMValueRef end = LLVMGetBasicBlockTerminator(before), none = LLVMGetPoison(type_i32(m->unit));
        bool known = false;
        for (int p = 0; p < block->predecessor_count; p++) known |= block->predecessors[p] == from;
        for (unsigned s = 0; !known && s < LLVMGetNumSuccessors(end); s++)
            if (LLVMGetSuccessor(end, s) == block->block) LLVMAddIncoming(phi, &none, &before, 1);
    }
}

/* A round's mask names only lanes that exist: lanes may be counted from it. */
static LLVMValueRef mask_of_rounds(struct ptx_masks *m, int place) {
    const struct path_block *block = &m->d->graph.blocks[place];
    LLVMPositionBuilderBefore(m->unit->builder, LLVMGetFirstInstruction(block->block));
    LLVMValueRef phi = LLVMBuildPhi(m->unit->builder, type_i32(m->unit), "");
    m->of_block[place] = phi;
    for (int p = 0; p < block->predecessor_count; p++) {
        LLVMValueRef mask = mask_of_edge(m, block->predecessors[p], place);
        if (mask == m->full && !divergence_whole_warps(&m->unit->request->shape)) mask = existing_lanes(m);
        LLVMAddIncoming(phi, &mask, &m->d->graph.blocks[block->predecessors[p]].block, 1);
    }
    add_never_taken(m, place, phi);
    return phi;
}

static LLVMValueRef mask_of_block(struct ptx_masks *m, int place) {
    int from;
    if (m->of_block[place]) return m->of_block[place];
    switch (ptx_mask_source(m->d, place, &from)) {
    case MASK_OF_ROUNDS:
        return mask_of_rounds(m, place);
    case MASK_FROM_ABOVE:
        return m->of_block[place] = mask_of_block(m, from);
    case MASK_OF_EDGE:
        return m->of_block[place] = mask_of_edge(m, from, place);
    case MASK_UNKNOWN:
        m->unknown = true;
        break;
    case MASK_FULL:
        break;
    }
    return m->of_block[place] = m->full;
}

/* A vote at the start of the entry. */
static LLVMValueRef existing_lanes(struct ptx_masks *m) {
    if (m->existing) return m->existing;
    LLVMValueRef first = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(m->unit->entry));
    while (LLVMIsAAllocaInst(first)) first = LLVMGetNextInstruction(first);
    LLVMPositionBuilderBefore(m->unit->builder, first);
    m->existing = vote(m, m->full, yes(m));
    return m->existing;
}

struct ptx_lanes ptx_lanes_at(struct ptx_masks *m, int place) {
    const struct path_block *block = &m->d->graph.blocks[place];
    struct ptx_lanes lanes = {.mask = mask_of_block(m, place)};
    bool full = lanes.mask == m->full;
    if (full && !block->short_of) {
        lanes.from_first = true;
        if (!divergence_whole_warps(&m->unit->request->shape)) lanes.active = existing_lanes(m);
    } else if (!block->short_of) {
        lanes.active = lanes.mask; /* for votes alone */
    } else {
        LLVMValueRef first = LLVMGetFirstInstruction(block->block);
        while (LLVMIsAPHINode(first) || LLVMIsAAllocaInst(first)) first = LLVMGetNextInstruction(first);
        LLVMPositionBuilderBefore(m->unit->builder, first);
        lanes.active = vote(m, lanes.mask, yes(m));
    }
    return lanes;
}
