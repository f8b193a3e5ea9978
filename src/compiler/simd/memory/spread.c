/* Accesses to constant offsets that are too far apart for vectors with gaps, all lanes on: element by
 * element, which is less code than a vector and a shuffle for each lane, and faster than a gather; or, where
 * some lanes have neighbouring elements, a vector for each row of neighbours. */
#include "compiler/simd/lanes/lanes.h"

static LLVMValueRef address_at(struct simd *s, LLVMValueRef base, int64_t bytes) {
    if (!bytes) return base;
    LLVMValueRef index = LLVMConstInt(type_i64(s->unit), (unsigned long long)bytes, true);
    return LLVMBuildGEP2(s->unit->builder, LLVMInt8TypeInContext(s->unit->context), base, &index, 1, "");
}

/* Lanes by offset. False: several have one element. */
static bool sort_lanes(struct simd *s, const int64_t *offsets, int *lanes) {
    for (int i = 0; i < s->chunk_lanes; i++) {
        int at = i;
        for (; at > 0 && offsets[lanes[at - 1]] > offsets[i]; at--) lanes[at] = lanes[at - 1];
        lanes[at] = i;
    }
    for (int i = 1; i < s->chunk_lanes; i++)
        if (offsets[lanes[i]] == offsets[lanes[i - 1]]) return false;
    return true;
}

/* Rows of neighbours, cut into powers of two: `first` of each, among the sorted lanes. */
struct rows {
    int lanes[GANG_MAX_LANES];
    int first[GANG_MAX_LANES], length[GANG_MAX_LANES], count;
};

/* Returns false if there are too few neighbours to be worth it. */
static bool find_rows(struct simd *s, const int64_t *offsets, int64_t size, struct rows *rows) {
    rows->count = 0;
    if (!sort_lanes(s, offsets, rows->lanes)) return false;
    for (int at = 0; at < s->chunk_lanes;) {
        int end = at + 1, most = 1;
        while (end < s->chunk_lanes && offsets[rows->lanes[end]] == offsets[rows->lanes[end - 1]] + size)
            end++;
        while (2 * most <= end - at && 2 * most * size <= 16) most *= 2;
        rows->first[rows->count] = at;
        rows->length[rows->count++] = most;
        at += most;
    }
    return 2 * rows->count <= s->chunk_lanes;
}

/* Bits of the elements, for which LLVM has all shuffles. */
static LLVMTypeRef bits_of(struct simd *s, LLVMTypeRef type) {
    if (LLVMGetTypeKind(type) == LLVMFloatTypeKind) return type;
    return LLVMIntTypeInContext(s->unit->context, (unsigned)LLVMSizeOfTypeInBits(s->unit->layout, type));
}

static bool has_bits(LLVMTypeRef type) {
    return LLVMGetTypeKind(type) != LLVMPointerTypeKind;
}

static LLVMValueRef load_rows(struct simd *s, LLVMTypeRef element, LLVMValueRef base, const int64_t *offsets,
                              int align, const struct rows *rows) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef bits = bits_of(s, element);
    LLVMValueRef result = LLVMGetPoison(chunk_type(s, bits));
    for (int n = 0; n < rows->count; n++) {
        const int *lanes = rows->lanes + rows->first[n];
        int length = rows->length[n], indexes[GANG_MAX_LANES];
        LLVMTypeRef type = length > 1 ? LLVMVectorType(bits, (unsigned)length) : bits;
        LLVMValueRef row = LLVMBuildLoad2(b, type, address_at(s, base, offsets[lanes[0]]), "");
        LLVMSetAlignment(row, (unsigned)align);
        if (length == 1) {
            result = LLVMBuildInsertElement(b, result, row, simd_i32(s, lanes[0]), "");
            continue;
        }
        for (int i = 0; i < s->chunk_lanes; i++) indexes[i] = i < length ? i : -1;
        row = lanes_shuffle(s, row, NULL, indexes, s->chunk_lanes);
        for (int i = 0; i < s->chunk_lanes; i++) indexes[i] = i;
        for (int i = 0; i < length; i++) indexes[lanes[i]] = s->chunk_lanes + i;
        result = lanes_shuffle(s, result, row, indexes, s->chunk_lanes);
    }
    return LLVMBuildBitCast(b, result, chunk_type(s, element), "");
}

LLVMValueRef spread_load(struct simd *s, LLVMTypeRef element, LLVMValueRef base, const int64_t *offsets,
                         int align) {
    LLVMBuilderRef b = s->unit->builder;
    struct rows rows;
    int64_t size = (int64_t)LLVMABISizeOfType(s->unit->layout, element);
    if (has_bits(element) && find_rows(s, offsets, size, &rows))
        return load_rows(s, element, base, offsets, align, &rows);
    LLVMValueRef result = LLVMGetPoison(chunk_type(s, element));
    for (int lane = 0; lane < s->chunk_lanes; lane++) {
        LLVMValueRef load = LLVMBuildLoad2(b, element, address_at(s, base, offsets[lane]), "");
        LLVMSetAlignment(load, (unsigned)align);
        result = LLVMBuildInsertElement(b, result, load, simd_i32(s, lane), "");
    }
    return result;
}

static void store_rows(struct simd *s, LLVMValueRef vector, LLVMValueRef base, const int64_t *offsets,
                       int align, const struct rows *rows) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef bits = bits_of(s, LLVMGetElementType(LLVMTypeOf(vector)));
    vector = LLVMBuildBitCast(b, vector, chunk_type(s, bits), "");
    for (int n = 0; n < rows->count; n++) {
        const int *lanes = rows->lanes + rows->first[n];
        LLVMValueRef row = rows->length[n] > 1
                               ? lanes_shuffle(s, vector, NULL, lanes, rows->length[n])
                               : LLVMBuildExtractElement(b, vector, simd_i32(s, lanes[0]), "");
        LLVMValueRef store = LLVMBuildStore(b, row, address_at(s, base, offsets[lanes[0]]));
        LLVMSetAlignment(store, (unsigned)align);
    }
}

void spread_store(struct simd *s, LLVMValueRef vector, LLVMValueRef base, const int64_t *offsets, int align) {
    LLVMBuilderRef b = s->unit->builder;
    struct rows rows;
    LLVMTypeRef element = LLVMGetElementType(LLVMTypeOf(vector));
    int64_t size = (int64_t)LLVMABISizeOfType(s->unit->layout, element);
    if (has_bits(element) && find_rows(s, offsets, size, &rows)) {
        store_rows(s, vector, base, offsets, align, &rows);
        return;
    }
    for (int lane = 0; lane < s->chunk_lanes; lane++) {
        LLVMValueRef value = LLVMBuildExtractElement(b, vector, simd_i32(s, lane), "");
        LLVMValueRef store = LLVMBuildStore(b, value, address_at(s, base, offsets[lane]));
        LLVMSetAlignment(store, (unsigned)align);
    }
}
