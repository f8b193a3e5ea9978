/* Tests of accesses (compiler/bounds) for a gang. Where the lanes' addresses follow from lane 0's, one
 * comparison covers the lowest and the highest of all lanes, active or not; only if it fails, a function of
 * the runtime looks at the active ones. Other addresses are compared lane by lane. */
#include "compiler/simd/memory/reach.h"
#include "compiler/cpu/inside.h"

#include <stddef.h>

bool emit_inside_is_once(struct simd *s, LLVMValueRef call) {
    return shape_of(s, LLVMGetOperand(call, INSIDE_ADDRESS)) >= 0 &&
           shape_of(s, LLVMGetOperand(call, INSIDE_START)) == SHAPE_UNIFORM &&
           shape_of(s, LLVMGetOperand(call, INSIDE_EXTENT)) == SHAPE_UNIFORM;
}

/* The lanes' offsets as a constant of the code. */
static LLVMValueRef offsets_in_memory(struct simd *s, int shape) {
    LLVMValueRef numbers[GANG_MAX_LANES];
    const int64_t *offsets = shape_offsets(s, shape);
    for (int i = 0; i < s->lanes; i++) numbers[i] = reach_i64(s, (uint64_t)offsets[i]);
    LLVMValueRef array = LLVMConstArray2(type_i64(s->unit), numbers, (uint64_t)s->lanes);
    for (LLVMValueRef g = LLVMGetLastGlobal(s->unit->module); g; g = LLVMGetPreviousGlobal(g))
        if (!LLVMIsDeclaration(g) && LLVMGetInitializer(g) == array) return g;
    return constant_in_memory(s->unit, array);
}

static void set_field(struct simd *s, size_t offset, LLVMValueRef value) {
    LLVMBuildStore(s->unit->builder, value, simd_field(s, s->lane_test, offset));
}

static LLVMValueRef get_field(struct simd *s, size_t offset) {
    LLVMTypeRef type = type_i64(s->unit);
    return LLVMBuildLoad2(s->unit->builder, type, simd_field(s, s->lane_test, offset), "");
}

static void set_wrapped(struct simd *s, const struct wrapped_indexes *wrapped) {
    set_field(s, offsetof(struct wrapped_test, count), reach_i64(s, (uint64_t)wrapped->count));
    for (int i = 0; i < wrapped->count; i++) {
        LLVMValueRef index = wrapped->index[i];
        size_t at = sizeof((struct wrapped_test *)0)->indexes[0] * (size_t)i;
        set_field(s, at + offsetof(struct wrapped_test, indexes[0].first), scalar_of(s, index));
        set_field(s, at + offsetof(struct wrapped_test, indexes[0].offsets),
                  offsets_in_memory(s, shape_of(s, index)));
        set_field(s, at + offsetof(struct wrapped_test, indexes[0].missing),
                  reach_i64(s, wrapped->missing[i]));
    }
}

/* Whether the lanes' offsets never fall, and addresses do not wrap around between them. */
static bool ascends(struct simd *s, int shape) {
    const int64_t *offsets = shape_offsets(s, shape);
    for (int i = 1; i < s->lanes; i++)
        if (offsets[i] < offsets[i - 1]) return false;
    return offsets[0] >= -(INT64_MAX / 4) && offsets[s->lanes - 1] <= INT64_MAX / 4;
}

/* Two fields of struct lane_test, lane_count and ascending, in one number. */
static LLVMValueRef lanes_and_order(struct simd *s, int shape, const struct wrapped_indexes *wrapped) {
    bool ascending = ascends(s, shape);
    for (int i = 0; i < wrapped->count; i++) ascending &= ascends(s, shape_of(s, wrapped->index[i]));
    return reach_i64(s, (uint64_t)s->lanes | (uint64_t)ascending << 16);
}

/* i1: whether an active lane is outside. The function preserves all registers. */
static LLVMValueRef finds_outside(struct simd *s, LLVMValueRef start, LLVMValueRef count, LLVMValueRef first,
                                  int shape, const struct wrapped_indexes *wrapped) {
    static const char preserves[] = "no_caller_saved_registers";
    if (!s->lane_test)
        s->lane_test = simd_slot(s, LLVMArrayType2(type_i64(s->unit), sizeof(struct wrapped_test) / 8));
    set_field(s, offsetof(struct lane_test, start), start);
    set_field(s, offsetof(struct lane_test, count), count);
    set_field(s, offsetof(struct lane_test, offsets), offsets_in_memory(s, shape));
    set_field(s, offsetof(struct lane_test, lanes), lanes_in_memory(s, s->blocks[s->current].mask));
    set_field(s, offsetof(struct lane_test, lane_count), lanes_and_order(s, shape, wrapped));
    set_field(s, offsetof(struct lane_test, address), first);
    if (wrapped->count) set_wrapped(s, wrapped);
    const char *name = wrapped->count ? "smelt_runtime_finds_wrapped" : "smelt_runtime_finds_outside";
    LLVMValueRef call = simd_call_runtime(s, name, simd_i1(s), &s->lane_test, 1);
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

static void go_on_if(struct simd *s, LLVMValueRef condition, LLVMBasicBlockRef after) {
    LLVMBasicBlockRef outside = simd_block(s, "outside");
    LLVMBuildCondBr(s->unit->builder, condition, after, outside);
    LLVMPositionBuilderAtEnd(s->unit->builder, outside);
}

/* Where the comparison of all lanes has failed: looks at the active ones, and goes on at `after`. The address
 * is computed from its distance, so that the usual way need not keep it. */
static void look_at_lanes(struct simd *s, LLVMValueRef sites, const struct reach *r, struct distance d,
                          const struct wrapped_indexes *wrapped, LLVMBasicBlockRef after) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef its_extent = r->extent, start = extent_start(s, r->start), bytes = d.number;
    int shape = shape_of(s, r->address);
    bool exact = reach_is_exact(s, r->address, its_extent, reach_bytes(r->span, r->bytes));
    if (d.scale > 1) bytes = LLVMBuildMul(b, bytes, reach_i64(s, (uint64_t)d.scale), "");
    LLVMValueRef first = LLVMBuildAdd(b, d.from, LLVMBuildFreeze(b, bytes, ""), "");
    first = LLVMBuildAdd(b, first, reach_i64(s, (uint64_t)d.constant + r->low), "");
    LLVMValueRef count = extent_count(s, its_extent, r->bytes);
    if (shape == SHAPE_UNIFORM && !wrapped->count) {
        if (!exact)
            go_on_if(s, LLVMBuildICmp(b, LLVMIntULT, LLVMBuildSub(b, first, start, ""), count, ""), after);
        inside_fail(s->unit, sites, start, extent_bytes(s, its_extent), first);
        return;
    }
    LLVMValueRef found = finds_outside(s, start, count, first, shape, wrapped);
    if (!exact || wrapped->count || !all_on(s)) go_on_if(s, LLVMBuildNot(b, found, ""), after);
    /* From memory: a value that is kept takes a register from the code that goes on. */
    inside_fail(s->unit, sites, get_field(s, offsetof(struct lane_test, start)), extent_bytes(s, its_extent),
                get_field(s, offsetof(struct lane_test, address)));
}

static void emit_for_gang(struct simd *s, LLVMValueRef call) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef when = LLVMGetOperand(call, INSIDE_WHEN), address = LLVMGetOperand(call, INSIDE_ADDRESS);
    bool always = LLVMIsConstant(when);
    LLVMValueRef start = LLVMGetOperand(call, INSIDE_START), extent = LLVMGetOperand(call, INSIDE_EXTENT);
    struct reach reach = {address,
                          start,
                          extent,
                          shape_span(s, shape_of(s, address), 0, s->lanes),
                          reach_constant(call, INSIDE_LOW),
                          reach_constant(call, INSIDE_BYTES)};
    struct wrapped_indexes wrapped = reach_signs(s, &reach);
    (void)scalar_of(s, address);
    for (int i = 0; i < wrapped.count; i++) (void)scalar_of(s, wrapped.index[i]);
    reach_read_root(s, address);
    if (intrinsic_of(start) != INTRINSIC_BUFFER_START) (void)scalar_of(s, start), (void)scalar_of(s, extent);
    if (!always) reach_begin_rare(s, scalar_of(s, when));
    struct distance d = reach_distance(s, &reach, NULL);
    LLVMValueRef misses = reach_is_beyond(s, &reach, d);
    LLVMBasicBlockRef failed = simd_block(s, "beyond"), inside = simd_block(s, "inside");
    inside_branch(s->unit, misses, failed, inside);
    if (wrapped.count) {
        LLVMBasicBlockRef positive = simd_block(s, "positive");
        LLVMPositionBuilderAtEnd(b, inside);
        inside_branch(s->unit, wrapped_in_gang(s, &wrapped), failed, positive);
        inside = positive;
    }
    LLVMPositionBuilderAtEnd(b, failed);
    look_at_lanes(s, LLVMGetOperand(call, INSIDE_SITES), &reach, d, &wrapped, inside);
    LLVMPositionBuilderAtEnd(b, inside);
    if (!always) reach_end_rare(s);
}

void emit_inside(struct simd *s, LLVMValueRef call, int chunk) {
    if (s->inside_answered && LLVMGetOperand(call, INSIDE_WHEN) == s->inside_answered) return;
    if (emit_inside_is_once(s, call))
        emit_for_gang(s, call);
    else if (!emit_inside_suits_chunks(s, call))
        emit_inside_chunk(s, call, chunk);
    else if (chunk == 0)
        emit_inside_chunks(s, call);
}
