/* Compares the addresses that lanes access with the ends of their object (reach.h): ranges around a scalar
 * address, and lane by lane. */
#include "compiler/simd/memory/reach.h"
#include "compiler/cpu/inside.h"

LLVMValueRef reach_bound_address(struct simd *s, LLVMValueRef address, LLVMValueRef extent, uint64_t bytes) {
    if (!extent_is_counted(extent, bytes)) return NULL;
    LLVMValueRef root = bounds_place(s->unit, address).root;
    uint64_t slot, own;
    if (intrinsic_of(root) != INTRINSIC_BUFFER_ADDRESS) return NULL;
    bool same = is_constant_integer(LLVMGetOperand(root, 0), &slot) &&
                is_constant_integer(LLVMGetOperand(extent, 0), &own) && slot == own;
    return same ? root : NULL;
}

void reach_read_root(struct simd *s, LLVMValueRef address) {
    LLVMValueRef root = bounds_place(s->unit, address).root;
    if (intrinsic_of(root) == INTRINSIC_BUFFER_ADDRESS) (void)scalar_of(s, root);
}

bool reach_is_exact(struct simd *s, LLVMValueRef address, LLVMValueRef original, uint64_t bytes) {
    if (reach_bound_address(s, address, original, bytes)) return false;
    return extent_safe_is_exact(original, bytes);
}

bool reach_is_piece(struct simd *s, LLVMValueRef address, LLVMValueRef start, LLVMValueRef extent) {
    return s->chunk_lanes > 1 && piece_is(s, address) && shape_of(s, start) == SHAPE_UNIFORM &&
           shape_of(s, extent) == SHAPE_UNIFORM;
}

/* The argument's element that lane 0 accesses, if the address is that of an element. If its number is below
 * that of the argument's elements, its distance in bytes does not wrap around. */
static bool find_element(struct simd *s, const struct reach *r, struct distance *d) {
    struct place place = bounds_steps(s->unit, r->address);
    int64_t constant = place.constant + (int64_t)r->low + r->span.least;
    if (!place.index || shape_of(s, place.index) < 0) return false;
    if (!reach_is_power_of_two(place.scale) || place.scale >= 1 << EXTENT_SCALES) return false;
    if (place.scale == 1 || constant % place.scale) return false;
    LLVMValueRef index = LLVMBuildFreeze(s->unit->builder, scalar_of(s, place.index), "");
    d->number = LLVMBuildSExt(s->unit->builder, index, type_i64(s->unit), "");
    d->scale = place.scale;
    d->constant = place.constant;
    d->added = constant / place.scale;
    return true;
}

struct distance reach_distance(struct simd *s, const struct reach *r, LLVMValueRef scalar) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = type_i64(s->unit);
    LLVMValueRef bound = reach_bound_address(s, r->address, r->extent, reach_bytes(r->span, r->bytes));
    struct distance d = {.scale = 1, .added = (int64_t)r->low + r->span.least};
    d.from = bound ? LLVMBuildPtrToInt(b, scalar_of(s, bound), type, "") : extent_start(s, r->start);
    if (bound && !scalar && find_element(s, r, &d)) return d;
    if (!scalar) scalar = scalar_of(s, r->address);
    d.number = LLVMBuildSub(b, LLVMBuildPtrToInt(b, scalar, type, ""), d.from, "");
    d.number = LLVMBuildFreeze(b, d.number, ""); /* otherwise LLVM finds the address in their sum again */
    return d;
}

LLVMValueRef reach_is_beyond(struct simd *s, const struct reach *r, struct distance d) {
    LLVMBuilderRef b = s->unit->builder;
    uint64_t all = reach_bytes(r->span, r->bytes);
    bool bound = reach_bound_address(s, r->address, r->extent, all);
    LLVMValueRef count =
        bound ? extent_bound(s, r->extent, d.scale, all) : extent_safe_count(s, r->extent, all);
    LLVMValueRef number = LLVMBuildAdd(b, d.number, reach_i64(s, (uint64_t)d.added), "");
    return LLVMBuildICmp(b, LLVMIntUGE, number, count, "");
}

LLVMValueRef reach_is_outside(struct simd *s, const struct reach *r, LLVMValueRef scalar) {
    return reach_is_beyond(s, r, reach_distance(s, r, scalar));
}

struct wrapped_indexes reach_signs(struct simd *s, const struct reach *r) {
    struct wrapped_indexes all = wrapped_find(s, r->address);
    struct place place = bounds_steps(s->unit, r->address);
    if (all.count && place.index == all.index[0] && place.constant + (int64_t)r->low <= 0 &&
        reach_bound_address(s, r->address, r->extent, reach_bytes(r->span, r->bytes)) == place.root)
        all.count = 0;
    return all;
}

static bool is_empty(LLVMBasicBlockRef block) {
    return LLVMGetFirstInstruction(block) == NULL;
}

void reach_begin_rare(struct simd *s, LLVMValueRef when) {
    LLVMBuilderRef b = s->unit->builder;
    struct inside_rare *rare = &s->inside_rare;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
    if (rare->when == when && rare->after == here && is_empty(here)) {
        LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(rare->end));
    } else {
        LLVMBasicBlockRef block = simd_block(s, "test"), after = simd_block(s, "tested");
        inside_branch(s->unit, when, block, after);
        *rare = (struct inside_rare){when, block, after};
    }
    LLVMPositionBuilderAtEnd(b, rare->end);
}

void reach_end_rare(struct simd *s) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMBuildBr(b, s->inside_rare.after);
    s->inside_rare.end = LLVMGetInsertBlock(b);
    LLVMPositionBuilderAtEnd(b, s->inside_rare.after);
}

LLVMValueRef reach_lanes(struct simd *s, LLVMValueRef address, int chunk, uint64_t low) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = chunk_type(s, type_i64(s->unit));
    struct wrapped_indexes wrapped = wrapped_find(s, address);
    LLVMValueRef numbers = LLVMBuildPtrToInt(b, chunk_of(s, address, chunk), type, "");
    if (low) numbers = LLVMBuildAdd(b, numbers, chunk_splat(s, reach_i64(s, low)), "");
    return wrapped_corrected(s, &wrapped, chunk, numbers);
}

/* The objects of the lanes may differ. */
static LLVMValueRef starts_of(struct simd *s, LLVMValueRef original, int chunk) {
    return shape_of(s, original) == SHAPE_UNIFORM ? chunk_splat(s, extent_start(s, original))
                                                  : chunk_of(s, original, chunk);
}

static LLVMValueRef counts_of(struct simd *s, LLVMValueRef original, uint64_t bytes, int chunk) {
    if (shape_of(s, original) == SHAPE_UNIFORM) return chunk_splat(s, extent_count(s, original, bytes));
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = chunk_type(s, type_i64(s->unit));
    LLVMValueRef more = LLVMBuildAdd(b, chunk_of(s, original, chunk), chunk_splat(s, reach_i64(s, 1)), "");
    LLVMValueRef operands[2] = {more, chunk_splat(s, reach_i64(s, bytes))};
    return simd_intrinsic(s, "llvm.usub.sat", &type, 1, operands, 2);
}

LLVMValueRef reach_lanes_outside(struct simd *s, LLVMValueRef numbers, LLVMValueRef start,
                                 LLVMValueRef extent, uint64_t bytes, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef offsets = LLVMBuildSub(b, numbers, starts_of(s, start, chunk), "");
    LLVMValueRef outside = LLVMBuildICmp(b, LLVMIntUGE, offsets, counts_of(s, extent, bytes, chunk), "");
    LLVMValueRef mask = mask_chunk(s, chunk);
    return mask ? LLVMBuildSelect(b, mask, outside, LLVMConstNull(mask_type(s)), "") : outside;
}
