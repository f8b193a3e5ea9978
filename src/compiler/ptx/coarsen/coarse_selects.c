/* If-conversion: branches in a loop's body become selects, so that the loop is one block (coarse_loop.c):
 *
 *     for (i = position; i < count; i += threads) out[i] = a[i] > 5 ? a[i] : f(a[i]);
 *
 * This is done if the conditional blocks only compute, and little: afterwards, every round runs all of them.
 */
#include "compiler/ptx/coarsen/coarse.h"
#include "compiler/ptx/memory/guarded.h"

/* Instructions of conditional blocks. A round that loads and stores one element of two bytes takes as long as
 * about 90 instructions (candle's gelu of 2^26 halfs on an H200: 187 us), so computing what is not needed
 * costs no more. */
#define MOST_SKIPPED 90

struct conversion {
    struct coarsening *c;
    int latch;               /* the loop's last block, which becomes all of it */
    LLVMValueRef *condition; /* by block, i1: whether a round runs it; NULL: it does, or not known yet */
};

static bool within(const struct conversion *w, int block) {
    return w->c->flow.blocks[block].loop == 0;
}

static bool always_runs(const struct conversion *w, int block) {
    return flow_dominates(&w->c->flow, block, w->latch);
}

static LLVMValueRef end_of(const struct conversion *w, int block) {
    return LLVMGetBasicBlockTerminator(w->c->flow.blocks[block].block);
}

/* ---- Whether it is possible, and costs little. */

static bool may_run(const struct conversion *w, LLVMValueRef i) {
    return LLVMIsAPHINode(i) || LLVMIsATerminatorInst(i) ||
           (coarse_is_pure(w->c->unit, i) && !guarded_divides(i));
}

/* Most casts cost nothing. */
static bool has_cost(LLVMValueRef i) {
    return !LLVMIsACastInst(i) && !LLVMIsAPHINode(i) && !LLVMIsATerminatorInst(i);
}

/* Only the last block leaves the loop. */
static bool stays_inside(const struct conversion *w, int block) {
    LLVMValueRef end = end_of(w, block);
    if (!LLVMIsABranchInst(end)) return false;
    for (unsigned s = 0; block != w->latch && s < LLVMGetNumSuccessors(end); s++) {
        int next = flow_index(&w->c->flow, LLVMGetSuccessor(end, s));
        if (!within(w, next) || next <= block) return false;
    }
    return true;
}

static bool is_cheap(const struct conversion *w) {
    int skipped = 0;
    for (int i = 0; i < w->c->flow.block_count; i++) {
        if (!within(w, i)) continue;
        if (i > w->latch || !stays_inside(w, i)) return false;
        if (always_runs(w, i)) continue;
        FOR_EACH_INSTRUCTION(value, w->c->flow.blocks[i].block) {
            if (!may_run(w, value)) return false;
            skipped += has_cost(value);
        }
    }
    return skipped <= MOST_SKIPPED;
}

/* ---- What a round runs. */

static LLVMValueRef both(struct conversion *w, LLVMValueRef a, LLVMValueRef b) {
    return a && b ? LLVMBuildAnd(w->c->unit->builder, a, b, "") : a ? a : b;
}

/* Whether a round passes from one block to the other; NULL: always. Where a round does not run `from`, its
 * condition may be poison. */
static LLVMValueRef passes(struct conversion *w, int from, int to) {
    LLVMBuilderRef b = w->c->unit->builder;
    LLVMValueRef end = end_of(w, from), runs = w->condition[from], either = NULL;
    LLVMBasicBlockRef target = w->c->flow.blocks[to].block;
    if (!LLVMIsConditional(end) || LLVMGetSuccessor(end, 0) == LLVMGetSuccessor(end, 1)) return runs;
    either = LLVMGetCondition(end);
    if (runs) either = LLVMBuildFreeze(b, either, "");
    if (LLVMGetSuccessor(end, 0) != target) either = LLVMBuildNot(b, either, "");
    return both(w, runs, either);
}

static void find_condition(struct conversion *w, int block) {
    const struct flow_block *own = &w->c->flow.blocks[block];
    if (always_runs(w, block)) return;
    for (int i = 0; i < own->predecessor_count; i++) {
        LLVMValueRef from = passes(w, own->predecessors[i], block);
        w->condition[block] = i ? LLVMBuildOr(w->c->unit->builder, w->condition[block], from, "") : from;
    }
}

/* The value of a phi that joins branches. */
static LLVMValueRef chosen(struct conversion *w, LLVMValueRef phi, int block) {
    const struct flow_block *own = &w->c->flow.blocks[block];
    LLVMValueRef value = NULL;
    for (int i = 0; i < own->predecessor_count; i++) {
        LLVMValueRef one = phi_incoming(phi, w->c->flow.blocks[own->predecessors[i]].block);
        if (value && value != one)
            one =
                LLVMBuildSelect(w->c->unit->builder, passes(w, own->predecessors[i], block), one, value, "");
        value = one;
    }
    return value;
}

/* ---- One block. */

static void move_to_builder(struct conversion *w, LLVMValueRef i) {
    LLVMInstructionRemoveFromParent(i);
    LLVMInsertIntoBuilder(w->c->unit->builder, i);
}

/* Moves a block's instructions to the builder's place, before the last block's own. */
static void move(struct conversion *w, int block) {
    bool first = block == w->c->flow.loops[0].header;
    find_condition(w, block);
    FOR_EACH_INSTRUCTION(i, w->c->flow.blocks[block].block) {
        if (LLVMIsATerminatorInst(i) || (first && LLVMIsAPHINode(i))) continue;
        if (LLVMIsAPHINode(i)) {
            LLVMReplaceAllUsesWith(i, chosen(w, i, block));
            LLVMInstructionEraseFromParent(i);
        } else if (block != w->latch) {
            move_to_builder(w, i);
        }
    }
}

static void move_counters(struct conversion *w, LLVMBasicBlockRef latch) {
    LLVMPositionBuilderBefore(w->c->unit->builder, LLVMGetFirstInstruction(latch));
    FOR_EACH_INSTRUCTION(i, w->c->flow.blocks[w->c->flow.loops[0].header].block) {
        if (LLVMIsAPHINode(i)) move_to_builder(w, i);
    }
}

static void enter_at(struct conversion *w, LLVMBasicBlockRef latch) {
    const struct flow_block *header = &w->c->flow.blocks[w->c->flow.loops[0].header];
    for (int i = 0; i < header->predecessor_count; i++) {
        LLVMValueRef end = end_of(w, header->predecessors[i]);
        for (unsigned s = 0; s < LLVMGetNumSuccessors(end); s++)
            if (LLVMGetSuccessor(end, s) == header->block) LLVMSetSuccessor(end, s, latch);
    }
}

static void join(struct conversion *w) {
    LLVMBuilderRef b = w->c->unit->builder;
    LLVMBasicBlockRef latch = w->c->flow.blocks[w->latch].block;
    LLVMValueRef behind = LLVMGetFirstInstruction(latch); /* after the latch's phis, which are removed */
    while (LLVMIsAPHINode(behind)) behind = LLVMGetNextInstruction(behind);
    LLVMPositionBuilderBefore(b, behind);
    for (int i = 0; i < w->c->flow.block_count; i++)
        if (within(w, i)) move(w, i);
    move_counters(w, latch);
    enter_at(w, latch);
    for (int i = 0; i < w->c->flow.block_count; i++)
        if (within(w, i) && i != w->latch) LLVMInstructionEraseFromParent(end_of(w, i));
    for (int i = 0; i < w->c->flow.block_count; i++)
        if (within(w, i) && i != w->latch) LLVMDeleteBasicBlock(w->c->flow.blocks[i].block);
}

static bool convert(struct coarsening *c) {
    const struct flow_loop *loop = &c->flow.loops[0];
    struct conversion w = {.c = c};
    if (c->flow.loop_count != 1 || c->flow.irreducible || loop->latch_count != 1) return false;
    w.latch = loop->latches[0];
    if (w.latch == loop->header || !is_cheap(&w)) return false;
    w.condition = arena_alloc(&c->arena, (size_t)c->flow.block_count * sizeof(LLVMValueRef));
    if (!w.condition) return false;
    join(&w);
    return true;
}

smelt_status coarse_take_apart_with_selects(struct coarsening *c) {
    TRY(coarse_take_apart(c));
    if (!c->branches || !c->unit->request->shape.coarse || !convert(c)) return SMELT_OK;
    return coarse_take_apart(c);
}
