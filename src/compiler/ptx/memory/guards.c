/* Chains of guarded accesses: kernels write them to load a tile that may reach over an edge of a matrix.
 *
 *     for (i = 0; i < 16; i++) tile[…] = row < rows && column + i < columns ? a[…] : 0;
 *
 * In the unrolled loop, a branch and a store stand between two loads, so each load waits for the one before.
 * The chain gets a second form without branches, for the case that every guard holds: it loads first, then
 * stores. One test before the chain chooses the form. Neighbours are in one block then, where other passes
 * join them (strides.c, neighbours.c).
 *
 * Lanes of a warp may take different forms. So a chain contains only plain accesses and pure code, nothing
 * that lanes execute together.
 *
 * Requires: the retargeted module. Maintains: what the code does, and the order of a thread's accesses except
 * for loads that move before stores to memory apart from theirs. */
#include "compiler/ptx/coarsen/coarse.h"
#include "compiler/ptx/coarsen/sums.h"
#include "compiler/ptx/warp/divergence.h"
#include "compiler/ptx/memory/guarded.h"
#include "compiler/ptx/ptx.h"

#define MOST_SEEN 256 /* blocks at which guards begin */
#define MOST_ITEMS 512
#define FEWEST_GUARDS 2
#define MOST_BETWEEN 48 /* instructions between two guards */
#define FEWEST_LOADS 2  /* from device memory, that move to the front */
#define DEEPEST 24

struct chain_item {
    LLVMValueRef value, copy; /* `copy`: in the form without branches */
    bool ahead;               /* it may be computed before anything is stored */
};

struct chain {
    struct unit *unit;
    LLVMBasicBlockRef first, last; /* `first` ends in the first guard's branch; `last` follows the last one */
    struct guarded path;           /* the blocks between them */
    struct chain_item items[MOST_ITEMS];
    int count, loads; /* `loads`: from device memory, that are `ahead` */
    bool waits;       /* the kernel has barriers, at which lanes wait for the slowest */
    bool split;       /* blocks were split: the chain must be found again */
};

static struct chain_item *item_of(struct chain *c, LLVMValueRef value) {
    if (!LLVMIsAInstruction(value)) return NULL;
    for (int i = 0; i < c->count; i++)
        if (c->items[i].value == value) return &c->items[i];
    return NULL;
}

/* ---- Which chains. */

static bool is_of_parameter(const struct chain *c, LLVMValueRef load) {
    return ptx_is_in_parameter(c->unit, LLVMGetOperand(load, 0), false);
}

static bool is_device_load(const struct chain *c, LLVMValueRef i) {
    return LLVMIsALoadInst(i) && LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(i, 0))) == PTX_GLOBAL &&
           !is_of_parameter(c, i);
}

static bool collect(struct chain *c) {
    c->count = 0;
    for (int i = 0; i < c->path.size.blocks; i++) {
        FOR_EACH_INSTRUCTION(value, c->path.blocks[i]) {
            if (LLVMIsATerminatorInst(value)) break;
            if (c->count == MOST_ITEMS) return false;
            c->items[c->count++] = (struct chain_item){.value = value};
        }
    }
    return true;
}

/* Whether a block contains only plain accesses and pure code. If so, *count: its instructions; *loads: those
 * that load from device memory. */
static bool is_plain(const struct chain *c, LLVMBasicBlockRef block, int *count, int *loads) {
    *count = *loads = 0;
    FOR_EACH_INSTRUCTION(i, block) {
        if (LLVMIsATerminatorInst(i)) break;
        if (!LLVMIsAPHINode(i) && !coarse_is_plain_access(i) && !coarse_is_pure(c->unit, i)) return false;
        *count += 1;
        *loads += is_device_load(c, i);
    }
    return true;
}

/* Appends a guard of plain accesses at the end of `from`, and the code between it and the guard before.
 * Returns the block after the guard; NULL: there is none. */
static LLVMBasicBlockRef add_guard(struct chain *c, LLVMBasicBlockRef from) {
    struct guarded_size before = c->path.size;
    LLVMBasicBlockRef join = NULL;
    int count = 0, loads = 0, all = 0;
    bool follows = from == c->first || (is_plain(c, from, &count, &loads) && count <= MOST_BETWEEN &&
                                        guarded_add(&c->path, from));
    int start = c->path.size.blocks;
    if (follows) join = guarded_follow(&c->path, from);
    for (int i = start; join && i < c->path.size.blocks; i++) {
        if (!is_plain(c, c->path.blocks[i], &count, &loads)) join = NULL;
        all += loads;
    }
    if (!join || !all || join == c->first || guarded_has(&c->path, join)) {
        c->path.size = before;
        return NULL;
    }
    return join;
}

/* Whether a load may move before all stores of the chain that precede it. */
static bool load_moves(struct chain *c, int place) {
    LLVMValueRef address = LLVMGetOperand(c->items[place].value, 0);
    for (int i = 0; i < place; i++) {
        LLVMValueRef store = c->items[i].value;
        if (LLVMIsAStoreInst(store) && !ptx_are_apart(c->unit, address, LLVMGetOperand(store, 1)))
            return false;
    }
    return true;
}

static void find_ahead(struct chain *c) {
    c->loads = 0;
    for (int i = 0; i < c->count; i++) {
        LLVMValueRef value = c->items[i].value;
        bool ahead = !LLVMIsAStoreInst(value) && (!LLVMIsALoadInst(value) || load_moves(c, i));
        int operands = LLVMIsAPHINode(value) ? 0 : LLVMGetNumOperands(value);
        for (int o = 0; ahead && o < operands; o++) {
            const struct chain_item *operand = item_of(c, LLVMGetOperand(value, (unsigned)o));
            ahead = !operand || operand->ahead;
        }
        if (LLVMIsAPHINode(value)) {
            const struct chain_item *guarded = item_of(c, guarded_value(&c->path, value));
            ahead = !guarded || guarded->ahead;
        }
        c->items[i].ahead = ahead;
        c->loads += ahead && is_device_load(c, value);
    }
}

/* Whether a guard's condition can be computed before the chain: it needs no load, except from the kernel's
 * parameter, and no division. */
static bool is_known_before(struct chain *c, LLVMValueRef value, int depth) {
    const struct chain_item *item = item_of(c, value);
    if (!item) return true;
    if (guarded_divides(value) || !item->ahead || depth == 0) return false;
    if (LLVMIsALoadInst(value)) return is_of_parameter(c, value);
    if (LLVMIsAPHINode(value)) return is_known_before(c, guarded_value(&c->path, value), depth - 1);
    for (int o = 0; o < LLVMGetNumOperands(value); o++)
        if (!is_known_before(c, LLVMGetOperand(value, (unsigned)o), depth - 1)) return false;
    return true;
}

/* Whether a loop consists of the chain alone. rounds.c handles such loops. */
static bool is_whole_loop(const struct chain *c) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(c->last);
    int count, loads;
    if (!is_plain(c, c->last, &count, &loads)) return false;
    for (unsigned i = 0; i < LLVMGetNumSuccessors(end); i++)
        if (LLVMGetSuccessor(end, i) == c->first) return true;
    return false;
}

/* ---- Plain code before the first guard and after the last one, which belongs to the chain if neighbours of
 * its accesses are there. */

static bool is_device_access(const struct chain *c, LLVMValueRef i) {
    bool stores = LLVMIsAStoreInst(i) && coarse_is_plain_access(i) &&
                  LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(i, 1))) == PTX_GLOBAL;
    return stores || is_device_load(c, i);
}

static bool are_neighbours(struct chain *c, LLVMValueRef a, LLVMValueRef b) {
    struct address_sum of_a = {0}, of_b = {0};
    bool loads = LLVMIsALoadInst(a) != NULL;
    if (loads != (LLVMIsALoadInst(b) != NULL)) return false;
    LLVMTypeRef type = LLVMTypeOf(loads ? a : LLVMGetOperand(a, 0));
    if (type != LLVMTypeOf(loads ? b : LLVMGetOperand(b, 0))) return false;
    int64_t bytes = (int64_t)LLVMABISizeOfType(c->unit->layout, type);
    ptx_add_to_sum(c->unit, &of_a, LLVMGetOperand(a, loads ? 0 : 1), 1, DEEPEST);
    ptx_add_to_sum(c->unit, &of_b, LLVMGetOperand(b, loads ? 0 : 1), 1, DEEPEST);
    int64_t apart = of_a.number - of_b.number;
    return bytes <= 8 && (apart == bytes || apart == -bytes) && ptx_differ_by_number(&of_a, &of_b);
}

static bool has_neighbour(struct chain *c, LLVMValueRef access) {
    for (int i = 0; i < c->count; i++)
        if (is_device_access(c, c->items[i].value) && are_neighbours(c, access, c->items[i].value))
            return true;
    return false;
}

static bool is_movable(const struct chain *c, LLVMValueRef i) {
    return !LLVMIsATerminatorInst(i) && !LLVMIsAPHINode(i) &&
           (coarse_is_plain_access(i) || coarse_is_pure(c->unit, i));
}

/* Where the code that belongs to the chain begins in its first block; NULL: nowhere. */
static LLVMValueRef start_of(struct chain *c) {
    LLVMValueRef start = NULL, i = LLVMGetPreviousInstruction(LLVMGetBasicBlockTerminator(c->first));
    for (int count = 0; i && count < MOST_BETWEEN && is_movable(c, i); count++) {
        if (is_device_access(c, i) && has_neighbour(c, i)) start = i;
        i = LLVMGetPreviousInstruction(i);
    }
    return start;
}

/* The instruction behind the code that belongs to the chain in its last block; NULL: there is none. */
static LLVMValueRef end_of(struct chain *c) {
    LLVMValueRef end = NULL, i = LLVMGetFirstInstruction(c->last);
    while (LLVMIsAPHINode(i)) i = LLVMGetNextInstruction(i);
    for (int count = 0; count < MOST_BETWEEN && is_movable(c, i); count++) {
        bool belongs = is_device_access(c, i) && has_neighbour(c, i);
        i = LLVMGetNextInstruction(i);
        if (belongs) end = i;
    }
    return end;
}

static void follow_chain(struct chain *c, LLVMBasicBlockRef before, LLVMBasicBlockRef first) {
    c->first = before;
    c->last = first;
    c->path.size = (struct guarded_size){0};
    for (LLVMBasicBlockRef join; (join = add_guard(c, c->last));) c->last = join;
}

/* The block before, if it leads to no other and no other leads to `block`. */
static LLVMBasicBlockRef block_before(struct chain *c, LLVMBasicBlockRef block) {
    const struct flow_block *b = &c->path.flow->blocks[flow_index(c->path.flow, block)];
    LLVMBasicBlockRef before =
        b->predecessor_count == 1 ? c->path.flow->blocks[b->predecessors[0]].block : NULL;
    return before && LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(before)) == 1 ? before : NULL;
}

/* Takes in the code around the chain. Code that shares a block with other code gets a block of its own: the
 * chain must then be found again, and `c->split` is set. */
static void take_in(struct chain *c) {
    LLVMValueRef start = start_of(c), end = end_of(c), next = LLVMGetBasicBlockTerminator(c->last);
    LLVMBasicBlockRef before = start ? block_before(c, c->first) : NULL;
    LLVMBasicBlockRef after = LLVMGetNumSuccessors(next) == 1 ? LLVMGetSuccessor(next, 0) : NULL;
    bool starts = before && start == LLVMGetFirstInstruction(c->first);
    bool ends = after && end == next && block_before(c, after) == c->last;
    if (start && !starts) flow_split_block(c->unit, start);
    if (end && !ends) flow_split_block(c->unit, end);
    c->split = (start && !starts) || (end && !ends);
    if (c->split) return;
    if (starts) follow_chain(c, before, c->first);
    if (ends && guarded_add(&c->path, c->last)) c->last = after;
}

static bool is_wanted(struct chain *c, LLVMBasicBlockRef first) {
    c->split = false;
    follow_chain(c, first, first);
    if (c->path.size.joins < FEWEST_GUARDS || is_whole_loop(c) || !collect(c)) return false;
    take_in(c);
    if (c->split || !collect(c)) return false;
    find_ahead(c);
    if (c->loads < FEWEST_LOADS) return false;
    for (int i = 0; i < c->path.size.conditions; i++)
        if (!is_known_before(c, LLVMGetCondition(c->path.conditions[i].branch), DEEPEST)) return false;
    return true;
}

/* ---- The form without branches. */

static LLVMValueRef value_in(struct chain *c, LLVMValueRef value) {
    struct chain_item *item = item_of(c, value);
    if (!item) return value;
    if (item->copy) return item->copy;
    if (LLVMIsAPHINode(value)) return item->copy = value_in(c, guarded_value(&c->path, value));
    LLVMValueRef copy = LLVMInstructionClone(value);
    for (int o = 0; o < LLVMGetNumOperands(copy); o++)
        LLVMSetOperand(copy, (unsigned)o, value_in(c, LLVMGetOperand(copy, (unsigned)o)));
    LLVMInsertIntoBuilder(c->unit->builder, copy);
    return item->copy = copy;
}

static LLVMValueRef all_hold(struct chain *c) {
    LLVMBuilderRef b = c->unit->builder;
    LLVMValueRef all = NULL;
    for (int i = 0; i < c->path.size.conditions; i++) {
        LLVMValueRef one = value_in(c, LLVMGetCondition(c->path.conditions[i].branch));
        if (c->path.conditions[i].taken == 1) one = LLVMBuildNot(b, one, "");
        /* Not `and`: after a guard that fails, the conditions of later ones may be poison. */
        all = all ? LLVMBuildSelect(b, all, one, LLVMConstInt(LLVMTypeOf(one), 0, false), "") : one;
    }
    return all;
}

/* Replaces uses of a value after the chain by a phi of the values in both forms. */
static void merge_value(struct chain *c, struct chain_item *item, LLVMBasicBlockRef together) {
    LLVMValueRef value = item->value, merged = NULL;
    for (LLVMUseRef use = LLVMGetFirstUse(value), next; use; use = next) {
        next = LLVMGetNextUse(use);
        LLVMValueRef user = LLVMGetUser(use);
        LLVMBasicBlockRef block = LLVMGetInstructionParent(user);
        if (user == merged || guarded_has(&c->path, block) || block == together) continue;
        if (block == c->last && LLVMIsAPHINode(user)) continue; /* build() has added its value */
        if (!merged) {
            const struct flow_block *last = &c->path.flow->blocks[flow_index(c->path.flow, c->last)];
            LLVMPositionBuilderBefore(c->unit->builder, LLVMGetFirstInstruction(c->last));
            merged = LLVMBuildPhi(c->unit->builder, LLVMTypeOf(value), "");
            for (int i = 0; i < last->predecessor_count; i++)
                LLVMAddIncoming(merged, &value, &c->path.flow->blocks[last->predecessors[i]].block, 1);
            LLVMAddIncoming(merged, &item->copy, &together, 1);
            /* The list of uses has changed. */
            next = LLVMGetFirstUse(value);
            continue;
        }
        for (int o = 0; o < LLVMGetNumOperands(user); o++)
            if (LLVMGetOperand(user, (unsigned)o) == value) LLVMSetOperand(user, (unsigned)o, merged);
        next = LLVMGetFirstUse(value);
    }
}

/* Whether a condition holds in all active lanes of the warp. Lanes that took different forms would wait for
 * both: in a stencil of a tile with a halo (3-D, 8th order, on an H200), where only lanes at two edges pass
 * all guards, the kernel took 200 us without this vote, and 169 us with it. Which lanes are active does not
 * matter: either form is right for any of them. */
static LLVMValueRef in_all_lanes(struct unit *unit, LLVMValueRef holds) {
    LLVMTypeRef word = LLVMInt32TypeInContext(unit->context);
    LLVMValueRef vote = LLVMBuildZExt(unit->builder, holds, word, "");
    vote = ptx_assembly(unit,
                        "{ .reg .pred p; .reg .b32 m; setp.ne.u32 p, $1, 0; activemask.b32 m; "
                        "vote.sync.all.pred p, p, m; selp.u32 $0, 1, 0, p; }",
                        "=r,r", word, &vote, 1, true);
    return LLVMBuildICmp(unit->builder, LLVMIntNE, vote, LLVMConstInt(word, 0, false), "");
}

/* Builds the test and the form without branches. Returns the block that now ends in the first guard's branch.
 */
static LLVMBasicBlockRef build(struct chain *c) {
    LLVMBuilderRef b = c->unit->builder;
    LLVMBasicBlockRef together = LLVMInsertBasicBlockInContext(c->unit->context, c->last, "together");
    LLVMBasicBlockRef alone = flow_split_block(c->unit, LLVMGetBasicBlockTerminator(c->first));
    /* The split replaced phis. */
    (void)collect(c);
    find_ahead(c);
    LLVMValueRef jump = LLVMGetBasicBlockTerminator(c->first);
    LLVMPositionBuilderBefore(b, jump);
    LLVMValueRef all = all_hold(c);
    if (c->waits) all = in_all_lanes(c->unit, all);
    LLVMInstructionEraseFromParent(jump);
    LLVMPositionBuilderAtEnd(b, c->first);
    LLVMBuildCondBr(b, all, together, alone);
    LLVMPositionBuilderAtEnd(b, together);
    for (int i = 0; i < c->count; i++)
        if (c->items[i].ahead && LLVMIsALoadInst(c->items[i].value)) (void)value_in(c, c->items[i].value);
    for (int i = 0; i < c->count; i++) (void)value_in(c, c->items[i].value);
    LLVMBuildBr(b, c->last);
    FOR_EACH_INSTRUCTION(phi, c->last) {
        if (!LLVMIsAPHINode(phi)) break;
        LLVMValueRef value = value_in(c, guarded_value(&c->path, phi));
        LLVMAddIncoming(phi, &value, &together, 1);
    }
    for (int i = 0; i < c->count; i++) merge_value(c, &c->items[i], together);
    return alone;
}

static bool has_barrier(const struct flow *flow) {
    for (int i = 0; i < flow->block_count; i++)
        if (divergence_has_barrier(flow->blocks[i].block)) return true;
    return false;
}

/* Finds the next chain that gains, and builds its other form. `seen`: the blocks at which guards begin that
 * were examined, alone or within a chain. */
static bool build_next(struct chain *c, LLVMBasicBlockRef *seen, int *seen_count) {
    const struct flow *flow = c->path.flow;
    bool waits = c->waits = has_barrier(flow);
    for (int place = 0; place < flow->block_count && *seen_count < MOST_SEEN; place++) {
        LLVMBasicBlockRef block = flow->blocks[place].block;
        bool again = false;
        for (int i = 0; i < *seen_count; i++) again |= seen[i] == block;
        /* In kernels without barriers, coarsen.c handles code outside loops. */
        if (again || (!waits && flow->blocks[place].loop < 0)) continue;
        bool wanted = is_wanted(c, block);
        if (c->split) return true;
        if (c->last == block) continue;
        seen[(*seen_count)++] = block;
        for (int i = 0; i < c->path.size.joins && *seen_count < MOST_SEEN; i++)
            if (c->path.joins[i].block != c->last) seen[(*seen_count)++] = c->path.joins[i].block;
        if (!wanted || *seen_count == MOST_SEEN) continue;
        seen[(*seen_count)++] = build(c);
        return true;
    }
    return false;
}

smelt_status pass_ptx_guards(struct unit *unit) {
    LLVMBasicBlockRef seen[MOST_SEEN];
    int seen_count = 0;
    smelt_status status = SMELT_OK;
    for (bool more = true; status == SMELT_OK && more;) {
        struct arena arena = {0};
        struct flow flow;
        struct chain *c = flow_begin(unit, &arena, &flow, sizeof *c, &status);
        more = false;
        if (c && !flow.irreducible) {
            c->unit = unit;
            c->path.flow = &flow;
            more = build_next(c, seen, &seen_count);
            if (more && !c->split)
                status = ptx_note(unit, "%d guarded loads are begun together if all guards hold", c->loads);
        }
        arena_free(&arena);
    }
    return status;
}
