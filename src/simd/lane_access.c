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

/* The word at four bytes' alignment around a narrow element lies in the same page. */
bool gathers_words(struct simd *s, LLVMTypeRef element, int align) {
    int size = (int)LLVMABISizeOfType(s->unit->layout, element);
    return s->vector_bits == 512 && size < 4 && align >= size;
}

LLVMValueRef gather_words(struct simd *s, LLVMTypeRef element, LLVMValueRef addresses, LLVMValueRef mask) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef i64 = type_i64(s->unit), word = type_i32(s->unit),
                bits = LLVMIntTypeInContext(s->unit->context,
                                            (unsigned)(8 * LLVMABISizeOfType(s->unit->layout, element)));
    LLVMValueRef numbers = LLVMBuildPtrToInt(b, addresses, chunk_type(s, i64), "");
    LLVMValueRef in_word = splat(s, LLVMConstInt(i64, 3, false));
    LLVMValueRef starts = LLVMBuildAnd(b, numbers, LLVMBuildNot(b, in_word, ""), "");
    LLVMValueRef words = gather(s, word, LLVMBuildIntToPtr(b, starts, LLVMTypeOf(addresses), ""), mask, 4);
    LLVMValueRef bytes = LLVMBuildTrunc(b, LLVMBuildAnd(b, numbers, in_word, ""), chunk_type(s, word), "");
    LLVMValueRef shift = LLVMBuildShl(b, bytes, splat(s, const_i32(s, 3)), "");
    LLVMValueRef found = LLVMBuildTrunc(b, LLVMBuildLShr(b, words, shift, ""), chunk_type(s, bits), "");
    return LLVMBuildBitCast(b, found, chunk_type(s, element), "");
}
