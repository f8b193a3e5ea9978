/* Runs several rounds of a loop at once, their loads before everything else, so that more loads are in
 * flight. NVIDIA's assembler runs up to four rounds of a loop at once if the loop only loads, but the loads
 * of the first round, and of each that is left over, stay alone. If the loop stores, the assembler does not
 * know that the loads are from other memory.
 *
 * A loop is one block, or a chain of blocks that guards may skip, for rows that may end within a round:
 * `for (i = 0; i < rounds; i++) if (i * threads + t < length) …`.
 *
 * A test before the loop finds whether that many rounds follow and skip nothing. It computes the rounds'
 * conditions as the loop would. If one of them fails, the remaining rounds run one by one; those of a loop of
 * one block that only loads run up to four at once.
 *
 * Lanes of a warp may run different numbers of rounds at once. So these loops contain only plain accesses and
 * pure code, nothing that lanes execute together.
 *
 * Requires: the retargeted module. Maintains: what the code does, and the order of a thread's accesses except
 * for loads that move before stores to memory apart from theirs. */
#include "compiler/ptx/coarsen/coarse.h"
#include "compiler/ptx/coarsen/rounds.h"

#define ROUNDS 4
#define ROUNDS_GUARDED 2   /* of three loads each */
#define MOST_LOADS 2       /* of a round */
#define MOST_LOADS_ALONE 8 /* of a round with several guards, which loads first but runs alone */

#define MOST_IN_ROUND 128 /* instructions */

/* Of the code for several rounds, of all loops of a kernel together. Above this, LLVM's code generator and
 * NVIDIA's assembler would take seconds, and no loop is changed. */
#define MOST_INSTRUCTIONS 8192

/* For loops that only load. */
#define BYTES_IN_FLIGHT 64 /* of a thread */
#define LEAST_ROUNDS 4     /* with fewer, the assembler's own unrolling does as well */
#define MOST_SHORT 48      /* instructions of a round: more take longer than the loads */

/* ---- Which loops. */

/* The constant by which a counter grows in a round; 0: none is known. */
static int64_t step_of_counter(struct rounds *r, LLVMValueRef value) {
    struct round_item *item = rounds_item(r, value);
    if (!item || !LLVMIsAPHINode(value)) return 0;
    if (LLVMGetInstructionParent(value) != r->body) return 0;
    LLVMValueRef next = rounds_next(r, value);
    if (!rounds_item(r, next) || LLVMGetInstructionOpcode(next) != LLVMAdd) return 0;
    if (LLVMGetOperand(next, 0) != value || !LLVMIsAConstantInt(LLVMGetOperand(next, 1))) return 0;
    return LLVMConstIntGetSExtValue(LLVMGetOperand(next, 1));
}

/* By how many bytes, at least, an address moves from round to round; 0: it may stay. The index is a counter,
 * or one plus what stays; its bits are not cut. */
static int64_t step_of_address(struct rounds *r, LLVMValueRef address) {
    if (!LLVMIsAGetElementPtrInst(address) || LLVMGetNumOperands(address) != 2) return 0;
    if (rounds_item(r, LLVMGetOperand(address, 0))) return 0;
    LLVMValueRef index = LLVMGetOperand(address, 1);
    for (int depth = 0; depth < 4 && rounds_item(r, index) && !LLVMIsAPHINode(index); depth++) {
        LLVMOpcode opcode = LLVMGetInstructionOpcode(index);
        if (opcode == LLVMZExt || opcode == LLVMSExt) {
            index = LLVMGetOperand(index, 0);
        } else if (opcode == LLVMAdd) {
            bool first = rounds_item(r, LLVMGetOperand(index, 0)) != NULL;
            if (rounds_item(r, LLVMGetOperand(index, first ? 1 : 0))) return 0;
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
    if (ptx_are_apart(r->unit, rounds_address(load), rounds_address(store))) return true;
    /* A round loads what only it stores to, later. */
    if (store_place < place || rounds_address(load) != rounds_address(store)) return false;
    uint64_t bytes = LLVMStoreSizeOfType(r->unit->layout, LLVMTypeOf(load)),
             stored = LLVMStoreSizeOfType(r->unit->layout, LLVMTypeOf(LLVMGetOperand(store, 0)));
    int64_t step = step_of_address(r, rounds_address(load));
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
        const struct round_item *next = rounds_item(r, rounds_next(r, value));
        return !next || next->ahead;
    }
    if (LLVMIsALoadInst(value) ? !load_moves(r, i) : !coarse_is_pure(r->unit, value)) return false;
    for (int o = 0; o < LLVMGetNumOperands(value); o++) {
        const struct round_item *operand = rounds_item(r, LLVMGetOperand(value, (unsigned)o));
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
    const struct round_item *item = rounds_item(r, value);
    if (!item) return false;
    if (!item->ahead || LLVMIsALoadInst(value) || depth == 0) return true;
    if (guarded_divides(value) && LLVMGetInstructionParent(value) != r->body) return true;
    if (LLVMIsAPHINode(value)) {
        LLVMValueRef next = rounds_next(r, value);
        return next != value && needs_load(r, next, depth - 1);
    }
    for (int o = 0; o < LLVMGetNumOperands(value); o++) {
        LLVMValueRef operand = LLVMGetOperand(value, (unsigned)o);
        if (rounds_item(r, operand) && LLVMIsAPHINode(operand) && rounds_next(r, operand) == value)
            continue; /* a counter */
        if (needs_load(r, operand, depth - 1)) return true;
    }
    return false;
}

static bool collect_block(struct rounds *r, LLVMBasicBlockRef block, bool *stores) {
    FOR_EACH_INSTRUCTION(i, block) {
        if (LLVMIsATerminatorInst(i)) break;
        if (r->count == MOST_IN_ROUND) return false;
        bool known = LLVMIsAPHINode(i) || coarse_is_plain_access(i) || coarse_is_pure(r->unit, i);
        if (!known) return false;
        *stores |= LLVMIsAStoreInst(i) != NULL;
        r->phis += block == r->body && LLVMIsAPHINode(i);
        r->items[r->count++] = (struct round_item){.value = i};
    }
    return true;
}

static int stores_to_device(struct rounds *r) {
    int stores = 0;
    for (int i = 0; i < r->count; i++) {
        LLVMValueRef value = r->items[i].value;
        stores += LLVMIsAStoreInst(value) &&
                  LLVMGetPointerAddressSpace(LLVMTypeOf(rounds_address(value))) != PTX_SHARED;
    }
    return stores;
}

/* Whether a round loads what it stores to: that is in the nearest cache from the loop before. */
static bool updates(struct rounds *r) {
    for (int i = 0; i < r->count; i++)
        for (int k = 0; k < r->count && LLVMIsAStoreInst(r->items[i].value); k++)
            if (LLVMIsALoadInst(r->items[k].value) &&
                rounds_address(r->items[k].value) == rounds_address(r->items[i].value))
                return true;
    return false;
}

static bool conditions_are_ahead(struct rounds *r) {
    for (int i = 0; i < r->path.size.conditions; i++)
        if (needs_load(r, LLVMGetCondition(r->path.conditions[i].branch), 8)) return false;
    return !needs_load(r, LLVMGetCondition(r->branch), 8);
}

/* How many rounds of a loop that only loads run at once; 0: it stays. Rounds that may not follow are computed
 * too, so a round must not divide. */
static int rounds_of_loads(struct rounds *r) {
    uint64_t bytes = 0;
    int loads = 0;
    if (r->count > MOST_SHORT) return 0;
    for (int i = 0; i < r->count; i++) {
        LLVMValueRef value = r->items[i].value;
        if (guarded_divides(value)) return 0;
        if (!LLVMIsALoadInst(value)) continue;
        if (!r->items[i].ahead || ++loads > MOST_LOADS) return 0;
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(rounds_address(value))) == PTX_GLOBAL)
            bytes += LLVMStoreSizeOfType(r->unit->layout, LLVMTypeOf(value));
    }
    uint64_t rounds = bytes ? BYTES_IN_FLIGHT / bytes : 0;
    if (rounds > ROUNDS_MOST) rounds = ROUNDS_MOST;
    return rounds >= LEAST_ROUNDS ? (int)rounds : 0;
}

/* Whether a round's stores to device memory lie a known distance from those of the round before: otherwise
 * each round needs an address of its own. */
static bool stores_apart_are_known(struct rounds *r) {
    for (int i = 0; i < r->count; i++) {
        LLVMValueRef store = r->items[i].value;
        if (LLVMIsAStoreInst(store) &&
            LLVMGetPointerAddressSpace(LLVMTypeOf(rounds_address(store))) != PTX_SHARED &&
            !step_of_address(r, rounds_address(store)))
            return false;
    }
    return true;
}

/* … of a loop that stores. 1: a round loads first, but runs alone. */
static int rounds_with_stores(struct rounds *r) {
    int loads = 0;
    for (int i = 0; i < r->count; i++) loads += LLVMIsALoadInst(r->items[i].value) && r->items[i].ahead;
    /* The assembler does so itself for guards of one condition if all stores are to threadgroup memory. */
    if (r->path.size.joins && r->path.size.conditions == r->path.size.joins && !stores_to_device(r)) return 0;
    /* Neighbours of rounds with one load, behind a guard, may become one access. */
    if (loads == 1 && r->path.size.joins == 1 && stores_apart_are_known(r)) return ROUNDS_MOST;
    if (!loads || loads <= MOST_LOADS) return loads ? ROUNDS : 0;
    /* On an H200, layer norms of floats and halfs that store once took 0.93 and 0.85 times as long with four
     * rounds, but 1.02 times if they stored twice. Behind a guard, two rounds were best. */
    if (loads == MOST_LOADS + 1 && r->path.size.joins < 2 && stores_to_device(r) == 1 && !updates(r))
        return r->path.size.joins ? ROUNDS_GUARDED : ROUNDS;
    return r->path.size.joins > 1 && loads <= MOST_LOADS_ALONE;
}

static bool collect(struct rounds *r) {
    bool stores = false;
    r->count = r->phis = 0;
    if (!collect_block(r, r->body, &stores)) return false;
    for (int i = 0; i < r->path.size.blocks; i++)
        if (!collect_block(r, r->path.blocks[i], &stores)) return false;
    r->only_loads = !stores;
    find_ahead(r);
    r->rounds = stores ? rounds_with_stores(r) : rounds_of_loads(r);
    return r->rounds && conditions_are_ahead(r);
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

bool rounds_stand_alone(struct rounds *r, const struct flow *flow, int loop) {
    int header = flow->loops[loop].header;
    const struct flow_block *block = &flow->blocks[header];
    if (block->predecessor_count != 2) return false;
    int before = block->predecessors[flow->blocks[block->predecessors[0]].block == r->last];
    r->before = flow->blocks[before].block;
    return flow->blocks[flow_index(flow, r->after)].predecessor_count == 1 &&
           LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(r->before)) == 1;
}

/* ---- The pass. */

/* Adds the instructions of such loops' code for several rounds to *instructions. With `change`, the loops are
 * unrolled. */
static smelt_status each_loop(struct unit *unit, bool change, uint64_t *instructions) {
    struct arena arena = {0};
    struct flow flow;
    smelt_status status;
    struct rounds *r = flow_begin(unit, &arena, &flow, sizeof *r, &status);
    for (int loop = 0; status == SMELT_OK && !flow.irreducible && loop < flow.loop_count; loop++) {
        r->unit = unit;
        if (!is_wanted(r, &flow, loop)) continue;
        *instructions += (uint64_t)(r->rounds * r->count);
        /* Such loops contain no others. */
        if (!change || !rounds_stand_alone(r, &flow, loop)) continue;
        rounds_build(r);
        status = r->rounds > 1 ? ptx_note(unit, "%d rounds of a loop run at once, loads first", r->rounds)
                               : ptx_note(unit, "a round of a loop loads everything first");
    }
    arena_free(&arena);
    return status;
}

smelt_status pass_ptx_rounds(struct unit *unit) {
    uint64_t instructions = 0;
    if (ptx_coarsens_loop(unit)) return SMELT_OK;
    TRY(each_loop(unit, false, &instructions));
    if (!instructions) return SMELT_OK;
    if (instructions > MOST_INSTRUCTIONS)
        return ptx_note(unit,
                        "rounds of loops do not run at once: their code would have %llu instructions, "
                        "more than %d",
                        (unsigned long long)instructions, MOST_INSTRUCTIONS);
    TRY(ptx_run_passes(unit, "function(loop-simplify,lcssa)"));
    TRY(each_loop(unit, true, &instructions));
    return ptx_run_passes(unit, "function(simplifycfg)");
}
