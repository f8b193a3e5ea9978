/* Narrow numbers that an address is computed from may wrap around on the way from the first round to the last
 * (linear.h): a test of both ends then says nothing about the values between them. */
#include "compiler/bounds/linear.h"

static bool depends(const struct linear *l, LLVMValueRef value) {
    if (value == l->phi) return true;
    if (!bounds_in_loop(l->b, value, l->loop) || bounds_linear_bounded(l, value)) return false;
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

/* Multiplies the spread by a factor, which is treated as unsigned. */
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
    const struct bounded *bounded = bounds_linear_bounded(l, value);
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
                g->down ^= bounds_is_negative(other);
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
    if (value == l->phi || !bounds_in_loop(l->b, value, l->loop) || bounds_linear_bounded(l, value))
        return true;
    if (LLVMGetInstructionOpcode(value) == LLVMAnd) {
        LLVMValueRef own = detour_of(first, last, down, value, bounds_linear_kept_bits(value), false);
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
    if (value == l->phi || !bounds_in_loop(l->b, value, l->loop) || bounds_linear_bounded(l, value))
        return true;
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
        if (narrow && bounds_in_loop(l->b, operand, l->loop) && !bounds_linear_bounded(l, operand))
            return false;
        if (!bounds_linear_detours(first, last, down, operand, bad)) return false;
    }
    return true;
}
