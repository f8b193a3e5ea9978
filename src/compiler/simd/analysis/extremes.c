/* Whether a condition may hold in a lane of the gang, asked once before a loop (compiler/bounds). The answer
 * may be yes although it holds in none. Lanes whose numbers are a constant apart, all of the gang or those of
 * a row, are judged by their least and greatest number. */
#include "compiler/simd/simd.h"

/* Lanes whose numbers are a constant apart, modulo 2^width: around a scalar of the new function. */
struct bunch {
    LLVMValueRef scalar;
    struct span span;
};

/* The number in 64 bits, without wrapping around. */
static LLVMValueRef widest(struct simd *s, LLVMValueRef scalar, bool is_signed, int64_t offset) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = type_i64(s->unit);
    scalar = is_signed ? LLVMBuildSExt(b, scalar, type, "") : LLVMBuildZExt(b, scalar, type, "");
    return offset ? LLVMBuildAdd(b, scalar, LLVMConstInt(type, (uint64_t)offset, true), "") : scalar;
}

/* i1: left > right in a lane, or one of the numbers wraps around. In 64 bits, the greatest of the left lanes
 * is above all that wrap around at the top, and the least of the right ones is below those that do so at the
 * bottom; the other two cases are compared. */
static LLVMValueRef is_greater(struct simd *s, const struct bunch *left, const struct bunch *right,
                               bool is_signed, unsigned width) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = type_i64(s->unit);
    LLVMValueRef result = LLVMBuildICmp(b, LLVMIntSGT, widest(s, left->scalar, is_signed, left->span.most),
                                        widest(s, right->scalar, is_signed, right->span.least), "");
    int64_t bottom = is_signed ? -(INT64_C(1) << (width - 1)) : 0,
            top = (INT64_C(1) << (is_signed ? width - 1 : width)) - 1;
    if (left->span.least < 0) {
        LLVMValueRef least = widest(s, left->scalar, is_signed, left->span.least);
        LLVMValueRef wraps =
            LLVMBuildICmp(b, LLVMIntSLT, least, LLVMConstInt(type, (uint64_t)bottom, true), "");
        result = LLVMBuildOr(b, result, wraps, "");
    }
    if (right->span.most > 0) {
        LLVMValueRef most = widest(s, right->scalar, is_signed, right->span.most);
        LLVMValueRef wraps = LLVMBuildICmp(b, LLVMIntSGT, most, LLVMConstInt(type, (uint64_t)top, true), "");
        result = LLVMBuildOr(b, result, wraps, "");
    }
    return result;
}

/* A comparison as left > right, of 32 bits or fewer. */
struct order {
    LLVMValueRef left, right;
    bool is_signed;
    unsigned width;
};

static bool find_order(LLVMValueRef comparison, struct order *order) {
    if (!LLVMIsAICmpInst(comparison)) return false;
    LLVMIntPredicate p = LLVMGetICmpPredicate(comparison);
    bool less = p == LLVMIntULT || p == LLVMIntSLT;
    if (!less && p != LLVMIntUGT && p != LLVMIntSGT) return false;
    *order = (struct order){LLVMGetOperand(comparison, less), LLVMGetOperand(comparison, !less),
                            p == LLVMIntSGT || p == LLVMIntSLT, 0};
    LLVMTypeRef type = LLVMTypeOf(order->left);
    if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind) return false;
    order->width = LLVMGetIntTypeWidth(type);
    return order->width <= 32;
}

/* Which chunks' first lanes are a constant apart on both sides. Both views get the same leaders. */
static void find_rows(struct simd *s, const struct order *order, struct row_view *left,
                      struct row_view *right) {
    struct row_view x, y;
    rows_find_chunks(s, order->left, &x);
    rows_find_chunks(s, order->right, &y);
    for (int c = 0; c < s->chunk_count; c++) {
        int first = 0;
        while (x.leader[first] != x.leader[c] || y.leader[first] != y.leader[c]) first++;
        left->leader[c] = right->leader[c] = first;
        left->offset[c] = shape_wrap((uint64_t)x.offset[c] - (uint64_t)x.offset[first], order->width);
        right->offset[c] = shape_wrap((uint64_t)y.offset[c] - (uint64_t)y.offset[first], order->width);
    }
}

static struct bunch bunch_of(struct simd *s, LLVMValueRef original, const struct row_view *rows, int leader) {
    return (struct bunch){piece_first_lane(s, original, leader),
                          rows_span(s, piece_view(s, original), rows, leader)};
}

/* i1: whether a comparison holds in any lane, active or not. NULL: lanes' numbers are not constants apart. */
static LLVMValueRef compared(struct simd *s, LLVMValueRef comparison) {
    struct order order;
    if (!find_order(comparison, &order)) return NULL;
    if (piece_view(s, order.left) < 0 || piece_view(s, order.right) < 0) return NULL;
    struct row_view left, right;
    LLVMValueRef any = NULL;
    find_rows(s, &order, &left, &right);
    for (int c = 0; c < s->chunk_count; c++) {
        if (left.leader[c] != c) continue;
        struct bunch high = bunch_of(s, order.left, &left, c), low = bunch_of(s, order.right, &right, c);
        LLVMValueRef one = is_greater(s, &high, &low, order.is_signed, order.width);
        any = any ? LLVMBuildOr(s->unit->builder, any, one, "") : one;
    }
    return any;
}

LLVMValueRef emit_any_lane(struct simd *s, LLVMValueRef condition) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef lanes[GANG_MAX_LANES];
    if (shape_of(s, condition) == SHAPE_UNIFORM) return scalar_of(s, condition);
    if (LLVMIsABinaryOperator(condition) && LLVMGetInstructionOpcode(condition) == LLVMOr) {
        LLVMValueRef left = emit_any_lane(s, LLVMGetOperand(condition, 0));
        return LLVMBuildOr(b, left, emit_any_lane(s, LLVMGetOperand(condition, 1)), "");
    }
    LLVMValueRef any = compared(s, condition);
    if (any) return any;
    for (int c = 0; c < s->chunk_count; c++) {
        LLVMValueRef own = chunk_of(s, condition, c), mask = mask_chunk(s, c);
        lanes[c] = mask ? LLVMBuildSelect(b, mask, own, LLVMConstNull(mask_type(s)), "") : own;
    }
    return LLVMBuildFreeze(b, mask_any(s, lanes, s->chunk_count), "");
}
