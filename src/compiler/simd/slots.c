/* Stack slots, which carry masks and values between blocks. LLVM's mem2reg turns them into registers again,
 * which makes values of skipped blocks well-formed.
 *
 * Slots begin near their uses: a slot's contents are needed within one round of a loop,
 * or once per call: from the block that all its uses lie behind. mem2reg looks at every block between the
 * first contents of a slot and its last use, so slots that all began in the function's first block would take
 * a time that grows with the square of the number of branches.
 *
 * Requires: the complete function s->gang, in which slots of simd_round_slot have no first contents yet.
 * Establishes: each has. */
#include "compiler/simd/simd.h"

LLVMValueRef simd_slot(struct simd *s, LLVMTypeRef type) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
    LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(s->slots_block));
    LLVMValueRef slot = LLVMBuildAlloca(b, type, "");
    LLVMPositionBuilderAtEnd(b, here);
    return slot;
}

/* A slot, its first contents, and the header of the loop for one round of which it has them; NULL: once. */
struct round_slot {
    LLVMValueRef slot, first;
    LLVMBasicBlockRef header;
    struct round_slot *next;
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

smelt_status simd_begin_slots(struct simd *s) {
    struct flow flow;
    TRY(flow_find(s->unit, s->gang, &s->arena, &flow));
    for (const struct round_slot *r = s->round_slots; r; r = r->next) begin_slot(s, &flow, r);
    return SMELT_OK;
}
