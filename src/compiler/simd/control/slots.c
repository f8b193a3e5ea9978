/* Stack slots, which carry masks and values between blocks. LLVM's mem2reg turns them into registers again,
 * which makes values of skipped blocks well-formed.
 *
 * Slots begin near their uses: a slot's contents are needed within one round of a loop,
 * or once per call: from the block that all its uses lie behind. mem2reg looks at every block between the
 * first contents of a slot and its last use, so slots that all began in the function's first block would take
 * a time that grows with the square of the number of branches.
 *
 * Requires: the complete function s->gang, in which slots of simd_round_slot have no first contents yet.
 * Establishes: each has them. Loads from these slots may be erased, so the emitter's values may dangle. */
#include "compiler/budget.h"
#include "compiler/simd/simd.h"

#include <stdlib.h>

LLVMValueRef simd_slot(struct simd *s, LLVMTypeRef type) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
    LLVMMetadataRef line = LLVMGetCurrentDebugLocation2(b);
    LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(s->slots_block));
    LLVMValueRef slot = LLVMBuildAlloca(b, type, "");
    LLVMPositionBuilderAtEnd(b, here);
    LLVMSetCurrentDebugLocation2(b, line);
    return slot;
}

LLVMTypeRef simd_slot_type(LLVMValueRef slot) {
    return LLVMIsAAllocaInst(slot) ? LLVMGetAllocatedType(slot) : LLVMGetGEPSourceElementType(slot);
}

/* A slot, its first contents, and the header of the loop for one round of which it has them; NULL: once. */
struct round_slot {
    LLVMValueRef slot, first;
    LLVMBasicBlockRef header;
    struct round_slot *next;
    /* settle_block: at this point of `block`, the slot contains `value`. store: which wrote it; NULL: an
     * earlier block did. */
    LLVMBasicBlockRef block;
    LLVMValueRef value, store;
};

LLVMValueRef simd_round_slot(struct simd *s, LLVMTypeRef type, LLVMValueRef first, int loop) {
    struct round_slot *one = arena_alloc(&s->arena, sizeof *one);
    LLVMValueRef slot = simd_slot(s, type);
    if (!one) return slot; /* the arena has failed */
    LLVMBasicBlockRef header = loop < 0 ? NULL : s->blocks[s->paths.loops[loop].header].head;
    *one = (struct round_slot){
        .slot = slot, .first = first ? first : LLVMGetUndef(type), .header = header, .next = s->round_slots};
    s->round_slots = one;
    return slot;
}

static int common_dominator(const struct flow *flow, int a, int b) {
    while (a != b) {
        while (a > b) a = flow->blocks[a].dominator;
        while (b > a) b = flow->blocks[b].dominator;
    }
    return a;
}

/* A block that a round of the slot's loop passes once, before any use; -1 if there is no use. *stored: that
 * block stores to the slot, and does not load from it. */
static int find_begin(const struct flow *flow, const struct round_slot *r, bool *stored) {
    int header = r->header ? flow_index(flow, r->header) : -1, begin = -1;
    int loop = header < 0 ? -1 : flow->blocks[header].loop;
    for (LLVMUseRef use = LLVMGetFirstUse(r->slot); use; use = LLVMGetNextUse(use)) {
        int block = flow_index(flow, LLVMGetInstructionParent(LLVMGetUser(use)));
        if (block < 0) continue;
        begin = begin < 0 ? block : common_dominator(flow, begin, block);
        while (!flow_block_within(flow, block, loop)) loop = flow->loops[loop].parent;
    }
    while (begin > 0 && !flow_loop_within(flow, loop, flow->blocks[begin].loop))
        begin = flow->blocks[begin].dominator;
    *stored = false;
    for (LLVMUseRef use = LLVMGetFirstUse(r->slot); use && begin >= 0; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMGetInstructionParent(user) != flow->blocks[begin].block) continue;
        *stored = LLVMIsAStoreInst(user) != NULL;
        if (!*stored) break;
    }
    return begin;
}

/* The entry of the function has the slots; its code begins in s->start. */
static void begin_slot(struct simd *s, const struct flow *flow, const struct round_slot *r) {
    bool stored;
    int begin = find_begin(flow, r, &stored);
    if (begin < 0 || (stored && LLVMIsUndef(r->first))) return;
    LLVMBasicBlockRef block = begin ? flow->blocks[begin].block : s->start;
    LLVMValueRef at = LLVMGetFirstInstruction(block);
    while (LLVMIsAPHINode(at)) at = LLVMGetNextInstruction(at);
    LLVMPositionBuilderBefore(s->unit->builder, at);
    LLVMSetCurrentDebugLocation2(s->unit->builder, NULL);
    LLVMBuildStore(s->unit->builder, r->first, r->slot);
}

/* ---- Within a block, loads become the value that was stored, and only the last of several stores stays.
 * Most masks are then used in one block only, where mem2reg replaces the slot without a look at other blocks.
 * In a switch, it would look at the blocks of all cases, for the masks of each case. */

static int compare_slots(const void *a, const void *b) {
    uintptr_t x = (uintptr_t)(*(struct round_slot *const *)a)->slot,
              y = (uintptr_t)(*(struct round_slot *const *)b)->slot;
    return (x > y) - (x < y);
}

struct slot_table {
    struct round_slot **slots; /* by address */
    size_t count;
};

static struct round_slot *find_slot(const struct slot_table *table, LLVMValueRef address) {
    struct round_slot key = {.slot = address}, *wanted = &key;
    struct round_slot **found = LLVMIsAAllocaInst(address) ? bsearch(&wanted, table->slots, table->count,
                                                                     sizeof wanted, compare_slots)
                                                           : NULL;
    return found ? *found : NULL;
}

static void settle_load(struct round_slot *r, LLVMValueRef load, LLVMBasicBlockRef block) {
    if (r->block != block) {
        r->block = block;
        r->value = load;
        r->store = NULL;
    } else if (LLVMTypeOf(load) == LLVMTypeOf(r->value)) {
        LLVMReplaceAllUsesWith(load, r->value);
        LLVMInstructionEraseFromParent(load);
    }
}

static void settle_store(struct round_slot *r, LLVMValueRef store, LLVMBasicBlockRef block) {
    if (r->block == block && r->store) LLVMInstructionEraseFromParent(r->store);
    r->block = block;
    r->value = LLVMGetOperand(store, 0);
    r->store = store;
}

static void settle_block(const struct slot_table *table, LLVMBasicBlockRef block) {
    FOR_EACH_INSTRUCTION(i, block) {
        bool load = LLVMIsALoadInst(i) != NULL;
        if (!load && !LLVMIsAStoreInst(i)) continue;
        struct round_slot *r = find_slot(table, LLVMGetOperand(i, load ? 0 : 1));
        if (r && load)
            settle_load(r, i, block);
        else if (r)
            settle_store(r, i, block);
    }
}

/* Whether all uses are loads and stores of its type. */
static bool is_value(LLVMValueRef slot) {
    LLVMTypeRef type = LLVMGetAllocatedType(slot);
    for (LLVMUseRef use = LLVMGetFirstUse(slot); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        bool loads = LLVMIsALoadInst(user) && LLVMTypeOf(user) == type;
        bool stores = LLVMIsAStoreInst(user) && LLVMGetOperand(user, 1) == slot &&
                      LLVMTypeOf(LLVMGetOperand(user, 0)) == type;
        if (!loads && !stores) return false;
    }
    return true;
}

static void settle_slots(struct simd *s) {
    struct slot_table table = {0};
    size_t count = 0;
    for (struct round_slot *r = s->round_slots; r; r = r->next) count++;
    table.slots = count ? arena_alloc(&s->arena, count * sizeof(struct round_slot *)) : NULL;
    if (!table.slots) return;
    for (struct round_slot *r = s->round_slots; r; r = r->next)
        if (is_value(r->slot)) table.slots[table.count++] = r;
    qsort(table.slots, table.count, sizeof *table.slots, compare_slots);
    FOR_EACH_BLOCK(block, s->gang) settle_block(&table, block);
}

/* Whether mem2reg must look at other blocks. */
static bool is_used_apart(LLVMValueRef slot) {
    LLVMUseRef first = LLVMGetFirstUse(slot);
    for (LLVMUseRef use = first; use; use = LLVMGetNextUse(use))
        if (LLVMGetInstructionParent(LLVMGetUser(use)) != LLVMGetInstructionParent(LLVMGetUser(first)))
            return true;
    return false;
}

static smelt_status check_slots(struct simd *s, int blocks) {
    uint64_t slots = 0;
    for (const struct round_slot *r = s->round_slots; r; r = r->next) slots += is_used_apart(r->slot);
    return budget_check(s->unit, BUDGET_SLOTS, slots * (uint64_t)blocks);
}

smelt_status simd_begin_slots(struct simd *s) {
    struct flow flow;
    TRY(flow_find(s->unit, s->gang, &s->arena, &flow));
    for (const struct round_slot *r = s->round_slots; r; r = r->next) begin_slot(s, &flow, r);
    settle_slots(s);
    return check_slots(s, flow.block_count);
}
