/* Kernels that are one loop: `for (i = position; i < count; i += threads) out[i] = f(in[i]);`. The threads
 * whose work one thread of the hardware does run their rounds together, as long as all of them have another
 * one. After that, each of them runs what it has left.
 *
 * The loop is one block, which only guards precede and which ends the thread. What stands before it has no
 * effects. */
#include "compiler/ptx/coarsen/coarse.h"

/* Where the threads are after a round. */
struct standing {
    LLVMValueRef stays[COARSE_NEIGHBOURS]; /* i1: the thread has another round */
    LLVMValueRef next[COARSE_NEIGHBOURS][COARSE_PHIS];
};

static bool is_phi_of_loop(const struct coarsening *c, const struct coarse_item *item) {
    return item->block == c->loop && LLVMIsAPHINode(item->value);
}

static LLVMValueRef branch_of_loop(const struct coarsening *c) {
    return LLVMGetBasicBlockTerminator(coarse_loop_block(c));
}

static bool is_mark(LLVMValueRef value) {
    enum intrinsic_kind kind = intrinsic_traits(intrinsic_of(value))->kind;
    return kind == OF_RETURN || kind == OF_LAUNCH;
}

/* Whether it is an instruction of the loop, and no branch or mark. */
static bool is_work(const struct coarsening *c, const struct coarse_item *item) {
    return item->block == c->loop && !LLVMIsATerminatorInst(item->value) && !is_mark(item->value);
}

/* ---- Rounds of all threads together. */

static LLVMBasicBlockRef append(struct coarsening *c, const char *name) {
    return LLVMAppendBasicBlockInContext(c->unit->context, c->unit->entry, name);
}

static unsigned threads_of(const struct coarsening *c) {
    return c->form.threads;
}

/* What a counter starts with, before the loop. */
static LLVMValueRef start_of(const struct coarsening *c, LLVMValueRef phi) {
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++)
        if (LLVMGetIncomingBlock(phi, i) != coarse_loop_block(c)) return LLVMGetIncomingValue(phi, i);
    return NULL;
}

/* Whether a step holds for the number itself, not only where it reaches an address: a sum of 32 bits that
 * wraps between two neighbours, and is then extended, is not such a number. */
static bool is_exact(LLVMValueRef start, int64_t amount) {
    LLVMTypeRef type = LLVMTypeOf(start);
    if (!amount) return true;
    if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(type) <= 32) return true;
    return LLVMIsAZExtInst(start) && intrinsic_of(LLVMGetOperand(start, 0)) == INTRINSIC_THREAD_POSITION;
}

static bool follows_first(struct coarsening *c, const struct coarse_item *phi, int64_t *amount) {
    struct step step = coarse_step(c, phi->value, c->form.dimension);
    *amount = step.amount;
    return c->form.neighbours && step.kind == STEP_KNOWN && is_exact(start_of(c, phi->value), step.amount);
}

static void add_incoming(LLVMValueRef phi, LLVMValueRef value, LLVMBasicBlockRef from) {
    LLVMAddIncoming(phi, &value, &from, 1);
}

static void build_before(struct coarsening *c) {
    for (int i = 0; i < c->count; i++) {
        LLVMValueRef value = c->items[i].value;
        if (!c->blocks[c->items[i].block].always || c->items[i].block == c->loop) continue;
        if (LLVMIsATerminatorInst(value) || is_mark(value)) continue;
        for (unsigned t = 0; t < threads_of(c); t++) (void)coarse_first_value(c, t, value);
    }
}

/* The builder is at the end of `before`, and then of `together`. */
static void build_phis(struct coarsening *c, LLVMBasicBlockRef before, LLVMBasicBlockRef together) {
    LLVMBuilderRef b = c->unit->builder;
    int64_t amount;
    for (int i = 0; i < c->count; i++) {
        struct coarse_item *item = &c->items[i];
        if (!is_phi_of_loop(c, item)) continue;
        for (unsigned t = 0; t < threads_of(c); t++) {
            if (t && follows_first(c, item, &amount)) continue;
            LLVMPositionBuilderAtEnd(b, before);
            LLVMValueRef start = coarse_first_value(c, t, start_of(c, item->value));
            LLVMPositionBuilderAtEnd(b, together);
            item->copies[t] = LLVMBuildPhi(b, LLVMTypeOf(item->value), "");
            add_incoming(item->copies[t], start, before);
        }
    }
    LLVMPositionBuilderAtEnd(b, before);
    LLVMBuildBr(b, together);
    LLVMPositionBuilderAtEnd(b, together);
    for (int i = 0; i < c->count; i++) {
        struct coarse_item *item = &c->items[i];
        if (!is_phi_of_loop(c, item) || !follows_first(c, item, &amount)) continue;
        for (unsigned t = 1; t < threads_of(c); t++) {
            LLVMValueRef apart = LLVMConstInt(LLVMTypeOf(item->value), (uint64_t)(amount * t), true);
            item->copies[t] = amount ? LLVMBuildAdd(b, item->copies[0], apart, "") : item->copies[0];
        }
    }
}

static void build_round(struct coarsening *c) {
    for (int i = 0; i < c->count; i++) {
        struct coarse_item *item = &c->items[i];
        if (item->block != c->loop || !item->first || !LLVMIsALoadInst(item->value)) continue;
        for (unsigned t = 0; t < threads_of(c); t++) (void)coarse_first_value(c, t, item->value);
    }
    for (unsigned t = 0; t < threads_of(c); t++)
        for (int i = 0; i < c->count; i++) {
            struct coarse_item *item = &c->items[i];
            bool later = item->wide && LLVMIsAStoreInst(item->value);
            if (is_work(c, item) && !later) coarse_copy(c, t, item);
        }
    for (int i = 0; i < c->count; i++)
        if (c->items[i].block == c->loop && c->items[i].wide && LLVMIsAStoreInst(c->items[i].value))
            coarse_store_wide(c, &c->items[i], 0);
}

static LLVMValueRef stays_of(struct coarsening *c, unsigned t) {
    LLVMValueRef branch = branch_of_loop(c), condition = coarse_operand(c, t, LLVMGetCondition(branch));
    bool first = LLVMGetSuccessor(branch, 0) == coarse_loop_block(c);
    return first ? condition : LLVMBuildNot(c->unit->builder, condition, "");
}

static struct standing stand(struct coarsening *c) {
    struct standing s = {.stays = {NULL}};
    for (unsigned t = 0; t < threads_of(c); t++) {
        int phis = 0;
        s.stays[t] = stays_of(c, t);
        for (int i = 0; i < c->count; i++)
            if (is_phi_of_loop(c, &c->items[i]))
                s.next[t][phis++] =
                    coarse_operand(c, t, phi_incoming(c->items[i].value, coarse_loop_block(c)));
    }
    return s;
}

/* ---- What each thread has left. */

/* From the builder's place; returns the block after it. */
static void build_alone(struct coarsening *c, const struct standing *s, unsigned t) {
    LLVMBuilderRef b = c->unit->builder;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b), alone = append(c, "alone"), after = append(c, "after");
    LLVMBuildCondBr(b, s->stays[t], alone, after);
    LLVMPositionBuilderAtEnd(b, alone);
    int phis = 0;
    for (int i = 0; i < c->count; i++) {
        struct coarse_item *item = &c->items[i];
        if (!is_work(c, item)) continue;
        if (is_phi_of_loop(c, item)) {
            item->copies[t] = LLVMBuildPhi(b, LLVMTypeOf(item->value), "");
            add_incoming(item->copies[t], s->next[t][phis++], before);
        } else {
            coarse_copy_anew(c, t, item);
        }
    }
    for (int i = 0; i < c->count; i++)
        if (is_phi_of_loop(c, &c->items[i]))
            add_incoming(c->items[i].copies[t],
                         coarse_operand(c, t, phi_incoming(c->items[i].value, coarse_loop_block(c))), alone);
    LLVMBuildCondBr(b, stays_of(c, t), alone, after);
    LLVMPositionBuilderAtEnd(b, after);
}

void coarse_build_loop(struct coarsening *c, LLVMBasicBlockRef block, LLVMBasicBlockRef plain) {
    LLVMBuilderRef b = c->unit->builder;
    coarse_build_guards(c, block, plain);
    build_before(c);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b), together = append(c, "rounds"),
                      mixed = append(c, "mixed");
    build_phis(c, before, together);
    build_round(c);
    struct standing s = stand(c);
    int phis = 0;
    for (int i = 0; i < c->count; i++) {
        if (!is_phi_of_loop(c, &c->items[i])) continue;
        for (unsigned t = 0; t < threads_of(c); t++) {
            LLVMValueRef phi = c->items[i].copies[t];
            if (LLVMIsAPHINode(phi) && LLVMCountIncoming(phi) == 1)
                add_incoming(phi, s.next[t][phis], together);
        }
        phis++;
    }
    LLVMValueRef all = s.stays[0];
    for (unsigned t = 1; t < threads_of(c); t++) all = LLVMBuildAnd(b, all, s.stays[t], "");
    LLVMBuildCondBr(b, all, together, mixed);
    LLVMPositionBuilderAtEnd(b, mixed);
    for (unsigned t = 0; t < threads_of(c); t++) build_alone(c, &s, t);
    LLVMBuildRetVoid(b);
}
