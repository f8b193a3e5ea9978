/* Counters of loops. A counter runs from its first value by a constant step to its last one, which follows
 * from the comparison that ends the loop. */
#include "compiler/bounds/counters.h"
#include "compiler/analysis/predicate.h"

LLVMValueRef bounds_either(struct bounds *b, LLVMValueRef x, LLVMValueRef y) {
    if (!x || (LLVMIsAConstantInt(x) && !LLVMConstIntGetZExtValue(x))) return y;
    if (!y || (LLVMIsAConstantInt(y) && !LLVMConstIntGetZExtValue(y))) return x;
    return LLVMBuildOr(b->unit->builder, x, y, "");
}

bool bounds_in_loop(struct bounds *b, LLVMValueRef value, int loop) {
    return LLVMIsAInstruction(value) &&
           flow_block_within(&b->flow, flow_index(&b->flow, LLVMGetInstructionParent(value)), loop);
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
        *predicate = predicate_turned(*predicate);
    }
    if ((left != phi && left != next) || bounds_in_loop(b, right, loop)) return false;
    if (stays[1]) *predicate = predicate_negated(*predicate);
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

/* The last value that the counter has, where steps from the first do not lead to the bound. If the first
 * value differed between lanes, that one would, too: the bound then serves as well. */
static void find_last(struct bounds *b, struct counter *c, int64_t size) {
    LLVMBuilderRef builder = b->unit->builder;
    LLVMTypeRef type = LLVMTypeOf(c->last);
    if (size == 1 || !is_shared(c->first, 0) || !is_shared(c->last, 0)) return;
    LLVMValueRef way =
        c->down ? LLVMBuildSub(builder, c->first, c->last, "") : LLVMBuildSub(builder, c->last, c->first, "");
    LLVMValueRef rest = LLVMBuildURem(builder, way, bounds_number(type, size), "");
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
    c->last = back ? LLVMBuildSub(builder, bound, bounds_number(type, back), "") : bound;
    /* Where only != is known, addresses decide in which sense the counter is ordered: see detours.c. */
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
    c->after = exact ? bound : LLVMBuildAdd(builder, c->last, bounds_number(type, step), "");
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

struct counter *bounds_counter(struct bounds *b, int loop, LLVMValueRef phi) {
    for (struct counter *c = b->loop_tests[loop].counters; c; c = c->next)
        if (c->phi == phi) return c;
    return new_counter(b, loop, phi);
}

bool bounds_loop_is_counter(struct bounds *b, int loop, LLVMValueRef phi) {
    if (!b->loop_tests[loop].preheader) return false;
    const struct counter *c = bounds_counter(b, loop, phi);
    return c && c->last;
}

bool bounds_sees_after(struct bounds *b, const struct counter *c, int block) {
    return !c->sees_next && (c->exit == block || !flow_dominates(&b->flow, c->exit, block));
}

bool bounds_loop_counts(struct bounds *b, LLVMValueRef phi, int block, struct value_range *range) {
    int header = flow_index(&b->flow, LLVMGetInstructionParent(phi)), loop = b->flow.blocks[header].loop;
    if (loop < 0 || b->flow.loops[loop].header != header || !b->loop_tests[loop].preheader) return false;
    const struct counter *c = bounds_counter(b, loop, phi);
    if (!c || !c->last || !LLVMIsAConstantInt(c->first) || !LLVMIsAConstantInt(c->last)) return false;
    bool after = bounds_sees_after(b, c, block) || !flow_block_within(&b->flow, block, loop);
    int64_t first = LLVMConstIntGetSExtValue(c->first), last = LLVMConstIntGetSExtValue(c->last);
    if (first < 0 || last < 0 || (c->down ? last > first : first > last)) return false;
    *range = c->down ? (struct value_range){last, first} : (struct value_range){first, last};
    if (after && c->down) range->low -= c->step < 0 ? -c->step : c->step;
    if (after && !c->down) range->high += c->step;
    return true;
}
