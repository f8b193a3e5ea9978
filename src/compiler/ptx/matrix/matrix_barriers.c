/* Removes `simdgroup_barrier(mem_flags::mem_none)` where it has nothing to order.
 *
 * Kernels that multiply matrices have such barriers around the loads of each step, as hints for another
 * compiler's scheduler. Each takes an instruction here, and NVIDIA's assembler moves no load across it. They
 * order all memory nevertheless, since authors rely on it (docs/semantics.md). So only those go between which
 * and the barriers before and behind, which order memory for all lanes, nothing is written. */
#include "compiler/ptx/matrix/matrix_placed.h"

static bool is_of_none(LLVMValueRef instruction) {
    uint64_t flags;
    return intrinsic_of(instruction) == INTRINSIC_SIMDGROUP_BARRIER &&
           is_constant_integer(LLVMGetOperand(instruction, 0), &flags) && flags == 0;
}

/* One that stays and that all lanes reach. */
static bool is_barrier(const struct matrices *m, LLVMValueRef instruction) {
    return matrix_is_barrier(instruction) && !is_of_none(instruction) &&
           (intrinsic_of(instruction) == INTRINSIC_THREADGROUP_BARRIER ||
            matrix_is_together(m, LLVMGetInstructionParent(instruction)));
}

static bool may_write(LLVMValueRef instruction) {
    return matrix_may_write(instruction, PTX_SHARED) || matrix_may_write(instruction, PTX_GLOBAL);
}

/* Whether something may be written from `from` on (NULL: the block's start) before the next barrier; `after`:
 * behind the block. */
static bool writes_ahead(const struct matrices *m, LLVMBasicBlockRef block, LLVMValueRef from, bool after) {
    LLVMValueRef i = from ? from : LLVMGetFirstInstruction(block);
    for (; i; i = LLVMGetNextInstruction(i)) {
        if (is_barrier(m, i)) return false;
        if (may_write(i)) return true;
    }
    return after;
}

/* … up to `to` (NULL: the block's end) since the last barrier; `before`: ahead of the block. */
static bool writes_behind(const struct matrices *m, LLVMBasicBlockRef block, LLVMValueRef to, bool before) {
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (instruction == to) break;
        if (is_barrier(m, instruction)) before = false;
        if (may_write(instruction)) before = true;
    }
    return before;
}

/* By block: something may be written before its start since the last barrier, or behind its end before the
 * next one. */
struct writes {
    bool *before, *after;
};

static bool find_one(const struct matrices *m, struct writes *w, int i) {
    const struct flow *flow = &m->flow;
    LLVMBasicBlockRef block = flow->blocks[i].block;
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    bool changed = false;
    for (int p = 0; p < flow->blocks[i].predecessor_count && !w->before[i]; p++) {
        int from = flow->blocks[i].predecessors[p];
        w->before[i] = writes_behind(m, flow->blocks[from].block, NULL, w->before[from]);
        changed |= w->before[i];
    }
    for (unsigned s = 0; s < LLVMGetNumSuccessors(end) && !w->after[i]; s++) {
        int to = flow_index(flow, LLVMGetSuccessor(end, s));
        w->after[i] = to < 0 || writes_ahead(m, flow->blocks[to].block, NULL, w->after[to]);
        changed |= w->after[i];
    }
    return changed;
}

static bool has_none(LLVMBasicBlockRef block) {
    FOR_EACH_INSTRUCTION(call, block) {
        if (is_of_none(call)) return true;
    }
    return false;
}

smelt_status matrix_drop_barriers(struct matrices *m) {
    const struct flow *flow = &m->flow;
    size_t count = (size_t)flow->block_count;
    struct writes w = {NULL, NULL};
    for (int i = 0; i < flow->block_count; i++) {
        LLVMBasicBlockRef block = flow->blocks[i].block;
        if (!matrix_is_together(m, block) || !has_none(block)) continue;
        if (!w.before) {
            w = (struct writes){arena_alloc(&m->arena, count), arena_alloc(&m->arena, count)};
            if (!w.before || !w.after)
                return unit_fail(m->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for matrix products");
            for (bool changed = true; changed;) {
                changed = false;
                for (int k = 0; k < flow->block_count; k++) changed |= find_one(m, &w, k);
            }
        }
        FOR_EACH_INSTRUCTION(call, block) {
            if (!is_of_none(call)) continue;
            if (writes_behind(m, block, call, w.before[i]) || writes_ahead(m, block, call, w.after[i]))
                continue;
            LLVMInstructionEraseFromParent(call);
        }
    }
    return SMELT_OK;
}
