/* Addresses that are linear in a loop's counter: whether the first round's and the last round's lie inside
 * says it of all rounds, and the loop's preheader can tell. An answer that is wrong on the safe side only
 * makes the rounds test each access.
 *
 * A counter runs from its first value by a constant step to a last one, which the comparison that ends the
 * loop shows. Sums of fewer than 64 bits may wrap around on the way to an address; they have not if the last
 * value is on the right side of the first, and the way between them is no longer than the numbers of the
 * type.
 */
#include "compiler/bounds/bounds.h"

enum { MOST_NODES = 48 };

/* A counter of a loop, described by values of its preheader. */
struct counter {
    LLVMValueRef phi, first, last;
    LLVMValueRef bad; /* i1: it does not run from first to last without a detour */
    int64_t step;
    bool down;
    int exit;           /* the block whose comparison ends the loop */
    bool sees_next;     /* … of the next round's value */
    LLVMValueRef after; /* a block that this one does not lie above sees this last value, and … */
    LLVMValueRef bad_after;
    struct counter *next;
};

struct loop_test {
    LLVMBasicBlockRef preheader;
    struct counter *counters;
    LLVMValueRef answer; /* i1; NULL: nothing was asked */
    struct waiting {
        LLVMValueRef test;
        struct waiting *next;
    } *waiting;
};

/* ---- Building in a preheader. */

static LLVMTypeRef type_i1(struct bounds *b) {
    return LLVMInt1TypeInContext(b->unit->context);
}

static LLVMValueRef either(struct bounds *b, LLVMValueRef x, LLVMValueRef y) {
    if (!x || (LLVMIsAConstantInt(x) && !LLVMConstIntGetZExtValue(x))) return y;
    if (!y || (LLVMIsAConstantInt(y) && !LLVMConstIntGetZExtValue(y))) return x;
    return LLVMBuildOr(b->unit->builder, x, y, "");
}

static LLVMValueRef number(LLVMTypeRef type, int64_t value) {
    return LLVMConstInt(type, (unsigned long long)value, true);
}

static bool in_loop(struct bounds *b, LLVMValueRef value, int loop) {
    return LLVMIsAInstruction(value) &&
           flow_block_within(&b->flow, flow_index(&b->flow, LLVMGetInstructionParent(value)), loop);
}

/* ---- Counters. */

LLVMIntPredicate bounds_turned(LLVMIntPredicate p) {
    switch (p) {
    case LLVMIntULT:
        return LLVMIntUGT;
    case LLVMIntULE:
        return LLVMIntUGE;
    case LLVMIntUGT:
        return LLVMIntULT;
    case LLVMIntUGE:
        return LLVMIntULE;
    case LLVMIntSLT:
        return LLVMIntSGT;
    case LLVMIntSLE:
        return LLVMIntSGE;
    case LLVMIntSGT:
        return LLVMIntSLT;
    case LLVMIntSGE:
        return LLVMIntSLE;
    default:
        return p;
    }
}

LLVMIntPredicate bounds_negated(LLVMIntPredicate p) {
    switch (p) {
    case LLVMIntULT:
        return LLVMIntUGE;
    case LLVMIntULE:
        return LLVMIntUGT;
    case LLVMIntUGT:
        return LLVMIntULE;
    case LLVMIntUGE:
        return LLVMIntULT;
    case LLVMIntSLT:
        return LLVMIntSGE;
    case LLVMIntSLE:
        return LLVMIntSGT;
    case LLVMIntSGT:
        return LLVMIntSLE;
    case LLVMIntSGE:
        return LLVMIntSLT;
    case LLVMIntEQ:
        return LLVMIntNE;
    default:
        return LLVMIntEQ;
    }
}

bool bounds_loop_bound(struct bounds *b, int loop, int block, LLVMValueRef phi, LLVMValueRef next,
                       LLVMIntPredicate *predicate, LLVMValueRef *bound, bool *sees_next) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(b->flow.blocks[block].block);
    if (!LLVMIsABranchInst(end) || !LLVMIsConditional(end)) return false;
    LLVMValueRef condition = LLVMGetCondition(end);
    bool stays[2];
    for (unsigned i = 0; i < 2; i++)
        stays[i] = flow_block_within(&b->flow, flow_index(&b->flow, LLVMGetSuccessor(end, i)), loop);
    if (!LLVMIsAICmpInst(condition) || stays[0] == stays[1]) return false;
    LLVMValueRef left = LLVMGetOperand(condition, 0), right = LLVMGetOperand(condition, 1);
    *predicate = LLVMGetICmpPredicate(condition);
    if (right == phi || right == next) {
        LLVMValueRef other = left;
        left = right;
        right = other;
        *predicate = bounds_turned(*predicate);
    }
    if ((left != phi && left != next) || in_loop(b, right, loop)) return false;
    if (stays[1]) *predicate = bounds_negated(*predicate);
    *bound = right;
    *sees_next = left == next;
    return true;
}

static bool is_unsigned(LLVMIntPredicate p) {
    return p == LLVMIntULT || p == LLVMIntULE || p == LLVMIntUGT || p == LLVMIntUGE;
}

/* Whether it is the same in all threads of a group, as far as a short look tells. */
static bool is_shared(LLVMValueRef value, int depth) {
    if (LLVMIsAConstant(value)) return true;
    if (!LLVMIsAInstruction(value) || depth > 6) return false;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMCall: {
        enum intrinsic intrinsic = intrinsic_of(value);
        return intrinsic == INTRINSIC_THREADGROUP_POSITION || intrinsic == INTRINSIC_BUFFER_ADDRESS;
    }
    case LLVMLoad: /* of constant memory (passes/invariant.c) */
        if (!LLVMGetMetadata(
                value, LLVMGetMDKindIDInContext(LLVMGetTypeContext(LLVMTypeOf(value)), "invariant.load", 14)))
            return false;
        break;
    case LLVMPHI:
        return false;
    default:
        break;
    }
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (!is_shared(LLVMGetOperand(value, (unsigned)i), depth + 1)) return false;
    return true;
}

/* The last value that the counter has, where steps from the first do not lead to the bound. A first value of
 * each lane's own would make that another one in each: the bound is then as good. */
static void find_last(struct bounds *b, struct counter *c, int64_t size) {
    LLVMBuilderRef builder = b->unit->builder;
    LLVMTypeRef type = LLVMTypeOf(c->last);
    if (size == 1 || !is_shared(c->first, 0) || !is_shared(c->last, 0)) return;
    LLVMValueRef way =
        c->down ? LLVMBuildSub(builder, c->first, c->last, "") : LLVMBuildSub(builder, c->last, c->first, "");
    LLVMValueRef rest = LLVMBuildURem(builder, way, number(type, size), "");
    c->last = c->down ? LLVMBuildAdd(builder, c->last, rest, "") : LLVMBuildSub(builder, c->last, rest, "");
}

/* Sets first, last and the rest, in the preheader. False: the comparison does not bound the counter. */
static bool follow(struct bounds *b, struct counter *c, int64_t step, LLVMValueRef next,
                   LLVMIntPredicate predicate, LLVMValueRef bound) {
    LLVMBuilderRef builder = b->unit->builder;
    LLVMTypeRef type = LLVMTypeOf(bound);
    unsigned width = LLVMGetIntTypeWidth(type);
    int64_t size = step < 0 ? -step : step;
    bool up = step > 0, strict;
    switch (predicate) {
    case LLVMIntULT:
    case LLVMIntSLT:
    case LLVMIntULE:
    case LLVMIntSLE:
        if (!up) return false;
        strict = predicate == LLVMIntULT || predicate == LLVMIntSLT;
        break;
    case LLVMIntUGT:
    case LLVMIntSGT:
    case LLVMIntUGE:
    case LLVMIntSGE:
        if (up) return false;
        strict = predicate == LLVMIntUGT || predicate == LLVMIntSGT;
        break;
    case LLVMIntNE:
        if (size > 1 && !(LLVMIsAInstruction(next) && (LLVMGetNSW(next) || LLVMGetNUW(next)))) return false;
        strict = true;
        break;
    default:
        return false;
    }
    bool exact = predicate == LLVMIntNE;
    int64_t back = exact ? step : strict ? (up ? 1 : -1) : 0;
    c->down = !up;
    c->last = back ? LLVMBuildSub(builder, bound, number(type, back), "") : bound;
    /* Where only != is known, addresses decide in which sense the counter is ordered: see `check_way`. */
    if (!exact) {
        LLVMIntPredicate wrong =
            is_unsigned(predicate) ? (up ? LLVMIntUGT : LLVMIntULT) : (up ? LLVMIntSGT : LLVMIntSLT);
        c->bad = LLVMBuildICmp(builder, wrong, c->first, c->last, "");
        /* The step past the last value must not wrap around. */
        uint64_t all = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
        uint64_t edge = is_unsigned(predicate) ? (up ? all - (uint64_t)size : (uint64_t)size)
                        : up                   ? (all >> 1) - (uint64_t)size
                                               : ~(all >> 1) + (uint64_t)size;
        LLVMValueRef wraps = LLVMBuildICmp(builder, wrong, c->last, LLVMConstInt(type, edge, false), "");
        c->bad_after = either(b, c->bad, wraps);
        if (size > 1 || !strict) c->bad = c->bad_after;
    }
    if (!exact) find_last(b, c, size);
    c->after = exact ? bound : LLVMBuildAdd(builder, c->last, number(type, step), "");
    if (exact && width == 64) {
        LLVMIntPredicate wrong = up ? LLVMIntSGT : LLVMIntSLT;
        c->bad = LLVMBuildICmp(builder, wrong, c->first, c->last, "");
        c->bad_after = LLVMBuildICmp(builder, wrong, c->first, c->after, "");
    }
    return true;
}

bool bounds_loop_step(LLVMValueRef phi, LLVMValueRef next, int64_t *step) {
    if (!LLVMIsABinaryOperator(next) || LLVMGetOperand(next, 0) != phi) return false;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(next);
    LLVMValueRef amount = LLVMGetOperand(next, 1);
    if ((opcode != LLVMAdd && opcode != LLVMSub) || !LLVMIsAConstantInt(amount)) return false;
    *step = LLVMConstIntGetSExtValue(amount);
    if (opcode == LLVMSub) *step = -*step;
    return *step && *step > -(1 << 30) && *step < 1 << 30;
}

static struct counter *new_counter(struct bounds *b, int loop, LLVMValueRef phi) {
    struct loop_test *test = &b->loop_tests[loop];
    const struct flow_loop *own = &b->flow.loops[loop];
    struct counter *c = arena_alloc(&b->arena, sizeof *c);
    if (!c) return NULL;
    *c = (struct counter){.phi = phi, .next = test->counters};
    test->counters = c;
    LLVMValueRef next = NULL;
    LLVMTypeRef type = LLVMTypeOf(phi);
    int64_t step = 0;
    if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind || own->latch_count != 1) return c;
    unsigned width = LLVMGetIntTypeWidth(type);
    if (LLVMCountIncoming(phi) != 2 || (width != 16 && width != 32 && width != 64)) return c;
    int latch = own->latches[0];
    for (unsigned i = 0; i < 2; i++) {
        bool back = LLVMGetIncomingBlock(phi, i) == b->flow.blocks[latch].block;
        if (back)
            next = LLVMGetIncomingValue(phi, i);
        else
            c->first = LLVMGetIncomingValue(phi, i);
    }
    if (!next || !c->first || !bounds_loop_step(phi, next, &step)) return c;
    c->step = step;
    for (int block = own->header; block < b->flow.block_count && !c->last; block++) {
        LLVMIntPredicate predicate;
        LLVMValueRef bound;
        if (!flow_block_within(&b->flow, block, loop) || !flow_dominates(&b->flow, block, latch)) continue;
        if (!bounds_loop_bound(b, loop, block, phi, next, &predicate, &bound, &c->sees_next)) continue;
        LLVMPositionBuilderBefore(b->unit->builder, LLVMGetBasicBlockTerminator(test->preheader));
        c->exit = block;
        if (!follow(b, c, step, next, predicate, bound)) c->last = NULL;
    }
    return c;
}

static struct counter *counter_of(struct bounds *b, int loop, LLVMValueRef phi) {
    for (struct counter *c = b->loop_tests[loop].counters; c; c = c->next)
        if (c->phi == phi) return c;
    return new_counter(b, loop, phi);
}

/* ---- Linear values. */

struct linear {
    struct bounds *b;
    int loop, nodes;
    LLVMValueRef phi; /* the one that it depends on; NULL: none yet */
    bool unsure;      /* a factor of 64 bits, unknown before the run */
};

enum dependence { FIXED, LINEAR, OTHER };

static enum dependence dependence_of(struct linear *l, LLVMValueRef value);

static enum dependence of_operands(struct linear *l, LLVMValueRef value) {
    enum dependence most = FIXED;
    for (int i = 0; i < LLVMGetNumOperands(value); i++) {
        enum dependence own = dependence_of(l, LLVMGetOperand(value, (unsigned)i));
        if (own > most) most = own;
    }
    return most;
}

static enum dependence of_product(struct linear *l, LLVMValueRef value) {
    LLVMValueRef x = LLVMGetOperand(value, 0), y = LLVMGetOperand(value, 1);
    enum dependence a = dependence_of(l, x), b = dependence_of(l, y);
    if (a == OTHER || b == OTHER || (a == LINEAR && b == LINEAR)) return OTHER;
    LLVMValueRef factor = a == LINEAR ? y : x;
    bool wide = LLVMGetIntTypeWidth(LLVMTypeOf(value)) == 64;
    l->unsure |= wide && !LLVMIsAConstantInt(factor);
    return a > b ? a : b;
}

static enum dependence dependence_of(struct linear *l, LLVMValueRef value) {
    if (!in_loop(l->b, value, l->loop)) return FIXED;
    if (++l->nodes > MOST_NODES) return OTHER;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMPHI:
        if (LLVMGetInstructionParent(value) != l->b->flow.blocks[l->b->flow.loops[l->loop].header].block ||
            (l->phi && l->phi != value))
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
        return of_operands(l, value);
    case LLVMOr:
        return LLVMGetIsDisjoint(value) ? of_operands(l, value) : OTHER;
    case LLVMShl:
        return LLVMIsAConstantInt(LLVMGetOperand(value, 1)) ? of_operands(l, value) : OTHER;
    case LLVMMul:
        return of_product(l, value);
    default:
        return OTHER;
    }
}

/* ---- The value of another round, in the preheader. */

struct round {
    struct bounds *b;
    int loop;
    LLVMValueRef phi, at;
    struct copied {
        LLVMValueRef value, copy;
        struct copied *next;
    } *copies;
};

static LLVMValueRef value_at(struct round *r, LLVMValueRef value) {
    if (value == r->phi) return r->at;
    if (!in_loop(r->b, value, r->loop)) return value;
    for (struct copied *c = r->copies; c; c = c->next)
        if (c->value == value) return c->copy;
    int count = LLVMGetNumOperands(value);
    LLVMValueRef copy = LLVMInstructionClone(value);
    for (int i = 0; i < count; i++)
        LLVMSetOperand(copy, (unsigned)i, value_at(r, LLVMGetOperand(value, (unsigned)i)));
    /* A round that does not come may have an address that no round has. */
    LLVMOpcode opcode = LLVMGetInstructionOpcode(copy);
    if (opcode == LLVMAdd || opcode == LLVMSub || opcode == LLVMMul || opcode == LLVMShl) {
        LLVMSetNSW(copy, false);
        LLVMSetNUW(copy, false);
    } else if (opcode == LLVMGetElementPtr) {
        LLVMSetIsInBounds(copy, false);
    } else if (opcode == LLVMZExt) {
        LLVMSetNNeg(copy, false);
    }
    LLVMInsertIntoBuilder(r->b->unit->builder, copy);
    struct copied *one = arena_alloc(&r->b->arena, sizeof *one);
    if (!one) return copy;
    *one = (struct copied){value, copy, r->copies};
    r->copies = one;
    return copy;
}

/* ---- Narrow numbers. */

/* How much a narrow value grows per step of the counter: sign × times × factor (NULL: 1). False: another
 * form. */
struct growth {
    bool down;
    uint64_t times;
    LLVMValueRef factor;
};

static bool growth_of(struct bounds *b, int loop, LLVMValueRef phi, LLVMValueRef value, struct growth *g) {
    for (;;) {
        if (value == phi) return true;
        if (!in_loop(b, value, loop)) { /* the same in all rounds */
            g->times = 0;
            return true;
        }
        LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
        LLVMValueRef x = LLVMGetOperand(value, 0),
                     y = LLVMGetNumOperands(value) > 1 ? LLVMGetOperand(value, 1) : NULL;
        bool left = in_loop(b, x, loop), right = y && in_loop(b, y, loop);
        if (left && right) return false;
        LLVMValueRef inner = left ? x : y, other = left ? y : x;
        switch (opcode) {
        case LLVMSub:
            g->down ^= right;
            break;
        case LLVMAdd:
        case LLVMOr:
            break;
        case LLVMShl: {
            uint64_t bits = LLVMConstIntGetZExtValue(y);
            if (!left || bits > 31) return false;
            g->times <<= bits;
            break;
        }
        case LLVMMul:
            if (LLVMIsAConstantInt(other)) {
                int64_t times = LLVMConstIntGetSExtValue(other);
                g->down ^= times < 0;
                g->times *= (uint64_t)(times < 0 ? -times : times);
            } else if (g->factor) {
                return false;
            } else {
                g->factor = other;
            }
            break;
        default:
            return false;
        }
        if (!inner || g->times > UINT32_MAX) return false;
        value = inner;
    }
}

/* i1: a narrow value that is extended does not run straight from the first round's to the last's. NULL: it
 * cannot be told. */
static LLVMValueRef detour_of(struct round *first, struct round *last, const struct counter *c,
                              LLVMValueRef extension) {
    struct bounds *b = first->b;
    LLVMBuilderRef builder = b->unit->builder;
    LLVMValueRef value = LLVMGetOperand(extension, 0);
    bool is_signed = LLVMGetInstructionOpcode(extension) == LLVMSExt;
    struct growth growth = {.times = 1};
    unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(value));
    if (width > 32 || !growth_of(b, first->loop, first->phi, value, &growth)) return NULL;
    if (!growth.times) return LLVMConstInt(type_i1(b), 0, false);
    bool down = growth.down != c->down;
    LLVMValueRef from = value_at(down ? last : first, value), to = value_at(down ? first : last, value);
    LLVMValueRef bad = LLVMBuildICmp(builder, is_signed ? LLVMIntSGT : LLVMIntUGT, from, to, "");
    if (growth.times == 1 && !growth.factor) return bad;
    LLVMTypeRef wide = type_i64(b->unit);
    LLVMValueRef distance = c->down ? LLVMBuildSub(builder, first->at, last->at, "")
                                    : LLVMBuildSub(builder, last->at, first->at, "");
    LLVMValueRef all = LLVMConstInt(wide, (UINT64_C(1) << width) - 1, false);
    LLVMValueRef per_step = LLVMConstInt(wide, growth.times, false);
    if (growth.factor) {
        LLVMValueRef factor = LLVMBuildZExt(builder, growth.factor, wide, "");
        per_step = LLVMBuildMul(builder, factor, per_step, "");
        bad = either(b, bad, LLVMBuildICmp(builder, LLVMIntUGT, per_step, all, ""));
    }
    LLVMValueRef way =
        LLVMBuildMul(builder, LLVMBuildZExtOrBitCast(builder, distance, wide, ""), per_step, "");
    return either(b, bad, LLVMBuildICmp(builder, LLVMIntUGT, way, all, ""));
}

/* … of all values that the address is computed from. False: it cannot be told. */
static bool find_detours(struct round *first, struct round *last, const struct counter *c, LLVMValueRef value,
                         LLVMValueRef *bad) {
    if (value == first->phi || !in_loop(first->b, value, first->loop)) return true;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    if (opcode == LLVMSExt || opcode == LLVMZExt) {
        LLVMValueRef own = detour_of(first, last, c, value);
        *bad = either(first->b, *bad, own);
        return own != NULL;
    }
    for (int i = 0; i < LLVMGetNumOperands(value); i++) {
        LLVMValueRef operand = LLVMGetOperand(value, (unsigned)i);
        bool narrow = LLVMGetTypeKind(LLVMTypeOf(operand)) == LLVMIntegerTypeKind &&
                      LLVMGetIntTypeWidth(LLVMTypeOf(operand)) < 64;
        /* A narrow index of a getelementptr, extended there. */
        if (narrow && in_loop(first->b, operand, first->loop)) return false;
        if (!find_detours(first, last, c, operand, bad)) return false;
    }
    return true;
}

/* ---- Questions. */

static LLVMBasicBlockRef preheader_of(struct bounds *b, int loop) {
    const struct flow_block *header = &b->flow.blocks[b->flow.loops[loop].header];
    LLVMBasicBlockRef found = NULL;
    for (int i = 0; i < header->predecessor_count; i++) {
        int p = header->predecessors[i];
        if (flow_block_within(&b->flow, p, loop)) continue;
        if (found) return NULL;
        found = b->flow.blocks[p].block;
    }
    return found && LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(found)) == 1 ? found : NULL;
}

smelt_status bounds_loops_begin(struct bounds *b) {
    if (!b->flow.loop_count) return SMELT_OK;
    b->loop_tests = arena_alloc(&b->arena, (size_t)b->flow.loop_count * sizeof *b->loop_tests);
    if (!b->loop_tests) return unit_fail(b->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for loops");
    for (int i = 0; i < b->flow.loop_count && !b->flow.irreducible; i++)
        b->loop_tests[i].preheader = preheader_of(b, i);
    return SMELT_OK;
}

static void ask(struct bounds *b, int loop, LLVMValueRef first, LLVMValueRef last, int64_t low,
                uint64_t bytes, const struct array_object *object, LLVMValueRef also) {
    struct loop_test *test = &b->loop_tests[loop];
    LLVMValueRef arguments[LEAVES_OPERANDS] = {
        [LEAVES_FIRST] = first,
        [LEAVES_LAST] = last,
        [LEAVES_LOW] = bounds_i64(b, (uint64_t)low),
        [LEAVES_BYTES] = bounds_i64(b, bytes),
        [LEAVES_START] = object->start,
        [LEAVES_EXTENT] = object->extent,
        [LEAVES_ALSO] = also ? also : LLVMConstInt(type_i1(b), 0, false),
    };
    test->answer = either(b, test->answer,
                          bounds_intrinsic(b, INTRINSIC_LEAVES, type_i1(b), arguments, LEAVES_OPERANDS));
}

static LLVMValueRef in_round(struct bounds *b, int loop, LLVMValueRef phi, LLVMValueRef at,
                             LLVMValueRef address) {
    struct round round = {.b = b, .loop = loop, .phi = phi, .at = at};
    return value_at(&round, address);
}

/* Whether the block may see the value with which the loop ends. */
static bool sees_after(struct bounds *b, const struct counter *c, int block) {
    return !c->sees_next && (c->exit == block || !flow_dominates(&b->flow, c->exit, block));
}

bool bounds_loop_counts(struct bounds *b, LLVMValueRef phi, int block, struct value_range *range) {
    int header = flow_index(&b->flow, LLVMGetInstructionParent(phi)), loop = b->flow.blocks[header].loop;
    if (loop < 0 || b->flow.loops[loop].header != header || !b->loop_tests[loop].preheader) return false;
    const struct counter *c = counter_of(b, loop, phi);
    if (!c || !c->last || !LLVMIsAConstantInt(c->first) || !LLVMIsAConstantInt(c->last)) return false;
    bool after = sees_after(b, c, block) || !flow_block_within(&b->flow, block, loop);
    int64_t first = LLVMConstIntGetSExtValue(c->first), last = LLVMConstIntGetSExtValue(c->last);
    if (first < 0 || last < 0 || (c->down ? last > first : first > last)) return false;
    *range = c->down ? (struct value_range){last, first} : (struct value_range){first, last};
    if (after && c->down) range->low -= c->step < 0 ? -c->step : c->step;
    if (after && !c->down) range->high += c->step;
    return true;
}

int bounds_loop_ask(struct bounds *b, int block, LLVMValueRef address, int64_t low, uint64_t bytes,
                    const struct array_object *object) {
    int loop = b->flow.blocks[block].loop;
    struct linear linear = {.b = b};
    for (; loop >= 0; loop = b->flow.loops[loop].parent) {
        linear = (struct linear){.b = b, .loop = loop};
        enum dependence dependence = dependence_of(&linear, address);
        if (dependence == OTHER) return -1;
        if (dependence == LINEAR) break;
        if (in_loop(b, address, loop)) return -1; /* fixed, but computed there */
    }
    if (loop < 0 || !b->loop_tests[loop].preheader) return -1;
    if (in_loop(b, object->start, loop) || in_loop(b, object->extent, loop)) return -1;
    struct counter *c = counter_of(b, loop, linear.phi);
    if (!c || !c->last) return -1;
    bool after = sees_after(b, c, block);
    LLVMValueRef last_value = after ? c->after : c->last, bad = after ? c->bad_after : c->bad;
    LLVMPositionBuilderBefore(b->unit->builder, LLVMGetBasicBlockTerminator(b->loop_tests[loop].preheader));
    struct round first = {.b = b, .loop = loop, .phi = c->phi, .at = c->first},
                 last = {.b = b, .loop = loop, .phi = c->phi, .at = last_value};
    if (!find_detours(&first, &last, c, address, &bad)) return -1;
    ask(b, loop, value_at(&first, address), value_at(&last, address), low, bytes, object, bad);
    if (linear.unsure) {
        LLVMTypeRef type = LLVMTypeOf(c->phi);
        LLVMValueRef second = LLVMBuildAdd(b->unit->builder, c->first, number(type, c->step), "");
        LLVMValueRef address_then = in_round(b, loop, c->phi, second, address);
        ask(b, loop, address_then, address_then, low, bytes, object, NULL);
    }
    return loop;
}

void bounds_loop_wait(struct bounds *b, int loop, LLVMValueRef test) {
    struct waiting *waiting = arena_alloc(&b->arena, sizeof *waiting);
    if (!waiting) return;
    *waiting = (struct waiting){test, b->loop_tests[loop].waiting};
    b->loop_tests[loop].waiting = waiting;
}

void bounds_loops_end(struct bounds *b) {
    for (int i = 0; i < b->flow.loop_count; i++)
        for (const struct waiting *w = b->loop_tests[i].waiting; w; w = w->next)
            LLVMSetOperand(w->test, INSIDE_WHEN, b->loop_tests[i].answer);
}

static void lift(LLVMValueRef value, LLVMValueRef before, LLVMBasicBlockRef block) {
    if (!LLVMIsAInstruction(value) || LLVMIsAPHINode(value) || LLVMGetInstructionParent(value) != block)
        return;
    for (LLVMValueRef i = value; i; i = LLVMGetNextInstruction(i))
        if (i == before) { /* it stands in front already, and so do its operands */
            return;
        }
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        lift(LLVMGetOperand(value, (unsigned)i), before, block);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetTypeContext(LLVMTypeOf(value)));
    LLVMInstructionRemoveFromParent(value);
    LLVMPositionBuilderBefore(builder, before);
    LLVMInsertIntoBuilder(builder, value);
    LLVMDisposeBuilder(builder);
}

void bounds_loop_lift(LLVMValueRef address, LLVMValueRef before) {
    lift(address, before, LLVMGetInstructionParent(before));
}
