/* Tests of accesses (compiler/bounds) for a gang. Where the lanes' addresses follow from lane 0's, one
 * comparison covers the lowest and the highest of all lanes, active or not; only if it fails, a function of
 * the runtime looks at the active ones. Other addresses are compared lane by lane. */
#include "compiler/bounds/bounds.h"
#include "compiler/cpu/inside.h"
#include "compiler/simd/memory/extents.h"
#include "compiler/simd/memory/gang_access.h"
#include "compiler/simd/analysis/wrapped.h"

#include <stddef.h>
#include <string.h>

bool emit_inside_is_once(struct simd *s, LLVMValueRef call) {
    return shape_of(s, LLVMGetOperand(call, INSIDE_ADDRESS)) >= 0 &&
           shape_of(s, LLVMGetOperand(call, INSIDE_START)) == SHAPE_UNIFORM &&
           shape_of(s, LLVMGetOperand(call, INSIDE_EXTENT)) == SHAPE_UNIFORM;
}

static LLVMValueRef i64_constant(struct simd *s, uint64_t value) {
    return LLVMConstInt(type_i64(s->unit), value, false);
}

/* The argument's address that an address is computed from, if its distance from there may be compared instead
 * of that from the object's start; NULL otherwise. For LLVM, the first is an index times a constant. */
static LLVMValueRef bound_address(struct simd *s, LLVMValueRef address, LLVMValueRef extent, uint64_t bytes) {
    if (!extent_is_counted(extent, bytes)) return NULL;
    LLVMValueRef root = bounds_place(s->unit, address).root;
    uint64_t slot, own;
    if (intrinsic_of(root) != INTRINSIC_BUFFER_ADDRESS) return NULL;
    bool same = is_constant_integer(LLVMGetOperand(root, 0), &slot) &&
                is_constant_integer(LLVMGetOperand(extent, 0), &own) && slot == own;
    return same ? root : NULL;
}

/* Slots are loaded in the head of the block: what a test needs is read before its blocks begin. */
static void read_root(struct simd *s, LLVMValueRef address) {
    LLVMValueRef root = bounds_place(s->unit, address).root;
    if (intrinsic_of(root) == INTRINSIC_BUFFER_ADDRESS) (void)scalar_of(s, root);
}

/* Whether a comparison that fails says that the range is outside. */
static bool is_exact(struct simd *s, LLVMValueRef address, LLVMValueRef original, uint64_t bytes) {
    if (bound_address(s, address, original, bytes)) return false;
    return extent_safe_is_exact(original, bytes);
}

static uint64_t constant_of(LLVMValueRef call, unsigned operand) {
    return LLVMConstIntGetZExtValue(LLVMGetOperand(call, operand));
}

/* The addresses of one chunk follow from a scalar. */
static bool is_piece(struct simd *s, LLVMValueRef address, LLVMValueRef start, LLVMValueRef extent) {
    return s->chunk_lanes > 1 && piece_is(s, address) && shape_of(s, start) == SHAPE_UNIFORM &&
           shape_of(s, extent) == SHAPE_UNIFORM;
}

static uint64_t bytes_of_all(struct span span, uint64_t bytes) {
    return bytes + (uint64_t)(span.most - span.least);
}

/* What is compared: the lanes at the `span` around a scalar address access the `bytes` bytes from `low` on.
 */
struct reach {
    LLVMValueRef address, start, extent; /* operands of the call */
    struct span span;
    uint64_t low, bytes;
};

/* A scalar address as a sum, i64: `number` elements of `scale` bytes, and `constant` bytes, from the
 * argument's address or the object's start. `added`: to the number, for the lowest byte of all lanes. */
struct distance {
    LLVMValueRef from, number;
    int64_t scale, constant, added;
};

static bool is_power_of_two(int64_t number) {
    return number > 0 && (number & (number - 1)) == 0;
}

/* The argument's element that lane 0 accesses, if the address is that of an element. If its number is below
 * that of the argument's elements, its distance in bytes does not wrap around. */
static bool find_element(struct simd *s, const struct reach *r, struct distance *d) {
    struct place place = bounds_steps(s->unit, r->address);
    int64_t constant = place.constant + (int64_t)r->low + r->span.least;
    if (!place.index || shape_of(s, place.index) < 0) return false;
    if (!is_power_of_two(place.scale) || place.scale >= 1 << EXTENT_SCALES) return false;
    if (place.scale == 1 || constant % place.scale) return false;
    LLVMValueRef index = LLVMBuildFreeze(s->unit->builder, scalar_of(s, place.index), "");
    d->number = LLVMBuildSExt(s->unit->builder, index, type_i64(s->unit), "");
    d->scale = place.scale;
    d->constant = place.constant;
    d->added = constant / place.scale;
    return true;
}

/* Of a range of addresses around `scalar`, in the code of one thread; NULL: around lane 0's. */
static struct distance distance_of(struct simd *s, const struct reach *r, LLVMValueRef scalar) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = type_i64(s->unit);
    LLVMValueRef bound = bound_address(s, r->address, r->extent, bytes_of_all(r->span, r->bytes));
    struct distance d = {.scale = 1, .added = (int64_t)r->low + r->span.least};
    d.from = bound ? LLVMBuildPtrToInt(b, scalar_of(s, bound), type, "") : extent_start(s, r->start);
    if (bound && !scalar && find_element(s, r, &d)) return d;
    if (!scalar) scalar = scalar_of(s, r->address);
    d.number = LLVMBuildSub(b, LLVMBuildPtrToInt(b, scalar, type, ""), d.from, "");
    d.number = LLVMBuildFreeze(b, d.number, ""); /* otherwise LLVM finds the address in their sum again */
    return d;
}

/* i1: the comparison of a scalar address and the lanes' offsets from it. It may say so of a range that is
 * inside: is_exact. */
static LLVMValueRef is_beyond(struct simd *s, const struct reach *r, struct distance d) {
    LLVMBuilderRef b = s->unit->builder;
    uint64_t all = bytes_of_all(r->span, r->bytes);
    bool bound = bound_address(s, r->address, r->extent, all);
    LLVMValueRef count =
        bound ? extent_bound(s, r->extent, d.scale, all) : extent_safe_count(s, r->extent, all);
    LLVMValueRef number = LLVMBuildAdd(b, d.number, i64_constant(s, (uint64_t)d.added), "");
    return LLVMBuildICmp(b, LLVMIntUGE, number, count, "");
}

static LLVMValueRef range_is_outside(struct simd *s, const struct reach *r, LLVMValueRef scalar) {
    return is_beyond(s, r, distance_of(s, r, scalar));
}

/* The indexes whose signs are tested, too. The comparison of the range fails anyway for a negative
 * index that counts from the argument's address, if nothing else is added. */
static struct wrapped_indexes signs_of(struct simd *s, const struct reach *r) {
    struct wrapped_indexes all = wrapped_find(s, r->address);
    struct place place = bounds_steps(s->unit, r->address);
    if (all.count && place.index == all.index[0] && place.constant + (int64_t)r->low <= 0 &&
        bound_address(s, r->address, r->extent, bytes_of_all(r->span, r->bytes)) == place.root)
        all.count = 0;
    return all;
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

static void set_field(struct simd *s, size_t offset, LLVMValueRef value) {
    LLVMBuildStore(s->unit->builder, value, simd_field(s, s->lane_test, offset));
}

static LLVMValueRef get_field(struct simd *s, size_t offset) {
    LLVMTypeRef type = type_i64(s->unit);
    return LLVMBuildLoad2(s->unit->builder, type, simd_field(s, s->lane_test, offset), "");
}

static void set_wrapped(struct simd *s, const struct wrapped_indexes *wrapped) {
    set_field(s, offsetof(struct wrapped_test, count), i64_constant(s, (uint64_t)wrapped->count));
    for (int i = 0; i < wrapped->count; i++) {
        LLVMValueRef index = wrapped->index[i];
        size_t at = sizeof((struct wrapped_test *)0)->indexes[0] * (size_t)i;
        set_field(s, at + offsetof(struct wrapped_test, indexes[0].first), scalar_of(s, index));
        set_field(s, at + offsetof(struct wrapped_test, indexes[0].offsets),
                  offsets_in_memory(s, shape_of(s, index)));
        set_field(s, at + offsetof(struct wrapped_test, indexes[0].missing),
                  i64_constant(s, wrapped->missing[i]));
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
    return i64_constant(s, (uint64_t)s->lanes | (uint64_t)ascending << 16);
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
    bool exact = is_exact(s, r->address, its_extent, bytes_of_all(r->span, r->bytes));
    if (d.scale > 1) bytes = LLVMBuildMul(b, bytes, i64_constant(s, (uint64_t)d.scale), "");
    LLVMValueRef first = LLVMBuildAdd(b, d.from, LLVMBuildFreeze(b, bytes, ""), "");
    first = LLVMBuildAdd(b, first, i64_constant(s, (uint64_t)d.constant + r->low), "");
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

static void end_rare(struct simd *s) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMBuildBr(b, s->inside_rare.after);
    s->inside_rare.end = LLVMGetInsertBlock(b);
    LLVMPositionBuilderAtEnd(b, s->inside_rare.after);
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
                          constant_of(call, INSIDE_LOW),
                          constant_of(call, INSIDE_BYTES)};
    struct wrapped_indexes wrapped = signs_of(s, &reach);
    (void)scalar_of(s, address);
    for (int i = 0; i < wrapped.count; i++) (void)scalar_of(s, wrapped.index[i]);
    read_root(s, address);
    if (intrinsic_of(start) != INTRINSIC_BUFFER_START) (void)scalar_of(s, start), (void)scalar_of(s, extent);
    if (!always) begin_rare(s, scalar_of(s, when));
    struct distance d = distance_of(s, &reach, NULL);
    LLVMValueRef misses = is_beyond(s, &reach, d);
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
    if (!always) end_rare(s);
}

/* ---- Chunk by chunk. */

/* The addresses of the lowest bytes that the lanes access. */
static LLVMValueRef lane_numbers(struct simd *s, LLVMValueRef address, int chunk, uint64_t low) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = chunk_type(s, type_i64(s->unit));
    struct wrapped_indexes wrapped = wrapped_find(s, address);
    LLVMValueRef numbers = LLVMBuildPtrToInt(b, chunk_of(s, address, chunk), type, "");
    if (low) numbers = LLVMBuildAdd(b, numbers, chunk_splat(s, i64_constant(s, low)), "");
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
    LLVMValueRef more = LLVMBuildAdd(b, chunk_of(s, original, chunk), chunk_splat(s, i64_constant(s, 1)), "");
    LLVMValueRef operands[2] = {more, chunk_splat(s, i64_constant(s, bytes))};
    return simd_intrinsic(s, "llvm.usub.sat", &type, 1, operands, 2);
}

/* Of a chunk: the active lanes whose access misses its object. */
static LLVMValueRef lanes_outside(struct simd *s, LLVMValueRef numbers, LLVMValueRef start,
                                  LLVMValueRef extent, uint64_t bytes, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef offsets = LLVMBuildSub(b, numbers, starts_of(s, start, chunk), "");
    LLVMValueRef outside = LLVMBuildICmp(b, LLVMIntUGE, offsets, counts_of(s, extent, bytes, chunk), "");
    LLVMValueRef mask = mask_chunk(s, chunk);
    return mask ? LLVMBuildSelect(b, mask, outside, LLVMConstNull(mask_type(s)), "") : outside;
}

static LLVMValueRef lane_of(struct simd *s, LLVMValueRef chunk, LLVMValueRef lane) {
    return s->chunk_lanes == 1 ? chunk : LLVMBuildExtractElement(s->unit->builder, chunk, lane, "");
}

static LLVMValueRef either(struct simd *s, LLVMValueRef x, LLVMValueRef y) {
    return x && y ? LLVMBuildOr(s->unit->builder, x, y, "") : x ? x : y;
}

/* i1: whether it may be that a chunk's addresses, which are a piece, are outside. */
static LLVMValueRef piece_is_outside(struct simd *s, LLVMValueRef address, int chunk, uint64_t low,
                                     uint64_t bytes, LLVMValueRef start, LLVMValueRef extent) {
    struct span span = shape_span(s, value_of(s, address)->piece, chunk * s->chunk_lanes, s->chunk_lanes);
    struct reach reach = {address, start, extent, span, low, bytes};
    struct wrapped_indexes signs = signs_of(s, &reach);
    LLVMValueRef outside = range_is_outside(s, &reach, chunk_scalar(s, address, chunk));
    return either(s, outside, wrapped_in_chunk(s, &signs, chunk));
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
        any = either(s, any, range_is_outside(s, &reach, rows_lane(s, address, chunk, row)));
    }
    return any;
}

/* The sum of an index of 32 bits and a number nearer to 0 than this one has not wrapped around if, unsigned,
 * it is below this one. */
#define MOST_NARROW (INT64_C(1) << 30)

/* Whether the index of an argument's address, ext(index) * scale + offset, has 32 bits and may be compared
 * instead of the address. *added: what is added to the index before, offset / scale. */
static bool compares_index(struct simd *s, LLVMValueRef call, struct place *place, int64_t *added) {
    LLVMValueRef address = LLVMGetOperand(call, INSIDE_ADDRESS), extent = LLVMGetOperand(call, INSIDE_EXTENT);
    *place = bounds_place(s->unit, address);
    if (!place->index || !place->extension ||
        !bound_address(s, address, extent, constant_of(call, INSIDE_BYTES)))
        return false;
    if (LLVMGetIntTypeWidth(LLVMTypeOf(place->index)) != 32 || place->scale <= 0) return false;
    int64_t offset = place->constant + (int64_t)constant_of(call, INSIDE_LOW);
    if (!is_power_of_two(place->scale) || place->scale >= 1 << EXTENT_SCALES || offset % place->scale)
        return false;
    int64_t number = offset / place->scale;
    bool wraps = place->extension == LLVMZExt && number > 0;
    if (wraps || number <= -MOST_NARROW || number >= MOST_NARROW) return false;
    *added = number;
    return true;
}

/* How many elements from the argument's address on have so many bytes. */
static LLVMValueRef count_from_argument(struct simd *s, LLVMValueRef call, int64_t scale) {
    return extent_bound(s, LLVMGetOperand(call, INSIDE_EXTENT), scale, constant_of(call, INSIDE_BYTES));
}

/* Whether the index from an address that all lanes share, root + ext(index) * scale + constant, has 32 bits
 * or fewer and may be compared. */
static bool compares_from_root(struct simd *s, LLVMValueRef call, struct place *place) {
    *place = bounds_steps(s->unit, LLVMGetOperand(call, INSIDE_ADDRESS));
    LLVMValueRef index = place->index;
    if (!index || shape_of(s, place->root) != SHAPE_UNIFORM || !is_power_of_two(place->scale)) return false;
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
    uint64_t constant = (uint64_t)place->constant + constant_of(call, INSIDE_LOW);
    LLVMValueRef offset = LLVMBuildSub(b, root, extent_start(s, LLVMGetOperand(call, INSIDE_START)), "");
    if (constant) offset = LLVMBuildAdd(b, offset, i64_constant(s, constant), "");
    LLVMValueRef operands[2] = {
        extent_count(s, LLVMGetOperand(call, INSIDE_EXTENT), constant_of(call, INSIDE_BYTES)),
        LLVMBuildFreeze(b, offset, "")};
    LLVMValueRef room = simd_intrinsic(s, "llvm.usub.sat", &type, 1, operands, 2);
    int log = extent_log2((uint64_t)place->scale);
    if (!log) return room;
    room = LLVMBuildAdd(b, room, i64_constant(s, (uint64_t)place->scale - 1), "");
    return LLVMBuildLShr(b, room, i64_constant(s, (uint64_t)log), "");
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
    LLVMValueRef operands[2] = {count, i64_constant(s, (uint64_t)MOST_NARROW)};
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

static void emit_for_chunk(struct simd *s, LLVMValueRef call, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef start = LLVMGetOperand(call, INSIDE_START), extent = LLVMGetOperand(call, INSIDE_EXTENT),
                 when = LLVMGetOperand(call, INSIDE_WHEN), address = LLVMGetOperand(call, INSIDE_ADDRESS);
    bool piece = is_piece(s, address, start, extent);
    if (piece) (void)chunk_scalar(s, address, chunk);
    if (!piece) (void)chunk_of(s, address, chunk);
    read_root(s, address);
    uint64_t low = constant_of(call, INSIDE_LOW), bytes = constant_of(call, INSIDE_BYTES);
    bool always = LLVMIsConstant(when);
    if (!always) begin_rare(s, scalar_of(s, when));
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
    LLVMValueRef numbers = lane_numbers(s, address, chunk, low);
    LLVMValueRef outside = lanes_outside(s, numbers, start, extent, bytes, chunk);
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
    if (!always) end_rare(s);
}

/* i1: whether an address of the gang may be outside; NULL: nothing simpler than the addresses may be
 * compared. */
static LLVMValueRef may_be_outside(struct simd *s, LLVMValueRef call, bool piece) {
    LLVMValueRef outside[GANG_MAX_LANES], any = NULL, start = LLVMGetOperand(call, INSIDE_START),
                                          extent = LLVMGetOperand(call, INSIDE_EXTENT),
                                          address = LLVMGetOperand(call, INSIDE_ADDRESS);
    uint64_t low = constant_of(call, INSIDE_LOW), bytes = constant_of(call, INSIDE_BYTES);
    for (int c = 0; c < s->chunk_count; c++) {
        if (piece)
            any = either(s, any, piece_is_outside(s, address, c, low, bytes, start, extent));
        else if (!(outside[c] = indexes_outside(s, call, c)))
            return NULL;
    }
    return piece ? any : mask_any(s, outside, s->chunk_count);
}

/* Quick code tests all chunks at once; a function of the runtime compares the lanes' addresses. */
static void emit_for_chunks(struct simd *s, LLVMValueRef call) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef start = LLVMGetOperand(call, INSIDE_START), extent = LLVMGetOperand(call, INSIDE_EXTENT),
                 when = LLVMGetOperand(call, INSIDE_WHEN), address = LLVMGetOperand(call, INSIDE_ADDRESS),
                 numbers[GANG_MAX_LANES];
    bool piece = is_piece(s, address, start, extent), always = LLVMIsConstant(when);
    for (int c = 0; c < s->chunk_count; c++)
        (void)(piece ? chunk_scalar(s, address, c) : chunk_of(s, address, c));
    read_root(s, address);
    if (!always) begin_rare(s, scalar_of(s, when));
    LLVMBasicBlockRef inside = simd_block(s, "inside");
    LLVMValueRef misses = may_be_outside(s, call, piece);
    if (misses) {
        LLVMBasicBlockRef beyond = simd_block(s, "beyond");
        inside_branch(s->unit, misses, beyond, inside);
        LLVMPositionBuilderAtEnd(b, beyond);
    }
    for (int c = 0; c < s->chunk_count; c++)
        numbers[c] = lane_numbers(s, address, c, constant_of(call, INSIDE_LOW));
    gang_access_test(s, LLVMGetOperand(call, INSIDE_SITES), numbers, extent_start(s, start),
                     extent_count(s, extent, constant_of(call, INSIDE_BYTES)), extent_bytes(s, extent),
                     inside);
    LLVMPositionBuilderAtEnd(b, inside);
    if (!always) end_rare(s);
}

static bool is_for_chunks(struct simd *s, LLVMValueRef call) {
    return gang_access_suits(s) && shape_of(s, LLVMGetOperand(call, INSIDE_START)) == SHAPE_UNIFORM &&
           shape_of(s, LLVMGetOperand(call, INSIDE_EXTENT)) == SHAPE_UNIFORM;
}

void emit_inside(struct simd *s, LLVMValueRef call, int chunk) {
    if (s->inside_answered && LLVMGetOperand(call, INSIDE_WHEN) == s->inside_answered) return;
    if (emit_inside_is_once(s, call))
        emit_for_gang(s, call);
    else if (!is_for_chunks(s, call))
        emit_for_chunk(s, call, chunk);
    else if (chunk == 0)
        emit_for_chunks(s, call);
}

/* ---- Questions of loops. */

/* Whether each round that reaches the loop's end has run the block, for all its lanes. */
static bool runs_each_round(struct simd *s, int loop, int place) {
    const struct path_loop *l = &s->paths.loops[loop];
    int above = l->last;
    while (above > place && above > l->header) above = s->paths.blocks[above].dominator;
    return above == place && s->blocks[place].mask_of == l->header;
}

LLVMValueRef emit_inside_answer(struct simd *s, int loop) {
    const struct path_loop *l = &s->paths.loops[loop];
    LLVMValueRef answer = NULL;
    for (int place = l->header; place <= l->last; place++)
        FOR_EACH_INSTRUCTION(i, s->blocks[place].original) {
            if (intrinsic_of(i) != INTRINSIC_INSIDE) continue;
            LLVMValueRef when = LLVMGetOperand(i, INSIDE_WHEN);
            if (!LLVMIsAInstruction(when) || shape_of(s, when) != SHAPE_UNIFORM) continue;
            if (intrinsic_of(when) == INTRINSIC_LAUNCH_LEAVES) continue; /* of no loop */
            if (paths_within(&s->paths, simd_place(s, LLVMGetInstructionParent(when)), loop)) continue;
            bool sure = LLVMGetMetadata(when, bounds_sure_answer(s->unit)) || runs_each_round(s, loop, place);
            if (!sure || (answer && answer != when)) return NULL;
            answer = when;
        }
    return answer;
}

/* Which chunks' addresses are a constant apart. Their indexes of 32 bits might wrap around in between. They
 * do not if the first one and this constant lead to an element of an argument in a small launch: it is less
 * than 2^31 bytes behind the argument's address. */
static void find_rows(struct simd *s, LLVMValueRef address, LLVMValueRef extent, bool wraps,
                      struct row_view *rows) {
    struct place place = bounds_place(s->unit, address);
    bool narrow = place.index && place.extension && LLVMGetIntTypeWidth(LLVMTypeOf(place.index)) == 32 &&
                  place.constant >= -SMALL_REACH && place.constant <= SMALL_REACH;
    rows_find_chunks(s, address, rows);
    if (!wraps && narrow && s->code->small && bound_address(s, address, extent, 1)) return;
    for (int c = 0; c < s->chunk_count; c++) rows->leader[c] = c, rows->offset[c] = 0;
}

/* i1: whether an address of a question is outside in any lane; of affine ones, active or not. */
static LLVMValueRef any_outside(struct simd *s, LLVMValueRef call, unsigned operand) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef address = LLVMGetOperand(call, operand), start = LLVMGetOperand(call, LEAVES_START),
                 extent = LLVMGetOperand(call, LEAVES_EXTENT), outside[GANG_MAX_LANES];
    uint64_t low = constant_of(call, LEAVES_LOW), bytes = constant_of(call, LEAVES_BYTES);
    bool uniform = shape_of(s, start) == SHAPE_UNIFORM && shape_of(s, extent) == SHAPE_UNIFORM;
    if (shape_of(s, address) >= 0 && uniform) {
        struct reach reach = {address, start, extent, shape_span(s, shape_of(s, address), 0, s->lanes),
                              low,     bytes};
        struct wrapped_indexes wrapped = signs_of(s, &reach);
        return either(s, range_is_outside(s, &reach, NULL), wrapped_in_gang(s, &wrapped));
    }
    if (is_piece(s, address, start, extent)) {
        LLVMValueRef any = NULL;
        struct row_view rows;
        struct wrapped_indexes wrapped = wrapped_find(s, address);
        find_rows(s, address, extent, wrapped.count > 0, &rows);
        for (int c = 0; c < s->chunk_count; c++) {
            if (rows.leader[c] != c) continue;
            struct span span = rows_span(s, value_of(s, address)->piece, &rows, c);
            struct reach reach = {address, start, extent, span, low, bytes};
            struct wrapped_indexes signs = signs_of(s, &reach);
            any = either(s, any, range_is_outside(s, &reach, chunk_scalar(s, address, c)));
            any = either(s, any, wrapped_in_chunk(s, &signs, c));
        }
        return any;
    }
    for (int c = 0; c < s->chunk_count; c++) {
        LLVMValueRef numbers = lane_numbers(s, address, c, low);
        outside[c] = lanes_outside(s, numbers, start, extent, bytes, c);
    }
    return LLVMBuildFreeze(b, mask_any(s, outside, s->chunk_count), "");
}

void emit_leaves(struct simd *s, LLVMValueRef call) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef leaves = emit_any_lane(s, LLVMGetOperand(call, LEAVES_ALSO));
    leaves = LLVMBuildOr(b, leaves, any_outside(s, call, LEAVES_FIRST), "");
    if (LLVMGetOperand(call, LEAVES_FIRST) != LLVMGetOperand(call, LEAVES_LAST))
        leaves = LLVMBuildOr(b, leaves, any_outside(s, call, LEAVES_LAST), "");
    scalar_set(s, call, leaves);
}
