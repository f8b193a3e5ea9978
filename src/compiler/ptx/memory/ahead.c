/* Predicates loads that kernels begin early, under a condition, to overlap them with arithmetic:
 *
 *     if (more) next = a[…];  …arithmetic…  if (more) tile[…] = next;
 *
 * NVIDIA's assembler moves a block with such loads down to the next branch on the same condition, after the
 * arithmetic. So the loads become predicated instructions of the block before, and no block is left to move.
 *
 * The values of these loads are used under the same condition alone: where it fails, their registers may
 * contain anything.
 *
 * Requires: the module lowered, accesses joined and aligned (align.c, words.c). */
#include "compiler/analysis/flow.h"
#include "compiler/ptx/memory/align.h"
#include "compiler/ptx/coarsen/coarse.h"
#include "compiler/ptx/memory/guarded.h"

#define MOST_LOADS 32
#define MOST_INSTRUCTIONS 192
#define MOST_PHIS 16

/* `before` branches on `condition`: to `body` if its value is `holds`, otherwise to `after`. `body` leads to
 * `after`. */
struct ahead {
    struct unit *unit;
    const struct flow *flow;
    LLVMBasicBlockRef before, body, after;
    LLVMValueRef condition;
    bool holds;
    LLVMValueRef values[MOST_INSTRUCTIONS]; /* of the body */
    int loads;
    bool loaded[MOST_INSTRUCTIONS]; /* it is a load, or computed from one */
    int count;
};

static bool is_taken_load(struct ahead *a, LLVMValueRef i) {
    if (!LLVMIsALoadInst(i)) return wide_is_load(i);
    return !LLVMGetVolatile(i) && LLVMGetOrdering(i) == LLVMAtomicOrderingNotAtomic &&
           LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(i, 0))) == PTX_GLOBAL &&
           wide_load_if_exists(a->unit, i);
}

static bool may_always_run(struct ahead *a, LLVMValueRef i) {
    return !guarded_divides(i) && !LLVMIsACallInst(i) && coarse_is_pure(a->unit, i);
}

static int index_of(const struct ahead *a, LLVMValueRef value) {
    for (int i = 0; i < a->count; i++)
        if (a->values[i] == value) return i;
    return -1;
}

static bool follows_from_load(const struct ahead *a, LLVMValueRef value) {
    int i = index_of(a, value);
    return i >= 0 && a->loaded[i];
}

static bool find_shape(struct ahead *a, int place) {
    const struct flow_block *block = &a->flow->blocks[place];
    if (block->predecessor_count != 1) return false;
    a->body = block->block;
    a->before = a->flow->blocks[block->predecessors[0]].block;
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(a->before), end = LLVMGetBasicBlockTerminator(a->body);
    if (!LLVMIsABranchInst(branch) || !LLVMIsConditional(branch) || LLVMGetNumSuccessors(end) != 1)
        return false;
    a->holds = LLVMGetSuccessor(branch, 0) == a->body;
    a->after = LLVMGetSuccessor(branch, a->holds);
    a->condition = LLVMGetCondition(branch);
    /* By another way, a register that was not loaded could come back under a later round's condition. */
    int join = flow_index(a->flow, a->after);
    if (join < 0 || a->flow->blocks[join].predecessor_count != 2) return false;
    return LLVMGetSuccessor(end, 0) == a->after && a->after != a->body && a->after != a->before;
}

static bool collect(struct ahead *a) {
    a->count = a->loads = 0;
    FOR_EACH_INSTRUCTION(i, a->body) {
        if (LLVMIsATerminatorInst(i)) break;
        bool load = is_taken_load(a, i);
        if (a->count == MOST_INSTRUCTIONS || (!load && !may_always_run(a, i))) return false;
        bool loaded = load;
        for (int o = 0; o < LLVMGetNumOperands(i); o++)
            loaded |= follows_from_load(a, LLVMGetOperand(i, (unsigned)o));
        /* A load must not take its address from another one, whose register may contain anything. */
        if (load && follows_from_load(a, LLVMGetOperand(i, 0))) return false;
        a->loads += load;
        a->values[a->count] = i;
        a->loaded[a->count++] = loaded;
    }
    return a->loads && a->loads <= MOST_LOADS;
}

/* Whether a block runs only if the condition has the value with which the loads run. */
static bool is_under_condition(const struct ahead *a, LLVMBasicBlockRef block) {
    int place = flow_index(a->flow, block);
    while (place > 0) {
        const struct flow_block *at = &a->flow->blocks[place];
        LLVMBasicBlockRef above = a->flow->blocks[at->dominator].block;
        LLVMValueRef branch = LLVMGetBasicBlockTerminator(above);
        if (at->predecessor_count == 1 && LLVMIsABranchInst(branch) && LLVMIsConditional(branch) &&
            LLVMGetCondition(branch) == a->condition && above != a->before &&
            LLVMGetSuccessor(branch, a->holds ? 0 : 1) == at->block &&
            LLVMGetSuccessor(branch, a->holds ? 1 : 0) != at->block)
            return true;
        if (at->block == a->after) return false;
        place = at->dominator;
    }
    return false;
}

/* Whether `phi`, in `after`, is used under the condition alone. Other phis may carry it to the next round of
 * a loop if they are used only by one another and as `phi`'s own value where nothing is loaded. */
static bool is_used_under_condition(const struct ahead *a, LLVMValueRef phi) {
    LLVMValueRef carried[MOST_PHIS] = {phi};
    int count = 1;
    for (int i = 0; i < count; i++)
        for (LLVMUseRef use = LLVMGetFirstUse(carried[i]); use; use = LLVMGetNextUse(use)) {
            LLVMValueRef user = LLVMGetUser(use);
            bool known = false;
            for (int k = 0; k < count; k++) known |= carried[k] == user;
            if (known) continue;
            if (LLVMIsAPHINode(user)) {
                if (count == MOST_PHIS) return false;
                carried[count++] = user;
            } else if (i > 0 || !is_under_condition(a, LLVMGetInstructionParent(user))) {
                return false;
            }
        }
    return true;
}

static LLVMValueRef incoming(LLVMValueRef phi, LLVMBasicBlockRef from, unsigned *number) {
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++)
        if (LLVMGetIncomingBlock(phi, i) == from) {
            *number = i;
            return LLVMGetIncomingValue(phi, i);
        }
    return NULL;
}

static bool is_wanted(struct ahead *a, int place) {
    unsigned number = 0;
    bool ahead = false;
    if (!find_shape(a, place) || !collect(a)) return false;
    FOR_EACH_INSTRUCTION(phi, a->after) {
        if (!LLVMIsAPHINode(phi)) break;
        if (!follows_from_load(a, incoming(phi, a->body, &number))) continue;
        if (!is_used_under_condition(a, phi)) return false;
        ahead = true;
    }
    return ahead;
}

static void move_loads(struct ahead *a) {
    LLVMBuilderRef b = a->unit->builder;
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(a->before);
    LLVMPositionBuilderBefore(b, branch);
    LLVMValueRef condition = a->holds ? a->condition : LLVMBuildNot(b, a->condition, "");
    FOR_EACH_INSTRUCTION(phi, a->after) {
        unsigned number = 0;
        if (!LLVMIsAPHINode(phi)) break;
        LLVMValueRef value = incoming(phi, a->body, &number);
        if (!follows_from_load(a, value)) continue;
        (void)incoming(phi, a->before, &number);
        LLVMSetOperand(phi, number, value);
    }
    for (int i = 0; i < a->count; i++) {
        LLVMValueRef value = a->values[i], now;
        LLVMPositionBuilderBefore(b, branch);
        if (!is_taken_load(a, value)) {
            LLVMInstructionRemoveFromParent(value);
            LLVMInsertIntoBuilder(b, value);
            continue;
        }
        now = LLVMIsALoadInst(value) ? wide_load_if(a->unit, value, condition)
                                     : wide_load_also_if(a->unit, value, condition);
        LLVMReplaceAllUsesWith(value, now);
        LLVMInstructionEraseFromParent(value);
    }
}

smelt_status pass_ptx_ahead(struct unit *unit) {
    struct arena arena = {0};
    struct flow flow;
    bool changed = false;
    smelt_status status;
    struct ahead *a = flow_begin(unit, &arena, &flow, sizeof *a, &status);
    for (int place = 0; status == SMELT_OK && !flow.irreducible && place < flow.block_count; place++) {
        a->unit = unit;
        a->flow = &flow;
        if (!is_wanted(a, place)) continue;
        move_loads(a);
        changed = true;
        status = ptx_note(unit, "%d load%s ahead of the arithmetic stay there", a->loads,
                          a->loads == 1 ? "" : "s");
    }
    arena_free(&arena);
    /* The bodies are empty now. */
    return status == SMELT_OK && changed ? ptx_run_passes(unit, "function(simplifycfg)") : status;
}
