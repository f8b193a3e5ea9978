/* Tests of accesses for a gang whose lanes' addresses do not follow from lane 0's: chunk by chunk. Pieces,
 * rows and indexes are compared first; only if that fails, the addresses are. */
#include "compiler/cpu/inside.h"
#include "compiler/simd/memory/gang_access.h"
#include "compiler/simd/memory/reach.h"

static LLVMValueRef lane_of(struct simd *s, LLVMValueRef chunk, LLVMValueRef lane) {
    return s->chunk_lanes == 1 ? chunk : LLVMBuildExtractElement(s->unit->builder, chunk, lane, "");
}

/* i1: whether it may be that a chunk's addresses, which are a piece, are outside. */
static LLVMValueRef piece_is_outside(struct simd *s, LLVMValueRef address, int chunk, uint64_t low,
                                     uint64_t bytes, LLVMValueRef start, LLVMValueRef extent) {
    struct span span = shape_span(s, value_of(s, address)->piece, chunk * s->chunk_lanes, s->chunk_lanes);
    struct reach reach = {address, start, extent, span, low, bytes};
    struct wrapped_indexes signs = reach_signs(s, &reach);
    LLVMValueRef outside = reach_is_outside(s, &reach, chunk_scalar(s, address, chunk));
    return reach_either(s, outside, wrapped_in_chunk(s, &signs, chunk));
}

/* The same of a chunk whose lanes are all on and have addresses in a few rows; NULL: another chunk. */
static LLVMValueRef rows_are_outside(struct simd *s, LLVMValueRef address, int chunk, uint64_t low,
                                     uint64_t bytes, LLVMValueRef start, LLVMValueRef extent) {
    struct row_view view;
    LLVMValueRef any = NULL;
    if (s->chunk_lanes == 1 || mask_chunk(s, chunk) || shape_of(s, start) != SHAPE_UNIFORM ||
        shape_of(s, extent) != SHAPE_UNIFORM || 4 * rows_find(s, address, chunk, &view) > s->chunk_lanes)
        return NULL;
    bool wraps = wrapped_find(s, address).count > 0;
    for (int row = 0; row < s->chunk_lanes; row++) {
        if (view.leader[row] != row) continue;
        struct span span = {0, 0};
        for (int i = row; i < s->chunk_lanes; i++) {
            if (view.leader[i] != row) continue;
            if (view.offset[i] < span.least) span.least = view.offset[i];
            if (view.offset[i] > span.most) span.most = view.offset[i];
        }
        if (wraps || (span.least < 0 && wrapped_is_unsigned(address))) return NULL;
        struct reach reach = {address, start, extent, span, low, bytes};
        any = reach_either(s, any, reach_is_outside(s, &reach, rows_lane(s, address, chunk, row)));
    }
    return any;
}

/* The sum of an index of 32 bits and a number nearer to 0 than this one did not wrap around if, unsigned, it
 * is below this one. */
#define MOST_NARROW (INT64_C(1) << 30)

/* Whether the index of an argument's address, ext(index) * scale + offset, has 32 bits and may be compared
 * instead of the address. *added: what is added to the index before, offset / scale. */
static bool compares_index(struct simd *s, LLVMValueRef call, struct place *place, int64_t *added) {
    LLVMValueRef address = LLVMGetOperand(call, INSIDE_ADDRESS), extent = LLVMGetOperand(call, INSIDE_EXTENT);
    *place = bounds_place(s->unit, address);
    if (!place->index || !place->extension ||
        !reach_bound_address(s, address, extent, reach_constant(call, INSIDE_BYTES)))
        return false;
    if (LLVMGetIntTypeWidth(LLVMTypeOf(place->index)) != 32 || place->scale <= 0) return false;
    int64_t offset = place->constant + (int64_t)reach_constant(call, INSIDE_LOW);
    if (!reach_is_power_of_two(place->scale) || place->scale >= 1 << EXTENT_SCALES || offset % place->scale)
        return false;
    int64_t number = offset / place->scale;
    bool wraps = place->extension == LLVMZExt && number > 0;
    if (wraps || number <= -MOST_NARROW || number >= MOST_NARROW) return false;
    *added = number;
    return true;
}

/* At how many elements of `scale` bytes, from the argument's address on, the access is inside. */
static LLVMValueRef count_from_argument(struct simd *s, LLVMValueRef call, int64_t scale) {
    return extent_bound(s, LLVMGetOperand(call, INSIDE_EXTENT), scale, reach_constant(call, INSIDE_BYTES));
}

/* Whether the index from an address that all lanes share, root + ext(index) * scale + constant, has 32 bits
 * or fewer and may be compared. */
static bool compares_from_root(struct simd *s, LLVMValueRef call, struct place *place) {
    *place = bounds_steps(s->unit, LLVMGetOperand(call, INSIDE_ADDRESS));
    LLVMValueRef index = place->index;
    if (!index || shape_of(s, place->root) != SHAPE_UNIFORM || !reach_is_power_of_two(place->scale))
        return false;
    if (shape_of(s, LLVMGetOperand(call, INSIDE_START)) != SHAPE_UNIFORM ||
        shape_of(s, LLVMGetOperand(call, INSIDE_EXTENT)) != SHAPE_UNIFORM)
        return false;
    place->extension = LLVMIsAZExtInst(index) ? LLVMZExt : LLVMSExt;
    if (LLVMIsASExtInst(index) || LLVMIsAZExtInst(index)) place->index = LLVMGetOperand(index, 0);
    return LLVMGetIntTypeWidth(LLVMTypeOf(place->index)) <= 32 && value_is_here(s, place->index) &&
           value_is_here(s, place->root);
}

/* … and how many elements from the root on are inside; none if the root is not. */
static LLVMValueRef count_from_root(struct simd *s, LLVMValueRef call, const struct place *place) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = type_i64(s->unit);
    LLVMValueRef root = LLVMBuildPtrToInt(b, scalar_of(s, place->root), type, "");
    uint64_t constant = (uint64_t)place->constant + reach_constant(call, INSIDE_LOW);
    LLVMValueRef offset = LLVMBuildSub(b, root, extent_start(s, LLVMGetOperand(call, INSIDE_START)), "");
    if (constant) offset = LLVMBuildAdd(b, offset, reach_i64(s, constant), "");
    LLVMValueRef operands[2] = {
        extent_count(s, LLVMGetOperand(call, INSIDE_EXTENT), reach_constant(call, INSIDE_BYTES)),
        LLVMBuildFreeze(b, offset, "")};
    LLVMValueRef room = simd_intrinsic(s, "llvm.usub.sat", &type, 1, operands, 2);
    int log = extent_log2((uint64_t)place->scale);
    if (!log) return room;
    room = LLVMBuildAdd(b, room, reach_i64(s, (uint64_t)place->scale - 1), "");
    return LLVMBuildLShr(b, room, reach_i64(s, (uint64_t)log), "");
}

/* The lanes of a chunk whose index may be outside; NULL: indexes may not be compared. */
static LLVMValueRef indexes_outside(struct simd *s, LLVMValueRef call, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    struct place place;
    int64_t added = 0;
    LLVMValueRef count;
    if (compares_index(s, call, &place, &added))
        count = count_from_argument(s, call, place.scale);
    else if (compares_from_root(s, call, &place))
        count = count_from_root(s, call, &place);
    else
        return NULL;
    LLVMTypeRef type = type_i64(s->unit);
    LLVMValueRef operands[2] = {count, reach_i64(s, (uint64_t)MOST_NARROW)};
    count = simd_intrinsic(s, "llvm.umin", &type, 1, operands, 2);
    count = LLVMBuildTrunc(b, count, type_i32(s->unit), "");
    LLVMValueRef index = chunk_of(s, place.index, chunk);
    if (LLVMGetIntTypeWidth(LLVMTypeOf(place.index)) < 32)
        index = LLVMBuildCast(b, place.extension, index, chunk_type(s, type_i32(s->unit)), "");
    if (added) index = LLVMBuildAdd(b, index, chunk_splat(s, simd_i32(s, (uint32_t)added)), "");
    LLVMValueRef outside = LLVMBuildICmp(b, LLVMIntUGE, index, chunk_splat(s, count), "");
    LLVMValueRef mask = mask_chunk(s, chunk);
    return mask ? LLVMBuildSelect(b, mask, outside, LLVMConstNull(mask_type(s)), "") : outside;
}

/* i1: whether an index of a chunk may be outside; NULL: indexes may not be compared. */
static LLVMValueRef index_is_outside(struct simd *s, LLVMValueRef call, int chunk) {
    LLVMValueRef outside = indexes_outside(s, call, chunk);
    return outside ? mask_any(s, &outside, 1) : NULL;
}

void emit_inside_chunk(struct simd *s, LLVMValueRef call, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef start = LLVMGetOperand(call, INSIDE_START), extent = LLVMGetOperand(call, INSIDE_EXTENT),
                 when = LLVMGetOperand(call, INSIDE_WHEN), address = LLVMGetOperand(call, INSIDE_ADDRESS);
    bool piece = reach_is_piece(s, address, start, extent);
    if (piece) (void)chunk_scalar(s, address, chunk);
    if (!piece) (void)chunk_of(s, address, chunk);
    reach_read_root(s, address);
    uint64_t low = reach_constant(call, INSIDE_LOW), bytes = reach_constant(call, INSIDE_BYTES);
    bool always = LLVMIsConstant(when);
    if (!always) reach_begin_rare(s, scalar_of(s, when));
    LLVMBasicBlockRef failed = simd_block(s, "outside"), inside = simd_block(s, "inside");
    LLVMValueRef misses = piece ? piece_is_outside(s, address, chunk, low, bytes, start, extent)
                                : rows_are_outside(s, address, chunk, low, bytes, start, extent);
    if (misses) {
        LLVMBasicBlockRef beyond = simd_block(s, "beyond");
        inside_branch(s->unit, misses, beyond, inside);
        LLVMPositionBuilderAtEnd(b, beyond);
    }
    LLVMValueRef narrow = piece ? NULL : index_is_outside(s, call, chunk);
    if (narrow) {
        LLVMBasicBlockRef beyond = simd_block(s, "beyond");
        inside_branch(s->unit, narrow, beyond, inside);
        LLVMPositionBuilderAtEnd(b, beyond);
    }
    LLVMValueRef numbers = reach_lanes(s, address, chunk, low);
    LLVMValueRef outside = reach_lanes_outside(s, numbers, start, extent, bytes, chunk);
    inside_branch(s->unit, mask_any(s, &outside, 1), failed, inside);
    LLVMPositionBuilderAtEnd(b, failed);
    LLVMValueRef bits = mask_bits(s, outside);
    LLVMTypeRef type = LLVMTypeOf(bits);
    LLVMValueRef operands[2] = {bits, LLVMConstInt(simd_i1(s), 0, false)};
    LLVMValueRef lane = simd_intrinsic(s, "llvm.cttz", &type, 1, operands, 2);
    LLVMValueRef its_start = shape_of(s, start) == SHAPE_UNIFORM
                                 ? extent_start(s, start)
                                 : lane_of(s, chunk_of(s, start, chunk), lane),
                 its_extent = shape_of(s, extent) == SHAPE_UNIFORM
                                  ? extent_bytes(s, extent)
                                  : lane_of(s, chunk_of(s, extent, chunk), lane);
    inside_fail(s->unit, LLVMGetOperand(call, INSIDE_SITES), its_start, its_extent,
                lane_of(s, numbers, lane));
    LLVMPositionBuilderAtEnd(b, inside);
    if (!always) reach_end_rare(s);
}

/* i1: whether an address of the gang may be outside; NULL: nothing simpler than the addresses may be
 * compared. */
static LLVMValueRef may_be_outside(struct simd *s, LLVMValueRef call, bool piece) {
    LLVMValueRef outside[GANG_MAX_LANES], any = NULL, start = LLVMGetOperand(call, INSIDE_START),
                                          extent = LLVMGetOperand(call, INSIDE_EXTENT),
                                          address = LLVMGetOperand(call, INSIDE_ADDRESS);
    uint64_t low = reach_constant(call, INSIDE_LOW), bytes = reach_constant(call, INSIDE_BYTES);
    for (int c = 0; c < s->chunk_count; c++) {
        if (piece)
            any = reach_either(s, any, piece_is_outside(s, address, c, low, bytes, start, extent));
        else if (!(outside[c] = indexes_outside(s, call, c)))
            return NULL;
    }
    return piece ? any : mask_any(s, outside, s->chunk_count);
}

void emit_inside_chunks(struct simd *s, LLVMValueRef call) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef start = LLVMGetOperand(call, INSIDE_START), extent = LLVMGetOperand(call, INSIDE_EXTENT),
                 when = LLVMGetOperand(call, INSIDE_WHEN), address = LLVMGetOperand(call, INSIDE_ADDRESS),
                 numbers[GANG_MAX_LANES];
    bool piece = reach_is_piece(s, address, start, extent), always = LLVMIsConstant(when);
    for (int c = 0; c < s->chunk_count; c++)
        (void)(piece ? chunk_scalar(s, address, c) : chunk_of(s, address, c));
    reach_read_root(s, address);
    if (!always) reach_begin_rare(s, scalar_of(s, when));
    LLVMBasicBlockRef inside = simd_block(s, "inside");
    LLVMValueRef misses = may_be_outside(s, call, piece);
    if (misses) {
        LLVMBasicBlockRef beyond = simd_block(s, "beyond");
        inside_branch(s->unit, misses, beyond, inside);
        LLVMPositionBuilderAtEnd(b, beyond);
    }
    for (int c = 0; c < s->chunk_count; c++)
        numbers[c] = reach_lanes(s, address, c, reach_constant(call, INSIDE_LOW));
    gang_access_test(s, LLVMGetOperand(call, INSIDE_SITES), numbers, extent_start(s, start),
                     extent_count(s, extent, reach_constant(call, INSIDE_BYTES)), extent_bytes(s, extent),
                     inside);
    LLVMPositionBuilderAtEnd(b, inside);
    if (!always) reach_end_rare(s);
}

bool emit_inside_suits_chunks(struct simd *s, LLVMValueRef call) {
    return gang_access_suits(s) && shape_of(s, LLVMGetOperand(call, INSIDE_START)) == SHAPE_UNIFORM &&
           shape_of(s, LLVMGetOperand(call, INSIDE_EXTENT)) == SHAPE_UNIFORM;
}
