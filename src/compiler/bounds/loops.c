/* Addresses that are linear in a loop's counter: whether the first round's and the last round's lie inside
 * says it of all rounds, and the loop's preheader can tell. An answer that is wrong on the safe side only
 * makes the rounds test each access.
 *
 * Sums of fewer than 64 bits may wrap around on the way to an address; they do not if the last value of the
 * counter is on the right side of the first, and the distance between them fits in the type. */
#include "compiler/bounds/counters.h"

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
        [LEAVES_ALSO] = also ? also : LLVMConstInt(bounds_i1(b), 0, false),
    };
    test->answer = bounds_either(
        b, test->answer, bounds_intrinsic(b, INTRINSIC_LEAVES, bounds_i1(b), arguments, LEAVES_OPERANDS));
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
    struct hull hull = {.linear = *linear, .after = counter && bounds_sees_after(b, counter, block)};
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
    bool after = c && bounds_sees_after(b, c, block);
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
        struct round second = {
            .linear = linear,
            .at = LLVMBuildAdd(b->unit->builder, c->first, bounds_number(type, c->step), "")};
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
        if (dependence == LINEAR) one->counter = bounds_counter(b, loop, one->linear.phi);
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
