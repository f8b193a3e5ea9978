/* Loops in which each thread steps through a row of its own: x[thread * n + k]. In one round, the lanes'
 * elements are n apart, and each is loaded by itself. In a few rounds together, the elements of one lane are
 * neighbours (neighbours.c): they take one vector per lane, and a transposition.
 *
 *   for (k = first; k < bound; k++) …    becomes    for (k = first; k < limit; k += ROUNDS) …, ROUNDS times
 *                                                   for (k = limit; k < bound; k++) …
 *
 * This is done to loops of one block whose rounds all threads count alike. If a loop stores, its loads must
 * be free to move before the stores of earlier rounds (neighbours.c): they read other buffers, or a round
 * stores only to the elements that it loads.
 *
 * Requires: the optimised entry. Maintains: what a thread does, in order. */
#include "compiler/analysis/base.h"
#include "compiler/analysis/flow.h"
#include "compiler/simd/simd.h"
#include "compiler/analysis/uniform.h"

#include <string.h>

enum { MOST_INSTRUCTIONS = 64, MOST_ROUNDS = 8, MOST_DEPTH = 6 };
enum { LINE_ROUNDS = 16, MOST_LINE_INSTRUCTIONS = 40 };
struct row_item {
    LLVMValueRef value;
    bool counts; /* an integer that grows by `step` in each round, as its bits wrap around */
    uint64_t step;
    LLVMValueRef now;   /* in the round that is written */
    LLVMValueRef first; /* in the first of the rounds */
};

struct row_loop {
    struct unit *unit;
    const struct flow *flow;
    LLVMBasicBlockRef body, before, after;
    LLVMValueRef counter, next, bound, first;
    LLVMIntPredicate goes_on; /* LLVMIntULT or LLVMIntSLT: `next` to `bound`, if another round follows */
    struct row_item items[MOST_INSTRUCTIONS];
    int count, phis, rounds;
    bool lines; /* first, LINE_ROUNDS at once */
};

static struct row_item *item_of(struct row_loop *l, LLVMValueRef value) {
    for (int i = 0; i < l->count; i++)
        if (l->items[i].value == value) return &l->items[i];
    return NULL;
}

/* ---- The counter. */

static bool adds_one(LLVMValueRef next, LLVMValueRef phi) {
    return LLVMIsABinaryOperator(next) && LLVMGetInstructionOpcode(next) == LLVMAdd &&
           LLVMGetOperand(next, 0) == phi && LLVMIsAConstantInt(LLVMGetOperand(next, 1)) &&
           LLVMConstIntGetZExtValue(LLVMGetOperand(next, 1)) == 1;
}

/* The loop goes on while next < bound, or next != bound. */
static bool find_counter(struct row_loop *l) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(l->body);
    if (!LLVMIsABranchInst(end) || !LLVMIsConditional(end)) return false;
    LLVMValueRef condition = LLVMGetCondition(end);
    bool stays = LLVMGetSuccessor(end, 0) == l->body;
    if (!LLVMIsAICmpInst(condition) || LLVMGetInstructionParent(condition) != l->body) return false;
    l->after = LLVMGetSuccessor(end, stays ? 1 : 0);
    l->next = LLVMGetOperand(condition, 0);
    l->bound = LLVMGetOperand(condition, 1);
    if (!LLVMIsAInstruction(l->next) || item_of(l, l->bound)) return false;
    l->counter = LLVMGetOperand(l->next, 0);
    if (!LLVMIsAPHINode(l->counter) || !item_of(l, l->counter) || !adds_one(l->next, l->counter))
        return false;
    l->first = phi_incoming(l->counter, l->before);
    LLVMIntPredicate p = LLVMGetICmpPredicate(condition);
    if (p == (stays ? LLVMIntSLT : LLVMIntSGE))
        l->goes_on = LLVMIntSLT;
    else if (p == (stays ? LLVMIntULT : LLVMIntUGE) || p == (stays ? LLVMIntNE : LLVMIntEQ))
        l->goes_on = LLVMIntULT;
    else
        return false;
    return phi_incoming(l->counter, l->body) == l->next && !uniform_splits_threads(l->flow, end);
}

/* ---- Rows. */

/* What the value adds in each round; false: it is not a sum with the counter. */
static bool find_step(struct row_loop *l, LLVMValueRef value, uint64_t *step) {
    const struct row_item *item = item_of(l, value);
    *step = item ? item->step : 0;
    return !item || item->counts;
}

static void mark_count(struct row_loop *l, struct row_item *item) {
    LLVMValueRef i = item->value;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
    uint64_t x = 0, y = 0;
    if (LLVMGetTypeKind(LLVMTypeOf(i)) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(LLVMTypeOf(i)) > 64)
        return;
    if (i == l->counter || i == l->next) {
        item->counts = true;
        item->step = 1;
        return;
    }
    bool sum = opcode == LLVMAdd || opcode == LLVMSub || (opcode == LLVMOr && LLVMGetIsDisjoint(i));
    if (opcode == LLVMTrunc) {
        item->counts = find_step(l, LLVMGetOperand(i, 0), &item->step);
    } else if (sum && find_step(l, LLVMGetOperand(i, 0), &x) && find_step(l, LLVMGetOperand(i, 1), &y)) {
        item->counts = true;
        item->step = opcode == LLVMSub ? x - y : x + y;
    }
}

/* Lines of a group with fewer threads: neighbouring lanes are in different ones. */
enum { FEW_IN_LINE = 4 };

/* Whether the value differs between most neighbouring lanes. Positions in y and z do so in groups whose lines
 * are short. */
static bool differs(struct row_loop *l, LLVMValueRef value, int depth) {
    uint64_t dimension = 0;
    if (!LLVMIsAInstruction(value) || uniform_is(l->flow, value)) return false;
    enum intrinsic intrinsic = intrinsic_of(value);
    if (intrinsic == INTRINSIC_SIMDGROUP) return false;
    if (intrinsic == INTRINSIC_POSITION_IN_THREADGROUP || intrinsic == INTRINSIC_THREAD_POSITION) {
        uint32_t line = l->unit->request->shape.size[0];
        bool first = is_constant_integer(LLVMGetOperand(value, 0), &dimension) && dimension == 0;
        return first ? line != 1 : line > 0 && line <= FEW_IN_LINE;
    }
    if (depth == MOST_DEPTH || LLVMIsAPHINode(value) || intrinsic != INTRINSIC_NONE) return true;
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (differs(l, LLVMGetOperand(value, (unsigned)i), depth + 1)) return true;
    return false;
}

/* Whether the value sets lanes apart: it contains a product or a left shift of what differs between them. */
static bool lies_apart(struct row_loop *l, LLVMValueRef value, int depth) {
    if (!LLVMIsAInstruction(value) || depth == MOST_DEPTH || uniform_is(l->flow, value)) return false;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMMul:
    case LLVMShl:
        return differs(l, value, depth);
    case LLVMAdd:
    case LLVMSub:
    case LLVMOr:
    case LLVMZExt:
    case LLVMSExt:
    case LLVMTrunc:
    case LLVMGetElementPtr:
        for (int i = 0; i < LLVMGetNumOperands(value); i++)
            if (lies_apart(l, LLVMGetOperand(value, (unsigned)i), depth + 1)) return true;
        return false;
    default:
        return false;
    }
}

static LLVMValueRef address_of(LLVMValueRef access) {
    return LLVMGetOperand(access, LLVMIsALoadInst(access) ? 0 : 1);
}

static LLVMTypeRef type_of(LLVMValueRef access) {
    return LLVMTypeOf(LLVMIsALoadInst(access) ? access : LLVMGetOperand(access, 0));
}

static unsigned space_of(LLVMValueRef access) {
    return LLVMGetPointerAddressSpace(LLVMTypeOf(address_of(access)));
}

/* Whether the load or store steps through a row. */
static bool is_of_row(struct row_loop *l, LLVMValueRef access) {
    LLVMValueRef address = address_of(access);
    uint64_t size = LLVMABISizeOfType(l->unit->layout, type_of(access)), step;
    if (!LLVMIsAGetElementPtrInst(address) || LLVMGetNumOperands(address) != 2 || size > 4 ||
        item_of(l, LLVMGetOperand(address, 0)) ||
        LLVMABISizeOfType(l->unit->layout, LLVMGetGEPSourceElementType(address)) != size)
        return false;
    LLVMValueRef index = LLVMGetOperand(address, 1);
    while (item_of(l, index) && (LLVMIsAZExtInst(index) || LLVMIsASExtInst(index)))
        index = LLVMGetOperand(index, 0);
    if (!find_step(l, index, &step) || step != 1) return false;
    return lies_apart(l, address, 0);
}

static bool is_plain(LLVMValueRef i) {
    if (LLVMIsALoadInst(i) || LLVMIsAStoreInst(i))
        return !LLVMGetVolatile(i) && LLVMGetOrdering(i) == LLVMAtomicOrderingNotAtomic;
    if (LLVMIsACallInst(i)) {
        const char *name = called_name(i);
        return strncmp(name, "llvm.", 5) == 0 && strncmp(name, "llvm.mem", 8) != 0;
    }
    return !LLVMIsAAllocaInst(i) && !LLVMIsAFenceInst(i) && !LLVMIsAAtomicRMWInst(i) &&
           !LLVMIsAAtomicCmpXchgInst(i);
}

static bool collect(struct row_loop *l) {
    l->count = l->phis = 0;
    FOR_EACH_INSTRUCTION(i, l->body) {
        if (LLVMIsATerminatorInst(i)) break;
        if (l->count == MOST_INSTRUCTIONS || !is_plain(i)) return false;
        l->phis += LLVMIsAPHINode(i) != NULL;
        l->items[l->count++] = (struct row_item){.value = i};
    }
    return true;
}

/* Whether the load may move before this store of earlier rounds. This only decides whether rounds are written
 * together: neighbours.c checks each move. Stores to space 0 write the thread's own memory. */
static bool keeps_from(struct row_loop *l, LLVMValueRef load, LLVMValueRef store) {
    unsigned from = space_of(load), to = space_of(store);
    if (to == 0 || (from == THREADGROUP_SPACE) != (to == THREADGROUP_SPACE)) return true;
    LLVMValueRef a = address_of(load), b = address_of(store);
    if (a == b) return type_of(load) == type_of(store);
    struct base loaded = base_of(l->unit, a), stored = base_of(l->unit, b);
    return base_are_distinct(l->unit, &loaded, &stored);
}

static bool keeps_from_stores(struct row_loop *l, LLVMValueRef load) {
    for (int n = 0; n < l->count; n++)
        if (LLVMIsAStoreInst(l->items[n].value) && !keeps_from(l, load, l->items[n].value)) return false;
    return true;
}

/* A short loop first runs as many rounds at once as there are words in a cache line (lines.c), and then
 * fewer: with 512 bits, and with 256 bits if the elements are words. Returns false for other loops. */
static bool has_lines(struct row_loop *l, uint64_t narrowest) {
    const struct compile_request *request = l->unit->request;
    int bits = simd_vector_bits(request->cpu, request->features);
    bool suits = bits == 512 ? narrowest >= 2 : bits == 256 && narrowest == 4;
    return suits && l->count <= MOST_LINE_INSTRUCTIONS;
}

/* The rounds to write at once: a vector of 128 bits of the narrowest row's elements; 0: no rows. */
static int find_rounds(struct row_loop *l) {
    uint64_t narrowest = 8;
    bool device = false;
    for (int n = 0; n < l->count; n++) mark_count(l, &l->items[n]);
    for (int n = 0; n < l->count; n++) {
        LLVMValueRef i = l->items[n].value;
        bool load = LLVMIsALoadInst(i);
        if (!load && (!LLVMIsAStoreInst(i) || space_of(i) == 0)) continue;
        if (load && !keeps_from_stores(l, i)) return 0;
        if (!is_of_row(l, i)) continue;
        uint64_t size = LLVMABISizeOfType(l->unit->layout, type_of(i));
        device |= space_of(i) != THREADGROUP_SPACE;
        if (size < narrowest) narrowest = size;
    }
    if (!device) return 0;
    l->lines = has_lines(l, narrowest);
    return 16 / narrowest < MOST_ROUNDS ? (int)(16 / narrowest) : MOST_ROUNDS;
}

static bool is_wanted(struct row_loop *l, int loop) {
    const struct flow_loop *own = &l->flow->loops[loop];
    const struct flow_block *header = &l->flow->blocks[own->header];
    if (own->latch_count != 1 || own->latches[0] != own->header || header->predecessor_count != 2)
        return false;
    l->body = header->block;
    for (int i = 0; i < 2; i++)
        if (header->predecessors[i] != own->header)
            l->before = l->flow->blocks[header->predecessors[i]].block;
    if (!collect(l) || !find_counter(l)) return false;
    l->rounds = find_rounds(l);
    return l->rounds > 1;
}

/* ---- Writing. */

static LLVMValueRef add_constant(struct row_loop *l, LLVMValueRef value, uint64_t constant) {
    LLVMTypeRef type = LLVMTypeOf(value);
    return constant ? LLVMBuildAdd(l->unit->builder, value, LLVMConstInt(type, constant, false), "") : value;
}

/* The counter so many rounds after the first of the rounds. It is not past the limit, so it does not wrap. */
static LLVMValueRef counter_after(struct row_loop *l, int rounds) {
    LLVMValueRef sum = add_constant(l, item_of(l, l->counter)->first, (uint64_t)rounds);
    if (rounds && l->goes_on == LLVMIntULT) LLVMSetNUW(sum, true);
    if (rounds && l->goes_on == LLVMIntSLT) LLVMSetNSW(sum, true);
    return sum;
}

static void write_item(struct row_loop *l, struct row_item *item, int round) {
    if (item->counts && round > 0) {
        item->now = add_constant(l, item->first, item->step * (uint64_t)round);
        return;
    }
    LLVMValueRef copy = LLVMInstructionClone(item->value);
    for (int o = 0; o < LLVMGetNumOperands(copy); o++) {
        const struct row_item *operand = item_of(l, LLVMGetOperand(copy, (unsigned)o));
        if (operand) LLVMSetOperand(copy, (unsigned)o, operand->now);
    }
    LLVMInsertIntoBuilder(l->unit->builder, copy);
    item->now = item->first = copy;
}

static LLVMValueRef current(struct row_loop *l, LLVMValueRef value) {
    const struct row_item *item = item_of(l, value);
    return item ? item->now : value;
}

/* The phis take their values from the round before. */
static void pass_on(struct row_loop *l, int round) {
    LLVMValueRef values[MOST_INSTRUCTIONS] = {NULL};
    for (int n = 0; n < l->phis; n++) values[n] = current(l, phi_incoming(l->items[n].value, l->body));
    for (int n = 0; n < l->phis; n++)
        l->items[n].now = l->items[n].value == l->counter ? counter_after(l, round) : values[n];
}

/* Returns the counter after all rounds. Afterwards, each item's `now` is its value in the last round. */
static LLVMValueRef write_rounds(struct row_loop *l) {
    for (int n = 0; n < l->phis; n++)
        l->items[n].now = l->items[n].first =
            LLVMBuildPhi(l->unit->builder, LLVMTypeOf(l->items[n].value), "");
    for (int round = 0; round < l->rounds; round++) {
        if (round) pass_on(l, round);
        for (int n = l->phis; n < l->count; n++) write_item(l, &l->items[n], round);
    }
    return counter_after(l, l->rounds);
}

/* Before the loop: the limit of the rounds. any: whether there are enough rounds to write at once. */
static LLVMValueRef find_limit(struct row_loop *l, LLVMValueRef *any) {
    LLVMBuilderRef b = l->unit->builder;
    LLVMTypeRef type = LLVMTypeOf(l->bound);
    LLVMValueRef mask = LLVMConstInt(type, ~(uint64_t)(l->rounds - 1), false);
    LLVMValueRef whole = LLVMBuildAnd(b, LLVMBuildSub(b, l->bound, l->first, ""), mask, "");
    LLVMValueRef some = LLVMBuildICmp(b, LLVMIntNE, whole, LLVMConstNull(type), "");
    *any = LLVMBuildAnd(b, LLVMBuildICmp(b, l->goes_on, l->first, l->bound, ""), some, "");
    return LLVMBuildAdd(b, l->first, whole, "");
}

/* Passes the values after the rounds to the loop of the remaining rounds, and to the phis after it. */
static void join(struct row_loop *l, LLVMBasicBlockRef ahead, LLVMBasicBlockRef between, LLVMValueRef last) {
    LLVMBasicBlockRef rest = l->before;
    LLVMBuilderRef b = l->unit->builder;
    FOR_EACH_INSTRUCTION(phi, l->after) {
        if (!LLVMIsAPHINode(phi)) break;
        LLVMValueRef value = current(l, phi_incoming(phi, l->body));
        LLVMAddIncoming(phi, &value, &between, 1);
    }
    for (int n = 0; n < l->phis; n++) {
        LLVMValueRef phi = l->items[n].value, after = current(l, phi_incoming(phi, l->body));
        LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(rest));
        LLVMValueRef start = LLVMBuildPhi(b, LLVMTypeOf(phi), ""), from[2] = {phi_incoming(phi, rest), after};
        LLVMBasicBlockRef blocks[2] = {ahead, between};
        if (phi == l->counter) from[1] = last;
        LLVMAddIncoming(start, from, blocks, 2);
        for (unsigned i = 0; i < 2; i++)
            if (LLVMGetIncomingBlock(phi, i) == rest) LLVMSetOperand(phi, i, start);
    }
}

/* ahead: the only predecessor of the block before the loop, which is empty. */
static void write(struct row_loop *l, LLVMBasicBlockRef ahead) {
    LLVMBuilderRef b = l->unit->builder;
    LLVMValueRef end = LLVMGetBasicBlockTerminator(ahead), any;
    LLVMBasicBlockRef rest = l->before;
    LLVMBasicBlockRef rows = LLVMInsertBasicBlockInContext(l->unit->context, rest, "rows");
    LLVMBasicBlockRef between = LLVMInsertBasicBlockInContext(l->unit->context, rest, "between");
    LLVMSetCurrentDebugLocation2(b, NULL);
    LLVMPositionBuilderBefore(b, end);
    LLVMValueRef limit = find_limit(l, &any);
    LLVMBuildCondBr(b, any, rows, rest);
    LLVMInstructionEraseFromParent(end);

    LLVMPositionBuilderAtEnd(b, rows);
    LLVMValueRef last = write_rounds(l);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, l->goes_on, last, limit, ""), rows, between);
    for (int n = 0; n < l->phis; n++) {
        LLVMValueRef phi = l->items[n].value,
                     from[2] = {phi_incoming(phi, rest), current(l, phi_incoming(phi, l->body))};
        LLVMBasicBlockRef blocks[2] = {ahead, rows};
        if (phi == l->counter) from[1] = last;
        LLVMAddIncoming(l->items[n].first, from, blocks, 2);
    }
    LLVMPositionBuilderAtEnd(b, between);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, limit, l->bound, ""), l->after, rest);
    join(l, ahead, between, last);
}

/* Puts an empty block before the loop again. The loop's phis are others then. Returns the block before. */
static LLVMBasicBlockRef split_again(struct row_loop *l) {
    LLVMBasicBlockRef ahead = l->before;
    LLVMValueRef counter = l->counter, phi;
    l->before = flow_split_block(l->unit, LLVMGetBasicBlockTerminator(ahead));
    phi = LLVMGetFirstInstruction(l->body);
    for (int n = 0; n < l->phis; n++, phi = LLVMGetNextInstruction(phi)) {
        if (l->items[n].value == counter) l->counter = phi;
        l->items[n].value = phi;
    }
    l->first = phi_incoming(l->counter, l->before);
    return ahead;
}

static void write_all(struct row_loop *l, LLVMBasicBlockRef ahead) {
    int fewer = l->rounds;
    if (l->lines) {
        l->rounds = LINE_ROUNDS;
        write(l, ahead);
        ahead = split_again(l);
        l->rounds = fewer;
    }
    write(l, ahead);
}

/* ---- All loops. */

/* Fills *l with the loop of this block, or of any block if `body` is NULL; false: it is not wanted. */
static bool find(struct row_loop *l, LLVMBasicBlockRef body) {
    for (int i = 0; i < l->flow->loop_count; i++) {
        LLVMBasicBlockRef header = l->flow->blocks[l->flow->loops[i].header].block;
        if ((!body || header == body) && is_wanted(l, i)) return true;
    }
    return false;
}

enum step { ASK, SPLIT, WRITE };

/* SPLIT: puts an empty block before the loop. WRITE finds the loop again, as its phis have changed. */
static smelt_status visit(struct unit *unit, LLVMBasicBlockRef body, enum step step, bool *found) {
    struct arena arena = {0};
    struct flow flow;
    smelt_status status = flow_find(unit, unit->entry, &arena, &flow);
    struct row_loop *l = status == SMELT_OK ? arena_alloc(&arena, sizeof *l) : NULL;
    if (status == SMELT_OK && !l) status = unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for a loop");
    if (status == SMELT_OK) {
        *l = (struct row_loop){.unit = unit, .flow = &flow};
        *found = !flow.irreducible && find(l, body);
        if (*found && step == SPLIT)
            (void)flow_split_block(unit, LLVMGetBasicBlockTerminator(l->before));
        else if (*found && step == WRITE)
            write_all(l, flow.blocks[flow.blocks[flow_index(&flow, l->before)].predecessors[0]].block);
    }
    arena_free(&arena);
    return status;
}

enum { MOST_LOOPS = 32 };

smelt_status pass_simd_columns(struct unit *unit) {
    bool found = false;
    LLVMBasicBlockRef blocks[MOST_LOOPS];
    int count = 0;
    if (unit->form != FORM_BEST) return SMELT_OK;
    TRY(visit(unit, NULL, ASK, &found));
    if (!found) return SMELT_OK;
    TRY(run_passes(unit, "function(loop-simplify,lcssa)"));
    FOR_EACH_BLOCK(block, unit->entry) {
        LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
        for (unsigned i = 0; i < LLVMGetNumSuccessors(end); i++)
            if (LLVMGetSuccessor(end, i) == block && count < MOST_LOOPS) blocks[count++] = block;
    }
    for (int i = 0; i < count; i++) {
        TRY(visit(unit, blocks[i], SPLIT, &found));
        if (found) TRY(visit(unit, blocks[i], WRITE, &found));
    }
    return SMELT_OK;
}
