/* Linear and bounded addresses (linear.h). */
#include "compiler/bounds/linear.h"
#include "compiler/analysis/zeros.h"

enum { MOST_NODES = 48, MOST_TRIES = 12 };

/* Ends that are farther apart say little of what is between them. */
#define MOST_RANGE 65536

static enum dependence dependence_of(struct linear *l, LLVMValueRef value);

const struct bounded *bounds_linear_bounded(const struct linear *l, LLVMValueRef value) {
    for (int i = 0; i < l->bounded_count; i++)
        if (l->bounded[i].value == value) return &l->bounded[i];
    return NULL;
}

static enum dependence of_operands(struct linear *l, LLVMValueRef value) {
    enum dependence most = FIXED;
    for (int i = 0; i < LLVMGetNumOperands(value); i++) {
        enum dependence own = dependence_of(l, LLVMGetOperand(value, (unsigned)i));
        if (own > most) most = own;
    }
    return most;
}

static bool has_bounded(const struct linear *l, LLVMValueRef value) {
    if (value == l->phi || !bounds_in_loop(l->b, value, l->loop)) return false;
    if (bounds_linear_bounded(l, value)) return true;
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (has_bounded(l, LLVMGetOperand(value, (unsigned)i))) return true;
    return false;
}

static enum dependence of_product(struct linear *l, LLVMValueRef value) {
    LLVMValueRef x = LLVMGetOperand(value, 0), y = LLVMGetOperand(value, 1);
    enum dependence a = dependence_of(l, x), b = dependence_of(l, y), most = a;
    if (b > most) most = b;
    if (most == OTHER || (a != FIXED && b != FIXED)) return OTHER;
    LLVMValueRef factor = a != FIXED ? y : x;
    if (most == LINEAR) {
        bool wide = LLVMGetIntTypeWidth(LLVMTypeOf(value)) == 64;
        l->unsure |= wide && !LLVMIsAConstantInt(factor);
    }
    /* Which end of a bounded value gives the greater product must be known. Narrow factors are taken for
     * unsigned numbers: see `detour_of`. */
    bool narrow = LLVMGetIntTypeWidth(LLVMTypeOf(value)) <= 32;
    if (!narrow && !LLVMIsAConstantInt(factor) && (has_bounded(l, x) || has_bounded(l, y))) return OTHER;
    return most;
}

static unsigned no_zeros(void *context, LLVMValueRef source) {
    (void)context;
    (void)source;
    return 0;
}

unsigned bounds_linear_kept_bits(LLVMValueRef value) {
    const struct zeros_rules rules = {.of_source = no_zeros};
    uint64_t mask;
    if (LLVMGetInstructionOpcode(value) != LLVMAnd || LLVMGetIntTypeWidth(LLVMTypeOf(value)) > 32 ||
        !is_constant_integer(LLVMGetOperand(value, 1), &mask) || !mask)
        return 0;
    unsigned low = zeros_of_number(mask);
    uint64_t bits = mask >> low;
    if ((bits & (bits + 1)) || zeros_of_value(&rules, LLVMGetOperand(value, 0)) < low) return 0;
    return low + (unsigned)__builtin_popcountll(bits);
}

static enum dependence of_instruction(struct linear *l, LLVMValueRef value) {
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMPHI:
        if (LLVMGetInstructionParent(value) != l->b->flow.blocks[l->b->flow.loops[l->loop].header].block ||
            (l->phi && l->phi != value) || !bounds_loop_is_counter(l->b, l->loop, value))
            return OTHER;
        l->phi = value;
        return LINEAR;
    case LLVMAdd:
    case LLVMSub:
    case LLVMGetElementPtr:
    case LLVMAddrSpaceCast:
    case LLVMBitCast:
    case LLVMSExt:
    case LLVMZExt:
    case LLVMTrunc:
        return of_operands(l, value);
    case LLVMOr:
        if (!LLVMGetIsDisjoint(value)) return OTHER;
        return of_operands(l, value);
    case LLVMShl:
        if (!LLVMIsAConstantInt(LLVMGetOperand(value, 1))) return OTHER;
        return of_operands(l, value);
    case LLVMMul:
        return of_product(l, value);
    case LLVMAnd:
        return bounds_linear_kept_bits(value) ? of_operands(l, value) : OTHER;
    default:
        return OTHER;
    }
}

/* Computed from loops' counters alone: those have all values of their ranges, more or less. A number from
 * memory may have few of them, and its type's range would say of good addresses that they are outside. */
static bool is_counted(struct linear *l, LLVMValueRef value, int *nodes) {
    if (!bounds_in_loop(l->b, value, l->loop)) return true;
    if (++*nodes > MOST_NODES / 2 || LLVMIsALoadInst(value) || LLVMIsACallInst(value)) return false;
    if (LLVMIsAPHINode(value)) {
        int block = flow_index(&l->b->flow, LLVMGetInstructionParent(value));
        int loop = l->b->flow.blocks[block].loop;
        return loop >= 0 && l->b->flow.loops[loop].header == block;
    }
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (!is_counted(l, LLVMGetOperand(value, (unsigned)i), nodes)) return false;
    return true;
}

static bool find_range(struct linear *l, LLVMValueRef value, struct value_range *range) {
    int nodes = 0;
    if (++l->tries > MOST_TRIES || !is_counted(l, value, &nodes)) return false;
    *range = bounds_range(l->b, l->block, value);
    return range->low >= -MOST_RANGE && range->high <= MOST_RANGE;
}

static enum dependence dependence_of(struct linear *l, LLVMValueRef value) {
    if (!bounds_in_loop(l->b, value, l->loop)) return FIXED;
    if (bounds_linear_bounded(l, value)) return BOUNDED;
    struct linear before = *l;
    enum dependence own = OTHER;
    if (++l->nodes <= MOST_NODES) own = of_instruction(l, value);
    bool integer = LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMIntegerTypeKind;
    if ((own != OTHER && own != BOUNDED) || !integer || before.bounded_count == MOST_BOUNDED) return own;
    struct value_range range;
    if (!find_range(l, value, &range)) return own;
    l->phi = before.phi;
    l->unsure = before.unsure;
    l->bounded_count = before.bounded_count;
    l->bounded[l->bounded_count++] = (struct bounded){value, range.low, range.high};
    return BOUNDED;
}

enum dependence bounds_linear_look(struct linear *l, LLVMValueRef address) {
    return dependence_of(l, address);
}

/* What the indices of a getelementptr add. False: one of them is neither constant nor bounded. */
static bool add_indices(const struct linear *l, LLVMValueRef address, int64_t *low, int64_t *high) {
    LLVMTypeRef type = LLVMGetGEPSourceElementType(address);
    for (int i = 1; i < LLVMGetNumOperands(address); i++) {
        LLVMValueRef index = LLVMGetOperand(address, (unsigned)i);
        const struct bounded *bounded = bounds_linear_bounded(l, index);
        if (!bounded && !LLVMIsAConstantInt(index)) return false;
        int64_t least = bounded ? bounded->low : LLVMConstIntGetSExtValue(index),
                most = bounded ? bounded->high : least, bytes;
        if (i > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            bytes = (int64_t)LLVMOffsetOfElement(l->b->unit->layout, type, (unsigned)least);
            type = LLVMStructGetTypeAtIndex(type, (unsigned)least);
            least = most = 1;
        } else {
            if (i > 1) type = LLVMGetElementType(type);
            bytes = (int64_t)LLVMABISizeOfType(l->b->unit->layout, type);
        }
        if (least < -INT32_MAX || most > INT32_MAX || bytes > INT32_MAX / 2) return false;
        *low += least * bytes;
        *high += most * bytes;
    }
    return true;
}

LLVMValueRef bounds_linear_base(const struct linear *l, LLVMValueRef address, int64_t *low, int64_t *high) {
    int64_t least = 0, most = 0;
    *low = *high = 0;
    for (int steps = 0; LLVMIsAGetElementPtrInst(address) && steps < MOST_NODES; steps++) {
        if (!bounds_in_loop(l->b, address, l->loop) || !add_indices(l, address, &least, &most)) break;
        *low = least;
        *high = most;
        address = LLVMGetOperand(address, 0);
    }
    return address;
}

bool bounds_linear_is_within(const struct linear *inner, const struct linear *outer, LLVMValueRef value) {
    if (value == inner->phi || !bounds_in_loop(inner->b, value, inner->loop)) return true;
    const struct bounded *own = bounds_linear_bounded(inner, value);
    if (own) {
        const struct bounded *theirs = bounds_linear_bounded(outer, value);
        return theirs && theirs->low <= own->low && own->high <= theirs->high;
    }
    if (bounds_linear_bounded(outer, value)) return false;
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (!bounds_linear_is_within(inner, outer, LLVMGetOperand(value, (unsigned)i))) return false;
    return true;
}

/* ---- The value of another round, in the preheader. */

static LLVMValueRef copy_of(struct round *r, LLVMValueRef value, bool high) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    LLVMBuilderRef builder = r->linear->b->unit->builder;
    bool turns = opcode == LLVMMul && (bounds_is_negative(LLVMGetOperand(value, 0)) ||
                                       bounds_is_negative(LLVMGetOperand(value, 1)));
    if (opcode == LLVMOr) { /* of disjoint bits, which ends of ranges may not be */
        LLVMValueRef x = bounds_linear_value(r, LLVMGetOperand(value, 0), high),
                     y = bounds_linear_value(r, LLVMGetOperand(value, 1), high);
        return LLVMBuildAdd(builder, x, y, "");
    }
    if (opcode == LLVMTrunc)
        return LLVMBuildTrunc(builder, bounds_linear_value(r, LLVMGetOperand(value, 0), high),
                              LLVMTypeOf(value), "");
    LLVMValueRef copy = LLVMInstructionClone(value);
    for (int i = 0; i < LLVMGetNumOperands(value); i++) {
        bool other = turns || (opcode == LLVMSub && i == 1);
        LLVMSetOperand(copy, (unsigned)i,
                       bounds_linear_value(r, LLVMGetOperand(value, (unsigned)i), other ? !high : high));
    }
    /* A round that does not come may have an address that no round has. */
    if (opcode == LLVMAdd || opcode == LLVMSub || opcode == LLVMMul || opcode == LLVMShl) {
        LLVMSetNSW(copy, false);
        LLVMSetNUW(copy, false);
    } else if (opcode == LLVMGetElementPtr) {
        LLVMGEPSetNoWrapFlags(copy, 0);
    } else if (opcode == LLVMZExt) {
        LLVMSetNNeg(copy, false);
    }
    LLVMInsertIntoBuilder(builder, copy);
    return copy;
}

LLVMValueRef bounds_linear_value(struct round *r, LLVMValueRef value, bool high) {
    struct linear *l = r->linear;
    if (value == l->phi) return r->at;
    if (!bounds_in_loop(l->b, value, l->loop)) return value;
    const struct bounded *bounded = bounds_linear_bounded(l, value);
    if (bounded)
        return LLVMConstInt(LLVMTypeOf(value), (uint64_t)(high ? bounded->high : bounded->low), true);
    if (!l->bounded_count) high = false;
    for (struct copied *c = r->copies; c; c = c->next)
        if (c->value == value && c->high == high) return c->copy;
    LLVMValueRef copy = copy_of(r, value, high);
    struct copied *one = arena_alloc(&l->b->arena, sizeof *one);
    if (!one) return copy;
    *one = (struct copied){value, copy, high, r->copies};
    r->copies = one;
    return copy;
}
