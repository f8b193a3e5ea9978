/* Tests of accesses (compiler/bounds) for a gang. Where the lanes' addresses follow from lane 0's, one
 * comparison covers the lowest and the highest of all lanes, active or not; only if it fails, a function of
 * the runtime looks at the active ones. Other addresses are compared lane by lane. */
#include "compiler/cpu/inside.h"
#include "compiler/simd/simd.h"

#include <string.h>

/* How many addresses of an object have so many bytes: computed where its extent is. */
struct inside_count {
    LLVMValueRef extent, count;
    uint64_t bytes;
    struct inside_count *next;
};

bool emit_inside_is_once(struct simd *s, LLVMValueRef call) {
    return shape_of(s, LLVMGetOperand(call, INSIDE_ADDRESS)) >= 0 &&
           shape_of(s, LLVMGetOperand(call, INSIDE_START)) == SHAPE_UNIFORM &&
           shape_of(s, LLVMGetOperand(call, INSIDE_EXTENT)) == SHAPE_UNIFORM;
}

static LLVMValueRef i64_constant(struct simd *s, uint64_t value) {
    return LLVMConstInt(type_i64(s->unit), value, false);
}

/* extent: a scalar of the new function. */
static LLVMValueRef count_of(struct simd *s, LLVMValueRef extent, uint64_t bytes) {
    LLVMValueRef needed = i64_constant(s, bytes);
    if (!LLVMIsALoadInst(extent)) return inside_count(s->unit, extent, needed);
    for (struct inside_count *c = s->inside_counts; c; c = c->next)
        if (c->extent == extent && c->bytes == bytes) return c->count;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(s->unit->builder);
    LLVMValueRef next = LLVMGetNextInstruction(extent);
    if (next)
        LLVMPositionBuilderBefore(s->unit->builder, next);
    else
        LLVMPositionBuilderAtEnd(s->unit->builder, LLVMGetInstructionParent(extent));
    LLVMValueRef count = inside_count(s->unit, extent, needed);
    LLVMPositionBuilderAtEnd(s->unit->builder, here);
    struct inside_count *one = arena_alloc(&s->arena, sizeof *one);
    if (!one) return count;
    *one = (struct inside_count){extent, count, bytes, s->inside_counts};
    s->inside_counts = one;
    return count;
}

static uint64_t constant_of(LLVMValueRef call, unsigned operand) {
    return LLVMConstIntGetZExtValue(LLVMGetOperand(call, operand));
}

/* i1: the comparison of a scalar address and the lanes' offsets from it. */
static LLVMValueRef range_is_outside(struct simd *s, LLVMValueRef address, int shape, uint64_t low,
                                     uint64_t bytes, LLVMValueRef start, LLVMValueRef extent) {
    LLVMBuilderRef b = s->unit->builder;
    const int64_t *offsets = shape_offsets(s, shape);
    int64_t least = 0, most = 0;
    for (int i = 0; i < s->lanes; i++) {
        if (offsets[i] < least) least = offsets[i];
        if (offsets[i] > most) most = offsets[i];
    }
    LLVMValueRef count = count_of(s, extent, bytes + (uint64_t)(most - least));
    LLVMValueRef number = LLVMBuildPtrToInt(b, address, type_i64(s->unit), "");
    number = LLVMBuildSub(b, number, start, "");
    number = LLVMBuildAdd(b, number, i64_constant(s, low + (uint64_t)least), "");
    return LLVMBuildICmp(b, LLVMIntUGE, number, count, "");
}

/* The lanes' offsets as a constant of the code. */
static LLVMValueRef offsets_in_memory(struct simd *s, int shape) {
    LLVMValueRef numbers[GANG_MAX_LANES];
    const int64_t *offsets = shape_offsets(s, shape);
    for (int i = 0; i < s->lanes; i++) numbers[i] = i64_constant(s, (uint64_t)offsets[i]);
    LLVMValueRef array = LLVMConstArray2(type_i64(s->unit), numbers, (uint64_t)s->lanes);
    for (LLVMValueRef g = LLVMGetLastGlobal(s->unit->module); g; g = LLVMGetPreviousGlobal(g))
        if (!LLVMIsDeclaration(g) && LLVMGetInitializer(g) == array) return g;
    LLVMValueRef global = LLVMAddGlobal(s->unit->module, LLVMTypeOf(array), "");
    LLVMSetInitializer(global, array);
    LLVMSetGlobalConstant(global, true);
    LLVMSetLinkage(global, LLVMPrivateLinkage);
    LLVMSetUnnamedAddress(global, LLVMGlobalUnnamedAddr);
    return global;
}

/* i64: the first active lane that is outside, or their number. The function preserves all registers. */
static LLVMValueRef outside_lane(struct simd *s, LLVMValueRef start, LLVMValueRef count, LLVMValueRef first,
                                 LLVMValueRef offsets) {
    static const char preserves[] = "no_caller_saved_registers";
    LLVMValueRef arguments[6] = {start,
                                 count,
                                 first,
                                 offsets,
                                 lanes_in_memory(s, s->blocks[s->current].mask),
                                 i64_constant(s, (uint64_t)s->lanes)};
    LLVMValueRef call = simd_call_runtime(s, "smelt_runtime_outside_lane", type_i64(s->unit), arguments, 6);
    LLVMAddCallSiteAttribute(
        call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
        LLVMCreateStringAttribute(s->unit->context, preserves, sizeof preserves - 1, "", 0));
    return call;
}

static bool all_on(struct simd *s) {
    for (int c = 0; c < s->chunk_count; c++)
        if (mask_chunk(s, c)) return false;
    return true;
}

/* Where the comparison of all lanes has failed: looks at the active ones, and goes on at `after`. */
static void look_at_lanes(struct simd *s, LLVMValueRef call, LLVMBasicBlockRef after) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef original = LLVMGetOperand(call, INSIDE_ADDRESS), sites = LLVMGetOperand(call, INSIDE_SITES);
    LLVMValueRef start = scalar_of(s, LLVMGetOperand(call, INSIDE_START)),
                 extent = scalar_of(s, LLVMGetOperand(call, INSIDE_EXTENT));
    int shape = shape_of(s, original);
    LLVMValueRef first = LLVMBuildPtrToInt(b, scalar_of(s, original), type_i64(s->unit), "");
    first = LLVMBuildAdd(b, first, i64_constant(s, constant_of(call, INSIDE_LOW)), "");
    if (shape == SHAPE_UNIFORM) {
        inside_fail(s->unit, sites, start, extent, first);
        return;
    }
    LLVMValueRef count = count_of(s, extent, constant_of(call, INSIDE_BYTES)),
                 offsets = offsets_in_memory(s, shape);
    LLVMValueRef lane = outside_lane(s, start, count, first, offsets);
    if (!all_on(s)) {
        LLVMBasicBlockRef outside = simd_block(s, "outside");
        LLVMValueRef none = LLVMBuildICmp(b, LLVMIntEQ, lane, i64_constant(s, (uint64_t)s->lanes), "");
        LLVMBuildCondBr(b, none, after, outside);
        LLVMPositionBuilderAtEnd(b, outside);
    }
    LLVMValueRef place = LLVMBuildGEP2(b, type_i64(s->unit), offsets, &lane, 1, "");
    LLVMValueRef offset = LLVMBuildLoad2(b, type_i64(s->unit), place, "");
    inside_fail(s->unit, sites, start, extent, LLVMBuildAdd(b, first, offset, ""));
}

/* ---- Once for the gang. */

static bool is_empty(LLVMBasicBlockRef block) {
    return LLVMGetFirstInstruction(block) == NULL;
}

/* A test that a loop's answer leads to: neighbours share a branch. */
static void begin_rare(struct simd *s, LLVMValueRef when) {
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

static void emit_for_gang(struct simd *s, LLVMValueRef call) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef when = LLVMGetOperand(call, INSIDE_WHEN), address = LLVMGetOperand(call, INSIDE_ADDRESS);
    bool always = LLVMIsConstant(when);
    /* Read before the blocks of the test begin: slots are loaded in the head of the block. */
    LLVMValueRef number = scalar_of(s, address), start = scalar_of(s, LLVMGetOperand(call, INSIDE_START)),
                 extent = scalar_of(s, LLVMGetOperand(call, INSIDE_EXTENT));
    if (!always) begin_rare(s, scalar_of(s, when));
    LLVMValueRef misses = range_is_outside(s, number, shape_of(s, address), constant_of(call, INSIDE_LOW),
                                           constant_of(call, INSIDE_BYTES), start, extent);
    LLVMBasicBlockRef failed = simd_block(s, "beyond"), inside = simd_block(s, "inside");
    inside_branch(s->unit, misses, failed, inside);
    LLVMPositionBuilderAtEnd(b, failed);
    look_at_lanes(s, call, inside);
    LLVMPositionBuilderAtEnd(b, inside);
    if (always) return;
    LLVMBuildBr(b, s->inside_rare.after);
    s->inside_rare.end = inside;
    LLVMPositionBuilderAtEnd(b, s->inside_rare.after);
}

/* ---- Chunk by chunk. */

static LLVMValueRef as_numbers(struct simd *s, LLVMValueRef addresses, uint64_t low) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = chunk_type(s, type_i64(s->unit));
    LLVMValueRef numbers = LLVMBuildPtrToInt(b, addresses, type, "");
    return low ? LLVMBuildAdd(b, numbers, chunk_splat(s, i64_constant(s, low)), "") : numbers;
}

/* The objects of the lanes may differ. */
static LLVMValueRef counts_of(struct simd *s, LLVMValueRef original, uint64_t bytes, int chunk) {
    if (shape_of(s, original) == SHAPE_UNIFORM)
        return chunk_splat(s, count_of(s, scalar_of(s, original), bytes));
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = chunk_type(s, type_i64(s->unit));
    LLVMValueRef more = LLVMBuildAdd(b, chunk_of(s, original, chunk), chunk_splat(s, i64_constant(s, 1)), "");
    LLVMValueRef operands[2] = {more, chunk_splat(s, i64_constant(s, bytes))};
    return simd_intrinsic(s, "llvm.usub.sat", &type, 1, operands, 2);
}

/* Of a chunk: the active lanes whose access misses its object. */
static LLVMValueRef lanes_outside(struct simd *s, LLVMValueRef numbers, LLVMValueRef start,
                                  LLVMValueRef extent, uint64_t bytes, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef offsets = LLVMBuildSub(b, numbers, chunk_of(s, start, chunk), "");
    LLVMValueRef outside = LLVMBuildICmp(b, LLVMIntUGE, offsets, counts_of(s, extent, bytes, chunk), "");
    LLVMValueRef mask = mask_chunk(s, chunk);
    return mask ? LLVMBuildSelect(b, mask, outside, LLVMConstNull(mask_type(s)), "") : outside;
}

static LLVMValueRef lane_of(struct simd *s, LLVMValueRef chunk, LLVMValueRef lane) {
    return s->chunk_lanes == 1 ? chunk : LLVMBuildExtractElement(s->unit->builder, chunk, lane, "");
}

static void emit_for_chunk(struct simd *s, LLVMValueRef call, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef start = LLVMGetOperand(call, INSIDE_START), extent = LLVMGetOperand(call, INSIDE_EXTENT),
                 when = LLVMGetOperand(call, INSIDE_WHEN);
    LLVMValueRef addresses = chunk_of(s, LLVMGetOperand(call, INSIDE_ADDRESS), chunk);
    LLVMValueRef starts = chunk_of(s, start, chunk), extents = chunk_of(s, extent, chunk);
    LLVMBasicBlockRef after = NULL;
    if (!LLVMIsConstant(when)) {
        LLVMBasicBlockRef test = simd_block(s, "test");
        after = simd_block(s, "tested");
        inside_branch(s->unit, scalar_of(s, when), test, after);
        LLVMPositionBuilderAtEnd(b, test);
    }
    LLVMValueRef numbers = as_numbers(s, addresses, constant_of(call, INSIDE_LOW));
    LLVMValueRef outside = lanes_outside(s, numbers, start, extent, constant_of(call, INSIDE_BYTES), chunk);
    LLVMBasicBlockRef failed = simd_block(s, "outside"), inside = after ? after : simd_block(s, "inside");
    inside_branch(s->unit, mask_any(s, &outside, 1), failed, inside);
    LLVMPositionBuilderAtEnd(b, failed);
    LLVMValueRef bits = mask_bits(s, outside);
    LLVMTypeRef type = LLVMTypeOf(bits);
    LLVMValueRef operands[2] = {bits, LLVMConstInt(simd_i1(s), 0, false)};
    LLVMValueRef lane = simd_intrinsic(s, "llvm.cttz", &type, 1, operands, 2);
    inside_fail(s->unit, LLVMGetOperand(call, INSIDE_SITES), lane_of(s, starts, lane),
                lane_of(s, extents, lane), lane_of(s, numbers, lane));
    LLVMPositionBuilderAtEnd(b, inside);
}

void emit_inside(struct simd *s, LLVMValueRef call, int chunk) {
    if (emit_inside_is_once(s, call))
        emit_for_gang(s, call);
    else
        emit_for_chunk(s, call, chunk);
}

/* ---- Questions of loops. */

/* i1: whether an address of a question is outside in any lane; of affine ones, active or not. */
static LLVMValueRef any_outside(struct simd *s, LLVMValueRef call, unsigned operand) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef address = LLVMGetOperand(call, operand), start = LLVMGetOperand(call, LEAVES_START),
                 extent = LLVMGetOperand(call, LEAVES_EXTENT), outside[GANG_MAX_LANES];
    uint64_t low = constant_of(call, LEAVES_LOW), bytes = constant_of(call, LEAVES_BYTES);
    bool uniform = shape_of(s, start) == SHAPE_UNIFORM && shape_of(s, extent) == SHAPE_UNIFORM;
    if (shape_of(s, address) >= 0 && uniform)
        return range_is_outside(s, scalar_of(s, address), shape_of(s, address), low, bytes,
                                scalar_of(s, start), scalar_of(s, extent));
    for (int c = 0; c < s->chunk_count; c++) {
        LLVMValueRef numbers = as_numbers(s, chunk_of(s, address, c), low);
        outside[c] = lanes_outside(s, numbers, start, extent, bytes, c);
    }
    return LLVMBuildFreeze(b, mask_any(s, outside, s->chunk_count), "");
}

static LLVMValueRef any_lane(struct simd *s, LLVMValueRef condition) {
    LLVMValueRef lanes[GANG_MAX_LANES];
    if (shape_of(s, condition) == SHAPE_UNIFORM) return scalar_of(s, condition);
    for (int c = 0; c < s->chunk_count; c++) {
        LLVMValueRef own = chunk_of(s, condition, c), mask = mask_chunk(s, c);
        lanes[c] = mask ? LLVMBuildSelect(s->unit->builder, mask, own, LLVMConstNull(mask_type(s)), "") : own;
    }
    return LLVMBuildFreeze(s->unit->builder, mask_any(s, lanes, s->chunk_count), "");
}

void emit_leaves(struct simd *s, LLVMValueRef call) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef leaves = any_lane(s, LLVMGetOperand(call, LEAVES_ALSO));
    leaves = LLVMBuildOr(b, leaves, any_outside(s, call, LEAVES_FIRST), "");
    if (LLVMGetOperand(call, LEAVES_FIRST) != LLVMGetOperand(call, LEAVES_LAST))
        leaves = LLVMBuildOr(b, leaves, any_outside(s, call, LEAVES_LAST), "");
    scalar_set(s, call, leaves);
}
