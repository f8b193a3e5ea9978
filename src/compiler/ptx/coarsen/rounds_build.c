/* Builds the rounds of a loop that run together (rounds.h): their loads, then the rest of each. */
#include "compiler/ptx/coarsen/rounds.h"

#include <string.h>

struct round_item *rounds_item(struct rounds *r, LLVMValueRef value) {
    if (!LLVMIsAInstruction(value)) return NULL;
    for (int i = 0; i < r->count; i++)
        if (r->items[i].value == value) return &r->items[i];
    return NULL;
}

LLVMValueRef rounds_next(struct rounds *r, LLVMValueRef phi) {
    return LLVMGetInstructionParent(phi) == r->body ? phi_incoming(phi, r->last)
                                                    : guarded_value(&r->path, phi);
}

LLVMValueRef rounds_address(LLVMValueRef access) {
    return LLVMGetOperand(access, LLVMIsALoadInst(access) ? 0 : 1);
}

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
    struct round_item *item = rounds_item(r, value);
    if (!item) return value;
    if (item->copies[round]) return item->copies[round];
    if (LLVMIsAPHINode(value)) { /* in round 0, phis of `body` have copies */
        int of = LLVMGetInstructionParent(value) == r->body ? round - 1 : round;
        return item->copies[round] = value_in(r, of, rounds_next(r, value));
    }
    return copy_in(r, round, item);
}

static LLVMBasicBlockRef new_block(struct rounds *r, const char *name) {
    return LLVMInsertBasicBlockInContext(r->unit->context, r->body, name);
}

/* A block that begins rounds; the builder is at its end. */
static LLVMBasicBlockRef build_head(struct rounds *r, const char *name) {
    LLVMBasicBlockRef head = new_block(r, name);
    LLVMPositionBuilderAtEnd(r->unit->builder, head);
    for (int i = 0; i < r->count; i++)
        for (int round = 0; round < ROUNDS_MOST; round++) r->items[i].copies[round] = NULL;
    for (int i = 0; i < r->phis; i++)
        r->items[i].copies[0] = LLVMBuildPhi(r->unit->builder, LLVMTypeOf(r->items[i].value), "");
    return head;
}

static LLVMValueRef and_condition(struct rounds *r, LLVMValueRef all, int round, LLVMValueRef branch,
                                  unsigned successor) {
    LLVMBuilderRef b = r->unit->builder;
    LLVMValueRef one = value_in(r, round, LLVMGetCondition(branch));
    if (successor == 1) one = LLVMBuildNot(b, one, "");
    /* Not `and`: past a condition that fails, later ones may be poison. */
    return all ? LLVMBuildSelect(b, all, one, LLVMConstInt(LLVMTypeOf(one), 0, false), "") : one;
}

/* Whether a loop's counter grows by 1, or falls by 1, until it equals its end: LLVM writes most loops so. */
static bool counts_to_end(struct rounds *r, bool *falls) {
    LLVMValueRef test = LLVMGetCondition(r->branch);
    if (!LLVMIsAICmpInst(test)) return false;
    if (LLVMGetICmpPredicate(test) != (r->stays == 0 ? LLVMIntNE : LLVMIntEQ)) return false;
    LLVMValueRef next = LLVMGetOperand(test, 0);
    if (LLVMGetTypeKind(LLVMTypeOf(next)) != LLVMIntegerTypeKind || !rounds_item(r, next) ||
        rounds_item(r, LLVMGetOperand(test, 1)) || LLVMGetInstructionOpcode(next) != LLVMAdd ||
        LLVMGetIntTypeWidth(LLVMTypeOf(next)) < 32)
        return false;
    LLVMValueRef counter = LLVMGetOperand(next, 0), step = LLVMGetOperand(next, 1);
    if (!LLVMIsAPHINode(counter) || LLVMGetInstructionParent(counter) != r->body ||
        rounds_next(r, counter) != next || !LLVMIsAConstantInt(step))
        return false;
    int64_t by = LLVMConstIntGetSExtValue(step);
    *falls = by == -1;
    return by == 1 || by == -1;
}

/* One test of whether all rounds follow, by the number of those after the first; NULL: the loop counts
 * otherwise. The counter passes no end on its way, so the number is a difference, modulo the counter's range.
 * It needs no freeze: the first round always gets to its own test of the same two numbers. */
static LLVMValueRef enough_left(struct rounds *r) {
    LLVMBuilderRef b = r->unit->builder;
    bool falls;
    if (r->rounds < 2 || !counts_to_end(r, &falls)) return NULL;
    LLVMValueRef test = LLVMGetCondition(r->branch), end = LLVMGetOperand(test, 1),
                 next = value_in(r, 0, LLVMGetOperand(test, 0));
    LLVMValueRef left = falls ? LLVMBuildSub(b, next, end, "") : LLVMBuildSub(b, end, next, "");
    return LLVMBuildICmp(b, LLVMIntUGT, left,
                         LLVMConstInt(LLVMTypeOf(left), (uint64_t)(r->rounds - 2), false), "");
}

/* `counted`: it is known already that the loop does not end before. */
static LLVMValueRef all_follow(struct rounds *r, bool counted) {
    LLVMValueRef all = NULL;
    for (int round = 0; round < r->rounds; round++) {
        for (int i = 0; i < r->path.size.conditions; i++)
            all = and_condition(r, all, round, r->path.conditions[i].branch, r->path.conditions[i].taken);
        if (!counted && round < r->rounds - 1) all = and_condition(r, all, round, r->branch, r->stays);
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

/* ---- The remaining rounds of a loop that only loads: up to FEW at once. A round that does not follow loads
 * again what the first one loads, and its values are not used. */
#define FEW 4
_Static_assert(FEW < ROUNDS_MOST, "items have a copy for the round after the last");

static void add_to_phi(LLVMValueRef phi, LLVMValueRef value, LLVMBasicBlockRef from) {
    LLVMAddIncoming(phi, &value, &from, 1);
}

/* Adds the values with which the loop is left from a block, after at most `rounds` rounds. `follows[i]`:
 * whether round i runs. */
static void leave_with(struct rounds *r, LLVMBasicBlockRef from, LLVMValueRef *follows, int rounds) {
    FOR_EACH_INSTRUCTION(phi, r->after) {
        if (!LLVMIsAPHINode(phi)) break;
        LLVMValueRef last = phi_incoming(phi, r->last), value = value_in(r, 0, last);
        for (int round = 1; round < rounds; round++)
            value = LLVMBuildSelect(r->unit->builder, follows[round], value_in(r, round, last), value, "");
        add_to_phi(phi, value, from);
    }
}

/* Round by round: an address may follow from any load of the round before, which must not be copied without
 * the choice of its address. */
static void load_what_follows(struct rounds *r, LLVMValueRef *follows) {
    LLVMBuilderRef b = r->unit->builder;
    for (int round = 0; round < FEW; round++)
        for (int i = 0; i < r->count; i++) {
            LLVMValueRef load = r->items[i].value;
            if (!LLVMIsALoadInst(load)) continue;
            LLVMValueRef first = value_in(r, 0, rounds_address(load)),
                         place = value_in(r, round, rounds_address(load)), copy = LLVMInstructionClone(load);
            LLVMSetOperand(copy, 0, round ? LLVMBuildSelect(b, follows[round], place, first, "") : place);
            LLVMInsertIntoBuilder(b, copy);
            r->items[i].copies[round] = copy;
        }
}

/* Builds the code to which `test` leads if fewer rounds follow than run together. Returns its first block. */
static LLVMBasicBlockRef build_few(struct rounds *r, LLVMBasicBlockRef test) {
    LLVMBuilderRef b = r->unit->builder;
    LLVMValueRef given[ROUNDS_MOST_INSTRUCTIONS], heads[ROUNDS_MOST_INSTRUCTIONS], follows[FEW + 1] = {NULL};
    for (int i = 0; i < r->phis; i++) given[i] = r->items[i].copies[0];
    LLVMBasicBlockRef head = build_head(r, "few"), one = new_block(r, "one"), some = new_block(r, "some");
    for (int i = 0; i < r->phis; i++) add_to_phi(heads[i] = r->items[i].copies[0], given[i], test);
    for (int round = 0; round < FEW; round++)
        follows[round + 1] = and_condition(r, follows[round], round, r->branch, r->stays);
    LLVMBuildCondBr(b, follows[1], some, one);
    memcpy(r->saved, r->items, sizeof r->saved);
    LLVMPositionBuilderAtEnd(b, one);
    leave_with(r, one, follows, 1);
    LLVMBuildBr(b, r->after);
    memcpy(r->items, r->saved, sizeof r->saved);
    LLVMPositionBuilderAtEnd(b, some);
    load_what_follows(r, follows);
    leave_with(r, some, follows, FEW);
    for (int i = 0; i < r->phis; i++) add_to_phi(heads[i], value_in(r, FEW, r->items[i].value), some);
    LLVMBuildCondBr(b, follows[FEW], head, r->after);
    return head;
}

/* Completes the phis of the test, and those of `after`, by values of `together` that exist already. */
static void join_together(struct rounds *r, LLVMBasicBlockRef together) {
    for (int i = 0; i < r->phis; i++) {
        LLVMValueRef phi = r->items[i].value, now = r->items[i].copies[0];
        add_to_phi(now, phi_incoming(phi, r->before), r->before);
        add_to_phi(now, value_in(r, r->rounds - 1, phi_incoming(phi, r->last)), together);
    }
    FOR_EACH_INSTRUCTION(phi, r->after) {
        if (!LLVMIsAPHINode(phi)) break;
        add_to_phi(phi, value_in(r, r->rounds - 1, phi_incoming(phi, r->last)), together);
    }
}

/* Tests whether the last of the rounds follows if each passes its guards, before the guards of all rounds are
 * computed: they took a quarter of the time of a kernel whose loops have one round or two (edit distance by
 * diagonals, on an H200). `follows`: the test of enough_left(), if there is one. Returns the block that goes
 * on; the builder is at its end. */
static LLVMBasicBlockRef build_filter(struct rounds *r, LLVMValueRef follows) {
    LLVMBuilderRef b = r->unit->builder;
    LLVMBasicBlockRef goes_on = new_block(r, "guards");
    /* After a round that does not follow, the last one's condition may be poison. */
    if (!follows)
        follows = LLVMBuildFreeze(b, and_condition(r, NULL, r->rounds - 2, r->branch, r->stays), "");
    LLVMBuildCondBr(b, follows, goes_on, r->body);
    LLVMPositionBuilderAtEnd(b, goes_on);
    return goes_on;
}

/* The original loop begins with the values of `test`, after any of the `count` blocks `from`. Without such a
 * block it is unreachable, and LLVM removes it. */
static void begin_loop(struct rounds *r, LLVMBasicBlockRef *from, int count) {
    for (int i = 0; i < r->phis; i++) {
        LLVMValueRef phi = r->items[i].value;
        LLVMPositionBuilderBefore(r->unit->builder, phi);
        LLVMValueRef now = LLVMBuildPhi(r->unit->builder, LLVMTypeOf(phi), "");
        for (int k = 0; k < count; k++) add_to_phi(now, r->items[i].copies[0], from[k]);
        add_to_phi(now, phi_incoming(phi, r->last), r->last);
        LLVMReplaceAllUsesWith(phi, now);
        LLVMInstructionEraseFromParent(phi);
    }
}

void rounds_build(struct rounds *r) {
    LLVMBuilderRef b = r->unit->builder;
    LLVMBasicBlockRef test = build_head(r, "rounds"), together = new_block(r, "together");
    LLVMBasicBlockRef from[2] = {test};
    int count = 1;
    LLVMValueRef enough = enough_left(r);
    if (r->path.size.conditions && r->rounds > 1) from[count++] = build_filter(r, enough);
    LLVMValueRef all = !r->path.size.conditions && enough ? enough : all_follow(r, enough != NULL);
    LLVMValueRef branch = LLVMBuildCondBr(b, all, together, r->body);
    r->test = test;
    r->together = together;
    LLVMPositionBuilderAtEnd(b, together);
    build_rounds(r);
    LLVMValueRef last = value_in(r, r->rounds - 1, LLVMGetCondition(r->branch));
    LLVMBuildCondBr(b, last, r->stays == 0 ? test : r->after, r->stays == 0 ? r->after : test);
    join_together(r, together);
    LLVMSetSuccessor(LLVMGetBasicBlockTerminator(r->before), 0, test);
    bool few = r->only_loads && !r->path.size.joins;
    if (few) LLVMSetSuccessor(branch, 1, build_few(r, test));
    begin_loop(r, from, few ? 0 : count);
}
