/* The two numbers between which a value lies in all threads of a launch (launch.c).
 *
 * Ends are computed in 64 bits and hold modulo 2^width: a number between them differs from the value by a
 * multiple of 2^width. The ends of factors, of numbers that are extended and of indexes, and limits of 64
 * bits, must be in [0, 2^30), which the question tests, too: they then hold for the value itself. Products
 * are below 2^60, and no sum of MOST_PRODUCTS of them wraps around. */
#include "compiler/bounds/launch.h"

#include <stddef.h>
#include <string.h>

static const struct ends not_known = {NULL, NULL};

static unsigned width_of(LLVMValueRef value) {
    return LLVMGetIntTypeWidth(LLVMTypeOf(value));
}

/* It must be in [0, 2^30). */
static void require_narrow(struct look *l, LLVMValueRef value) {
    if (!value) {
        l->fails = true;
    } else if (LLVMIsAConstantInt(value)) {
        int64_t number = LLVMConstIntGetSExtValue(value);
        l->fails |= number < 0 || number > MOST_NARROW;
    } else {
        for (int i = 0; i < l->narrow_count; i++)
            if (l->narrow[i] == value) return;
        l->fails |= l->narrow_count == MOST_VALUES;
        if (!l->fails) l->narrow[l->narrow_count++] = value;
    }
}

void bounds_launch_require(struct look *l, struct ends e) {
    require_narrow(l, e.low);
    if (e.high != e.low) require_narrow(l, e.high);
}

/* i64: a number that is the same in the whole launch; NULL: it is not known to be. */
static LLVMValueRef shared(struct look *l, LLVMValueRef value, bool is_signed) {
    LLVMTypeRef type = type_i64(l->b->unit);
    LLVMValueRef copy = bounds_launch_copy(l->b, value, 0);
    if (!copy) return NULL;
    if (width_of(value) == 64) {
        require_narrow(l, copy);
        return copy;
    }
    return is_signed ? LLVMBuildSExt(bounds_launch_builder(l), copy, type, "")
                     : LLVMBuildZExt(bounds_launch_builder(l), copy, type, "");
}

static struct ends of_sum(struct look *l, LLVMValueRef value, bool subtracts, int depth) {
    struct ends x = bounds_launch_ends(l, LLVMGetOperand(value, 0), depth + 1),
                y = bounds_launch_ends(l, LLVMGetOperand(value, 1), depth + 1), r = not_known;
    LLVMBuilderRef b = bounds_launch_builder(l);
    bool one = x.low == x.high && y.low == y.high;
    LLVMValueRef least = subtracts ? y.high : y.low, most = subtracts ? y.low : y.high;
    if (x.low && least)
        r.low = subtracts ? LLVMBuildSub(b, x.low, least, "") : LLVMBuildAdd(b, x.low, least, "");
    if (one) return bounds_launch_both(r.low);
    if (x.high && most)
        r.high = subtracts ? LLVMBuildSub(b, x.high, most, "") : LLVMBuildAdd(b, x.high, most, "");
    return r;
}

static struct ends of_product(struct look *l, struct ends x, struct ends y) {
    LLVMBuilderRef b = bounds_launch_builder(l);
    if (!x.low || !x.high || !y.low || !y.high || ++l->products > MOST_PRODUCTS) return not_known;
    bool x_shared = x.low == x.high, y_shared = y.low == y.high;
    /* Lanes are a constant apart in a row times a constant. */
    l->scattered |= !(x_shared && y_shared) && !(x_shared && LLVMIsAConstantInt(x.low)) &&
                    !(y_shared && LLVMIsAConstantInt(y.low));
    bounds_launch_require(l, x);
    bounds_launch_require(l, y);
    struct ends r = {.low = LLVMBuildMul(b, x.low, y.low, "")};
    r.high = x_shared && y_shared ? r.low : LLVMBuildMul(b, x.high, y.high, "");
    return r;
}

static struct ends of_shift(struct look *l, LLVMValueRef value, int depth) {
    uint64_t count;
    if (!is_constant_integer(LLVMGetOperand(value, 1), &count) || count > 29) return not_known;
    return of_product(l, bounds_launch_ends(l, LLVMGetOperand(value, 0), depth + 1),
                      bounds_launch_both(bounds_i64(l->b, UINT64_C(1) << count)));
}

/* ---- Values with limits. */

/* bounds_range may build code for loops' counters, and so moves the builder. */
static struct value_range range_here(struct look *l, LLVMValueRef value) {
    struct value_range r = bounds_range(l->b, l->block, value);
    bounds_launch_continue_function(l->b);
    return r;
}

/* Of a number that the code only limits by constants: as a signed one. */
static struct ends of_range(struct look *l, LLVMValueRef value) {
    struct value_range r = range_here(l, value);
    struct ends e = not_known;
    if (r.low > INT32_MIN) e.low = bounds_i64(l->b, (uint64_t)r.low);
    if (r.high < INT32_MAX) e.high = bounds_i64(l->b, (uint64_t)r.high);
    return e;
}

static LLVMValueRef extreme(struct look *l, bool least, LLVMValueRef x, LLVMValueRef y) {
    LLVMValueRef operands[2] = {x, y};
    return build_intrinsic(l->b->unit, least ? "llvm.smin" : "llvm.smax", type_i64(l->b->unit), operands, 2);
}

/* … as a signed number, which the ends of sums are not. */
static struct ends signed_ends(struct look *l, LLVMValueRef value, int depth) {
    const char *name = LLVMIsACallInst(value) ? called_name(value) : "";
    LLVMValueRef copy = depth < MOST_DEPTH ? shared(l, value, true) : NULL;
    if (copy) return bounds_launch_both(copy);
    bool least = strncmp(name, "llvm.smin.", 10) == 0;
    if ((!least && strncmp(name, "llvm.smax.", 10) != 0) || --l->left < 0) return of_range(l, value);
    struct ends x = signed_ends(l, LLVMGetOperand(value, 0), depth + 1),
                y = signed_ends(l, LLVMGetOperand(value, 1), depth + 1);
    /* One operand alone limits the result on one side. */
    LLVMValueRef low = x.low && y.low ? extreme(l, least, x.low, y.low) : x.low ? x.low : y.low;
    LLVMValueRef high = x.high && y.high ? extreme(l, least, x.high, y.high) : x.high ? x.high : y.high;
    return (struct ends){least && !(x.low && y.low) ? NULL : low,
                         !least && !(x.high && y.high) ? NULL : high};
}

/* Below the number of threads or groups in a dimension, from `offset` of the context on. */
static struct ends of_position(struct look *l, LLVMValueRef call, size_t offset) {
    uint64_t dimension;
    if (!is_constant_integer(LLVMGetOperand(call, 0), &dimension) || dimension > 2) return not_known;
    LLVMValueRef count =
        bounds_launch_field(l->b, LLVMTypeOf(call), l->b->questions->group, offset + 4 * (size_t)dimension);
    count = LLVMBuildZExt(bounds_launch_builder(l), count, type_i64(l->b->unit), "");
    int64_t low = range_here(l, call).low;
    return (struct ends){bounds_i64(l->b, low > 0 ? (uint64_t)low : 0),
                         LLVMBuildSub(bounds_launch_builder(l), count, bounds_i64(l->b, 1), "")};
}

/* Whether a gang may lie in several rows of the dimension. */
static bool has_rows(struct look *l, LLVMValueRef call) {
    uint64_t dimension;
    return !is_constant_integer(LLVMGetOperand(call, 0), &dimension) || dimension > 2 ||
           (dimension && l->b->unit->request->shape.size[dimension] != 1);
}

static struct ends of_call(struct look *l, LLVMValueRef call, int depth) {
    switch (intrinsic_of(call)) {
    case INTRINSIC_THREAD_POSITION:
        l->scattered |= has_rows(l, call);
        return of_position(l, call, offsetof(struct group_context, grid));
    case INTRINSIC_THREADGROUP_POSITION:
        return of_position(l, call, offsetof(struct group_context, groups));
    case INTRINSIC_POSITION_IN_THREADGROUP:
        l->scattered |= has_rows(l, call);
        return of_range(l, call);
    case INTRINSIC_LANE:
    case INTRINSIC_THREAD_INDEX:
        return of_range(l, call);
    default:
        break;
    }
    l->scattered = true;
    for (unsigned i = 0; i < 2 && strncmp(called_name(call), "llvm.umin.", 10) == 0; i++) {
        LLVMValueRef limit = shared(l, LLVMGetOperand(call, i), false);
        if (limit) return (struct ends){bounds_i64(l->b, 0), limit};
    }
    return signed_ends(l, call, depth);
}

/* What conditions say: the value is below a number that all threads share. */
static bool find_limit(struct look *l, LLVMValueRef value, struct ends *e) {
    for (const struct fact *f = bounds_facts(l->b, l->block, value); f; f = bounds_next_fact(f)) {
        bool is_signed = f->predicate == LLVMIntSLT || f->predicate == LLVMIntSLE,
             strict = f->predicate == LLVMIntSLT || f->predicate == LLVMIntULT;
        if (!strict && f->predicate != LLVMIntSLE && f->predicate != LLVMIntULE) continue;
        struct value_range r = range_here(l, value);
        if (is_signed && r.low < 0) continue;
        LLVMValueRef limit = shared(l, f->other, is_signed);
        if (!limit) continue;
        e->low = bounds_i64(l->b, r.low < 0 ? 0 : (uint64_t)r.low);
        e->high = strict ? LLVMBuildSub(bounds_launch_builder(l), limit, bounds_i64(l->b, 1), "") : limit;
        return true;
    }
    return false;
}

static struct ends of_instruction(struct look *l, LLVMValueRef value, int depth) {
    struct ends e;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAdd:
        return of_sum(l, value, false, depth);
    case LLVMSub:
        return of_sum(l, value, true, depth);
    case LLVMOr:
        if (LLVMGetIsDisjoint(value)) return of_sum(l, value, false, depth);
        break;
    case LLVMMul:
        e = bounds_launch_ends(l, LLVMGetOperand(value, 0), depth + 1);
        return of_product(l, e, bounds_launch_ends(l, LLVMGetOperand(value, 1), depth + 1));
    case LLVMShl:
        return of_shift(l, value, depth);
    case LLVMZExt:
    case LLVMSExt:
        if (width_of(LLVMGetOperand(value, 0)) != 32) break;
        e = bounds_launch_ends(l, LLVMGetOperand(value, 0), depth + 1);
        bounds_launch_require(l, e);
        return e;
    case LLVMTrunc:
        return bounds_launch_ends(l, LLVMGetOperand(value, 0), depth + 1);
    case LLVMCall:
        return of_call(l, value, depth);
    default:
        break;
    }
    l->scattered = true;
    return of_range(l, value);
}

struct ends bounds_launch_ends(struct look *l, LLVMValueRef value, int depth) {
    struct ends e;
    unsigned width = width_of(value);
    if (LLVMIsAConstantInt(value))
        return bounds_launch_both(bounds_i64(l->b, (uint64_t)LLVMConstIntGetSExtValue(value)));
    if (--l->left < 0 || depth > MOST_DEPTH || width > 64 || width < 8) return not_known;
    if (!LLVMIsAInstruction(value)) return not_known;
    LLVMValueRef own = shared(l, value, true);
    if (own) return bounds_launch_both(own);
    if (!find_limit(l, value, &e)) return of_instruction(l, value, depth);
    /* Only for `scattered`: the ends are those of the condition. */
    int narrow_count = l->narrow_count, products = l->products;
    bool fails = l->fails;
    (void)of_instruction(l, value, depth);
    l->narrow_count = narrow_count;
    l->products = products;
    l->fails = fails;
    return e;
}
