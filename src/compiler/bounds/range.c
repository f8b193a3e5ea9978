/* What values integers can have, as far as a short look at their computation tells: whether an address stays
 * in an object of known size needs no test then.
 *
 * Ranges are of the numbers as signed ones of their type. */
#include "compiler/bounds/bounds.h"

#include <string.h>

enum { MOST_DEPTH = 12, MOST_VALUES = 96 };

struct look {
    struct bounds *b;
    int block; /* that the value is used in */
    int left;  /* how many more values are looked at */
};

/* ---- Sums and products. */

static struct value_range whole(unsigned width) {
    if (width >= 64) return (struct value_range){INT64_MIN, INT64_MAX};
    return (struct value_range){-(INT64_C(1) << (width - 1)), (INT64_C(1) << (width - 1)) - 1};
}

/* What is left of it in a type of this width. */
static struct value_range in_width(struct value_range r, unsigned width) {
    struct value_range all = whole(width);
    return r.low < all.low || r.high > all.high ? all : r;
}

static struct value_range sum(struct value_range x, struct value_range y) {
    struct value_range r;
    if (__builtin_add_overflow(x.low, y.low, &r.low) || __builtin_add_overflow(x.high, y.high, &r.high))
        return whole(64);
    return r;
}

static struct value_range negative(struct value_range x) {
    if (x.low == INT64_MIN) return whole(64);
    return (struct value_range){-x.high, -x.low};
}

static struct value_range product(struct value_range x, struct value_range y) {
    const int64_t a[4] = {x.low, x.low, x.high, x.high}, b[4] = {y.low, y.high, y.low, y.high};
    struct value_range r = {INT64_MAX, INT64_MIN};
    for (int i = 0; i < 4; i++) {
        int64_t p;
        if (__builtin_mul_overflow(a[i], b[i], &p)) return whole(64);
        if (p < r.low) r.low = p;
        if (p > r.high) r.high = p;
    }
    return r;
}

static struct value_range either(struct value_range x, struct value_range y) {
    return (struct value_range){x.low < y.low ? x.low : y.low, x.high > y.high ? x.high : y.high};
}

/* ---- Instructions. */

static struct value_range range_of(struct look *l, LLVMValueRef value, int depth);

static struct value_range of_operand(struct look *l, LLVMValueRef value, unsigned operand, int depth) {
    return range_of(l, LLVMGetOperand(value, operand), depth + 1);
}

static int64_t lesser(int64_t x, int64_t y) {
    return x < y ? x : y;
}

static int64_t greater(int64_t x, int64_t y) {
    return x > y ? x : y;
}

/* The lesser or the greater of two numbers. False: another function. */
static bool of_extreme(struct look *l, LLVMValueRef call, int depth, struct value_range *r) {
    const char *name = called_name(call);
    bool is_signed = strncmp(name, "llvm.s", 6) == 0;
    if (!is_signed && strncmp(name, "llvm.u", 6) != 0) return false;
    bool least = strncmp(name + 6, "min.", 4) == 0;
    if (!least && strncmp(name + 6, "max.", 4) != 0) return false;
    struct value_range x = of_operand(l, call, 0, depth), y = of_operand(l, call, 1, depth);
    if (!is_signed && (x.low < 0 || y.low < 0)) {
        /* Negative numbers are large ones. */
        if (!least || (x.low < 0 && y.low < 0)) return false;
        *r = (struct value_range){0, x.low < 0 ? y.high : x.high};
        return true;
    }
    *r = least ? (struct value_range){lesser(x.low, y.low), lesser(x.high, y.high)}
               : (struct value_range){greater(x.low, y.low), greater(x.high, y.high)};
    return true;
}

/* As the call is declared, and as the size of groups says. */
static struct value_range of_call(struct look *l, LLVMValueRef call, unsigned width, int depth) {
    struct unit *unit = l->b->unit;
    struct value_range r = whole(width);
    if (of_extreme(l, call, depth, &r)) return r;
    unsigned kind = LLVMGetMDKindIDInContext(unit->context, "range", 5);
    LLVMValueRef node = LLVMGetMetadata(call, kind), ends[2];
    if (node && LLVMGetMDNodeNumOperands(node) == 2) {
        LLVMGetMDNodeOperands(node, ends);
        int64_t low = LLVMConstIntGetSExtValue(ends[0]), past = LLVMConstIntGetSExtValue(ends[1]);
        if (low < past) r = (struct value_range){low, past - 1};
    }
    uint64_t dimension = 3;
    const uint32_t *size = unit->request->shape.size;
    int64_t threads = (int64_t)size[0] * size[1] * size[2];
    switch (intrinsic_of(call)) {
    case INTRINSIC_POSITION_IN_THREADGROUP:
        if (is_constant_integer(LLVMGetOperand(call, 0), &dimension) && dimension < 3 && size[dimension])
            r = (struct value_range){0, (int64_t)size[dimension] - 1};
        break;
    case INTRINSIC_LANE:
        r = (struct value_range){0, SIMDGROUP_LANES - 1};
        break;
    case INTRINSIC_THREAD_INDEX:
        if (threads) r = (struct value_range){0, threads - 1};
        break;
    case INTRINSIC_SIMDGROUP:
        if (threads) r = (struct value_range){0, (threads - 1) / SIMDGROUP_LANES};
        break;
    default:
        break;
    }
    return r;
}

/* ---- Values of loops. */

/* The latch goes on by a phi that is true in the first round and false in the second. */
static bool runs_twice(struct bounds *b, const struct flow_loop *loop, int latch) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(b->flow.blocks[latch].block), phi, header;
    header = LLVMBasicBlockAsValue(b->flow.blocks[loop->header].block);
    if (!LLVMIsABranchInst(end) || !LLVMIsConditional(end)) return false;
    phi = LLVMGetCondition(end);
    bool stays = LLVMBasicBlockAsValue(LLVMGetSuccessor(end, 0)) == header;
    if (!LLVMIsAPHINode(phi) || LLVMBasicBlockAsValue(LLVMGetInstructionParent(phi)) != header) return false;
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        bool back = LLVMGetIncomingBlock(phi, i) == b->flow.blocks[latch].block;
        uint64_t value;
        if (!is_constant_integer(LLVMGetIncomingValue(phi, i), &value)) return false;
        if (((value & 1) == stays) == back) return false;
    }
    return true;
}

/* Of a counter that goes up: its first value, and the comparison that ends the loop in its header or latch,
 * tell more than nothing even where neither is a constant. Each sum on the way must be a number of the type:
 * then none wraps around. */
static bool of_counter(struct look *l, LLVMValueRef phi, int loop, int depth, struct value_range *r) {
    struct bounds *b = l->b;
    const struct flow_loop *own = &b->flow.loops[loop];
    if (own->latch_count != 1 || LLVMCountIncoming(phi) != 2) return false;
    int latch = own->latches[0], ends[2] = {own->header, latch};
    unsigned back = LLVMGetIncomingBlock(phi, 0) == b->flow.blocks[latch].block ? 0 : 1;
    LLVMValueRef next = LLVMGetIncomingValue(phi, back), bound;
    int64_t step;
    if (!bounds_loop_step(phi, next, &step) || step < 0) return false;
    struct value_range first = range_of(l, LLVMGetIncomingValue(phi, 1 - back), depth + 1);
    struct value_range all = whole(LLVMGetIntTypeWidth(LLVMTypeOf(phi)));
    if (runs_twice(b, own, latch) && flow_block_within(&b->flow, l->block, loop)) {
        *r = (struct value_range){first.low, first.high};
        return !__builtin_add_overflow(first.high, step, &r->high) && r->high <= all.high;
    }
    for (int i = 0; i < 2; i++) {
        LLVMIntPredicate p;
        bool sees_next;
        if (!bounds_loop_bound(b, loop, ends[i], phi, next, &p, &bound, &sees_next)) continue;
        bool strict = p == LLVMIntULT || p == LLVMIntSLT, is_signed = p == LLVMIntSLT || p == LLVMIntSLE;
        if (!strict && !is_signed && p != LLVMIntULE) continue;
        struct value_range limit = range_of(l, bound, depth + 1);
        if (!is_signed && (first.low < 0 || limit.low < 0)) continue;
        /* The greatest value with which the loop goes on. */
        if (limit.high == INT64_MIN || limit.high > INT64_MAX / 2 || first.high > INT64_MAX / 2) continue;
        int64_t most = strict ? limit.high - 1 : limit.high, past = most + step;
        if (first.high + step > all.high || past > all.high) continue;
        bool below =
            !sees_next && i == 0 && l->block != own->header && flow_block_within(&b->flow, l->block, loop);
        int64_t high = sees_next || below ? most : past;
        *r = (struct value_range){first.low, below || first.high < high ? high : first.high};
        return r->low <= r->high;
    }
    return false;
}

static struct value_range of_phi(struct look *l, LLVMValueRef phi, int depth) {
    struct value_range r;
    if (bounds_loop_counts(l->b, phi, l->block, &r)) return r;
    r = (struct value_range){INT64_MAX, INT64_MIN};
    int block = flow_index(&l->b->flow, LLVMGetInstructionParent(phi));
    int loop = l->b->flow.blocks[block].loop;
    if (loop >= 0 && l->b->flow.loops[loop].header == block) {
        if (of_counter(l, phi, loop, depth, &r)) return r;
        r = (struct value_range){INT64_MAX, INT64_MIN};
        for (unsigned i = 0; i < LLVMCountIncoming(phi); i++)
            if (!LLVMIsAConstantInt(LLVMGetIncomingValue(phi, i))) return whole(64);
    }
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++)
        r = either(r, range_of(l, LLVMGetIncomingValue(phi, i), depth + 1));
    return r;
}

/* A part of a number: and, division, remainder or shift by a constant. */
static struct value_range of_part(struct look *l, LLVMValueRef value, LLVMOpcode opcode, unsigned width,
                                  int depth) {
    struct value_range x = of_operand(l, value, 0, depth), all = whole(width);
    LLVMValueRef right = LLVMGetOperand(value, 1);
    bool positive = x.low >= 0;
    if (!LLVMIsAConstantInt(right)) {
        struct value_range y = of_operand(l, value, 1, depth);
        if (opcode == LLVMAnd && (positive || y.low >= 0))
            return (struct value_range){0, positive && (y.low < 0 || x.high < y.high) ? x.high : y.high};
        if (opcode == LLVMURem && y.low > 0) return (struct value_range){0, y.high - 1};
        return positive && opcode != LLVMAnd ? (struct value_range){0, x.high} : all;
    }
    int64_t c = LLVMConstIntGetSExtValue(right);
    if (opcode == LLVMAnd) {
        if (c < 0) return positive ? (struct value_range){0, x.high} : all;
        return (struct value_range){0, positive && x.high < c ? x.high : c};
    }
    if (opcode == LLVMURem) {
        if (c <= 0) return all;
        return (struct value_range){0, positive && x.high < c ? x.high : c - 1};
    }
    if (opcode == LLVMUDiv) {
        if (c <= 0) return all;
        return positive     ? (struct value_range){x.low / c, x.high / c}
               : width < 64 ? (struct value_range){0, ((INT64_C(1) << width) - 1) / c}
                            : all;
    }
    if (c < 0 || c >= (int64_t)width) return all;
    if (opcode == LLVMAShr) return (struct value_range){x.low >> c, x.high >> c};
    if (positive) return (struct value_range){x.low >> c, x.high >> c};
    return c && width < 64 ? (struct value_range){0, ((INT64_C(1) << width) - 1) >> c} : all;
}

static struct value_range of_sum(struct look *l, LLVMValueRef value, LLVMOpcode opcode, unsigned width,
                                 int depth) {
    struct value_range x = of_operand(l, value, 0, depth), y = of_operand(l, value, 1, depth);
    switch (opcode) {
    case LLVMAdd:
        return in_width(sum(x, y), width);
    case LLVMSub:
        return in_width(sum(x, negative(y)), width);
    case LLVMMul:
        return in_width(product(x, y), width);
    case LLVMShl:
        if (y.low < 0 || y.high > 32 || y.low != y.high) return whole(width);
        return in_width(product(x, (struct value_range){INT64_C(1) << y.low, INT64_C(1) << y.low}), width);
    default: /* or, xor */
        if (x.low < 0 || y.low < 0) return whole(width);
        int64_t most = x.high > y.high ? x.high : y.high, bits = 1;
        while (bits <= most && bits < INT64_MAX / 2) bits *= 2;
        return (struct value_range){0, bits - 1};
    }
}

static struct value_range of_extended(struct look *l, LLVMValueRef value, int depth) {
    LLVMValueRef from = LLVMGetOperand(value, 0);
    struct value_range r = range_of(l, from, depth + 1);
    unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(from));
    if (LLVMGetInstructionOpcode(value) == LLVMSExt || r.low >= 0) return r;
    return width < 63 ? (struct value_range){0, (INT64_C(1) << width) - 1} : whole(64);
}

static struct value_range range_anywhere(struct look *l, LLVMValueRef value, int depth) {
    LLVMTypeRef type = LLVMTypeOf(value);
    if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(type) > 64) return whole(64);
    unsigned width = LLVMGetIntTypeWidth(type);
    if (LLVMIsAConstantInt(value)) {
        int64_t c = LLVMConstIntGetSExtValue(value);
        return (struct value_range){c, c};
    }
    if (!LLVMIsAInstruction(value) || depth > MOST_DEPTH || --l->left < 0) return whole(width);
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    switch (opcode) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
    case LLVMOr:
    case LLVMXor:
        return of_sum(l, value, opcode, width, depth);
    case LLVMAnd:
    case LLVMURem:
    case LLVMUDiv:
    case LLVMLShr:
    case LLVMAShr:
        return of_part(l, value, opcode, width, depth);
    case LLVMZExt:
    case LLVMSExt:
        return of_extended(l, value, depth);
    case LLVMTrunc:
        return in_width(of_operand(l, value, 0, depth), width);
    case LLVMSelect:
        return either(of_operand(l, value, 1, depth), of_operand(l, value, 2, depth));
    case LLVMPHI:
        return in_width(of_phi(l, value, depth), width);
    case LLVMCall:
        return of_call(l, value, width, depth);
    default:
        return whole(width);
    }
}

struct comparison {
    struct look *look;
    int depth;
};

static struct value_range range_compared(void *context, LLVMValueRef other) {
    const struct comparison *c = context;
    /* Of conditions, not many in a row. */
    return range_of(c->look, other, c->depth + 4);
}

static struct value_range range_of(struct look *l, LLVMValueRef value, int depth) {
    struct value_range r = range_anywhere(l, value, depth);
    struct comparison comparison = {l, depth};
    if (r.low == r.high || !LLVMIsAInstruction(value) || depth > MOST_DEPTH || l->left <= 0) return r;
    return bounds_narrow(l->b, l->block, value, r, range_compared, &comparison);
}

struct value_range bounds_range(struct bounds *b, int block, LLVMValueRef value) {
    struct look look = {.b = b, .block = block, .left = MOST_VALUES};
    return range_of(&look, value, 0);
}

/* ---- Addresses. */

bool bounds_offset(struct bounds *b, int block, LLVMValueRef address, LLVMValueRef *root,
                   struct value_range *range) {
    struct look look = {.b = b, .block = block, .left = MOST_VALUES};
    struct unit *unit = b->unit;
    *range = (struct value_range){0, 0};
    for (;; address = LLVMGetOperand(address, 0)) {
        bool expression = LLVMIsAConstantExpr(address) != NULL;
        LLVMOpcode opcode = expression                    ? LLVMGetConstOpcode(address)
                            : LLVMIsAInstruction(address) ? LLVMGetInstructionOpcode(address)
                                                          : LLVMRet;
        if (opcode == LLVMBitCast || opcode == LLVMAddrSpaceCast) continue;
        if (opcode != LLVMGetElementPtr) break;
        LLVMTypeRef type = LLVMGetGEPSourceElementType(address);
        for (int i = 1; i < LLVMGetNumOperands(address); i++) {
            LLVMValueRef operand = LLVMGetOperand(address, (unsigned)i);
            if (i > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
                unsigned field = (unsigned)LLVMConstIntGetZExtValue(operand);
                int64_t offset = (int64_t)LLVMOffsetOfElement(unit->layout, type, field);
                *range = sum(*range, (struct value_range){offset, offset});
                type = LLVMStructGetTypeAtIndex(type, field);
                continue;
            }
            if (i > 1) type = LLVMGetElementType(type);
            int64_t bytes = (int64_t)LLVMABISizeOfType(unit->layout, type);
            struct value_range own = range_of(&look, operand, 0);
            *range = sum(*range, product(own, (struct value_range){bytes, bytes}));
        }
        if (range->low == INT64_MIN) return false;
    }
    *root = address;
    return true;
}
