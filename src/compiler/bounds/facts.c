/* What conditions say of integers: a block that only one edge of a branch leads to runs only where the
 * branch's condition was so. Comparisons with a value whose range is known narrow the range of the other.
 *
 * A value is the one that was compared: it dominates the branch, so no way leads from a later round's value
 * to the block without the branch. This needs reducible control flow. */
#include "compiler/bounds/bounds.h"
#include "compiler/analysis/predicate.h"

enum { MOST_FACTS = 48, MOST_TERMS = 4 };

static void add_fact(struct bounds *b, struct fact **list, LLVMValueRef value, LLVMIntPredicate predicate,
                     LLVMValueRef other) {
    if (LLVMIsAConstant(value)) return;
    struct fact *fact = arena_alloc(&b->arena, sizeof *fact);
    if (!fact) return;
    *fact = (struct fact){value, other, predicate, *list};
    *list = fact;
}

static bool is_bool(LLVMValueRef value, bool wanted) {
    uint64_t number;
    return is_constant_integer(value, &number) && (number & 1) == wanted;
}

/* The condition holds, or does not. */
static void add_condition(struct bounds *b, struct fact **list, LLVMValueRef condition, bool holds,
                          int terms) {
    if (LLVMIsAFreezeInst(condition)) condition = LLVMGetOperand(condition, 0);
    if (!LLVMIsAInstruction(condition) || terms > MOST_TERMS) return;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(condition);
    if (opcode == LLVMICmp) {
        LLVMValueRef left = LLVMGetOperand(condition, 0), right = LLVMGetOperand(condition, 1);
        if (LLVMGetTypeKind(LLVMTypeOf(left)) != LLVMIntegerTypeKind) return;
        LLVMIntPredicate predicate = LLVMGetICmpPredicate(condition);
        if (!holds) predicate = predicate_negated(predicate);
        add_fact(b, list, left, predicate, right);
        add_fact(b, list, right, predicate_turned(predicate), left);
        return;
    }
    bool all = false; /* it is so of both operands */
    if (opcode == LLVMAnd || opcode == LLVMOr) all = (opcode == LLVMAnd) == holds;
    if (opcode == LLVMSelect) {
        /* a && b; a || b */
        bool is_and = is_bool(LLVMGetOperand(condition, 2), false);
        bool is_or = is_bool(LLVMGetOperand(condition, 1), true);
        if (!(holds ? is_and : is_or)) return;
        add_condition(b, list, LLVMGetOperand(condition, 0), holds, terms + 1);
        add_condition(b, list, LLVMGetOperand(condition, holds ? 1 : 2), holds, terms + 1);
    } else if (all) {
        add_condition(b, list, LLVMGetOperand(condition, 0), holds, terms + 1);
        add_condition(b, list, LLVMGetOperand(condition, 1), holds, terms + 1);
    }
}

smelt_status bounds_facts_begin(struct bounds *b) {
    int count = b->flow.block_count;
    b->facts = arena_alloc(&b->arena, (size_t)(count ? count : 1) * sizeof *b->facts);
    if (!b->facts) return unit_fail(b->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for conditions");
    for (int i = 1; i < count && !b->flow.irreducible; i++) { /* dominators come first */
        const struct flow_block *block = &b->flow.blocks[i];
        b->facts[i] = b->facts[block->dominator];
        if (block->predecessor_count != 1) continue;
        LLVMValueRef end = LLVMGetBasicBlockTerminator(b->flow.blocks[block->dominator].block);
        if (!LLVMIsABranchInst(end) || !LLVMIsConditional(end)) continue;
        bool first = LLVMGetSuccessor(end, 0) == block->block;
        if (first && LLVMGetSuccessor(end, 1) == block->block) continue;
        add_condition(b, &b->facts[i], LLVMGetCondition(end), first, 0);
    }
    return SMELT_OK;
}

/* Narrows r, signed numbers, by `predicate` and a number of `other`. */
static struct value_range narrowed(struct value_range r, LLVMIntPredicate predicate,
                                   struct value_range other) {
    bool positive = r.low >= 0, others = other.low >= 0;
    struct value_range n = r;
    switch (predicate) {
    case LLVMIntEQ:
        n = other;
        break;
    case LLVMIntNE:
        if (other.low != other.high) break;
        if (r.low == other.low) n.low = r.low + 1;
        if (r.high == other.low) n.high = r.high - 1;
        break;
    case LLVMIntULT:
        if (others && other.high > 0) n = (struct value_range){0, other.high - 1};
        break;
    case LLVMIntULE:
        if (others) n = (struct value_range){0, other.high};
        break;
    case LLVMIntSLT:
        if (other.high > INT64_MIN) n.high = other.high - 1;
        break;
    case LLVMIntSLE:
        n.high = other.high;
        break;
    case LLVMIntSGT:
        if (other.low < INT64_MAX) n.low = other.low + 1;
        break;
    case LLVMIntUGT:
        if (positive && others && other.low < INT64_MAX) n.low = other.low + 1;
        break;
    case LLVMIntSGE:
        n.low = other.low;
        break;
    case LLVMIntUGE:
        if (positive && others) n.low = other.low;
        break;
    default:
        break;
    }
    if (n.low < r.low) n.low = r.low;
    if (n.high > r.high) n.high = r.high;
    return n.low <= n.high ? n : r; /* never there at all */
}

struct value_range bounds_narrow(struct bounds *b, int block, LLVMValueRef value, struct value_range r,
                                 struct value_range (*range)(void *context, LLVMValueRef other),
                                 void *context) {
    int left = MOST_FACTS;
    for (const struct fact *f = b->facts[block]; f && left--; f = f->next)
        if (f->value == value) r = narrowed(r, f->predicate, range(context, f->other));
    return r;
}

static const struct fact *first_of(const struct fact *fact, LLVMValueRef value) {
    int left = MOST_FACTS;
    for (; fact && left--; fact = fact->next)
        if (fact->value == value) return fact;
    return NULL;
}

const struct fact *bounds_facts(struct bounds *b, int block, LLVMValueRef value) {
    return first_of(b->facts[block], value);
}

const struct fact *bounds_next_fact(const struct fact *fact) {
    return first_of(fact->next, fact->value);
}
