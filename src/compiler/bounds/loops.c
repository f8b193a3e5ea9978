/* Addresses that are linear in a loop's counter: whether the first round's and the last round's lie inside
 * says it of all rounds, and the loop's preheader can tell. An answer that is wrong on the safe side only
 * makes the rounds test each access.
 *
 * A counter runs from its first value by a constant step to a last one, which the comparison that ends the
 * loop shows. Sums of fewer than 64 bits may wrap around on the way to an address; they have not if the last
 * value is on the right side of the first, and the way between them is no longer than the numbers of the
 * type.
 */
#include "compiler/bounds/linear.h"

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

/* Objects are intervals: between two addresses that are inside, all are. Bytes from base + low to base +
 * high, in each round. */
struct hull {
    LLVMValueRef base;
    struct linear linear; /* the ranges of the bounded values that the base is computed from */
    bool after;           /* also for the counter's value at which the loop ends */
    int64_t low, high;
    struct hull *next;
};

struct loop_test {
    LLVMBasicBlockRef preheader;
    struct counter *counters;
    LLVMValueRef answer; /* i1; NULL: nothing was asked */
    struct hull *hulls;  /* what was asked of accesses that each round makes */
    bool unsure;         /* … and of others, whose answers may be no without harm */
    struct waiting {
        LLVMValueRef test;
        struct waiting *next;
    } *waiting;
};

/* ---- Building in a preheader. */

static LLVMTypeRef type_i1(struct bounds *b) {
    return LLVMInt1TypeInContext(b->unit->context);
}

LLVMValueRef bounds_either(struct bounds *b, LLVMValueRef x, LLVMValueRef y) {
    if (!x || (LLVMIsAConstantInt(x) && !LLVMConstIntGetZExtValue(x))) return y;
    if (!y || (LLVMIsAConstantInt(y) && !LLVMConstIntGetZExtValue(y))) return x;
    return LLVMBuildOr(b->unit->builder, x, y, "");
}

static LLVMValueRef number(LLVMTypeRef type, int64_t value) {
    return LLVMConstInt(type, (unsigned long long)value, true);
}

bool bounds_in_loop(struct bounds *b, LLVMValueRef value, int loop) {
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
    if ((left != phi && left != next) || bounds_in_loop(b, right, loop)) return false;
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
        c->bad_after = bounds_either(b, c->bad, wraps);
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

bool bounds_loop_is_counter(struct bounds *b, int loop, LLVMValueRef phi) {
    if (!b->loop_tests[loop].preheader) return false;
    const struct counter *c = counter_of(b, loop, phi);
    return c && c->last;
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
    test->answer = bounds_either(
        b, test->answer, bounds_intrinsic(b, INTRINSIC_LEAVES, type_i1(b), arguments, LEAVES_OPERANDS));
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

/* Whether each round of the loop runs the block. */
static bool runs_each_round(struct bounds *b, int block, int loop) {
    const struct flow_loop *own = &b->flow.loops[loop];
    return own->latch_count == 1 && flow_dominates(&b->flow, block, own->latches[0]);
}

/* Whether a test of `asked` also covers the base, bounded values and rounds of `wanted`. */
static bool holds_for(const struct hull *asked, const struct hull *wanted) {
    return asked->base == wanted->base && (asked->after || !wanted->after) &&
           bounds_linear_is_within(&wanted->linear, &asked->linear, wanted->base);
}

static struct hull hull_of(struct bounds *b, int block, const struct linear *linear,
                           const struct counter *counter, LLVMValueRef address, int64_t low, uint64_t bytes) {
    struct hull hull = {.linear = *linear, .after = counter && sees_after(b, counter, block)};
    hull.base = bounds_linear_base(linear, address, &hull.low, &hull.high);
    hull.low += low;
    hull.high += low + (int64_t)bytes;
    return hull;
}

/* Asked in the loop's preheader. */
static void note_hull(struct bounds *b, int block, const struct hull *own) {
    struct loop_test *test = &b->loop_tests[own->linear.loop];
    if (!runs_each_round(b, block, own->linear.loop)) {
        test->unsure = true;
        return;
    }
    for (struct hull *h = test->hulls; h; h = h->next)
        if (holds_for(h, own) && holds_for(own, h)) {
            if (own->low < h->low) h->low = own->low;
            if (own->high > h->high) h->high = own->high;
            return;
        }
    struct hull *added = arena_alloc(&b->arena, sizeof *added);
    if (!added) return;
    *added = *own;
    added->next = test->hulls;
    test->hulls = added;
}

static bool is_covered(struct bounds *b, const struct hull *own) {
    for (const struct hull *h = b->loop_tests[own->linear.loop].hulls; h; h = h->next)
        if (holds_for(h, own) && h->low <= own->low && own->high <= h->high) return true;
    return false;
}

/* An address that a loop's preheader can tell the ends of. */
struct candidate {
    struct linear linear;
    struct counter *counter; /* NULL: only bounded values differ between rounds */
};

/* Asks in the preheader of the candidate's loop. */
static bool ask_ends(struct bounds *b, int block, struct candidate *candidate, LLVMValueRef address,
                     int64_t low, uint64_t bytes, const struct array_object *object) {
    struct linear *linear = &candidate->linear;
    const struct counter *c = candidate->counter;
    bool after = c && sees_after(b, c, block);
    LLVMValueRef bad = !c ? NULL : after ? c->bad_after : c->bad;
    int loop = linear->loop;
    LLVMPositionBuilderBefore(b->unit->builder, LLVMGetBasicBlockTerminator(b->loop_tests[loop].preheader));
    struct round first = {.linear = linear, .at = c ? c->first : NULL}, last = {.linear = linear,
                                                                                .at = !c      ? NULL
                                                                                      : after ? c->after
                                                                                              : c->last};
    if (!bounds_linear_detours(&first, &last, c && c->down, address, &bad)) return false;
    int ends = linear->bounded_count ? 2 : 1;
    for (int high = 0; high < ends; high++) {
        LLVMValueRef from = bounds_linear_value(&first, address, high > 0);
        ask(b, loop, from, c ? bounds_linear_value(&last, address, high > 0) : from, low, bytes, object, bad);
        bad = NULL;
    }
    if (linear->unsure) {
        LLVMTypeRef type = LLVMTypeOf(c->phi);
        struct round second = {.linear = linear,
                               .at = LLVMBuildAdd(b->unit->builder, c->first, number(type, c->step), "")};
        LLVMValueRef address_then = bounds_linear_value(&second, address, false);
        ask(b, loop, address_then, address_then, low, bytes, object, NULL);
    }
    struct hull hull = hull_of(b, block, linear, c, address, low, bytes);
    note_hull(b, block, &hull);
    return true;
}

enum { MOST_CANDIDATES = 4 };

int bounds_loop_ask(struct bounds *b, int block, LLVMValueRef address, int64_t low, uint64_t bytes,
                    const struct array_object *object) {
    struct candidate candidates[MOST_CANDIDATES];
    int count = 0, covered = -1;
    bool skipped = false;
    for (int loop = b->flow.blocks[block].loop; loop >= 0 && count < MOST_CANDIDATES;
         loop = b->flow.loops[loop].parent) {
        /* Farther out only with accesses of each round: others may stay inside because they are skipped. */
        skipped |= count && !runs_each_round(b, block, candidates[count - 1].linear.loop);
        struct candidate *one = &candidates[count];
        *one = (struct candidate){.linear = {.b = b, .loop = loop, .block = block}};
        enum dependence dependence = bounds_linear_look(&one->linear, address);
        if (dependence == OTHER) break;
        if (dependence == FIXED) continue;
        if (!b->loop_tests[loop].preheader) break;
        if (bounds_in_loop(b, object->start, loop) || bounds_in_loop(b, object->extent, loop)) break;
        if (dependence == LINEAR) one->counter = counter_of(b, loop, one->linear.phi);
        if (dependence == LINEAR && !one->counter) break;
        struct hull hull = hull_of(b, block, &one->linear, one->counter, address, low, bytes);
        if (is_covered(b, &hull)) covered = loop;
        count += !skipped;
    }
    if (covered >= 0) return covered;
    for (int i = count - 1; i >= 0; i--)
        if (ask_ends(b, block, &candidates[i], address, low, bytes, object)) return candidates[i].linear.loop;
    return -1;
}

void bounds_loop_wait(struct bounds *b, int loop, LLVMValueRef test) {
    struct waiting *waiting = arena_alloc(&b->arena, sizeof *waiting);
    if (!waiting) return;
    *waiting = (struct waiting){test, b->loop_tests[loop].waiting};
    b->loop_tests[loop].waiting = waiting;
}

unsigned bounds_sure_answer(struct unit *unit) {
    static const char name[] = "smelt.sure";
    return LLVMGetMDKindIDInContext(unit->context, name, sizeof name - 1);
}

void bounds_loops_end(struct bounds *b) {
    for (int i = 0; i < b->flow.loop_count; i++) {
        const struct loop_test *test = &b->loop_tests[i];
        for (const struct waiting *w = test->waiting; w; w = w->next)
            LLVMSetOperand(w->test, INSIDE_WHEN, test->answer);
        if (test->answer && !test->unsure && LLVMIsAInstruction(test->answer))
            LLVMSetMetadata(test->answer, bounds_sure_answer(b->unit),
                            LLVMMDNodeInContext(b->unit->context, NULL, 0));
    }
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
