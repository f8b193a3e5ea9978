/* Paths around threadgroup barriers. A thread that leaves for good while others go on to a barrier finishes
 * its remaining work before they pass the barrier (phases.h). Where such paths share code with paths that
 * leave in another phase, each phase gets a copy of its own. A path out of a loop with barriers becomes part
 * of that loop: an edge that is never taken leads from its end to the loop's header. From here on, all
 * engines therefore see which threads act together: simdgroup functions on such a path are executed by the
 * lanes that leave in the same round, and engines that reorder code see what must come first.
 *
 * Only paths are considered that end in an explicit return (others cannot cause a barrier error), that have
 * visible effects, and that some threads may take while others do not.
 *
 * Requires: functions inlined, values in registers, marks of returns (returns.c). Maintains: all else. */
#include "compiler/pass.h"
#include "compiler/analysis/phases.h"
#include "compiler/analysis/uniform.h"

#include <string.h>

#define LEAVES "smelt.leaves" /* metadata of branches by which some threads may leave */

struct parting {
    struct unit *unit;
    struct arena arena;
    struct flow flow;
    struct phases phases;
    bool *acts; /* by block: what comes from here on can be seen by others, */
    bool *ends; /* and has an explicit return */
    struct leaving {
        struct phase phase;
        int from, to;
    } *leaving;
    int leaving_count;
    struct search {
        bool *seen; /* by block */
        int *blocks, count;
    } before, behind;
};

/* ---- Do only some threads come to a block? */

static bool start_search(struct parting *p, struct search *s) {
    size_t count = (size_t)p->flow.block_count;
    *s = (struct search){arena_alloc(&p->arena, count), arena_alloc(&p->arena, count * sizeof(int)), 0};
    return !p->arena.failed;
}

static void clear_search(const struct parting *p, struct search *s) {
    memset(s->seen, 0, (size_t)p->flow.block_count);
    s->count = 0;
}

static void visit(struct search *s, int block) {
    if (!s->seen[block]) s->blocks[s->count++] = block;
    s->seen[block] = true;
}

/* Can one come from a block to a barrier without coming by another block? */
static bool may_miss(struct parting *p, int from, int other) {
    struct search *s = &p->behind;
    clear_search(p, s);
    s->seen[other] = true;
    for (int next = -1; next < s->count; next++) {
        int at = next < 0 ? from : s->blocks[next];
        if (next >= 0 && p->phases.stands[at]) return true;
        LLVMValueRef end = LLVMGetBasicBlockTerminator(p->flow.blocks[at].block);
        for (unsigned n = 0; n < LLVMGetNumSuccessors(end); n++)
            visit(s, flow_index(&p->flow, LLVMGetSuccessor(end, n)));
    }
    return false;
}

/* May threads have parted since the last barrier, so that others go on to one without coming here? */
static bool some_come(struct parting *p, int block) {
    struct search *s = &p->before;
    clear_search(p, s);
    visit(s, block);
    for (int next = 0; next < s->count; next++) {
        const struct flow_block *at = &p->flow.blocks[s->blocks[next]];
        if (next && uniform_splits_threads(&p->flow, LLVMGetBasicBlockTerminator(at->block)) &&
            may_miss(p, s->blocks[next], block))
            return true;
        for (int n = 0; !p->phases.stands[s->blocks[next]] && n < at->predecessor_count; n++)
            visit(s, at->predecessors[n]);
    }
    return false;
}

/* ---- Who leaves. */

static smelt_status look(struct parting *p) {
    TRY(flow_find(p->unit, p->unit->entry, &p->arena, &p->flow));
    size_t count = (size_t)p->flow.block_count, edges = 0;
    p->acts = arena_alloc(&p->arena, count);
    p->ends = arena_alloc(&p->arena, count);
    for (size_t i = 0; i < count; i++) edges += (size_t)p->flow.blocks[i].predecessor_count;
    p->leaving = arena_alloc(&p->arena, (edges + 1) * sizeof *p->leaving);
    p->leaving_count = 0;
    if (!phases_find(&p->flow, &p->arena, &p->phases) || !start_search(p, &p->before) ||
        !start_search(p, &p->behind))
        return unit_fail(p->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %zu blocks", count);
    for (size_t i = 0; i < count; i++) {
        p->acts[i] = returns_has_effect(p->flow.blocks[i].block);
        p->ends[i] = intrinsic_in_block(p->flow.blocks[i].block, INTRINSIC_THREAD_RETURN);
    }
    flow_spread(&p->flow, p->acts);
    flow_spread(&p->flow, p->ends);
    return SMELT_OK;
}

static bool leaves(const struct parting *p, int from, int to) {
    return p->phases.waits[from] && !p->phases.waits[to] && p->acts[to] && p->ends[to];
}

static unsigned mark_kind(const struct parting *p) {
    return LLVMGetMDKindIDInContext(p->unit->context, LEAVES, sizeof LEAVES - 1);
}

/* Edges from one phase to what no barrier follows. `marked`: of branches marked already. */
static void find_leaving(struct parting *p, bool marked) {
    for (int to = 0; to < p->flow.block_count; to++)
        for (int n = 0; n < p->flow.blocks[to].predecessor_count; n++) {
            int from = p->flow.blocks[to].predecessors[n];
            LLVMValueRef end = LLVMGetBasicBlockTerminator(p->flow.blocks[from].block);
            if (leaves(p, from, to) && (marked ? LLVMGetMetadata(end, mark_kind(p)) != NULL
                                               : uniform_splits_threads(&p->flow, end) || some_come(p, from)))
                p->leaving[p->leaving_count++] =
                    (struct leaving){phase_left(&p->flow, &p->phases, from), from, to};
        }
}

/* NULL: takes the marks away. */
static void mark_leaving(struct parting *p, LLVMValueRef mark) {
    for (int l = 0; l < p->leaving_count; l++)
        LLVMSetMetadata(LLVMGetBasicBlockTerminator(p->flow.blocks[p->leaving[l].from].block), mark_kind(p),
                        mark);
}

/* ---- One phase's ways. */

struct ways {
    bool *listed; /* by block */
    int *blocks;
    int count;
    LLVMBasicBlockRef *copies; /* by block, or NULL */
};

static bool same_phase(struct phase a, struct phase b) {
    return a.loop == b.loop && a.level == b.level;
}

static void list(struct ways *w, int block) {
    if (!w->listed[block]) w->blocks[w->count++] = block;
    w->listed[block] = true;
}

/* All that may come after the edges of the phase. */
static void find_ways(const struct parting *p, struct phase phase, struct ways *w) {
    memset(w->listed, 0, (size_t)p->flow.block_count);
    w->count = 0;
    for (int l = 0; l < p->leaving_count; l++)
        if (same_phase(p->leaving[l].phase, phase)) list(w, p->leaving[l].to);
    for (int next = 0; next < w->count; next++) {
        LLVMValueRef end = LLVMGetBasicBlockTerminator(p->flow.blocks[w->blocks[next]].block);
        for (unsigned s = 0; s < LLVMGetNumSuccessors(end); s++)
            list(w, flow_index(&p->flow, LLVMGetSuccessor(end, s)));
    }
}

/* Do others come to the ways, in what they do? */
static bool is_shared(const struct parting *p, struct phase phase, const struct ways *w) {
    for (int n = 0; n < w->count; n++) {
        const struct flow_block *block = &p->flow.blocks[w->blocks[n]];
        for (int i = 0; p->acts[w->blocks[n]] && i < block->predecessor_count; i++) {
            int from = block->predecessors[i];
            bool own = w->listed[from];
            for (int l = 0; l < p->leaving_count && !own; l++)
                own = p->leaving[l].from == from && p->leaving[l].to == w->blocks[n] &&
                      same_phase(p->leaving[l].phase, phase);
            if (!own) return true;
        }
    }
    return false;
}

static smelt_status start_ways(struct parting *p, struct ways *w) {
    size_t count = (size_t)p->flow.block_count;
    *w = (struct ways){arena_alloc(&p->arena, count), arena_alloc(&p->arena, count * sizeof(int)), 0,
                       arena_alloc(&p->arena, count * sizeof(LLVMBasicBlockRef))};
    return p->arena.failed ? unit_fail(p->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %zu blocks", count)
                           : SMELT_OK;
}

static bool must_part(struct parting *p, struct ways *w) {
    for (int l = 0; l < p->leaving_count; l++) {
        if (p->leaving[l].phase.loop >= 0) return true;
        find_ways(p, p->leaving[l].phase, w);
        if (is_shared(p, p->leaving[l].phase, w)) return true;
    }
    return false;
}

/* ---- Copies. Values lie in memory between blocks. */

static bool is_variable(LLVMValueRef alloca) {
    for (LLVMUseRef use = LLVMGetFirstUse(alloca); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        bool store = LLVMIsAStoreInst(user) && LLVMGetOperand(user, 1) == alloca;
        if (LLVMIsALoadInst(user)
                ? LLVMTypeOf(user) != LLVMGetAllocatedType(alloca)
                : !store || LLVMTypeOf(LLVMGetOperand(user, 0)) != LLVMGetAllocatedType(alloca))
            return false;
    }
    return true;
}

static bool changes_in(const struct parting *p, LLVMValueRef variable, int loop) {
    for (LLVMUseRef use = LLVMGetFirstUse(variable); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        int at = LLVMIsAStoreInst(user) ? flow_index(&p->flow, LLVMGetInstructionParent(user)) : -1;
        for (int own = at < 0 ? -1 : p->flow.blocks[at].loop; own >= 0; own = p->flow.loops[own].parent)
            if (own == loop) return true;
    }
    return false;
}

/* What nobody brings back to the loop is the same in all threads: the loop's counters stay uniform. Not
 * poison, nor pointers to nothing: LLVM would conclude that the edge does not exist. */
static void forget_variables(const struct parting *p, int loop) {
    FOR_EACH_INSTRUCTION(i, LLVMGetEntryBasicBlock(p->unit->entry)) {
        if (!LLVMIsAAllocaInst(i) || !is_variable(i) || !changes_in(p, i, loop)) continue;
        LLVMTypeRef type = LLVMGetAllocatedType(i);
        if (LLVMGetTypeKind(type) != LLVMPointerTypeKind)
            LLVMBuildStore(p->unit->builder, LLVMConstNull(type), i);
    }
}

static void lead_back(const struct parting *p, LLVMBasicBlockRef block, int loop) {
    struct unit *unit = p->unit;
    LLVMBasicBlockRef header = p->flow.blocks[p->flow.loops[loop].header].block;
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    if (!LLVMIsAReturnInst(end)) return;
    LLVMBasicBlockRef last = LLVMAppendBasicBlockInContext(unit->context, unit->entry, "left");
    LLVMPositionBuilderAtEnd(unit->builder, last);
    LLVMBuildRetVoid(unit->builder);
    LLVMBasicBlockRef back = LLVMAppendBasicBlockInContext(unit->context, unit->entry, "never");
    LLVMPositionBuilderAtEnd(unit->builder, back);
    forget_variables(p, loop);
    LLVMBuildBr(unit->builder, header);
    LLVMPositionBuilderBefore(unit->builder, end);
    LLVMBuildCondBr(unit->builder, phases_build_never(unit), back, last);
    LLVMInstructionEraseFromParent(end);
}

static void redirect(LLVMBasicBlockRef block, const struct parting *p, const struct ways *w,
                     const int *only) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    for (unsigned s = 0; s < LLVMGetNumSuccessors(end); s++) {
        int to = flow_index(&p->flow, LLVMGetSuccessor(end, s));
        if (to >= 0 && w->copies[to] && (!only || *only == to)) LLVMSetSuccessor(end, s, w->copies[to]);
    }
}

static void copy_ways(struct parting *p, struct phase phase, struct ways *w) {
    struct unit *unit = p->unit;
    find_ways(p, phase, w);
    for (int n = 0; n < w->count; n++) {
        LLVMBasicBlockRef *copy = &w->copies[w->blocks[n]];
        *copy = LLVMAppendBasicBlockInContext(unit->context, unit->entry, "leave");
        phases_copy_block(unit, p->flow.blocks[w->blocks[n]].block, *copy);
    }
    for (int n = 0; n < w->count; n++) redirect(w->copies[w->blocks[n]], p, w, NULL);
    for (int n = 0; phase.loop >= 0 && n < w->count; n++) lead_back(p, w->copies[w->blocks[n]], phase.loop);
    for (int l = 0; l < p->leaving_count; l++)
        if (same_phase(p->leaving[l].phase, phase))
            redirect(p->flow.blocks[p->leaving[l].from].block, p, w, &p->leaving[l].to);
    for (int n = 0; n < w->count; n++) w->copies[w->blocks[n]] = NULL;
}

static smelt_status copy_all(struct parting *p) {
    struct ways w;
    TRY(look(p));
    find_leaving(p, true);
    mark_leaving(p, NULL);
    TRY(start_ways(p, &w));
    for (int l = 0; l < p->leaving_count; l++) {
        bool done = false;
        for (int before = 0; before < l; before++)
            done |= same_phase(p->leaving[before].phase, p->leaving[l].phase);
        if (!done) copy_ways(p, p->leaving[l].phase, &w);
    }
    return SMELT_OK;
}

static smelt_status part(struct parting *p) {
    struct ways w;
    TRY(look(p));
    if (p->flow.irreducible) return SMELT_OK;
    find_leaving(p, false);
    TRY(start_ways(p, &w));
    if (!must_part(p, &w)) return SMELT_OK;
    mark_leaving(p, LLVMMetadataAsValue(p->unit->context, LLVMMDNodeInContext2(p->unit->context, NULL, 0)));
    TRY(run_passes(p->unit, "function(reg2mem)"));
    TRY(copy_all(p));
    return run_passes(p->unit, "function(mem2reg,simplifycfg)");
}

smelt_status pass_part(struct unit *unit) {
    if (!intrinsic_function(unit->module, INTRINSIC_THREADGROUP_BARRIER) ||
        !intrinsic_function(unit->module, INTRINSIC_THREAD_RETURN))
        return SMELT_OK;
    struct parting p = {.unit = unit};
    smelt_status status = part(&p);
    arena_free(&p.arena);
    return status;
}
