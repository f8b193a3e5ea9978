/* Loads and stores of a chunk at addresses that are known only at run time. The code tests whether they are
 * consecutive or all the same; otherwise it gathers or scatters.
 *
 * Most access an element of an array by an index of at most 32 bits. A scalar base and a vector of indexes
 * then take half of the registers and instructions that addresses would, and one gather instead of two. */
#include "compiler/bounds/bounds.h"
#include "compiler/simd/memory/access.h"
#include "compiler/simd/memory/gang_access.h"

/* Where the lanes of a chunk access. */
struct target {
    struct elements elements; /* without a base, the indexes have 64 bits and are addresses */
    LLVMTypeRef pointer;
    LLVMTypeRef element; /* of the access, of `size` bytes */
    int64_t size;
    LLVMValueRef mask;
    int align;
};

/* ---- Indexes. */

#define BIAS (INT64_C(1) << 31)

static bool suits_scale(int64_t scale) {
    return scale == 1 || scale == 2 || scale == 4 || scale == 8;
}

/* Finds a base and indexes; false: the address has no such form here. Constants that are added to an index
 * stay part of it: the sum may wrap around. An unsigned index becomes a signed one by subtracting 2^31, which
 * the base makes up for. */
static bool find_indexes(struct simd *s, LLVMValueRef address, int chunk, struct elements *e) {
    LLVMBuilderRef b = s->unit->builder;
    struct place place = bounds_steps(s->unit, address);
    LLVMValueRef index = place.index;
    if (!index || !suits_scale(place.scale) || shape_of(s, place.root) != SHAPE_UNIFORM) return false;
    bool is_signed = true;
    if (LLVMIsASExtInst(index) || LLVMIsAZExtInst(index)) {
        is_signed = LLVMIsASExtInst(index) != NULL;
        index = LLVMGetOperand(index, 0);
    }
    unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(index));
    if (width > 32 || !value_is_here(s, index) || !value_is_here(s, place.root)) return false;
    LLVMValueRef indexes = chunk_of(s, index, chunk);
    LLVMTypeRef type = chunk_type(s, type_i32(s->unit));
    if (width < 32) indexes = LLVMBuildCast(b, is_signed ? LLVMSExt : LLVMZExt, indexes, type, "");
    int64_t constant = place.constant;
    bool small = range_unsigned(s, index).high < (uint64_t)BIAS;
    if (!is_signed && !small) {
        indexes = LLVMBuildXor(b, indexes, chunk_splat(s, simd_i32(s, BIAS)), "");
        constant += BIAS * place.scale;
    }
    LLVMValueRef bytes = LLVMConstInt(type_i64(s->unit), (uint64_t)constant, true);
    LLVMValueRef base = scalar_of(s, place.root);
    if (constant) base = LLVMBuildGEP2(b, LLVMInt8TypeInContext(s->unit->context), base, &bytes, 1, "");
    *e = (struct elements){base, indexes, place.scale, small && (!is_signed || width == 32)};
    return true;
}

/* Freezes the indexes: those of inactive lanes may be poison. */
static struct target find_target(struct simd *s, LLVMValueRef access, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    bool load = LLVMIsALoadInst(access) != NULL;
    LLVMValueRef address = LLVMGetOperand(access, load ? 0 : 1);
    LLVMTypeRef element = LLVMTypeOf(load ? access : LLVMGetOperand(access, 0));
    struct target t = {.element = element,
                       .size = (int64_t)LLVMABISizeOfType(s->unit->layout, element),
                       .pointer = LLVMTypeOf(address),
                       .mask = mask_chunk(s, chunk),
                       .align = (int)LLVMGetAlignment(access)};
    struct elements *e = &t.elements;
    if (!find_indexes(s, address, chunk, e)) {
        LLVMTypeRef type = chunk_type(s, type_i64(s->unit));
        *e = (struct elements){NULL, LLVMBuildPtrToInt(b, chunk_of(s, address, chunk), type, ""), 1, false};
    }
    e->indexes = LLVMBuildFreeze(b, e->indexes, "");
    return t;
}

/* The address, or addresses, of an index or a vector of them. */
static LLVMValueRef address_of(struct simd *s, const struct target *t, LLVMValueRef index) {
    if (t->elements.base) return access_address_of(s, &t->elements, index);
    bool vector = LLVMGetTypeKind(LLVMTypeOf(index)) == LLVMVectorTypeKind;
    LLVMTypeRef type = vector ? chunk_type(s, t->pointer) : t->pointer;
    return LLVMBuildIntToPtr(s->unit->builder, index, type, "");
}

static LLVMValueRef gather(struct simd *s, const struct target *t) {
    if (t->elements.base) return access_gather_elements(s, t->element, &t->elements, t->mask, t->align);
    return access_gather(s, t->element, address_of(s, t, t->elements.indexes), t->mask, t->align);
}

static void scatter(struct simd *s, const struct target *t, LLVMValueRef vector) {
    access_scatter(s, vector, address_of(s, t, t->elements.indexes), t->mask, t->align);
}

/* ---- Which way to access. */

/* i1: whether all active lanes have lane 0's index plus lane × step, and none wraps around. */
static LLVMValueRef lanes_follow(struct simd *s, const struct target *t, LLVMValueRef first, int64_t step) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = LLVMTypeOf(first);
    int64_t steps[GANG_MAX_LANES], last = (s->chunk_lanes - 1) * step;
    for (int i = 0; i < s->chunk_lanes; i++) steps[i] = i * step;
    LLVMValueRef expected =
        LLVMBuildAdd(b, chunk_splat(s, first), lanes_constant(s, type, steps, s->chunk_lanes), "");
    LLVMValueRef differs = LLVMBuildICmp(b, LLVMIntNE, t->elements.indexes, expected, "");
    if (t->mask) differs = LLVMBuildAnd(b, differs, t->mask, "");
    LLVMValueRef follow = LLVMBuildNot(b, mask_any(s, &differs, 1), "follow");
    if (!t->elements.base || step == 0) return follow;
    /* Lane 0 may be off, and its index negative where no active lane's is. */
    LLVMIntPredicate at_most = t->elements.positive ? LLVMIntULE : LLVMIntSLE;
    LLVMValueRef most = LLVMConstInt(type, (uint64_t)(INT32_MAX - last), true);
    return LLVMBuildAnd(b, follow, LLVMBuildICmp(b, at_most, first, most, ""), "");
}

/* i1: whether the active lanes' elements are neighbours. */
static LLVMValueRef are_neighbours(struct simd *s, const struct target *t, LLVMValueRef first) {
    if (t->size % t->elements.scale)
        return LLVMConstNull(simd_i1(s)); /* they are multiples of the scale apart */
    return lanes_follow(s, t, first, t->size / t->elements.scale);
}

static LLVMValueRef first_index(struct simd *s, const struct target *t) {
    return LLVMBuildExtractElement(s->unit->builder, t->elements.indexes, simd_i32(s, 0), "");
}

struct ways {
    LLVMValueRef first_address; /* of lane 0, even if it is off: lanes that follow it are as good */
    LLVMBasicBlockRef neighbours, others, same, apart, after;
};

/* Leaves the builder unpositioned: each case must be filled and end at `after`. */
static struct ways choose_way(struct simd *s, const struct target *t) {
    LLVMBuilderRef b = s->unit->builder;
    struct ways w;
    LLVMValueRef first = first_index(s, t);
    w.first_address = address_of(s, t, first);
    LLVMValueRef follow = are_neighbours(s, t, first);
    w.neighbours = simd_block(s, "neighbours");
    w.others = simd_block(s, "others");
    w.same = simd_block(s, "same");
    w.apart = simd_block(s, "apart");
    w.after = simd_block(s, "after");
    LLVMBuildCondBr(b, follow, w.neighbours, w.others);
    LLVMPositionBuilderAtEnd(b, w.others);
    LLVMValueRef same = lanes_follow(s, t, first, 0);
    if (t->mask) { /* with no active lane, all lanes follow lane 0 */
        LLVMValueRef some = mask_any(s, &t->mask, 1);
        same = LLVMBuildAnd(b, same, some, "");
    }
    LLVMBuildCondBr(b, same, w.same, w.apart);
    return w;
}

/* Whether lanes count the index from a number that each of them loads: places in rows of different lengths,
 * as of sparse matrices. They are neighbours only where all rows have one element, which is not worth a test.
 */
static bool is_in_ragged_row(struct simd *s, LLVMValueRef address) {
    LLVMValueRef index = bounds_steps(s->unit, address).index;
    while (index && (LLVMIsASExtInst(index) || LLVMIsAZExtInst(index) || LLVMIsATruncInst(index)))
        index = LLVMGetOperand(index, 0);
    if (!index || !LLVMIsAPHINode(index) || LLVMCountIncoming(index) != 2) return false;
    for (unsigned n = 0; n < 2; n++) {
        LLVMValueRef first = LLVMGetIncomingValue(index, n), next = LLVMGetIncomingValue(index, 1 - n);
        while (LLVMIsASExtInst(first) || LLVMIsAZExtInst(first) || LLVMIsAFreezeInst(first) ||
               LLVMIsATruncInst(first) || (LLVMIsAPHINode(first) && LLVMCountIncoming(first) == 1))
            first = LLVMGetOperand(first, 0);
        bool counts = LLVMIsABinaryOperator(next) && LLVMGetInstructionOpcode(next) == LLVMAdd &&
                      LLVMGetOperand(next, 0) == index && LLVMIsAConstantInt(LLVMGetOperand(next, 1));
        if (counts && LLVMIsALoadInst(first) && shape_of(s, first) == SHAPE_VARYING) return true;
    }
    return false;
}

/* Each way is a few blocks of code. */
static bool has_ways(struct simd *s, LLVMValueRef address) {
    return !s->many_unknown && !access_is_rare(s) && !is_in_ragged_row(s, address);
}

/* AVX2 gathers 4-byte elements by index, which needs no call. */
static bool is_for_gang(struct simd *s, const struct target *t) {
    bool indexed = t->size == 4 && s->vector_bits == 256 && t->elements.base;
    return gang_access_is_call(s, t->element) && !indexed;
}

LLVMValueRef access_load_unknown(struct simd *s, LLVMValueRef load, int chunk) {
    struct target t = find_target(s, load, chunk);
    if (is_for_gang(s, &t)) return gang_access_load(s, load, chunk);
    if (!has_ways(s, LLVMGetOperand(load, 0))) {
        struct if_on on = access_begin_if_on(s, t.mask);
        return access_end_if_on(s, &on, gather(s, &t));
    }
    LLVMBuilderRef b = s->unit->builder;
    struct ways w = choose_way(s, &t);
    LLVMValueRef values[3];
    LLVMBasicBlockRef ends[3];
    LLVMPositionBuilderAtEnd(b, w.neighbours);
    values[0] = access_load(s, t.element, w.first_address, t.mask, access_align_at(t.align, t.size));
    ends[0] = LLVMGetInsertBlock(b);
    LLVMBuildBr(b, w.after);
    LLVMPositionBuilderAtEnd(b, w.same);
    LLVMValueRef one = LLVMBuildLoad2(b, t.element, w.first_address, "");
    LLVMSetAlignment(one, (unsigned)t.align);
    values[1] = chunk_splat(s, one);
    ends[1] = LLVMGetInsertBlock(b);
    LLVMBuildBr(b, w.after);
    LLVMPositionBuilderAtEnd(b, w.apart);
    values[2] = gather(s, &t);
    ends[2] = LLVMGetInsertBlock(b);
    LLVMBuildBr(b, w.after);
    LLVMPositionBuilderAtEnd(b, w.after);
    LLVMValueRef phi = LLVMBuildPhi(b, chunk_type(s, t.element), "");
    LLVMAddIncoming(phi, values, ends, 3);
    return phi;
}

void access_store_unknown(struct simd *s, LLVMValueRef store, int chunk) {
    LLVMValueRef vector = chunk_of(s, LLVMGetOperand(store, 0), chunk);
    struct target t = find_target(s, store, chunk);
    if (gang_access_is_call(s, t.element)) {
        gang_access_store(s, store);
        return;
    }
    if (!has_ways(s, LLVMGetOperand(store, 1))) {
        struct if_on on = access_begin_if_on(s, t.mask);
        scatter(s, &t, vector);
        (void)access_end_if_on(s, &on, NULL);
        return;
    }
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef first = first_index(s, &t);
    LLVMBasicBlockRef neighbours = simd_block(s, "neighbours"), apart = simd_block(s, "apart"),
                      after = simd_block(s, "after");
    LLVMBuildCondBr(b, are_neighbours(s, &t, first), neighbours, apart);
    LLVMPositionBuilderAtEnd(b, neighbours);
    access_store(s, vector, address_of(s, &t, first), t.mask, access_align_at(t.align, t.size));
    LLVMBuildBr(b, after);
    LLVMPositionBuilderAtEnd(b, apart);
    scatter(s, &t, vector);
    LLVMBuildBr(b, after);
    LLVMPositionBuilderAtEnd(b, after);
}
