/* Loads of two or four neighbouring narrow elements per lane, where the lanes' elements follow one another
 * without gaps, as in arrays of half2, half4 and uchar4: whole vectors are loaded and split into one vector
 * per element. Loaded one by one, each element would take a window of its own, shifted by one element.
 *
 * Requires: all lanes of the chunk are on. */
#include "compiler/simd/lanes.h"
#include "compiler/simd/neighbours.h"

enum { WORD_BYTES = 4 };

/* Integers are shifted out of words: LLVM combines the shift with a conversion that follows. Halves are
 * shuffled; with 512 bits, only groups of four are, since two are as fast one by one. */
bool dense_suits(const struct simd *s, LLVMTypeRef element, int64_t size, int count) {
    bool whole = s->chunk_lanes == s->vector_bits / 32 && s->vector_bits >= 256;
    bool integer = LLVMGetTypeKind(element) == LLVMIntegerTypeKind;
    if (!whole || size > 2) return false;
    if (count * size == WORD_BYTES) return integer || s->vector_bits == 256;
    return size == 2 && count == 4;
}

static LLVMValueRef load(struct simd *s, LLVMTypeRef type, LLVMValueRef address, int number, unsigned align) {
    LLVMValueRef index = LLVMConstInt(type_i64(s->unit), (unsigned)number, false);
    LLVMValueRef at = LLVMBuildGEP2(s->unit->builder, type, address, &index, 1, "");
    LLVMValueRef loaded = LLVMBuildLoad2(s->unit->builder, type, at, "");
    LLVMSetAlignment(loaded, align);
    return loaded;
}

/* The elements of each lane are in one word. */
static void shift_out(struct simd *s, const struct dense *d, LLVMValueRef *values) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef words = chunk_type(s, type_i32(s->unit));
    LLVMValueRef word = load(s, words, d->address, 0, d->align);
    for (int n = 0; n < d->count; n++) {
        LLVMValueRef by = chunk_splat(s, simd_i32(s, 8 * d->size * n));
        values[n] = LLVMBuildTrunc(b, n ? LLVMBuildLShr(b, word, by, "") : word, chunk_type(s, d->bits), "");
    }
}

static void split_pairs(struct simd *s, const struct dense *d, LLVMValueRef *values) {
    int lanes = s->chunk_lanes, indexes[GANG_MAX_LANES];
    LLVMValueRef all = load(s, LLVMVectorType(d->bits, 2 * (unsigned)lanes), d->address, 0, d->align);
    for (int i = 0; i < 2 * lanes; i++) indexes[i] = i % lanes * 2 + i / lanes;
    all = lanes_shuffle(s, all, NULL, indexes, 2 * lanes);
    for (int n = 0; n < 2; n++) values[n] = lanes_half(s, all, n == 1);
}

/* Four elements per lane, in two vectors. With 512 bits, one instruction takes each value from both. With 256
 * bits, the elements of two lanes are first brought together in each part of 128 bits. Then words are
 * interleaved and put in order: two values in each vector. */
static void split_fours(struct simd *s, const struct dense *d, LLVMValueRef *values) {
    LLVMBuilderRef b = s->unit->builder;
    int lanes = s->chunk_lanes, indexes[GANG_MAX_LANES];
    LLVMTypeRef type = LLVMVectorType(d->bits, 2 * (unsigned)lanes), words = chunk_type(s, type_i32(s->unit));
    LLVMValueRef halves[2];
    for (int h = 0; h < 2; h++) halves[h] = load(s, type, d->address, h, d->align);
    if (s->vector_bits == 512) {
        for (int n = 0; n < 4; n++) {
            for (int l = 0; l < lanes; l++) indexes[l] = 4 * l + n;
            values[n] = lanes_shuffle(s, halves[0], halves[1], indexes, lanes);
        }
        return;
    }
    for (int i = 0; i < 2 * lanes; i++) indexes[i] = i / 8 * 8 + i % 2 * 4 + i % 8 / 2;
    for (int h = 0; h < 2; h++)
        halves[h] = LLVMBuildBitCast(b, lanes_shuffle(s, halves[h], NULL, indexes, 2 * lanes), words, "");
    for (int pair = 0; pair < 2; pair++) {
        const int mixed[8] = {0, 8, 1, 9, 4, 12, 5, 13}, ordered[8] = {0, 4, 1, 5, 2, 6, 3, 7};
        for (int i = 0; i < 8; i++) indexes[i] = mixed[i] + 2 * pair;
        LLVMValueRef both = lanes_shuffle(s, halves[0], halves[1], indexes, 8);
        both = LLVMBuildBitCast(b, lanes_shuffle(s, both, NULL, ordered, 8), type, "");
        for (int n = 0; n < 2; n++) values[2 * pair + n] = lanes_half(s, both, n == 1);
    }
}

void dense_load(struct simd *s, const struct dense *d, LLVMValueRef *values) {
    if (d->count == 4 && d->size == 2)
        split_fours(s, d, values);
    else if (d->integer)
        shift_out(s, d, values);
    else
        split_pairs(s, d, values);
}
