/* Shapes: how the lanes' values differ from lane 0's. Offsets are numbers modulo the width of the value's
 * type, kept as signed numbers; offsets of addresses are in bytes. */
#include "compiler/simd/simd.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SHAPES 4096

int shape_intern(struct simd *s, const int64_t *offsets) {
    size_t bytes = (size_t)s->lanes * sizeof *offsets;
    for (int i = 0; i < s->shape_count; i++)
        if (memcmp(s->shapes[i], offsets, bytes) == 0) return i;
    if (s->shape_count == MAX_SHAPES || offsets[0] != 0) return SHAPE_VARYING;
    if (s->shape_count == s->shape_capacity) {
        int capacity = s->shape_capacity ? 2 * s->shape_capacity : 64;
        const int64_t **shapes = arena_alloc(&s->arena, (size_t)capacity * sizeof *shapes);
        if (!shapes) return SHAPE_VARYING;
        if (s->shape_count) memcpy(shapes, s->shapes, (size_t)s->shape_count * sizeof *shapes);
        s->shapes = shapes;
        s->shape_capacity = capacity;
    }
    int64_t *copy = arena_alloc(&s->arena, bytes);
    if (!copy) return SHAPE_VARYING;
    memcpy(copy, offsets, bytes);
    s->shapes[s->shape_count] = copy;
    return s->shape_count++;
}

const int64_t *shape_offsets(struct simd *s, int shape) {
    return s->shapes[shape];
}

int shape_stride(struct simd *s, int64_t stride) {
    int64_t offsets[GANG_MAX_LANES];
    for (int i = 0; i < s->lanes; i++) offsets[i] = i * stride;
    return shape_intern(s, offsets);
}

struct span shape_span(struct simd *s, int shape, int first, int count) {
    const int64_t *offsets = shape_offsets(s, shape);
    struct span span = {offsets[first], offsets[first]};
    for (int i = first; i < first + count; i++) {
        if (offsets[i] < span.least) span.least = offsets[i];
        if (offsets[i] > span.most) span.most = offsets[i];
    }
    return span;
}

int shape_join(int a, int b) {
    if (a == SHAPE_UNKNOWN) return b;
    if (b == SHAPE_UNKNOWN) return a;
    return a == b ? a : SHAPE_VARYING;
}

/* ---- Arithmetic on offsets. */

int64_t shape_wrap(uint64_t value, unsigned width) {
    if (width >= 64) return (int64_t)value;
    uint64_t low = value & ((UINT64_C(1) << width) - 1), sign = UINT64_C(1) << (width - 1);
    return (int64_t)((low ^ sign) - sign);
}

/* Width of an integer or address; 0 of anything else. */
unsigned shape_width(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    switch (LLVMGetTypeKind(type)) {
    case LLVMIntegerTypeKind:
        return LLVMGetIntTypeWidth(type) <= 64 ? LLVMGetIntTypeWidth(type) : 0;
    case LLVMPointerTypeKind:
        return 64;
    default:
        return 0;
    }
}

/* a × p + b × q. */
int shape_combine(struct simd *s, int a, int64_t p, int b, int64_t q, unsigned width) {
    int64_t offsets[GANG_MAX_LANES];
    if (a < 0 || b < 0 || width < 2) return SHAPE_VARYING;
    const int64_t *x = shape_offsets(s, a), *y = shape_offsets(s, b);
    for (int i = 0; i < s->lanes; i++)
        offsets[i] = shape_wrap((uint64_t)x[i] * (uint64_t)p + (uint64_t)y[i] * (uint64_t)q, width);
    return shape_intern(s, offsets);
}

bool shape_constant(LLVMValueRef value, int64_t *out) {
    if (!LLVMIsAConstantInt(value) || LLVMGetIntTypeWidth(LLVMTypeOf(value)) > 64) return false;
    *out = LLVMConstIntGetSExtValue(value);
    return true;
}

/* Indexes from several paths that meet count as one. */
static bool reaches_indexes_only(LLVMValueRef value, int depth) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMIsAPHINode(user) && depth > 0 && reaches_indexes_only(user, depth - 1)) continue;
        if (!LLVMIsAGetElementPtrInst(user) || LLVMGetOperand(user, 0) == value) return false;
    }
    return true;
}

bool shape_is_index(LLVMValueRef widened) {
    return LLVMGetIntTypeWidth(LLVMTypeOf(widened)) == 64 && reaches_indexes_only(widened, 2);
}

/* Offsets that cannot carry an index from one end of the 32-bit numbers to another one that is used. */
bool shape_is_near(struct simd *s, int shape) {
    if (shape < 0) return false;
    const int64_t *x = shape_offsets(s, shape);
    for (int i = 0; i < s->lanes; i++)
        if (x[i] < -SMALL_REACH || x[i] > SMALL_REACH) return false;
    return true;
}
