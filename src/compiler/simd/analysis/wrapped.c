/* Unsigned indexes of 32 bits that the code of a gang takes as signed (widen_index in transfer.c, piece.c).
 * From 2^31 on, such an index leads 2^32 elements too low. In a small launch, no array has so many bytes: the
 * access misses its array, wherever else the address leads. Tests of accesses therefore look at the sign of
 * the index, too, and add the 2^32 elements where they look at each lane. */
#include "compiler/simd/analysis/wrapped.h"
#include "compiler/bounds/bounds.h"

#include <stddef.h>

enum { MOST_PHIS = 2 };

/* Of a phi, every value that it may have: those of other signs say nothing of its own. */
static bool is_signed(struct simd *s, LLVMValueRef index, int depth) {
    if (LLVMIsAZExtInst(index)) return value_of(s, index)->signed_index && !LLVMGetNNeg(index);
    if (!LLVMIsAPHINode(index) || depth == 0) return false;
    for (unsigned i = 0; i < LLVMCountIncoming(index); i++) {
        LLVMValueRef value = LLVMGetIncomingValue(index, i);
        if (value != index && !is_signed(s, value, depth - 1)) return false;
    }
    return true;
}

/* Values that are the same in all lanes of a gang or chunk are extended as they are. */
static bool may_wrap(struct simd *s, LLVMValueRef index) {
    if (!LLVMIsAInstruction(index) || LLVMGetTypeKind(LLVMTypeOf(index)) != LLVMIntegerTypeKind) return false;
    bool moves = shape_of(s, index) > SHAPE_UNIFORM || piece_is(s, index);
    return moves && is_signed(s, index, MOST_PHIS);
}

static void add_step(struct simd *s, LLVMValueRef step, struct wrapped_indexes *all) {
    LLVMTypeRef type = LLVMGetGEPSourceElementType(step);
    for (int i = 1; i < LLVMGetNumOperands(step); i++) {
        LLVMValueRef index = LLVMGetOperand(step, (unsigned)i);
        if (i > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            type = LLVMStructGetTypeAtIndex(type, (unsigned)LLVMConstIntGetZExtValue(index));
            continue;
        }
        if (i > 1) type = LLVMGetElementType(type);
        if (all->count == MOST_WRAPPED || !may_wrap(s, index)) continue;
        all->index[all->count] = index;
        all->missing[all->count++] = LLVMABISizeOfType(s->unit->layout, type) << 32;
    }
}

struct wrapped_indexes wrapped_find(struct simd *s, LLVMValueRef address) {
    struct wrapped_indexes all = {.count = 0};
    for (; bounds_is_step(address); address = LLVMGetOperand(address, 0))
        if (LLVMIsAGetElementPtrInst(address)) add_step(s, address, &all);
    return all;
}

bool wrapped_is_unsigned(LLVMValueRef address) {
    for (; bounds_is_step(address); address = LLVMGetOperand(address, 0)) {
        if (!LLVMIsAGetElementPtrInst(address)) continue;
        for (int i = 1; i < LLVMGetNumOperands(address); i++)
            if (LLVMIsAZExtInst(LLVMGetOperand(address, (unsigned)i))) return true;
    }
    return false;
}

static LLVMValueRef is_below(struct simd *s, LLVMValueRef index, int64_t least) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = LLVMTypeOf(index);
    if (least) index = LLVMBuildAdd(b, index, LLVMConstInt(type, (unsigned long long)least, true), "");
    return LLVMBuildICmp(b, LLVMIntSLT, index, LLVMConstNull(type), "");
}

LLVMValueRef wrapped_in_gang(struct simd *s, const struct wrapped_indexes *all) {
    LLVMValueRef any = NULL;
    for (int i = 0; i < all->count; i++) {
        LLVMValueRef index = all->index[i];
        struct span span = shape_span(s, shape_of(s, index), 0, s->lanes);
        LLVMValueRef one = is_below(s, scalar_of(s, index), span.least);
        any = any ? LLVMBuildOr(s->unit->builder, any, one, "") : one;
    }
    return any;
}

LLVMValueRef wrapped_in_chunk(struct simd *s, const struct wrapped_indexes *all, int chunk) {
    LLVMValueRef any = NULL;
    for (int i = 0; i < all->count; i++) {
        LLVMValueRef index = all->index[i];
        struct span span = shape_span(s, piece_view(s, index), chunk * s->chunk_lanes, s->chunk_lanes);
        LLVMValueRef one = is_below(s, piece_first_lane(s, index, chunk), span.least);
        any = any ? LLVMBuildOr(s->unit->builder, any, one, "") : one;
    }
    return any;
}

LLVMValueRef wrapped_corrected(struct simd *s, const struct wrapped_indexes *all, int chunk,
                               LLVMValueRef numbers) {
    LLVMBuilderRef b = s->unit->builder;
    for (int i = 0; i < all->count; i++) {
        LLVMValueRef index = chunk_of(s, all->index[i], chunk), none = LLVMConstNull(LLVMTypeOf(index));
        LLVMValueRef below = LLVMBuildICmp(b, LLVMIntSLT, index, none, "");
        LLVMValueRef missing = chunk_splat(s, LLVMConstInt(type_i64(s->unit), all->missing[i], false));
        missing = LLVMBuildSelect(b, below, missing, none, "");
        numbers = LLVMBuildAdd(b, numbers, missing, "");
    }
    return numbers;
}
