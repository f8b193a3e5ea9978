/* Accesses the target has no instruction for: LLVM would make a branch for each lane, which is slow to
 * compile and no faster. They are done lane by lane in a loop; gathers of narrow elements take the words
 * around them.
 *
 *                      512 bits           256 bits           128 bits
 *   masked vectors     all have one       below 32 bits      all
 *   gathers            below 32: words    below 32 bits      all
 *   scatters           below 32 bits      all                all                                      */
#include "simd/arithmetic.h"

static bool is_wide(struct simd *s, LLVMTypeRef element) {
    return LLVMABISizeOfType(s->unit->layout, element) >= 4;
}

bool has_masked(struct simd *s, LLVMTypeRef element) {
    return s->vector_bits == 512 || (s->vector_bits == 256 && is_wide(s, element));
}

bool has_gather(struct simd *s, LLVMTypeRef element) {
    return s->vector_bits >= 256 && is_wide(s, element);
}

bool has_scatter(struct simd *s, LLVMTypeRef element) {
    return s->vector_bits == 512 && is_wide(s, element);
}

/* `align` travels in the place of the original instruction. */
static LLVMValueRef load_lane(struct simd *s, LLVMValueRef align, LLVMValueRef *arguments) {
    LLVMTypeRef type = LLVMTypeOf(arguments[1]);
    LLVMValueRef load = LLVMBuildLoad2(s->unit->builder, type, arguments[0], "");
    LLVMSetAlignment(load, (unsigned)LLVMConstIntGetZExtValue(align));
    return load;
}

static LLVMValueRef store_lane(struct simd *s, LLVMValueRef align, LLVMValueRef *arguments) {
    LLVMValueRef store = LLVMBuildStore(s->unit->builder, arguments[1], arguments[0]);
    LLVMSetAlignment(store, (unsigned)LLVMConstIntGetZExtValue(align));
    return arguments[1];
}

LLVMValueRef load_lanes(struct simd *s, LLVMTypeRef element, LLVMValueRef addresses, LLVMValueRef mask,
                        int align) {
    LLVMValueRef vectors[2] = {addresses, LLVMConstNull(chunk_type(s, element))};
    return each_lane(s, const_i32(s, align), mask, vectors, 2, element, load_lane);
}

void store_lanes(struct simd *s, LLVMValueRef vector, LLVMValueRef addresses, LLVMValueRef mask, int align) {
    LLVMValueRef vectors[2] = {addresses, vector};
    LLVMTypeRef element = LLVMGetElementType(LLVMTypeOf(vector));
    (void)each_lane(s, const_i32(s, align), mask, vectors, 2, element, store_lane);
}

bool gathers_words(struct simd *s, LLVMTypeRef element) {
    return s->vector_bits == 512 && LLVMABISizeOfType(s->unit->layout, element) < 4;
}

/* The word at four bytes' alignment around a narrow element lies in the same page. Where two bytes reach
 * beyond it, the word that ends with them begins in it. */
static LLVMValueRef offset_in_word(struct simd *s, LLVMTypeRef element, LLVMValueRef numbers, int align) {
    LLVMTypeRef type = chunk_type(s, type_i64(s->unit));
    LLVMValueRef three = splat(s, LLVMConstInt(type_i64(s->unit), 3, false));
    LLVMValueRef offset = LLVMBuildAnd(s->unit->builder, numbers, three, "");
    uint64_t size = LLVMABISizeOfType(s->unit->layout, element);
    if ((uint64_t)align >= size) return offset;
    LLVMValueRef arguments[2] = {offset, splat(s, LLVMConstInt(type_i64(s->unit), 4 - size, false))};
    return call_intrinsic(s, "llvm.umin", &type, 1, arguments, 2);
}

LLVMValueRef gather_words(struct simd *s, LLVMTypeRef element, LLVMValueRef addresses, LLVMValueRef mask,
                          int align) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef i64 = type_i64(s->unit), word = type_i32(s->unit),
                bits = LLVMIntTypeInContext(s->unit->context,
                                            (unsigned)(8 * LLVMABISizeOfType(s->unit->layout, element)));
    LLVMValueRef numbers = LLVMBuildPtrToInt(b, addresses, chunk_type(s, i64), "");
    LLVMValueRef offset = offset_in_word(s, element, numbers, align);
    LLVMValueRef starts = LLVMBuildSub(b, numbers, offset, "");
    int word_align = (uint64_t)align >= LLVMABISizeOfType(s->unit->layout, element) ? 4 : 1;
    LLVMValueRef from = LLVMBuildIntToPtr(b, starts, LLVMTypeOf(addresses), "");
    LLVMValueRef words = gather(s, word, from, mask, word_align);
    LLVMValueRef bytes = LLVMBuildTrunc(b, offset, chunk_type(s, word), "");
    LLVMValueRef shift = LLVMBuildShl(b, bytes, splat(s, const_i32(s, 3)), "");
    LLVMValueRef found = LLVMBuildTrunc(b, LLVMBuildLShr(b, words, shift, ""), chunk_type(s, bits), "");
    return LLVMBuildBitCast(b, found, chunk_type(s, element), "");
}

/* ---- Neighbours under a mask. */

static LLVMValueRef neighbours_of(struct simd *s, LLVMValueRef address, LLVMTypeRef element) {
    int64_t steps[GANG_MAX_LANES];
    for (int i = 0; i < s->chunk_lanes; i++)
        steps[i] = i * (int64_t)LLVMABISizeOfType(s->unit->layout, element);
    LLVMValueRef offsets = constant_lanes(s, type_i64(s->unit), steps, s->chunk_lanes);
    return LLVMBuildGEP2(s->unit->builder, LLVMInt8TypeInContext(s->unit->context), address, &offsets, 1, "");
}

/* i1: all lanes are on. */
static LLVMValueRef are_all_on(struct simd *s, LLVMValueRef mask) {
    LLVMValueRef bits = mask_bits(s, mask);
    return LLVMBuildICmp(s->unit->builder, LLVMIntEQ, bits, LLVMConstAllOnes(LLVMTypeOf(bits)), "all_on");
}

/* Where the target has no masked vectors: a plain one if all lanes are on, else lane by lane. The first of
 * the two is written by the caller; the second follows in `some`, and both end at `after`. */
struct split {
    LLVMBasicBlockRef some, after;
};

static struct split split_by_mask(struct simd *s, LLVMValueRef mask) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMBasicBlockRef all = new_block(s, "all_on");
    struct split split = {new_block(s, "some_on"), new_block(s, "accessed")};
    LLVMBuildCondBr(b, are_all_on(s, mask), all, split.some);
    LLVMPositionBuilderAtEnd(b, all);
    return split;
}

LLVMValueRef load_split(struct simd *s, LLVMTypeRef element, LLVMValueRef address, LLVMValueRef mask,
                        int align) {
    LLVMBuilderRef b = s->unit->builder;
    struct split split = split_by_mask(s, mask);
    LLVMValueRef values[2];
    LLVMBasicBlockRef ends[2];
    values[0] = load_vector(s, element, address, NULL, align);
    ends[0] = LLVMGetInsertBlock(b);
    LLVMBuildBr(b, split.after);
    LLVMPositionBuilderAtEnd(b, split.some);
    values[1] = load_lanes(s, element, neighbours_of(s, address, element), mask, align);
    ends[1] = LLVMGetInsertBlock(b);
    LLVMBuildBr(b, split.after);
    LLVMPositionBuilderAtEnd(b, split.after);
    LLVMValueRef phi = LLVMBuildPhi(b, chunk_type(s, element), "");
    LLVMAddIncoming(phi, values, ends, 2);
    return phi;
}

void store_split(struct simd *s, LLVMValueRef vector, LLVMValueRef address, LLVMValueRef mask, int align) {
    LLVMBuilderRef b = s->unit->builder;
    struct split split = split_by_mask(s, mask);
    store_vector(s, vector, address, NULL, align);
    LLVMBuildBr(b, split.after);
    LLVMPositionBuilderAtEnd(b, split.some);
    LLVMTypeRef element = LLVMGetElementType(LLVMTypeOf(vector));
    store_lanes(s, vector, neighbours_of(s, address, element), mask, align);
    LLVMBuildBr(b, split.after);
    LLVMPositionBuilderAtEnd(b, split.after);
}
