/* Linear and bounded addresses (linear.h). */
#include "compiler/bounds/linear.h"
#include "compiler/zeros.h"

enum { MOST_NODES = 48, MOST_TRIES = 12 };

/* Ends that are farther apart say little of what is between them. */
#define MOST_RANGE 65536

static enum dependence dependence_of(struct linear *l, LLVMValueRef value);

static const struct bounded *find_bounded(const struct linear *l, LLVMValueRef value) {
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
    if (find_bounded(l, value)) return true;
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

/* How many bits are left by an `and` that only removes high bits: those below its mask are 0 anyway, as in
 * (x << 6) / 2 of unsigned numbers. 0: another value. */
static unsigned kept_bits(LLVMValueRef value) {
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
        return kept_bits(value) ? of_operands(l, value) : OTHER;
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
    if (find_bounded(l, value)) return BOUNDED;
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
        const struct bounded *bounded = find_bounded(l, index);
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
    const struct bounded *own = find_bounded(inner, value);
    if (own) {
        const struct bounded *theirs = find_bounded(outer, value);
        return theirs && theirs->low <= own->low && own->high <= theirs->high;
    }
    if (find_bounded(outer, value)) return false;
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (!bounds_linear_is_within(inner, outer, LLVMGetOperand(value, (unsigned)i))) return false;
    return true;
}

/* ---- The value of another round, in the preheader. */

static bool is_negative(LLVMValueRef value) {
    return LLVMIsAConstantInt(value) && LLVMConstIntGetSExtValue(value) < 0;
}

static LLVMValueRef copy_of(struct round *r, LLVMValueRef value, bool high) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    LLVMBuilderRef builder = r->linear->b->unit->builder;
    bool turns =
        opcode == LLVMMul && (is_negative(LLVMGetOperand(value, 0)) || is_negative(LLVMGetOperand(value, 1)));
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
    const struct bounded *bounded = find_bounded(l, value);
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

/* ---- Narrow numbers. */

static bool depends(const struct linear *l, LLVMValueRef value) {
    if (value == l->phi) return true;
    if (!bounds_in_loop(l->b, value, l->loop) || find_bounded(l, value)) return false;
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (depends(l, LLVMGetOperand(value, (unsigned)i))) return true;
    return false;
}

static uint64_t magnitude(LLVMValueRef constant) {
    int64_t c = LLVMConstIntGetSExtValue(constant);
    return c < 0 ? -(uint64_t)c : (uint64_t)c;
}

/* The lowest `width` bits of a value, as an unsigned i64. */
static LLVMValueRef in_bits(struct bounds *b, LLVMValueRef value, unsigned width) {
    LLVMBuilderRef builder = b->unit->builder;
    if (LLVMGetIntTypeWidth(LLVMTypeOf(value)) > width)
        value = LLVMBuildTrunc(builder, value, LLVMIntTypeInContext(b->unit->context, width), "");
    return LLVMBuildZExtOrBitCast(builder, value, type_i64(b->unit), "");
}

/* The distance between a sum's values at the two ends of its bounded values: a constant, `least`, plus what
 * unknown factors add, `more` (i64; NULL: 0). */
struct spread {
    uint64_t least;
    LLVMValueRef more;
};

/* The search for the spread of a narrow sum, of `width` bits. bad: i1, a part of the spread exceeds the
 * type's largest number; NULL: no part has been compared. */
struct spreading {
    struct round *round;
    unsigned width;
    LLVMValueRef bad;
};

static bool spread_of(struct spreading *s, LLVMValueRef value, struct spread *spread);

static void compare_spread(struct spreading *s, LLVMValueRef spread) {
    struct bounds *b = s->round->linear->b;
    LLVMValueRef all = LLVMConstInt(type_i64(b->unit), (UINT64_C(1) << s->width) - 1, false);
    s->bad = bounds_either(b, s->bad, LLVMBuildICmp(b->unit->builder, LLVMIntUGT, spread, all, ""));
}

/* Multiplies the spread by a factor, which is taken for unsigned. */
static void spread_by(struct spreading *s, LLVMValueRef factor, struct spread *x) {
    struct bounds *b = s->round->linear->b;
    LLVMBuilderRef builder = b->unit->builder;
    LLVMValueRef sum = LLVMConstInt(type_i64(b->unit), x->least, false);
    if (x->more) {
        sum = LLVMBuildAdd(builder, x->more, sum, "");
        compare_spread(s, sum);
    }
    factor = in_bits(b, bounds_linear_value(s->round, factor, false), s->width);
    *x = (struct spread){0, LLVMBuildMul(builder, sum, factor, "")};
    compare_spread(s, x->more);
}

/* False: the sum has another form, or its ends are too far apart. */
static bool spread_of_operands(struct spreading *s, LLVMValueRef value, struct spread *spread) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    LLVMValueRef left = LLVMGetOperand(value, 0), right = LLVMGetOperand(value, 1);
    struct spread x, y;
    if (!spread_of(s, left, &x) || !spread_of(s, right, &y)) return false;
    bool has_left = x.least || x.more, has_right = y.least || y.more;
    *spread = has_left ? x : y;
    if (opcode == LLVMMul && (has_left || has_right)) {
        LLVMValueRef factor = has_left ? right : left;
        if (has_left && has_right) return false;
        if (!LLVMIsAConstantInt(factor)) {
            spread_by(s, factor, spread);
            return true;
        }
        if (spread->more || magnitude(factor) > INT32_MAX) return false;
        spread->least *= magnitude(factor);
    } else if (opcode == LLVMShl && (has_left || has_right)) {
        if (spread->more || !LLVMIsAConstantInt(right) || LLVMConstIntGetZExtValue(right) > 31) return false;
        spread->least <<= LLVMConstIntGetZExtValue(right);
    } else if (has_left && has_right) {
        spread->least = x.least + y.least;
        spread->more = !x.more   ? y.more
                       : !y.more ? x.more
                                 : LLVMBuildAdd(s->round->linear->b->unit->builder, x.more, y.more, "");
    }
    return spread->least < UINT64_C(1) << 32;
}

static bool spread_of(struct spreading *s, LLVMValueRef value, struct spread *spread) {
    const struct linear *l = s->round->linear;
    const struct bounded *bounded = find_bounded(l, value);
    *spread = (struct spread){0, NULL};
    if (bounded) {
        spread->least = (uint64_t)(bounded->high - bounded->low);
        return true;
    }
    if (value == l->phi || !l->bounded_count || !bounds_in_loop(l->b, value, l->loop)) return true;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMTrunc:
        return spread_of(s, LLVMGetOperand(value, 0), spread);
    case LLVMAdd:
    case LLVMSub:
    case LLVMOr:
    case LLVMShl:
    case LLVMMul:
        return spread_of_operands(s, value, spread);
    case LLVMAnd:
        return spread_of(s, LLVMGetOperand(value, 0), spread) && !spread->least && !spread->more;
    default:
        return false;
    }
}

enum { MOST_FACTORS = 3 };

/* How much a narrow value grows per step of the counter: sign × times × factors. False: another form. */
struct growth {
    bool down;
    uint64_t times;
    LLVMValueRef factors[MOST_FACTORS];
    int factor_count;
};

static bool growth_of(const struct linear *l, LLVMValueRef value, struct growth *g) {
    for (;;) {
        if (value == l->phi) return true;
        if (!depends(l, value)) { /* the same in all rounds, or bounded */
            g->times = 0;
            return true;
        }
        LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
        LLVMValueRef x = LLVMGetOperand(value, 0),
                     y = LLVMGetNumOperands(value) > 1 ? LLVMGetOperand(value, 1) : NULL;
        bool left = depends(l, x), right = y && depends(l, y);
        if (left && right) return false;
        LLVMValueRef inner = left ? x : y, other = left ? y : x;
        switch (opcode) {
        case LLVMSub:
            g->down ^= right;
            break;
        case LLVMAdd:
        case LLVMOr:
        case LLVMAnd:
        case LLVMTrunc:
            break;
        case LLVMShl: {
            uint64_t bits = LLVMConstIntGetZExtValue(y);
            if (!left || bits > 31) return false;
            g->times <<= bits;
            break;
        }
        case LLVMMul:
            if (LLVMIsAConstantInt(other)) {
                if (magnitude(other) > UINT32_MAX) return false;
                g->down ^= is_negative(other);
                g->times *= magnitude(other);
            } else if (g->factor_count == MOST_FACTORS) {
                return false;
            } else {
                g->factors[g->factor_count++] = other;
            }
            break;
        default:
            return false;
        }
        if (!inner || g->times > UINT32_MAX) return false;
        value = inner;
    }
}

static LLVMValueRef truth(struct bounds *b, bool value) {
    return LLVMConstInt(LLVMInt1TypeInContext(b->unit->context), value, false);
}

/* i1: a narrow value does not run straight from the first round's to the last's. It has `width` bits: its
 * type, or what an `and` has left of it. NULL: it cannot be told. */
static LLVMValueRef detour_of(struct round *first, struct round *last, bool counts_down, LLVMValueRef value,
                              unsigned width, bool is_signed) {
    const struct linear *l = first->linear;
    struct bounds *b = l->b;
    LLVMBuilderRef builder = b->unit->builder;
    struct growth growth = {.times = 1};
    struct spreading spreading = {first, width, NULL};
    struct spread spread;
    if (width > 32 || !growth_of(l, value, &growth) || !spread_of(&spreading, value, &spread)) return NULL;
    bool is_spread = spread.least || spread.more;
    if (!growth.times && !is_spread) return truth(b, false);
    uint64_t most = (UINT64_C(1) << width) - 1;
    if (spread.least > most) return truth(b, true);
    bool down = growth.down != counts_down;
    LLVMValueRef from = bounds_linear_value(down ? last : first, value, false),
                 to = bounds_linear_value(down ? first : last, value, true);
    LLVMValueRef bad = LLVMBuildICmp(builder, is_signed ? LLVMIntSGT : LLVMIntUGT, from, to, "");
    bad = bounds_either(b, bad, spreading.bad);
    LLVMTypeRef wide = type_i64(b->unit);
    LLVMValueRef all = LLVMConstInt(wide, most, false), way = LLVMConstInt(wide, spread.least, false);
    if (growth.times) {
        unsigned counted = LLVMGetIntTypeWidth(LLVMTypeOf(l->phi));
        if (growth.times == 1 && !growth.factor_count && !is_spread && counted == width) return bad;
        LLVMValueRef distance = counts_down ? LLVMBuildSub(builder, first->at, last->at, "")
                                            : LLVMBuildSub(builder, last->at, first->at, "");
        LLVMValueRef per_step = LLVMConstInt(wide, growth.times, false);
        distance = LLVMBuildZExtOrBitCast(builder, distance, wide, "");
        if (counted > width)
            bad = bounds_either(b, bad, LLVMBuildICmp(builder, LLVMIntUGT, distance, all, ""));
        for (int i = 0; i < growth.factor_count; i++) {
            LLVMValueRef factor = in_bits(b, bounds_linear_value(first, growth.factors[i], false), width);
            per_step = LLVMBuildMul(builder, factor, per_step, "");
            bad = bounds_either(b, bad, LLVMBuildICmp(builder, LLVMIntUGT, per_step, all, ""));
        }
        way = LLVMBuildAdd(builder, LLVMBuildMul(builder, distance, per_step, ""), way, "");
    } else if (!spread.more) {
        return bad;
    }
    if (spread.more) {
        bad = bounds_either(b, bad, LLVMBuildICmp(builder, LLVMIntUGT, way, all, ""));
        way = LLVMBuildAdd(builder, way, spread.more, "");
    }
    return bounds_either(b, bad, LLVMBuildICmp(builder, LLVMIntUGT, way, all, ""));
}

/* The same for every `and` among what a narrow value is computed from. */
static bool masks_detour(struct round *first, struct round *last, bool down, LLVMValueRef value,
                         LLVMValueRef *bad) {
    const struct linear *l = first->linear;
    if (value == l->phi || !bounds_in_loop(l->b, value, l->loop) || find_bounded(l, value)) return true;
    if (LLVMGetInstructionOpcode(value) == LLVMAnd) {
        LLVMValueRef own = detour_of(first, last, down, value, kept_bits(value), false);
        if (!own) return false;
        *bad = bounds_either(l->b, *bad, own);
    }
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (!masks_detour(first, last, down, LLVMGetOperand(value, (unsigned)i), bad)) return false;
    return true;
}

bool bounds_linear_detours(struct round *first, struct round *last, bool down, LLVMValueRef value,
                           LLVMValueRef *bad) {
    const struct linear *l = first->linear;
    if (value == l->phi || !bounds_in_loop(l->b, value, l->loop) || find_bounded(l, value)) return true;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    if (opcode == LLVMSExt || opcode == LLVMZExt) {
        LLVMValueRef narrow = LLVMGetOperand(value, 0);
        unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(narrow));
        LLVMValueRef own = detour_of(first, last, down, narrow, width, opcode == LLVMSExt);
        *bad = bounds_either(l->b, *bad, own);
        return own && masks_detour(first, last, down, narrow, bad);
    }
    for (int i = 0; i < LLVMGetNumOperands(value); i++) {
        LLVMValueRef operand = LLVMGetOperand(value, (unsigned)i);
        bool narrow = LLVMGetTypeKind(LLVMTypeOf(operand)) == LLVMIntegerTypeKind &&
                      LLVMGetIntTypeWidth(LLVMTypeOf(operand)) < 64;
        /* A narrow index of a getelementptr, extended there. */
        if (narrow && bounds_in_loop(l->b, operand, l->loop) && !find_bounded(l, operand)) return false;
        if (!bounds_linear_detours(first, last, down, operand, bad)) return false;
    }
    return true;
}
