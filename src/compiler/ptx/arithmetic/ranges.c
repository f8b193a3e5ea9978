/* Ranges of floats (ranges.h), by the operations that compute them. Rounding keeps the order: a rounded sum
 * or product lies between the rounded sums or products of the ends. */
#include "compiler/ptx/arithmetic/ranges.h"

#include <math.h>
#include <string.h>

static const struct range anything = {-INFINITY, INFINITY};

static double least(double a, double b) {
    return a < b ? a : b;
}

static double greatest(double a, double b) {
    return a > b ? a : b;
}

static struct range either(struct range a, struct range b) {
    return (struct range){least(a.low, b.low), greatest(a.high, b.high)};
}

static struct range negated(struct range a) {
    return (struct range){-a.high, -a.low};
}

/* a + b, rounded towards `end`, which is INFINITY or -INFINITY, to a double and then to the nearest float. */
static double end_of_sum(double a, double b, double end) {
    double sum = a + b, part = sum - a;
    if (isnan(sum)) return end;
    bool exact = isinf(sum) || (a - (sum - part)) + (b - part) == 0;
    return (double)(float)(exact ? sum : nextafter(sum, end));
}

static struct range sum_of(struct range a, struct range b) {
    return (struct range){end_of_sum(a.low, b.low, -INFINITY), end_of_sum(a.high, b.high, INFINITY)};
}

/* 0 times infinity is NaN, and 0 times all smaller numbers is 0. */
static double end_of_product(double a, double b) {
    return a == 0 || b == 0 ? 0 : a * b;
}

/* Exact, as a double holds the product of two floats. */
static struct range product_of(LLVMValueRef x, LLVMValueRef y, int depth) {
    struct range a = ptx_range_of(x, depth), b = x == y ? a : ptx_range_of(y, depth);
    double ends[] = {end_of_product(a.low, b.low), end_of_product(a.low, b.high),
                     end_of_product(a.high, b.low), end_of_product(a.high, b.high)};
    struct range product = {ends[0], ends[0]};
    for (int i = 1; i < 4; i++) product = either(product, (struct range){ends[i], ends[i]});
    if (x == y) product.low = greatest(product.low, 0);
    return product;
}

static struct range rounded(struct range exact) {
    return (struct range){(double)(float)exact.low, (double)(float)exact.high};
}

/* Whether an integer is known not to be negative. */
static bool is_natural(LLVMValueRef value, int depth) {
    if (LLVMIsAConstantInt(value)) return LLVMConstIntGetSExtValue(value) >= 0;
    if (depth == 0 || !LLVMIsAInstruction(value)) return false;
    LLVMValueRef first = LLVMGetNumOperands(value) > 0 ? LLVMGetOperand(value, 0) : NULL;
    LLVMValueRef second = LLVMGetNumOperands(value) > 1 ? LLVMGetOperand(value, 1) : NULL;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMZExt:
        return true;
    case LLVMMul:
        if (LLVMGetNSW(value) && first == second) return true;
        /* fall through */
    case LLVMAdd:
        return LLVMGetNSW(value) && is_natural(first, depth - 1) && is_natural(second, depth - 1);
    case LLVMAnd:
        return is_natural(first, depth - 1) || is_natural(second, depth - 1);
    case LLVMSelect:
        return is_natural(second, depth - 1) && is_natural(LLVMGetOperand(value, 2), depth - 1);
    default:
        return false;
    }
}

/* Whether a float is +0, greater, or NaN. */
static bool has_no_sign(LLVMValueRef value, int depth) {
    LLVMBool lost;
    if (LLVMIsAConstantFP(value)) return !signbit(LLVMConstRealGetDouble(value, &lost));
    if (depth == 0 || !LLVMIsAInstruction(value)) return false;
    LLVMValueRef first = LLVMGetNumOperands(value) > 0 ? LLVMGetOperand(value, 0) : NULL;
    LLVMValueRef second = LLVMGetNumOperands(value) > 1 ? LLVMGetOperand(value, 1) : NULL;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMFMul:
        if (first == second) return true;
        /* fall through */
    case LLVMFAdd:
    case LLVMFDiv:
        return has_no_sign(first, depth - 1) && has_no_sign(second, depth - 1);
    case LLVMSelect:
        return has_no_sign(second, depth - 1) && has_no_sign(LLVMGetOperand(value, 2), depth - 1);
    case LLVMUIToFP:
        return true;
    case LLVMSIToFP:
        return is_natural(first, depth - 1);
    case LLVMCall:
        if (strcmp(called_name(value), "llvm.fabs.f32") == 0) return true;
        if (strcmp(called_name(value), "llvm.sqrt.f32") == 0) return has_no_sign(first, depth - 1);
        return strcmp(called_name(value), "llvm.fma.f32") == 0 &&
               (first == second || (has_no_sign(first, depth - 1) && has_no_sign(second, depth - 1))) &&
               has_no_sign(LLVMGetOperand(value, 2), depth - 1);
    default:
        return false;
    }
}

/* The sign alone; 0 / 0 is NaN. x / -0 has the other sign than x / +0. */
static struct range quotient_of(LLVMValueRef x, LLVMValueRef y, int depth) {
    struct range a = ptx_range_of(x, depth), b = ptx_range_of(y, depth);
    if (b.high < 0) a = negated(a), b = negated(b);
    if (b.low < 0 || (b.low == 0 && !has_no_sign(y, depth))) return anything;
    return (struct range){a.low >= 0 ? 0 : -INFINITY, a.high <= 0 ? 0 : INFINITY};
}

/* Whether `greater` is the maximum of `x` and something, or NaN where `x` is. */
static bool is_maximum_with(LLVMValueRef greater, LLVMValueRef x) {
    if (LLVMIsASelectInst(greater)) {
        LLVMValueRef numbers[2];
        return ptx_extreme_of(greater, &numbers[0], &numbers[1]) > 0 && (numbers[0] == x || numbers[1] == x);
    }
    if (!LLVMIsACallInst(greater) || strcmp(called_name(greater), "llvm.maxnum.f32") != 0) return false;
    return LLVMGetOperand(greater, 0) == x || LLVMGetOperand(greater, 1) == x;
}

static struct range difference_of(LLVMValueRef a, LLVMValueRef b, int depth) {
    struct range range = sum_of(ptx_range_of(a, depth), negated(ptx_range_of(b, depth)));
    if (is_maximum_with(b, a)) range.high = least(range.high, 0);
    if (is_maximum_with(a, b)) range.low = greatest(range.low, 0);
    return range;
}

/* The greater one of two numbers is the other one where one of them is NaN. `sign` is -1 for the smaller. */
static struct range extreme_of(LLVMValueRef x, LLVMValueRef y, double sign, int depth) {
    struct range a = ptx_range_of(x, depth), b = ptx_range_of(y, depth);
    if (sign < 0) a = negated(a), b = negated(b);
    struct range range = either(a, b);
    if (LLVMIsAConstantFP(x)) range.low = greatest(range.low, a.low);
    if (LLVMIsAConstantFP(y)) range.low = greatest(range.low, b.low);
    return sign < 0 ? negated(range) : range;
}

static struct range range_of_call(LLVMValueRef call, int depth) {
    const char *name = called_name(call);
    LLVMValueRef first = LLVMGetNumOperands(call) > 1 ? LLVMGetOperand(call, 0) : NULL;
    if (strcmp(name, "llvm.sqrt.f32") == 0 || strcmp(name, "llvm.nvvm.sqrt.approx.f") == 0)
        return (struct range){0, INFINITY};
    if (strcmp(name, "llvm.fabs.f32") == 0) {
        struct range range = ptx_range_of(first, depth);
        return (struct range){0, greatest(fabs(range.low), fabs(range.high))};
    }
    if (strcmp(name, "llvm.maxnum.f32") == 0) return extreme_of(first, LLVMGetOperand(call, 1), 1, depth);
    if (strcmp(name, "llvm.minnum.f32") == 0) return extreme_of(first, LLVMGetOperand(call, 1), -1, depth);
    if (strcmp(name, "llvm.fma.f32") != 0) return anything;
    return sum_of(product_of(first, LLVMGetOperand(call, 1), depth),
                  ptx_range_of(LLVMGetOperand(call, 2), depth));
}

/* Where the condition of a select compares `number` with a constant and the select's result is `number`. */
static struct range limited(struct range range, LLVMValueRef condition, LLVMValueRef number, bool holds) {
    LLVMBool lost;
    if (!LLVMIsAFCmpInst(condition) || LLVMGetOperand(condition, 0) != number ||
        !LLVMIsAConstantFP(LLVMGetOperand(condition, 1)))
        return range;
    double limit = LLVMConstRealGetDouble(LLVMGetOperand(condition, 1), &lost);
    LLVMRealPredicate predicate = LLVMGetFCmpPredicate(condition);
    bool less = predicate == LLVMRealOLT || predicate == LLVMRealOLE || predicate == LLVMRealULT ||
                predicate == LLVMRealULE;
    bool greater = predicate == LLVMRealOGT || predicate == LLVMRealOGE || predicate == LLVMRealUGT ||
                   predicate == LLVMRealUGE;
    if (isnan(limit) || (!less && !greater)) return range;
    if (less == holds)
        range.high = least(range.high, limit);
    else
        range.low = greatest(range.low, limit);
    return range;
}

static struct range range_of_select(LLVMValueRef select, int depth) {
    LLVMValueRef condition = LLVMGetOperand(select, 0);
    LLVMValueRef yes = LLVMGetOperand(select, 1), no = LLVMGetOperand(select, 2);
    return either(limited(ptx_range_of(yes, depth), condition, yes, true),
                  limited(ptx_range_of(no, depth), condition, no, false));
}

struct range ptx_range_of(LLVMValueRef value, int depth) {
    LLVMBool lost;
    if (LLVMIsAConstantFP(value)) {
        double number = LLVMConstRealGetDouble(value, &lost);
        return isnan(number) ? anything : (struct range){number, number};
    }
    if (depth == 0 || !LLVMIsAInstruction(value)) return anything;
    LLVMValueRef first = LLVMGetNumOperands(value) ? LLVMGetOperand(value, 0) : NULL;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMFNeg:
        return negated(ptx_range_of(first, depth - 1));
    case LLVMFMul:
        return rounded(product_of(first, LLVMGetOperand(value, 1), depth - 1));
    case LLVMFAdd:
        return sum_of(ptx_range_of(first, depth - 1), ptx_range_of(LLVMGetOperand(value, 1), depth - 1));
    case LLVMFSub:
        return difference_of(first, LLVMGetOperand(value, 1), depth - 1);
    case LLVMFDiv:
        return quotient_of(first, LLVMGetOperand(value, 1), depth - 1);
    case LLVMSelect:
        return range_of_select(value, depth - 1);
    case LLVMUIToFP:
        return (struct range){0, INFINITY};
    case LLVMSIToFP:
        return (struct range){is_natural(first, depth - 1) ? 0 : -INFINITY, INFINITY};
    case LLVMCall:
        return range_of_call(value, depth - 1);
    default:
        return anything;
    }
}
