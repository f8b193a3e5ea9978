/* The memory that an object has, for the tests of a gang's accesses (inside.c).
 *
 * Those of an argument are read from its struct buffer_extent where they are compared: such a load is part of
 * the comparing instruction, and takes no register before. */
#include "compiler/simd/memory/extents.h"
#include "compiler/cpu/inside.h"

#include <stddef.h>

/* How many addresses of an object have so many bytes: computed where its extent is. */
struct extent_count {
    LLVMValueRef extent, count;
    uint64_t bytes;
    struct extent_count *next;
};

int extent_log2(uint64_t bytes) {
    int log = 0;
    while (log < 63 && UINT64_C(1) << log < bytes) log++;
    return log;
}

static LLVMValueRef read_field(struct simd *s, LLVMValueRef original, size_t field) {
    uint64_t slot = 0;
    (void)is_constant_integer(LLVMGetOperand(original, 0), &slot);
    return inside_buffer(s->unit, s->extents, slot, field);
}

LLVMValueRef extent_start(struct simd *s, LLVMValueRef original) {
    if (intrinsic_of(original) != INTRINSIC_BUFFER_START) return scalar_of(s, original);
    return read_field(s, original, offsetof(struct buffer_extent, start));
}

LLVMValueRef extent_bytes(struct simd *s, LLVMValueRef original) {
    if (intrinsic_of(original) != INTRINSIC_BUFFER_EXTENT) return scalar_of(s, original);
    return read_field(s, original, offsetof(struct buffer_extent, bytes));
}

/* extent: a scalar of the new function. */
static LLVMValueRef count_once(struct simd *s, LLVMValueRef extent, uint64_t bytes) {
    LLVMValueRef needed = LLVMConstInt(type_i64(s->unit), bytes, false);
    if (!LLVMIsALoadInst(extent)) return inside_count(s->unit, extent, needed);
    for (struct extent_count *c = s->extent_counts; c; c = c->next)
        if (c->extent == extent && c->bytes == bytes) return c->count;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(s->unit->builder);
    LLVMValueRef next = LLVMGetNextInstruction(extent);
    if (next)
        LLVMPositionBuilderBefore(s->unit->builder, next);
    else
        LLVMPositionBuilderAtEnd(s->unit->builder, LLVMGetInstructionParent(extent));
    LLVMValueRef count = inside_count(s->unit, extent, needed);
    LLVMPositionBuilderAtEnd(s->unit->builder, here);
    struct extent_count *one = arena_alloc(&s->arena, sizeof *one);
    if (!one) return count;
    *one = (struct extent_count){extent, count, bytes, s->extent_counts};
    s->extent_counts = one;
    return count;
}

bool extent_is_counted(LLVMValueRef original, uint64_t bytes) {
    return intrinsic_of(original) == INTRINSIC_BUFFER_EXTENT && extent_log2(bytes) < EXTENT_COUNTS;
}

LLVMValueRef extent_count(struct simd *s, LLVMValueRef original, uint64_t bytes) {
    if (intrinsic_of(original) != INTRINSIC_BUFFER_EXTENT)
        return count_once(s, scalar_of(s, original), bytes);
    int log = extent_log2(bytes);
    if (extent_is_counted(original, bytes) && bytes == UINT64_C(1) << log)
        return read_field(s, original,
                          offsetof(struct buffer_extent, counts) + (size_t)log * sizeof(uint64_t));
    return inside_count(s->unit, extent_bytes(s, original), LLVMConstInt(type_i64(s->unit), bytes, false));
}

LLVMValueRef extent_safe_count(struct simd *s, LLVMValueRef original, uint64_t bytes) {
    bool counted = extent_is_counted(original, bytes);
    return extent_count(s, original, counted ? UINT64_C(1) << extent_log2(bytes) : bytes);
}

bool extent_safe_is_exact(LLVMValueRef original, uint64_t bytes) {
    return !extent_is_counted(original, bytes) || bytes == UINT64_C(1) << extent_log2(bytes);
}

LLVMValueRef extent_bound(struct simd *s, LLVMValueRef original, int64_t scale, uint64_t bytes) {
    size_t entry = (size_t)extent_log2((uint64_t)scale) * EXTENT_COUNTS + (size_t)extent_log2(bytes);
    return read_field(s, original, offsetof(struct buffer_extent, bound) + entry * sizeof(uint64_t));
}
