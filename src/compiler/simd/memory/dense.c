/* Loads of two or four neighbouring narrow elements per lane, or of four or eight words, where the lanes'
 * elements follow one another without gaps, as in arrays of half2, uchar4 and float4: whole vectors are
 * loaded and split into one vector per element. Loaded one by one, each element would take a window of its
 * own, shifted by one element.
 *
 * Stores of several elements per lane: whole vectors are put together from the values. With 512 bits, each
 * value by itself would take a masked store to each of these vectors. Where the lines are not in the first
 * cache, these are slow: three times the time of whole vectors on Zen 5. With 256 bits, each lane's element
 * would be a store.
 *
 * Requires: all lanes of the chunk are on. */
#include "compiler/simd/lanes/lanes.h"
#include "compiler/simd/memory/neighbours.h"

#include <string.h>

enum { WORD_BYTES = 4, MOST_WORDS = 8 };

static bool is_whole(const struct simd *s) {
    return s->chunk_lanes == s->vector_bits / 32 && s->vector_bits >= 256;
}

/* Integers are shifted out of words: LLVM combines the shift with a conversion that follows. Halves are
 * shuffled. */
bool dense_suits(const struct simd *s, int64_t size, int count) {
    if (!is_whole(s)) return false;
    if (size == WORD_BYTES) return s->vector_bits == 512 && (count == 4 || count == MOST_WORDS);
    return count * size == WORD_BYTES || (size == 2 && count == 4);
}

/* With 256 bits, three elements per lane take as few shuffles as stores of single elements do. Other numbers
 * that are not powers of two take more, and powers of two are transposed, except two bytes, which one shuffle
 * interleaves. With 512 bits, only seven halves do (Zen 5: 1.2 times as long as stores of single ones). */
bool dense_suits_stores(const struct simd *s, int64_t size, int count) {
    if (count * size == 2) return s->chunk_lanes >= s->vector_bits / 32;
    if (s->vector_bits == 512) return is_whole(s) && size <= WORD_BYTES && !(size == 2 && count == 7);
    return is_whole(s) && size <= WORD_BYTES && count == 3;
}

static LLVMValueRef address_of(struct simd *s, LLVMTypeRef type, LLVMValueRef address, int number) {
    LLVMValueRef index = LLVMConstInt(type_i64(s->unit), (unsigned)number, false);
    return LLVMBuildGEP2(s->unit->builder, type, address, &index, 1, "");
}

static LLVMValueRef load(struct simd *s, LLVMTypeRef type, LLVMValueRef address, int number, unsigned align) {
    LLVMValueRef loaded = LLVMBuildLoad2(s->unit->builder, type, address_of(s, type, address, number), "");
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

/* Four elements per lane, in two vectors. With 512 bits, the elements of each vector are ordered, and a pair
 * of values is taken from both: an instruction that orders words of one vector is three times as fast as one
 * that takes them from two. With 256 bits, the elements of two lanes are first brought together in each part
 * of 128 bits. Then words are interleaved and put in order: two values in each vector. */
static void split_fours(struct simd *s, const struct dense *d, LLVMValueRef *values) {
    LLVMBuilderRef b = s->unit->builder;
    bool wide = s->vector_bits == 512;
    int lanes = s->chunk_lanes, indexes[GANG_MAX_LANES];
    LLVMTypeRef type = LLVMVectorType(d->bits, 2 * (unsigned)lanes);
    LLVMTypeRef units = wide ? LLVMVectorType(type_i64(s->unit), 8) : chunk_type(s, type_i32(s->unit));
    LLVMValueRef halves[2];
    for (int i = 0; i < 2 * lanes; i++)
        indexes[i] = wide ? i % 8 * 4 + i / 8 : i / 8 * 8 + i % 2 * 4 + i % 8 / 2;
    for (int h = 0; h < 2; h++) {
        halves[h] = lanes_shuffle(s, load(s, type, d->address, h, d->align), NULL, indexes, 2 * lanes);
        halves[h] = LLVMBuildBitCast(b, halves[h], units, "");
    }
    for (int pair = 0; pair < 2; pair++) {
        const int mixed[8] = {0, 8, 1, 9, 4, 12, 5, 13}, ordered[8] = {0, 4, 1, 5, 2, 6, 3, 7};
        const int wide_mixed[8] = {0, 1, 8, 9, 2, 3, 10, 11};
        for (int i = 0; i < 8; i++) indexes[i] = wide ? wide_mixed[i] + 4 * pair : mixed[i] + 2 * pair;
        LLVMValueRef both = lanes_shuffle(s, halves[0], halves[1], indexes, 8);
        if (!wide) both = lanes_shuffle(s, both, NULL, ordered, 8);
        both = LLVMBuildBitCast(b, both, type, "");
        for (int n = 0; n < 2; n++) values[2 * pair + n] = lanes_half(s, both, n == 1);
    }
}

/* ---- Halves that become floats. With 256 bits, conversions from memory are twice as fast as those from a
 * register, and words are shuffled faster than halves. */

static unsigned was_float(const struct simd *s) {
    static const char name[] = "smelt.was_float";
    return LLVMGetMDKindIDInContext(s->unit->context, name, sizeof name - 1);
}

LLVMValueRef dense_floats(const struct simd *s, LLVMValueRef halves) {
    bool found = LLVMIsAFPTruncInst(halves) && LLVMGetMetadata(halves, was_float(s));
    return found ? LLVMGetOperand(halves, 0) : NULL;
}

/* A chunk of the memory as floats. */
static LLVMValueRef load_floats(struct simd *s, const struct dense *d, int number) {
    LLVMTypeRef floats = chunk_type(s, LLVMFloatTypeInContext(s->unit->context));
    LLVMTypeRef halves = chunk_type(s, LLVMHalfTypeInContext(s->unit->context));
    return LLVMBuildFPExt(s->unit->builder, load(s, halves, d->address, number, d->align), floats, "");
}

/* The truncated floats stand for the halves. As all of their uses extend them, no truncation is left. */
static LLVMValueRef halves_of(struct simd *s, LLVMValueRef floats) {
    LLVMTypeRef halves = chunk_type(s, LLVMHalfTypeInContext(s->unit->context));
    LLVMValueRef truncated = LLVMBuildFPTrunc(s->unit->builder, floats, halves, "");
    if (LLVMIsAFPTruncInst(truncated)) {
        LLVMValueRef node =
            LLVMMetadataAsValue(s->unit->context, LLVMMDNodeInContext2(s->unit->context, NULL, 0));
        LLVMSetMetadata(truncated, was_float(s), node);
    }
    return truncated;
}

static void split_floats(struct simd *s, const struct dense *d, LLVMValueRef *values) {
    LLVMValueRef loaded[4] = {NULL}, lanes[4] = {NULL};
    int half = s->chunk_lanes / 2, indexes[GANG_MAX_LANES];
    for (int i = 0; i < d->count; i++) loaded[i] = load_floats(s, d, i);
    if (d->count == 2) {
        for (int n = 0; n < 2; n++) {
            for (int l = 0; l < s->chunk_lanes; l++) indexes[l] = 2 * l + n;
            values[n] = halves_of(s, lanes_shuffle(s, loaded[0], loaded[1], indexes, s->chunk_lanes));
        }
        return;
    }
    /* Lanes i and i + 4 in one vector, then both parts are transposed. */
    for (int i = 0; i < half; i++) {
        for (int l = 0; l < s->chunk_lanes; l++)
            indexes[l] = i % 2 * half + l % half + l / half * s->chunk_lanes;
        lanes[i] = lanes_shuffle(s, loaded[i / 2], loaded[i / 2 + 2], indexes, s->chunk_lanes);
    }
    lanes_transpose(s, lanes, half, d->count, 2, values);
    for (int n = 0; n < d->count; n++) values[n] = halves_of(s, values[n]);
}

/* Every second element of both, from `first` on. */
static LLVMValueRef every_second(struct simd *s, LLVMValueRef a, LLVMValueRef b, int first) {
    int indexes[GANG_MAX_LANES];
    for (int i = 0; i < s->chunk_lanes; i++) indexes[i] = 2 * i + first;
    return lanes_shuffle(s, a, b, indexes, s->chunk_lanes);
}

/* Four or eight words per lane, in as many vectors. They are split into those of even and of odd elements,
 * and each half again, until each vector has one element of all lanes. */
static void split_words(struct simd *s, const struct dense *d, LLVMValueRef *values) {
    LLVMValueRef now[MOST_WORDS] = {NULL}, split[MOST_WORDS];
    for (int i = 0; i < d->count; i++) now[i] = load(s, chunk_type(s, d->bits), d->address, i, d->align);
    for (int length = d->count / 2, groups = 1; length; length /= 2, groups *= 2) {
        for (int i = 0; i < d->count; i++) {
            int group = i / length % groups, odd = i / length / groups, at = i % length;
            LLVMValueRef *pair = &now[2 * (group * length + at)];
            split[i] = every_second(s, pair[0], pair[1], odd);
        }
        memcpy(now, split, (size_t)d->count * sizeof *now);
    }
    memcpy(values, now, (size_t)d->count * sizeof *now);
}

void dense_load(struct simd *s, const struct dense *d, LLVMValueRef *values) {
    if (d->size == WORD_BYTES) {
        split_words(s, d, values);
        return;
    }
    if (d->extended && s->vector_bits == 256) {
        split_floats(s, d, values);
        return;
    }
    if (d->count == 4 && d->size == 2)
        split_fours(s, d, values);
    else if (d->integer)
        shift_out(s, d, values);
    else
        split_pairs(s, d, values);
}

/* ---- Stores. */

/* Elements first … first + length - 1 of the chunk in memory, if their number is not a power of two: taken
 * from one value after another. */
static LLVMValueRef collect(struct simd *s, const struct dense *d, LLVMValueRef const *values, int first,
                            int length) {
    LLVMValueRef result = NULL;
    int indexes[GANG_MAX_LANES];
    for (int n = 0; n < d->count; n++) {
        for (int i = 0; i < length; i++) {
            bool own = (first + i) % d->count == n;
            int lane = (first + i) / d->count;
            indexes[i] = own ? (result ? s->chunk_lanes : 0) + lane : result ? i : -1;
        }
        result = lanes_shuffle(s, result ? result : values[n], result ? values[n] : NULL, indexes, length);
    }
    return result;
}

void dense_store(struct simd *s, const struct dense *d, LLVMValueRef const *values) {
    LLVMValueRef vectors[MOST_TRANSPOSED];
    int count = d->count;
    if (count & (count - 1))
        for (int i = 0; i < count; i++)
            vectors[i] = collect(s, d, values, i * s->chunk_lanes, s->chunk_lanes);
    else
        count = lanes_interleave(s, values, count, s->chunk_lanes, vectors);
    for (int i = 0; i < count; i++) {
        LLVMValueRef at = address_of(s, LLVMTypeOf(vectors[i]), d->address, i);
        LLVMSetAlignment(LLVMBuildStore(s->unit->builder, vectors[i], at), d->align);
    }
}
