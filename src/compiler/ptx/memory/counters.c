/* Addresses in a loop whose distances do not change in it share one counter.
 *
 *     for (b = …; b < blocks; b += 16) for (r = 0; r < 4; r++) sums[r] += dot(w + r * blocks + b, …);
 *
 * LLVM's code generator gives the address of each row, and that of each part of a row, a counter of its own
 * where several things are computed from it. Each takes two registers, and an addition of 64 bits per round
 * (two instructions). Here the first row's address is hidden from LLVM, which then adds the distance of the
 * other rows. That distance is the same for all threads and does not change, so it is in registers that all
 * lanes share, and the rows' addresses live only until they are used.
 *
 * words.c hides the address of each run of words for the same reason. Where a loop has no such rows, LLVM may
 * count it after all: NVIDIA's assembler begins the loads of a thread with a row of its own earlier.
 *
 * Requires: the module in its final form. Maintains: what the code does. */
#include "compiler/analysis/flow.h"
#include "compiler/ptx/ptx.h"

#define FEWEST_ADDRESSES 2 /* in addition to the hidden one */
#define DEEPEST 6

struct counters {
    struct unit *unit;
    struct arena arena;
    struct flow flow;
    bool *rows; /* by loop: it has addresses that are hidden here */
};

/* Whether a value is the same in all rounds, or can be computed from such values. */
static bool is_invariant(const struct counters *c, LLVMValueRef value, int loop, int depth) {
    if (!LLVMIsAInstruction(value)) return true;
    int block = flow_index(&c->flow, LLVMGetInstructionParent(value));
    if (!flow_block_within(&c->flow, block, loop)) return block >= 0;
    if (depth == 0 || (!LLVMIsABinaryOperator(value) && !LLVMIsACastInst(value))) return false;
    for (unsigned i = 0; i < (unsigned)LLVMGetNumOperands(value); i++)
        if (!is_invariant(c, LLVMGetOperand(value, i), loop, depth - 1)) return false;
    return true;
}

static bool is_address(LLVMValueRef value) {
    return LLVMIsAGetElementPtrInst(value) && LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMPointerTypeKind &&
           LLVMGetPointerAddressSpace(LLVMTypeOf(value)) == PTX_GLOBAL;
}

/* Whether an address is `base` plus what does not change in the loop, and not all of it is constant. */
static bool adds_invariant(const struct counters *c, LLVMValueRef address, LLVMValueRef base, int loop) {
    if (!is_address(address) || LLVMGetOperand(address, 0) != base) return false;
    bool constant = true;
    for (unsigned i = 1; i < (unsigned)LLVMGetNumOperands(address); i++) {
        if (!is_invariant(c, LLVMGetOperand(address, i), loop, DEEPEST)) return false;
        constant &= LLVMIsAConstant(LLVMGetOperand(address, i)) != NULL;
    }
    return !constant;
}

/* Whether words around unaligned bytes (words.c) are loaded from the address, or from a part of what is
 * there. */
static bool has_words(const struct counters *c, LLVMValueRef address, int loop, int depth) {
    for (LLVMUseRef use = LLVMGetFirstUse(address); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMIsAPtrToIntInst(user)) return true;
        if (depth > 0 && is_address(user) && LLVMGetOperand(user, 0) == address &&
            has_words(c, user, loop, depth - 1))
            return true;
    }
    return false;
}

static bool is_shared(const struct counters *c, LLVMValueRef base, int loop) {
    int count = 0;
    bool varies = false;
    if (!is_address(base)) return false;
    for (unsigned i = 0; i < (unsigned)LLVMGetNumOperands(base); i++)
        varies |= !is_invariant(c, LLVMGetOperand(base, i), loop, DEEPEST);
    for (LLVMUseRef use = LLVMGetFirstUse(base); varies && use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        int block = LLVMIsAInstruction(user) ? flow_index(&c->flow, LLVMGetInstructionParent(user)) : -1;
        count += block >= 0 && c->flow.blocks[block].loop == loop && adds_invariant(c, user, base, loop) &&
                 has_words(c, user, loop, DEEPEST);
    }
    return count >= FEWEST_ADDRESSES;
}

static void hide(struct counters *c, LLVMValueRef address) {
    LLVMTypeRef type = LLVMTypeOf(address);
    LLVMPositionBuilderBefore(c->unit->builder, LLVMGetNextInstruction(address));
    LLVMValueRef hidden = ptx_assembly(c->unit, "mov.b64 $0, $1;", "=l,l", type, &address, 1, false);
    LLVMReplaceAllUsesWith(address, hidden);
    LLVMSetOperand(hidden, 0, address);
}

static bool is_within_rows(const struct counters *c, int loop) {
    while (loop >= 0 && !c->rows[loop]) loop = c->flow.loops[loop].parent;
    return loop >= 0;
}

static void show_words(const struct counters *c, LLVMBasicBlockRef block) {
    FOR_EACH_INSTRUCTION(i, block) {
        if (!ptx_hides_words(c->unit, i)) continue;
        LLVMReplaceAllUsesWith(i, LLVMGetOperand(i, 0));
        LLVMInstructionEraseFromParent(i);
    }
}

static bool hide_rows(struct counters *c, int block) {
    int loop = c->flow.blocks[block].loop;
    bool found = false;
    if (loop < 0) return false;
    FOR_EACH_INSTRUCTION(address, c->flow.blocks[block].block) {
        if (!is_shared(c, address, loop)) continue;
        hide(c, address);
        found = true;
    }
    return found;
}

smelt_status pass_ptx_counters(struct unit *unit) {
    struct counters c = {.unit = unit};
    smelt_status status = flow_find(unit, unit->entry, &c.arena, &c.flow);
    if (status == SMELT_OK && c.flow.loop_count) {
        c.rows = arena_alloc(&c.arena, (size_t)c.flow.loop_count * sizeof *c.rows);
        if (!c.rows) status = unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for loops");
    }
    for (int i = 0; status == SMELT_OK && i < c.flow.block_count; i++)
        if (hide_rows(&c, i)) c.rows[c.flow.blocks[i].loop] = true;
    for (int i = 0; status == SMELT_OK && i < c.flow.block_count; i++)
        if (!is_within_rows(&c, c.flow.blocks[i].loop)) show_words(&c, c.flow.blocks[i].block);
    arena_free(&c.arena);
    return status;
}
