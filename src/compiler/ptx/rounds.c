/* Loops that store: several rounds at once, their loads before their stores, so that more loads are in
 * flight. NVIDIA's assembler does so itself where a loop does not store; it does not know that what is stored
 * to is not loaded from.
 *
 * A loop is one block, or a chain of blocks that guards may skip, for rows that may end within a round:
 * `for (i = 0; i < rounds; i++) if (i * threads + t < length) …`.
 *
 * A test before the loop finds whether that many rounds follow and skip nothing. It computes the rounds'
 * conditions as the loop would; if one of them fails, the rest runs round by round.
 *
 * Lanes of a warp may run different numbers of rounds at once. So these loops contain only plain accesses and
 * pure code, nothing that lanes execute together.
 *
 * Requires: the retargeted module. Maintains: what the code does, and the order of a thread's accesses except
 * for loads that move before stores to memory apart from theirs. */
#include "compiler/flow.h"
#include "compiler/ptx/coarse.h"
#include "compiler/ptx/guarded.h"
#include "compiler/ptx/ptx.h"

#define ROUNDS 4
#define MOST_ROUNDS 8         /* if each has one load, behind a guard: neighbours may become one access */
#define MOST_LOADS 2          /* of a round */
#define MOST_LOADS_ALONE 8    /* of a round with several guards, which loads first but runs alone */
#define MOST_INSTRUCTIONS 128 /* of a round */

struct round_item {
    LLVMValueRef value;
    bool ahead; /* computed from what is known before the round's loads' values are used, or a load */
    LLVMValueRef copies[MOST_ROUNDS];
};

struct rounds {
    struct unit *unit;
    LLVMBasicBlockRef body, last; /* the loop's header and its latch, which may be the same block */
    LLVMBasicBlockRef before, after;
    struct guarded path; /* the blocks after `body`, if nothing is skipped */
    unsigned stays;      /* the successor of the loop's branch that stays in the loop */
    LLVMValueRef branch;
    struct round_item items[MOST_INSTRUCTIONS];
    int count, phis, rounds;
};

static struct round_item *item_of(struct rounds *r, LLVMValueRef value) {
    if (!LLVMIsAInstruction(value)) return NULL;
    for (int i = 0; i < r->count; i++)
        if (r->items[i].value == value) return &r->items[i];
    return NULL;
}

/* A phi's value in the next round if it is in `body`; otherwise after a guard that skips nothing. */
static LLVMValueRef next_value(struct rounds *r, LLVMValueRef phi) {
    return LLVMGetInstructionParent(phi) == r->body ? guarded_incoming(phi, r->last)
                                                    : guarded_value(&r->path, phi);
}

/* ---- Which loops. */

static LLVMValueRef address_of(LLVMValueRef access) {
    return LLVMGetOperand(access, LLVMIsALoadInst(access) ? 0 : 1);
}

/* The constant by which a counter grows in a round; 0: none is known. */
static int64_t step_of_counter(struct rounds *r, LLVMValueRef value) {
    struct round_item *item = item_of(r, value);
    if (!item || !LLVMIsAPHINode(value)) return 0;
    if (LLVMGetInstructionParent(value) != r->body) return 0;
    LLVMValueRef next = next_value(r, value);
    if (!item_of(r, next) || LLVMGetInstructionOpcode(next) != LLVMAdd) return 0;
    if (LLVMGetOperand(next, 0) != value || !LLVMIsAConstantInt(LLVMGetOperand(next, 1))) return 0;
    return LLVMConstIntGetSExtValue(LLVMGetOperand(next, 1));
}

/* By how many bytes, at least, an address moves from round to round; 0: it may stay. The index is a counter,
 * or one plus what stays; its bits are not cut. */
static int64_t step_of_address(struct rounds *r, LLVMValueRef address) {
    if (!LLVMIsAGetElementPtrInst(address) || LLVMGetNumOperands(address) != 2) return 0;
    if (item_of(r, LLVMGetOperand(address, 0))) return 0;
    LLVMValueRef index = LLVMGetOperand(address, 1);
    for (int depth = 0; depth < 4 && item_of(r, index) && !LLVMIsAPHINode(index); depth++) {
        LLVMOpcode opcode = LLVMGetInstructionOpcode(index);
        if (opcode == LLVMZExt || opcode == LLVMSExt) {
            index = LLVMGetOperand(index, 0);
        } else if (opcode == LLVMAdd) {
            bool first = item_of(r, LLVMGetOperand(index, 0)) != NULL;
            if (item_of(r, LLVMGetOperand(index, first ? 1 : 0))) return 0;
            index = LLVMGetOperand(index, first ? 0 : 1);
        } else {
            return 0;
        }
    }
    int64_t step = step_of_counter(r, index);
    return (step < 0 ? -step : step) *
           (int64_t)LLVMABISizeOfType(r->unit->layout, LLVMGetGEPSourceElementType(address));
}

/* Whether a load may move before the stores of the rounds before its own, and of its own. `place` and
 * `store_place`: their order in a round. */
static bool may_pass(struct rounds *r, LLVMValueRef load, int place, LLVMValueRef store, int store_place) {
    if (ptx_are_apart(r->unit, address_of(load), address_of(store))) return true;
    /* A round loads what only it stores to, later. */
    if (store_place < place || address_of(load) != address_of(store)) return false;
    uint64_t bytes = LLVMStoreSizeOfType(r->unit->layout, LLVMTypeOf(load)),
             stored = LLVMStoreSizeOfType(r->unit->layout, LLVMTypeOf(LLVMGetOperand(store, 0)));
    int64_t step = step_of_address(r, address_of(load));
    return step >= (int64_t)bytes && step >= (int64_t)stored;
}

static bool load_moves(struct rounds *r, int place) {
    for (int i = 0; i < r->count; i++) {
        LLVMValueRef store = r->items[i].value;
        if (LLVMIsAStoreInst(store) && !may_pass(r, r->items[place].value, place, store, i)) return false;
    }
    return true;
}

/* A value that an instruction has in any round follows from values before the loop, and from loads that move:
 * assumed of phis, until one contradicts. */
static bool is_ahead(struct rounds *r, int i) {
    LLVMValueRef value = r->items[i].value;
    if (LLVMIsAPHINode(value)) {
        const struct round_item *next = item_of(r, next_value(r, value));
        return !next || next->ahead;
    }
    if (LLVMIsALoadInst(value) ? !load_moves(r, i) : !coarse_is_pure(r->unit, value)) return false;
    for (int o = 0; o < LLVMGetNumOperands(value); o++) {
        const struct round_item *operand = item_of(r, LLVMGetOperand(value, (unsigned)o));
        if (operand && !operand->ahead) return false;
    }
    return true;
}

static void find_ahead(struct rounds *r) {
    for (int i = 0; i < r->count; i++) r->items[i].ahead = true;
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < r->count; i++) {
            if (!r->items[i].ahead || is_ahead(r, i)) continue;
            r->items[i].ahead = false;
            changed = true;
        }
    }
}

/* Whether a condition needs a load, or a division that only a guard makes safe: the test before the rounds
 * must not run either for a later round. */
static bool needs_load(struct rounds *r, LLVMValueRef value, int depth) {
    const struct round_item *item = item_of(r, value);
    if (!item) return false;
    if (!item->ahead || LLVMIsALoadInst(value) || depth == 0) return true;
    if (guarded_divides(value) && LLVMGetInstructionParent(value) != r->body) return true;
    if (LLVMIsAPHINode(value)) {
        LLVMValueRef next = next_value(r, value);
        return next != value && needs_load(r, next, depth - 1);
    }
    for (int o = 0; o < LLVMGetNumOperands(value); o++) {
        LLVMValueRef operand = LLVMGetOperand(value, (unsigned)o);
        if (item_of(r, operand) && LLVMIsAPHINode(operand) && next_value(r, operand) == value)
            continue; /* a counter */
        if (needs_load(r, operand, depth - 1)) return true;
    }
    return false;
}

static bool collect_block(struct rounds *r, LLVMBasicBlockRef block, bool *stores) {
    FOR_EACH_INSTRUCTION(i, block) {
        if (LLVMIsATerminatorInst(i)) break;
        if (r->count == MOST_INSTRUCTIONS) return false;
        bool known = LLVMIsAPHINode(i) || coarse_is_plain_access(i) || coarse_is_pure(r->unit, i);
        if (!known) return false;
        *stores |= LLVMIsAStoreInst(i) != NULL;
        r->phis += block == r->body && LLVMIsAPHINode(i);
        r->items[r->count++] = (struct round_item){.value = i};
    }
    return true;
}

static bool stores_to_device(struct rounds *r) {
    for (int i = 0; i < r->count; i++) {
        LLVMValueRef value = r->items[i].value;
        if (LLVMIsAStoreInst(value) &&
            LLVMGetPointerAddressSpace(LLVMTypeOf(address_of(value))) != PTX_SHARED)
            return true;
    }
    return false;
}

static bool collect(struct rounds *r) {
    bool stores = false;
    int loads = 0;
    r->count = r->phis = 0;
    if (!collect_block(r, r->body, &stores)) return false;
    for (int i = 0; i < r->path.size.blocks; i++)
        if (!collect_block(r, r->path.blocks[i], &stores)) return false;
    if (!stores) return false;
    find_ahead(r);
    for (int i = 0; i < r->count; i++) loads += LLVMIsALoadInst(r->items[i].value) && r->items[i].ahead;
    /* With three loads in a round, more rounds were slower (layer norm on an H100: 257 us, not 244). */
    bool alone = r->path.size.joins > 1 && loads <= MOST_LOADS_ALONE;
    r->rounds = !loads ? 0 : loads <= MOST_LOADS ? ROUNDS : alone;
    if (loads == 1 && r->path.size.joins == 1) r->rounds = MOST_ROUNDS;
    /* The assembler does it itself for guards of one condition if all stores are to threadgroup memory. */
    if (r->path.size.joins && r->path.size.conditions == r->path.size.joins && !stores_to_device(r))
        return false;
    for (int i = 0; i < r->path.size.conditions; i++)
        if (needs_load(r, LLVMGetCondition(r->path.conditions[i].branch), 8)) return false;
    return r->rounds && !needs_load(r, LLVMGetCondition(r->branch), 8);
}

/* Whether a loop is one block, or a chain of guards, and gains. */
static bool is_wanted(struct rounds *r, const struct flow *flow, int loop) {
    const struct flow_loop *l = &flow->loops[loop];
    if (l->latch_count != 1) return false;
    r->body = flow->blocks[l->header].block;
    r->last = flow->blocks[l->latches[0]].block;
    r->path.size = (struct guarded_size){0};
    r->path.flow = flow;
    for (LLVMBasicBlockRef block = r->body; block != r->last;) {
        block = guarded_follow(&r->path, block);
        if (!block || !guarded_add(&r->path, block)) return false;
    }
    r->branch = LLVMGetBasicBlockTerminator(r->last);
    if (!LLVMIsABranchInst(r->branch) || !LLVMIsConditional(r->branch)) return false;
    r->stays = LLVMGetSuccessor(r->branch, 0) == r->body ? 0 : 1;
    r->after = LLVMGetSuccessor(r->branch, 1 - r->stays);
    return collect(r);
}

/* It has a block before and one behind it that nothing else leads from or to. */
static bool stands_alone(struct rounds *r, const struct flow *flow, int loop) {
    int header = flow->loops[loop].header;
    const struct flow_block *block = &flow->blocks[header];
    if (block->predecessor_count != 2) return false;
    int before = block->predecessors[flow->blocks[block->predecessors[0]].block == r->last];
    r->before = flow->blocks[before].block;
    return flow->blocks[flow_index(flow, r->after)].predecessor_count == 1 &&
           LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(r->before)) == 1;
}

/* ---- The rounds. */

static LLVMValueRef value_in(struct rounds *r, int round, LLVMValueRef value);

static LLVMValueRef copy_in(struct rounds *r, int round, struct round_item *item) {
    LLVMValueRef copy = LLVMInstructionClone(item->value);
    for (int o = 0; o < LLVMGetNumOperands(copy); o++)
        LLVMSetOperand(copy, (unsigned)o, value_in(r, round, LLVMGetOperand(copy, (unsigned)o)));
    LLVMInsertIntoBuilder(r->unit->builder, copy);
    return item->copies[round] = copy;
}

/* A value in a round. Builds it, and the operands that lack a copy, at the builder's place. */
static LLVMValueRef value_in(struct rounds *r, int round, LLVMValueRef value) {
    struct round_item *item = item_of(r, value);
    if (!item) return value;
    if (item->copies[round]) return item->copies[round];
    if (LLVMIsAPHINode(value)) { /* of round 0, the phis of the test are there */
        int of = LLVMGetInstructionParent(value) == r->body ? round - 1 : round;
        return item->copies[round] = value_in(r, of, next_value(r, value));
    }
    return copy_in(r, round, item);
}

static LLVMBasicBlockRef new_block(struct rounds *r, const char *name) {
    return LLVMInsertBasicBlockInContext(r->unit->context, r->body, name);
}

/* The block that tests whether the rounds follow; the builder is at its end. */
static LLVMBasicBlockRef build_test(struct rounds *r) {
    LLVMBasicBlockRef test = new_block(r, "rounds");
    LLVMPositionBuilderAtEnd(r->unit->builder, test);
    for (int i = 0; i < r->phis; i++)
        r->items[i].copies[0] = LLVMBuildPhi(r->unit->builder, LLVMTypeOf(r->items[i].value), "");
    return test;
}

static LLVMValueRef and_condition(struct rounds *r, LLVMValueRef all, int round, LLVMValueRef branch,
                                  unsigned successor) {
    LLVMBuilderRef b = r->unit->builder;
    LLVMValueRef one = value_in(r, round, LLVMGetCondition(branch));
    if (successor == 1) one = LLVMBuildNot(b, one, "");
    /* Not `and`: past a condition that fails, later ones may be poison. */
    return all ? LLVMBuildSelect(b, all, one, LLVMConstInt(LLVMTypeOf(one), 0, false), "") : one;
}

static LLVMValueRef all_follow(struct rounds *r) {
    LLVMValueRef all = NULL;
    for (int round = 0; round < r->rounds; round++) {
        for (int i = 0; i < r->path.size.conditions; i++)
            all = and_condition(r, all, round, r->path.conditions[i].branch, r->path.conditions[i].taken);
        if (round < r->rounds - 1) all = and_condition(r, all, round, r->branch, r->stays);
    }
    return all;
}

static void build_rounds(struct rounds *r) {
    for (int i = 0; i < r->count; i++)
        for (int round = 0; round < r->rounds; round++)
            if (r->items[i].ahead && LLVMIsALoadInst(r->items[i].value))
                (void)value_in(r, round, r->items[i].value);
    for (int round = 0; round < r->rounds; round++)
        for (int i = 0; i < r->count; i++) (void)value_in(r, round, r->items[i].value);
}

static void unroll(struct rounds *r) {
    LLVMBuilderRef b = r->unit->builder;
    LLVMBasicBlockRef test = build_test(r), together = new_block(r, "together");
    LLVMBuildCondBr(b, all_follow(r), together, r->body);
    LLVMPositionBuilderAtEnd(b, together);
    build_rounds(r);
    LLVMValueRef last = value_in(r, r->rounds - 1, LLVMGetCondition(r->branch));
    LLVMBuildCondBr(b, last, r->stays == 0 ? test : r->after, r->stays == 0 ? r->after : test);
    for (int i = 0; i < r->phis; i++) {
        LLVMValueRef phi = r->items[i].value, now = r->items[i].copies[0];
        LLVMValueRef values[2] = {guarded_incoming(phi, r->before),
                                  value_in(r, r->rounds - 1, guarded_incoming(phi, r->last))};
        LLVMBasicBlockRef from[2] = {r->before, together};
        LLVMAddIncoming(now, values, from, 2);
    }
    FOR_EACH_INSTRUCTION(phi, r->after) {
        if (!LLVMIsAPHINode(phi)) break;
        LLVMValueRef value = value_in(r, r->rounds - 1, guarded_incoming(phi, r->last));
        LLVMAddIncoming(phi, &value, &together, 1);
    }
    /* The loop as it was begins where the test ends. */
    LLVMSetSuccessor(LLVMGetBasicBlockTerminator(r->before), 0, test);
    for (int i = 0; i < r->phis; i++) {
        LLVMValueRef phi = r->items[i].value;
        LLVMPositionBuilderBefore(b, phi);
        LLVMValueRef now = LLVMBuildPhi(b, LLVMTypeOf(phi), "");
        LLVMValueRef values[2] = {r->items[i].copies[0], guarded_incoming(phi, r->last)};
        LLVMBasicBlockRef from[2] = {test, r->last};
        LLVMAddIncoming(now, values, from, 2);
        LLVMReplaceAllUsesWith(phi, now);
        LLVMInstructionEraseFromParent(phi);
    }
}

/* ---- The pass. */

/* *any: whether there is such a loop. With `change`, they are unrolled. */
static smelt_status each_loop(struct unit *unit, bool change, bool *any) {
    struct arena arena = {0};
    struct flow flow;
    smelt_status status = flow_find(unit, unit->entry, &arena, &flow);
    struct rounds *r = arena_alloc(&arena, sizeof *r);
    if (status == SMELT_OK && !r) status = unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for a loop");
    for (int loop = 0; status == SMELT_OK && !flow.irreducible && loop < flow.loop_count; loop++) {
        r->unit = unit;
        if (!is_wanted(r, &flow, loop)) continue;
        *any = true;
        /* Such loops contain no others. */
        if (!change || !stands_alone(r, &flow, loop)) continue;
        unroll(r);
        status = r->rounds > 1 ? ptx_note(unit, "%d rounds of a loop run at once, loads first", r->rounds)
                               : ptx_note(unit, "a round of a loop loads everything first");
    }
    arena_free(&arena);
    return status;
}

smelt_status pass_ptx_rounds(struct unit *unit) {
    bool any = false;
    TRY(each_loop(unit, false, &any));
    if (!any) return SMELT_OK;
    TRY(ptx_run_passes(unit, "function(loop-simplify,lcssa)"));
    return each_loop(unit, true, &any);
}
