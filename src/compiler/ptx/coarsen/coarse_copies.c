/* The code for several threads: their guards, their first parts, then the rest of each, then the stores that
 * are one for all. */
#include "compiler/ptx/coarsen/coarse.h"

static bool is_alike(struct coarsening *c, const struct coarse_item *item) {
    struct step step = coarse_step(c, item->value, c->form.dimension);
    return item->first && step.kind == STEP_KNOWN && step.amount == 0;
}

/* The first thread of the round. */
static unsigned first_of_round(const struct coarsening *c, unsigned t) {
    return t - t % c->form.threads;
}

/* What the value is for thread number `t`; NULL: it is not there yet. */
static LLVMValueRef present(struct coarsening *c, unsigned t, struct coarse_item *item) {
    unsigned first = first_of_round(c, t);
    if (!item->copies[t] && item->copies[first] && is_alike(c, item)) item->copies[t] = item->copies[first];
    return item->copies[t];
}

LLVMValueRef coarse_operand(struct coarsening *c, unsigned t, LLVMValueRef operand) {
    struct coarse_item *item = coarse_item_of(c, operand);
    return item ? present(c, t, item) : operand;
}

/* Of an instruction that is neither a phi nor a terminator, whose operands are present. */
void coarse_copy_anew(struct coarsening *c, unsigned t, struct coarse_item *item) {
    LLVMValueRef value = NULL;
    if (intrinsic_traits(intrinsic_of(item->value))->kind == OF_THREAD)
        value = coarse_position(c, item->value, constant_i32(c->unit, t));
    if (!value) {
        value = LLVMInstructionClone(item->value);
        for (int o = 0; o < LLVMGetNumOperands(value); o++)
            LLVMSetOperand(value, (unsigned)o, coarse_operand(c, t, LLVMGetOperand(value, (unsigned)o)));
        LLVMInsertIntoBuilder(c->unit->builder, value);
    }
    item->copies[t] = value;
}

void coarse_copy(struct coarsening *c, unsigned t, struct coarse_item *item) {
    if (!present(c, t, item)) coarse_copy_anew(c, t, item);
}

/* ---- The first parts. */

LLVMValueRef coarse_first_value(struct coarsening *c, unsigned t, LLVMValueRef value) {
    struct coarse_item *item = coarse_item_of(c, value);
    if (!item) return value;
    if (present(c, t, item)) return item->copies[t];
    unsigned first = first_of_round(c, t);
    if (t != first && is_alike(c, item)) return item->copies[t] = coarse_first_value(c, first, value);
    if (item->wide && LLVMIsALoadInst(value)) {
        coarse_load_wide(c, item, first, coarse_first_value(c, first, LLVMGetOperand(value, 0)));
        return item->copies[t];
    }
    for (int o = 0; o < LLVMGetNumOperands(value); o++)
        (void)coarse_first_value(c, t, LLVMGetOperand(value, (unsigned)o));
    coarse_copy_anew(c, t, item);
    return item->copies[t];
}

/* i1: no thread leaves at the branch. */
static LLVMValueRef all_stay(struct coarsening *c, const struct coarse_block *block, LLVMValueRef branch) {
    LLVMBuilderRef b = c->unit->builder;
    LLVMValueRef all = NULL, before = NULL;
    for (unsigned t = 0; t < coarse_threads(&c->form); t++) {
        LLVMValueRef one = coarse_first_value(c, t, LLVMGetCondition(branch));
        if (one == before) continue;
        before = one;
        if (block->guard == 1) one = LLVMBuildNot(b, one, "");
        all = all ? LLVMBuildAnd(b, all, one, "") : one;
    }
    return all;
}

void coarse_forget_copies(struct coarsening *c) {
    for (int i = 0; i < c->count; i++)
        for (int t = 0; t < COARSE_MOST; t++) c->items[i].copies[t] = NULL;
}

static LLVMBasicBlockRef append_block(struct coarsening *c) {
    return LLVMAppendBasicBlockInContext(c->unit->context, c->unit->entry, "");
}

void coarse_build_guards(struct coarsening *c, LLVMBasicBlockRef block, LLVMBasicBlockRef plain) {
    LLVMBuilderRef b = c->unit->builder;
    LLVMPositionBuilderAtEnd(b, block);
    for (int i = 0; i < c->flow.block_count; i++) {
        if (c->blocks[i].guard < 0) continue;
        LLVMValueRef branch = LLVMGetBasicBlockTerminator(c->flow.blocks[i].block);
        LLVMBasicBlockRef next = append_block(c);
        LLVMBuildCondBr(b, all_stay(c, &c->blocks[i], branch), next, plain);
        LLVMPositionBuilderAtEnd(b, next);
    }
}

static void build_first(struct coarsening *c) {
    for (int i = 0; i < c->count; i++) {
        if (!c->items[i].first || !LLVMIsALoadInst(c->items[i].value)) continue;
        for (unsigned t = 0; t < coarse_threads(&c->form); t++)
            (void)coarse_first_value(c, t, c->items[i].value);
    }
}

/* ---- The rest. */

static LLVMBasicBlockRef copy_of_block(struct coarsening *c, LLVMBasicBlockRef block) {
    return c->blocks[flow_index(&c->flow, block)].copy;
}

/* Whether the copied code goes from one block to another. */
static bool leads_to(struct coarsening *c, LLVMBasicBlockRef from, LLVMBasicBlockRef to) {
    int index = flow_index(&c->flow, from);
    if (index < 0 || !c->blocks[index].inside) return false;
    int guard = c->blocks[index].guard;
    return guard < 0 || LLVMGetSuccessor(LLVMGetBasicBlockTerminator(from), (unsigned)guard) == to;
}

static void copy_phi(struct coarsening *c, unsigned t, struct coarse_item *item) {
    LLVMValueRef phi = item->value, copy = LLVMBuildPhi(c->unit->builder, LLVMTypeOf(phi), "");
    LLVMBasicBlockRef own = c->flow.blocks[item->block].block;
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi, i);
        if (!leads_to(c, from, own)) continue;
        LLVMValueRef value = coarse_operand(c, t, LLVMGetIncomingValue(phi, i));
        LLVMBasicBlockRef copy_from = copy_of_block(c, from);
        LLVMAddIncoming(copy, &value, &copy_from, 1);
    }
    item->copies[t] = copy;
}

static void copy_end(struct coarsening *c, unsigned t, struct coarse_item *item, LLVMBasicBlockRef next) {
    LLVMBuilderRef b = c->unit->builder;
    LLVMValueRef end = item->value;
    int guard = c->blocks[item->block].guard;
    if (LLVMIsAReturnInst(end)) {
        LLVMBuildBr(b, next);
        return;
    }
    if (guard >= 0) {
        LLVMBuildBr(b, copy_of_block(c, LLVMGetSuccessor(end, (unsigned)guard)));
        return;
    }
    LLVMValueRef copy = LLVMInstructionClone(end);
    if (LLVMGetNumOperands(copy) && !LLVMValueIsBasicBlock(LLVMGetOperand(copy, 0)))
        LLVMSetOperand(copy, 0, coarse_operand(c, t, LLVMGetOperand(copy, 0)));
    for (unsigned s = 0; s < LLVMGetNumSuccessors(copy); s++)
        LLVMSetSuccessor(copy, s, copy_of_block(c, LLVMGetSuccessor(copy, s)));
    LLVMInsertIntoBuilder(b, copy);
}

static void copy_rest_of(struct coarsening *c, unsigned t, struct coarse_item *item, LLVMBasicBlockRef next) {
    enum intrinsic_kind kind = intrinsic_traits(intrinsic_of(item->value))->kind;
    if (LLVMIsATerminatorInst(item->value)) {
        copy_end(c, t, item, next);
    } else if (LLVMIsAPHINode(item->value)) {
        copy_phi(c, t, item);
    } else if (kind != OF_RETURN && kind != OF_LAUNCH && !present(c, t, item)) {
        bool later = item->wide && LLVMIsAStoreInst(item->value);
        if (!later) coarse_copy_anew(c, t, item);
    }
}

/* From the builder's place to the block `next`. */
static void copy_rest(struct coarsening *c, unsigned t, LLVMBasicBlockRef next) {
    LLVMBuilderRef b = c->unit->builder;
    for (int i = 0; i < c->flow.block_count; i++)
        if (c->blocks[i].inside) c->blocks[i].copy = append_block(c);
    LLVMBuildBr(b, c->blocks[0].copy);
    for (int i = 0; i < c->count; i++) {
        struct coarse_item *item = &c->items[i];
        if (!c->blocks[item->block].inside) continue;
        if (i == 0 || c->items[i - 1].block != item->block)
            LLVMPositionBuilderAtEnd(b, c->blocks[item->block].copy);
        copy_rest_of(c, t, item, next);
    }
    LLVMMoveBasicBlockAfter(next, LLVMGetLastBasicBlock(c->unit->entry));
    LLVMPositionBuilderAtEnd(b, next);
}

smelt_status coarse_build(struct coarsening *c, LLVMBasicBlockRef block, LLVMBasicBlockRef plain) {
    coarse_build_guards(c, block, plain);
    build_first(c);
    for (unsigned first = 0; first < coarse_threads(&c->form); first += c->form.threads) {
        for (unsigned t = 0; t < c->form.threads; t++) copy_rest(c, first + t, append_block(c));
        for (int i = 0; i < c->count; i++)
            if (c->items[i].wide && LLVMIsAStoreInst(c->items[i].value))
                coarse_store_wide(c, &c->items[i], first);
    }
    LLVMBuildRetVoid(c->unit->builder);
    return SMELT_OK;
}
