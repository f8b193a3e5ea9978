/* Lanes' addresses that are constant offsets from a scalar one: a few vectors cover them, and shuffles take
 * the lanes' elements from there or put them there. Stores need masks for the gaps, which only 512 bits have
 * at a vector's speed. Nothing outside the first and the last element of active lanes is touched. */
#include "compiler/simd/memory/access.h"
#include "compiler/simd/memory/pattern.h"
#include "compiler/simd/lanes/lanes.h"

#define MAX_WINDOW 8 /* vectors that cover a pattern; beyond this a gather is as fast */

static LLVMTypeRef i8(struct simd *s) {
    return LLVMInt8TypeInContext(s->unit->context);
}

LLVMValueRef pattern_byte_address(struct simd *s, LLVMValueRef base, int64_t bytes) {
    if (!bytes) return base;
    LLVMValueRef index = LLVMConstInt(type_i64(s->unit), (unsigned long long)bytes, true);
    return LLVMBuildGEP2(s->unit->builder, i8(s), base, &index, 1, "");
}

static int64_t bytes_of(struct simd *s, LLVMTypeRef type) {
    return (int64_t)LLVMABISizeOfType(s->unit->layout, type);
}

struct pattern pattern_find(struct simd *s, const int64_t *offsets, int64_t size, int align) {
    struct pattern p = {.low = offsets[0], .align = align, .neighbours = true, .same = true};
    int64_t high = offsets[0];
    bool whole = true;
    p.element = arena_alloc(&s->arena, (size_t)s->chunk_lanes * sizeof *p.element);
    for (int i = 0; i < s->chunk_lanes; i++) {
        if (offsets[i] < p.low) p.low = offsets[i];
        if (offsets[i] > high) high = offsets[i];
        p.neighbours &= offsets[i] == offsets[0] + i * size;
        p.same &= offsets[i] == offsets[0];
    }
    for (int i = 0; i < s->chunk_lanes; i++) p.align = access_align_at(p.align, offsets[i] - p.low);
    p.small =
        p.element && (uint64_t)(high - p.low) / (uint64_t)size < (uint64_t)(MAX_WINDOW * s->chunk_lanes);
    for (int i = 0; p.small && i < s->chunk_lanes; i++) {
        whole &= (offsets[i] - p.low) % size == 0;
        p.element[i] = (int)((offsets[i] - p.low) / size);
        if (p.element[i] + 1 > p.window) p.window = p.element[i] + 1;
        for (int j = 0; j < i; j++) p.repeats |= p.element[j] == p.element[i];
    }
    p.small &= whole;
    p.spread = 2 * p.window > s->chunk_lanes * s->chunk_lanes;
    return p;
}

static LLVMValueRef shuffle_to(struct simd *s, LLVMValueRef vector, LLVMValueRef other,
                               const int64_t *indexes, int count) {
    return LLVMBuildShuffleVector(s->unit->builder, vector, other,
                                  lanes_constant(s, type_i32(s->unit), indexes, count), "");
}

/* The mask of the lanes whose elements are in one vector of the window, or its constant part. */
static LLVMValueRef window_mask(struct simd *s, const struct pattern *p, int start, LLVMValueRef mask) {
    int64_t lane_of[GANG_MAX_LANES];
    for (int i = 0; i < s->chunk_lanes; i++) lane_of[i] = s->chunk_lanes; /* from the zeros */
    for (int i = 0; i < s->chunk_lanes; i++) {
        int at = p->element[i] - start;
        if (at >= 0 && at < s->chunk_lanes) lane_of[at] = i;
    }
    return shuffle_to(s, mask ? mask : mask_all(s), LLVMConstNull(mask_type(s)), lane_of, s->chunk_lanes);
}

/* The last vector overlaps the one before rather than extend beyond the window. */
static int window_start(const struct simd *s, const struct pattern *p, int number) {
    int start = number * s->chunk_lanes, last = p->window - s->chunk_lanes;
    return start <= last || last < 0 ? start : last;
}

/* ---- Bytes of words side by side, as a component of a uchar4: the words are loaded, and cut. A byte that is
 * widened then takes one instruction. */

enum { WORD = 4 };

static bool are_bytes_of_words(const struct simd *s, LLVMTypeRef element, const struct pattern *p,
                               LLVMValueRef mask) {
    if (LLVMGetTypeKind(element) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(element) != 8 || mask ||
        s->vector_bits < 256 || s->chunk_lanes * 32 != s->vector_bits)
        return false;
    for (int i = 0; i < s->chunk_lanes; i++)
        if (p->element[i] != i * WORD) return false;
    return true;
}

/* In two halves: the last word may not exist, so the second half ends with the last byte, and its bytes are
 * the highest of words. This is as fast with 512 bits as a masked load, or faster. */
static LLVMValueRef load_bytes_of_words(struct simd *s, LLVMTypeRef element, LLVMValueRef address) {
    LLVMBuilderRef b = s->unit->builder;
    int half = s->chunk_lanes / 2;
    LLVMTypeRef words = LLVMVectorType(type_i32(s->unit), (unsigned)half);
    LLVMValueRef halves[2], high = simd_i32(s, 8 * (WORD - 1)), low = simd_i32(s, 255);
    int64_t all[GANG_MAX_LANES];
    for (int n = 0; n < 2; n++) {
        int64_t from = n * (half * WORD - (WORD - 1));
        halves[n] = LLVMBuildLoad2(b, words, pattern_byte_address(s, address, from), "");
        LLVMSetAlignment(halves[n], 1);
    }
    halves[0] = LLVMBuildAnd(b, halves[0], lanes_splat(s, low, half), "");
    halves[1] = LLVMBuildLShr(b, halves[1], lanes_splat(s, high, half), "");
    for (int i = 0; i < s->chunk_lanes; i++) all[i] = i;
    LLVMValueRef bytes = shuffle_to(s, halves[0], halves[1], all, s->chunk_lanes);
    return LLVMBuildTrunc(b, bytes, chunk_type(s, element), "");
}

LLVMValueRef pattern_load(struct simd *s, LLVMTypeRef element, LLVMValueRef base, const struct pattern *p,
                          LLVMValueRef mask) {
    if (are_bytes_of_words(s, element, p, mask))
        return load_bytes_of_words(s, element, pattern_byte_address(s, base, p->low));
    int count = (p->window + s->chunk_lanes - 1) / s->chunk_lanes;
    int64_t size = bytes_of(s, element);
    LLVMValueRef pieces[MAX_WINDOW], result = NULL;
    for (int n = 0; n < count; n++) {
        int start = window_start(s, p, n);
        LLVMValueRef wanted = mask || p->window < s->chunk_lanes ? window_mask(s, p, start, mask) : NULL;
        pieces[n] = access_load(s, element, pattern_byte_address(s, base, p->low + start * size), wanted,
                                access_align_at(p->align, start * size));
    }
    /* Each piece provides the lanes in it. */
    for (int n = 0; n < count; n++) {
        int64_t indexes[GANG_MAX_LANES];
        int start = window_start(s, p, n), wide = s->chunk_lanes;
        for (int i = 0; i < wide; i++) {
            int at = p->element[i] - start;
            indexes[i] = at >= 0 && at < wide ? at : result ? wide + i : 0;
        }
        result =
            shuffle_to(s, pieces[n], result ? result : LLVMGetPoison(LLVMTypeOf(pieces[n])), indexes, wide);
    }
    return result;
}

void pattern_store(struct simd *s, LLVMValueRef vector, LLVMValueRef base, const struct pattern *p,
                   LLVMValueRef mask) {
    int64_t size = bytes_of(s, LLVMGetElementType(LLVMTypeOf(vector)));
    int count = (p->window + s->chunk_lanes - 1) / s->chunk_lanes;
    for (int n = 0; n < count; n++) {
        int64_t indexes[GANG_MAX_LANES];
        int start = n * s->chunk_lanes;
        for (int i = 0; i < s->chunk_lanes; i++) indexes[i] = 0;
        for (int i = 0; i < s->chunk_lanes; i++) {
            int at = p->element[i] - start;
            if (at >= 0 && at < s->chunk_lanes) indexes[at] = i;
        }
        LLVMValueRef piece =
            shuffle_to(s, vector, LLVMGetPoison(LLVMTypeOf(vector)), indexes, s->chunk_lanes);
        access_store(s, piece, pattern_byte_address(s, base, p->low + start * size),
                     window_mask(s, p, start, mask), access_align_at(p->align, start * size));
    }
}

LLVMValueRef pattern_addresses(struct simd *s, LLVMValueRef base, const int64_t *offsets) {
    LLVMValueRef steps = lanes_constant(s, type_i64(s->unit), offsets, s->chunk_lanes);
    return LLVMBuildGEP2(s->unit->builder, i8(s), base, &steps, 1, "");
}

/* ---- Under a mask. */

bool pattern_lacks_masked(struct simd *s, LLVMTypeRef element, LLVMValueRef mask) {
    return mask && !LLVMIsConstant(mask) && !access_has_masked(s, element);
}

#define MOST_BRIEF_WINDOW 2 /* vectors */

bool pattern_is_covered(const struct simd *s, const struct pattern *p, LLVMValueRef mask) {
    if (s->brief && p->window > MOST_BRIEF_WINDOW * s->chunk_lanes) return false;
    return p->small && !p->spread && !(mask && p->repeats);
}

LLVMValueRef pattern_load_some(struct simd *s, LLVMTypeRef element, LLVMValueRef base, const int64_t *offsets,
                               LLVMValueRef mask, int align) {
    struct pattern p = pattern_find(s, offsets, bytes_of(s, element), align);
    return pattern_lacks_masked(s, element, mask) || !pattern_is_covered(s, &p, mask)
               ? access_gather(s, element, pattern_addresses(s, base, offsets), mask, align)
               : pattern_load(s, element, base, &p, mask);
}

void pattern_store_some(struct simd *s, LLVMValueRef vector, LLVMValueRef base, const int64_t *offsets,
                        LLVMValueRef mask, int align) {
    LLVMTypeRef element = LLVMGetElementType(LLVMTypeOf(vector));
    struct pattern p = pattern_find(s, offsets, bytes_of(s, element), align);
    if (pattern_lacks_masked(s, element, mask) || !pattern_is_covered(s, &p, mask))
        access_scatter(s, vector, pattern_addresses(s, base, offsets), mask, align);
    else
        pattern_store(s, vector, base, &p, mask);
}
