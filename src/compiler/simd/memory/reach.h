/* Whether the addresses that lanes access are inside their object: ranges around a scalar address, and lane
 * by lane. */
#ifndef SMELT_COMPILER_SIMD_MEMORY_REACH_H
#define SMELT_COMPILER_SIMD_MEMORY_REACH_H

#include "compiler/bounds/bounds.h"
#include "compiler/simd/analysis/wrapped.h"
#include "compiler/simd/memory/extents.h"

/* What is compared: the lanes at the `span` around a scalar address access the `bytes` bytes from `low` on.
 */
struct reach {
    LLVMValueRef address, start, extent; /* operands of the call */
    struct span span;
    uint64_t low, bytes;
};

/* A scalar address as a sum, i64: `number` elements of `scale` bytes, and `constant` bytes, from the
 * argument's address or the object's start. `added`: to the number, for the lowest byte of all lanes. */
struct distance {
    LLVMValueRef from, number;
    int64_t scale, constant, added;
};

static inline LLVMValueRef reach_i64(struct simd *s, uint64_t value) {
    return LLVMConstInt(type_i64(s->unit), value, false);
}

static inline uint64_t reach_constant(LLVMValueRef call, unsigned operand) {
    return LLVMConstIntGetZExtValue(LLVMGetOperand(call, operand));
}

static inline uint64_t reach_bytes(struct span span, uint64_t bytes) {
    return bytes + (uint64_t)(span.most - span.least);
}

static inline bool reach_is_power_of_two(int64_t number) {
    return number > 0 && (number & (number - 1)) == 0;
}

static inline LLVMValueRef reach_either(struct simd *s, LLVMValueRef x, LLVMValueRef y) {
    return x && y ? LLVMBuildOr(s->unit->builder, x, y, "") : x ? x : y;
}

/* The argument's address that an address is computed from, if its distance from there may be compared instead
 * of that from the object's start; NULL otherwise. For LLVM, the first is an index times a constant. */
LLVMValueRef reach_bound_address(struct simd *s, LLVMValueRef address, LLVMValueRef extent, uint64_t bytes);
/* Slots are loaded in the head of the block: what a test needs is read before its blocks begin. */
void reach_read_root(struct simd *s, LLVMValueRef address);
/* The addresses of one chunk follow from a scalar. */
bool reach_is_piece(struct simd *s, LLVMValueRef address, LLVMValueRef start, LLVMValueRef extent);
/* Of a range of addresses around `scalar`, in the code of one thread; NULL: around lane 0's. */
struct distance reach_distance(struct simd *s, const struct reach *r, LLVMValueRef scalar);
/* i1: the comparison of a scalar address and the lanes' offsets from it. It may say so of a range that is
 * inside: reach_is_exact. */
LLVMValueRef reach_is_beyond(struct simd *s, const struct reach *r, struct distance d);
/* Whether a comparison that fails says that the range is outside. */
bool reach_is_exact(struct simd *s, LLVMValueRef address, LLVMValueRef original, uint64_t bytes);
/* reach_distance and reach_is_beyond in one. */
LLVMValueRef reach_is_outside(struct simd *s, const struct reach *r, LLVMValueRef scalar);
/* The indexes whose signs are tested, too. The comparison of the range fails anyway for a negative
 * index that counts from the argument's address, if nothing else is added. */
struct wrapped_indexes reach_signs(struct simd *s, const struct reach *r);

/* The addresses of the lowest bytes that the lanes access. */
LLVMValueRef reach_lanes(struct simd *s, LLVMValueRef address, int chunk, uint64_t low);
/* Of a chunk: the active lanes whose access misses its object. */
LLVMValueRef reach_lanes_outside(struct simd *s, LLVMValueRef numbers, LLVMValueRef start,
                                 LLVMValueRef extent, uint64_t bytes, int chunk);

/* A test that a loop's answer leads to: neighbours share a branch. */
void reach_begin_rare(struct simd *s, LLVMValueRef when);
void reach_end_rare(struct simd *s);

/* inside_chunk.c — a test of one chunk's addresses. */
void emit_inside_chunk(struct simd *s, LLVMValueRef call, int chunk);
/* Whether quick code tests all chunks at once. */
bool emit_inside_suits_chunks(struct simd *s, LLVMValueRef call);
/* … by a function of the runtime, which compares the lanes' addresses. */
void emit_inside_chunks(struct simd *s, LLVMValueRef call);

#endif
