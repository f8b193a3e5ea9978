/* Prefetches of the next tile, and of a row's next rounds.
 *
 * Tiles. Kernels load a tile of a matrix, wait at a barrier, compute, wait and go on:
 *
 *   for (base = 0; base < n; base += 16) { tile[…] = a[row * n + base + column]; barrier; …; barrier; }
 *
 * A tile has many rows and a few cache lines of each. No hardware prefetcher follows so many streams, and
 * after the barrier all threads wait for memory at the same time. So, after its loads, a round prefetches
 * what they load in the next round: their addresses plus the step of a round, if that is the same number of
 * bytes in all rounds and for all threads. Addresses that the kernel never loads from do no harm.
 *
 * Rows. The threads of a group share a row, `for (i = thread; i < n; i += threads)`, of which a gang that is
 * a part of the group loads a part in each round: a line or two of each KiB, at once the rest of the row. The
 * hardware's prefetcher sees a stride without an end in sight, and a row's lines arrive one by one. So a
 * round prefetches what its own gang loads some rounds later.
 *
 * A gang prefetches a cache line once, where it is known which lanes share it. Where too little is known of
 * the lanes' addresses, it does nothing.
 *
 * Requires: the entry as simd-prepare leaves it. Maintains: what a thread does. */
#include "compiler/bounds/bounds.h"
#include "compiler/simd/simd.h"
#include "compiler/analysis/uniform.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

#define PREFETCH "llvm.prefetch"

enum { MOST_DEPTH = 16, MOST_NODES = 64, MOST_LOADS = 64, LINE_BYTES = 64 };

/* Localities of prefetches, by which emission tells them apart. A tile's go to the second-level cache, as its
 * rows may share few sets of the first. */
enum { TILE_CACHE = 2, ROW_CACHE = 3 };

/* Bytes. Rounds of 128 bytes of a gang take 15 to 30 ns, a line from memory 100 or more. What is further
 * ahead belongs to the next rows, which another worker may have. */
enum { LEAST_ROW_STEP = 256, ROW_AHEAD = 8192, MOST_ROUNDS = 8 };

/* ---- Finding. */

struct finder {
    struct unit *unit;
    struct flow flow;
    struct arena arena;
    int loop;
    bool has_barrier; /* the loop */
    LLVMBasicBlockRef before, latch;
    int nodes;
    struct place seen[MOST_LOADS]; /* of the block */
    int seen_count;
};

static bool has_barrier(struct finder *f, int loop) {
    for (int b = 0; b < f->flow.block_count; b++) {
        if (flow_block_within(&f->flow, b, loop) &&
            intrinsic_in_block(f->flow.blocks[b].block, INTRINSIC_THREADGROUP_BARRIER))
            return true;
    }
    return false;
}

/* The innermost loop around the block that has a barrier, or else the innermost of all, and one edge into it.
 * False: there is none. */
static bool find_loop(struct finder *f, int block) {
    int own = f->flow.blocks[block].loop, loop = own;
    while (loop >= 0 && !has_barrier(f, loop)) loop = f->flow.loops[loop].parent;
    f->has_barrier = loop >= 0;
    if (!f->has_barrier) loop = own;
    if (loop < 0 || f->flow.loops[loop].latch_count != 1) return false;
    const struct flow_block *header = &f->flow.blocks[f->flow.loops[loop].header];
    if (header->predecessor_count != 2) return false;
    int latch = f->flow.loops[loop].latches[0], first = header->predecessors[0];
    f->loop = loop;
    f->latch = f->flow.blocks[latch].block;
    f->before = f->flow.blocks[first == latch ? header->predecessors[1] : first].block;
    return true;
}

static bool is_in_loop(const struct finder *f, LLVMValueRef value) {
    if (!LLVMIsAInstruction(value)) return false;
    return flow_block_within(&f->flow, flow_index(&f->flow, LLVMGetInstructionParent(value)), f->loop);
}

static LLVMValueRef zero_of(LLVMValueRef value) {
    return LLVMConstNull(LLVMTypeOf(value));
}

static LLVMValueRef step_of(struct finder *f, LLVMValueRef value, int depth);

/* What the next value of a loop's phi adds to it, if it is a sum with it; else NULL. */
static LLVMValueRef increment_of(struct finder *f, LLVMValueRef phi, LLVMBasicBlockRef latch) {
    LLVMValueRef next = phi_incoming(phi, latch);
    if (!next || !LLVMIsABinaryOperator(next) || LLVMGetInstructionOpcode(next) != LLVMAdd) return NULL;
    LLVMValueRef x = LLVMGetOperand(next, 0), y = LLVMGetOperand(next, 1);
    LLVMValueRef increment = x == phi ? y : y == phi ? x : NULL;
    return increment && !is_in_loop(f, increment) ? increment : NULL;
}

/* An address that a round moves on: `a += 16 * n`. */
static LLVMValueRef increment_of_address(struct finder *f, LLVMValueRef phi) {
    LLVMValueRef next = phi_incoming(phi, f->latch);
    if (!next || !LLVMIsAGetElementPtrInst(next) || LLVMGetNumOperands(next) != 2 ||
        LLVMGetOperand(next, 0) != phi || is_in_loop(f, LLVMGetOperand(next, 1)))
        return NULL;
    uint64_t size = LLVMABISizeOfType(f->unit->layout, LLVMGetGEPSourceElementType(next));
    LLVMValueRef index =
        LLVMBuildSExtOrBitCast(f->unit->builder, LLVMGetOperand(next, 1), type_i64(f->unit), "");
    return LLVMBuildMul(f->unit->builder, index, LLVMConstInt(type_i64(f->unit), size, false), "");
}

/* A counter of an inner loop begins each of its rounds at the same step from the last time. */
static LLVMValueRef step_of_phi(struct finder *f, LLVMValueRef phi, int depth) {
    LLVMBasicBlockRef block = LLVMGetInstructionParent(phi);
    int place = flow_index(&f->flow, block), loop = f->flow.blocks[place].loop;
    if (loop == f->loop && f->flow.loops[loop].header == place)
        return LLVMGetTypeKind(LLVMTypeOf(phi)) == LLVMPointerTypeKind ? increment_of_address(f, phi)
                                                                       : increment_of(f, phi, f->latch);
    if (f->flow.loops[loop].header != place || f->flow.loops[loop].latch_count != 1 ||
        LLVMCountIncoming(phi) != 2)
        return NULL;
    LLVMBasicBlockRef latch = f->flow.blocks[f->flow.loops[loop].latches[0]].block;
    if (!increment_of(f, phi, latch)) return NULL;
    return step_of(f, LLVMGetIncomingValue(phi, LLVMGetIncomingBlock(phi, 0) == latch), depth);
}

static LLVMValueRef step_of_sum(struct finder *f, LLVMValueRef sum, int depth) {
    LLVMValueRef x = step_of(f, LLVMGetOperand(sum, 0), depth),
                 y = x ? step_of(f, LLVMGetOperand(sum, 1), depth) : NULL;
    if (!y) return NULL;
    return LLVMGetInstructionOpcode(sum) == LLVMSub ? LLVMBuildSub(f->unit->builder, x, y, "")
                                                    : LLVMBuildAdd(f->unit->builder, x, y, "");
}

static LLVMValueRef step_of_product(struct finder *f, LLVMValueRef product, int depth) {
    LLVMValueRef x = LLVMGetOperand(product, 0), y = LLVMGetOperand(product, 1);
    if (LLVMGetInstructionOpcode(product) == LLVMMul && is_in_loop(f, y)) {
        LLVMValueRef other = x;
        x = y;
        y = other;
    }
    LLVMValueRef step = is_in_loop(f, y) ? NULL : step_of(f, x, depth);
    if (!step) return NULL;
    return LLVMGetInstructionOpcode(product) == LLVMShl ? LLVMBuildShl(f->unit->builder, step, y, "")
                                                        : LLVMBuildMul(f->unit->builder, step, y, "");
}

static LLVMValueRef step_of_address(struct finder *f, LLVMValueRef gep, int depth) {
    LLVMBuilderRef b = f->unit->builder;
    LLVMValueRef sum = step_of(f, LLVMGetOperand(gep, 0), depth);
    if (!sum || LLVMGetNumOperands(gep) != 2) return NULL;
    LLVMValueRef index = step_of(f, LLVMGetOperand(gep, 1), depth);
    if (!index || LLVMGetIntTypeWidth(LLVMTypeOf(index)) > 64) return NULL;
    uint64_t size = LLVMABISizeOfType(f->unit->layout, LLVMGetGEPSourceElementType(gep));
    index = LLVMBuildSExtOrBitCast(b, index, type_i64(f->unit), "");
    return LLVMBuildAdd(b, sum, LLVMBuildMul(b, index, LLVMConstInt(type_i64(f->unit), size, false), ""), "");
}

static bool is_same_in_all_rounds(struct finder *f, LLVMValueRef value, int depth) {
    for (int o = 0; o < LLVMGetNumOperands(value); o++) {
        LLVMValueRef step = step_of(f, LLVMGetOperand(value, (unsigned)o), depth);
        if (!step || !LLVMIsNull(step)) return false;
    }
    return true;
}

/* By how much the value differs in the next round, built before the loop: of addresses in bytes, i64. NULL:
 * not known. Sums are assumed not to wrap around, and extended numbers to be signed: a prefetch of another
 * address does no harm. */
static LLVMValueRef step_of(struct finder *f, LLVMValueRef value, int depth) {
    bool pointer = LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMPointerTypeKind;
    if (!is_in_loop(f, value)) return pointer ? LLVMConstNull(type_i64(f->unit)) : zero_of(value);
    if (depth == MOST_DEPTH || ++f->nodes > MOST_NODES) return NULL;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMPHI:
        return step_of_phi(f, value, depth + 1);
    case LLVMAdd:
    case LLVMSub:
        return step_of_sum(f, value, depth + 1);
    case LLVMOr:
        return LLVMGetIsDisjoint(value) ? step_of_sum(f, value, depth + 1) : NULL;
    case LLVMMul:
    case LLVMShl:
        return step_of_product(f, value, depth + 1);
    case LLVMSExt:
    case LLVMZExt: {
        LLVMValueRef step = step_of(f, LLVMGetOperand(value, 0), depth + 1);
        return step ? LLVMBuildSExt(f->unit->builder, step, LLVMTypeOf(value), "") : NULL;
    }
    case LLVMTrunc: {
        LLVMValueRef step = step_of(f, LLVMGetOperand(value, 0), depth + 1);
        return step ? LLVMBuildTrunc(f->unit->builder, step, LLVMTypeOf(value), "") : NULL;
    }
    case LLVMGetElementPtr:
        return step_of_address(f, value, depth + 1);
    default:
        return LLVMIsABinaryOperator(value) && is_same_in_all_rounds(f, value, depth + 1) ? zero_of(value)
                                                                                          : NULL;
    }
}

static LLVMValueRef address_of(LLVMValueRef load) {
    return LLVMGetOperand(load, 0);
}

/* Whether it loads from device or constant memory. */
static bool is_candidate(LLVMValueRef i) {
    if (!LLVMIsALoadInst(i) || LLVMGetVolatile(i) || LLVMGetOrdering(i) != LLVMAtomicOrderingNotAtomic)
        return false;
    unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(address_of(i)));
    return space != 0 && space != THREADGROUP_SPACE;
}

/* Whether the thread's line is that of an earlier load of the block, as for the elements of a float4. */
static bool is_seen(struct finder *f, LLVMValueRef address) {
    struct place own = bounds_place(f->unit, address);
    for (int n = 0; n < f->seen_count; n++) {
        const struct place *other = &f->seen[n];
        int64_t distance = own.constant - other->constant;
        if (own.root == other->root && own.index == other->index && own.scale == other->scale &&
            own.extension == other->extension && distance < LINE_BYTES && distance > -LINE_BYTES)
            return true;
    }
    if (f->seen_count < MOST_LOADS) f->seen[f->seen_count++] = own;
    return false;
}

/* At the next barrier or the end of the block: after the other loads, for which threads wait. Of rows,
 * `further` is what is added to the step; of tiles NULL. */
static void prefetch(struct finder *f, LLVMValueRef load, LLVMValueRef step, LLVMValueRef further) {
    LLVMBuilderRef b = f->unit->builder;
    LLVMValueRef place = load;
    while (!LLVMIsATerminatorInst(place) && intrinsic_of(place) != INTRINSIC_THREADGROUP_BARRIER)
        place = LLVMGetNextInstruction(place);
    LLVMPositionBuilderBefore(b, place);
    LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(load));
    LLVMTypeRef byte = LLVMInt8TypeInContext(f->unit->context);
    LLVMValueRef next = LLVMBuildGEP2(b, byte, address_of(load), &step, 1, "");
    if (further) next = LLVMBuildGEP2(b, byte, next, &further, 1, "");
    int cache = further ? ROW_CACHE : TILE_CACHE;
    LLVMValueRef arguments[4] = {next, constant_i32(f->unit, 0), constant_i32(f->unit, cache),
                                 constant_i32(f->unit, 1)};
    build_intrinsic(f->unit, PREFETCH, LLVMTypeOf(next), arguments, 4);
}

/* Of a loop over a row, whose step is constant: several rounds ahead. */
static void prefetch_row(struct finder *f, LLVMValueRef load, LLVMValueRef step) {
    if (!LLVMIsAConstantInt(step)) return;
    int64_t bytes = LLVMConstIntGetSExtValue(step);
    if (bytes < LEAST_ROW_STEP || bytes > ROW_AHEAD) return;
    int64_t rounds = ROW_AHEAD / bytes < MOST_ROUNDS ? ROW_AHEAD / bytes : MOST_ROUNDS;
    prefetch(f, load, step, LLVMConstInt(type_i64(f->unit), (uint64_t)(bytes * (rounds - 1)), false));
}

static void look_at_block(struct finder *f, int block) {
    f->seen_count = 0;
    FOR_EACH_INSTRUCTION(i, f->flow.blocks[block].block) {
        if (!is_candidate(i) || is_seen(f, address_of(i))) continue;
        f->nodes = 0;
        LLVMPositionBuilderBefore(f->unit->builder, LLVMGetBasicBlockTerminator(f->before));
        LLVMSetCurrentDebugLocation2(f->unit->builder, NULL);
        LLVMValueRef step = step_of(f, address_of(i), 0);
        if (!step || LLVMIsNull(step) || !uniform_is(&f->flow, step)) continue;
        if (f->has_barrier)
            prefetch(f, i, step, NULL);
        else
            prefetch_row(f, i, step);
    }
}

smelt_status pass_simd_prefetch(struct unit *unit) {
    struct finder f = {.unit = unit};
    if (unit->form != FORM_BEST || unit->result->image.quick ||
        !intrinsic_in_function(unit->entry, INTRINSIC_THREADGROUP_BARRIER))
        return SMELT_OK;
    smelt_status status = flow_find(unit, unit->entry, &f.arena, &f.flow);
    for (int b = 0; status == SMELT_OK && b < f.flow.block_count; b++)
        if (find_loop(&f, b)) look_at_block(&f, b);
    arena_free(&f.arena);
    return status;
}

/* ---- Emission. */

static void prefetch_at(struct simd *s, LLVMValueRef call, LLVMValueRef base, int64_t bytes) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef offset = LLVMConstInt(type_i64(s->unit), (unsigned long long)bytes, true), arguments[4];
    LLVMTypeRef type = LLVMTypeOf(base);
    arguments[0] =
        bytes ? LLVMBuildGEP2(b, LLVMInt8TypeInContext(s->unit->context), base, &offset, 1, "") : base;
    for (unsigned o = 1; o < 4; o++) arguments[o] = LLVMGetOperand(call, o);
    simd_intrinsic(s, PREFETCH, &type, 1, arguments, 4);
}

static int64_t line_of(int64_t offset) {
    return offset >= 0 ? offset / LINE_BYTES : (offset - LINE_BYTES + 1) / LINE_BYTES;
}

/* The lanes' addresses are lane 0's plus constants. Each cache line is prefetched once. */
static void prefetch_affine(struct simd *s, LLVMValueRef call, LLVMValueRef address, int chunk) {
    const int64_t *offsets = shape_offsets(s, shape_of(s, address));
    int first = chunk * s->chunk_lanes;
    for (int lane = first; lane < first + s->chunk_lanes; lane++) {
        bool shared = false;
        for (int other = first > 0 ? first - 1 : 0; other < lane && !shared; other++)
            shared = line_of(offsets[other]) == line_of(offsets[lane]);
        if (!shared) prefetch_at(s, call, scalar_of(s, address), offsets[lane]);
    }
}

/* The lanes' addresses fall into rows. */
static void prefetch_rows(struct simd *s, LLVMValueRef call, LLVMValueRef address, int chunk) {
    struct row_view view;
    if (2 * rows_find(s, address, chunk, &view) > s->chunk_lanes) return;
    for (int lane = 0; lane < s->chunk_lanes; lane++) {
        bool shared = false;
        for (int other = 0; other < lane && !shared; other++)
            shared = view.leader[other] == view.leader[lane] &&
                     line_of(view.offset[other]) == line_of(view.offset[lane]);
        if (!shared) prefetch_at(s, call, rows_lane(s, address, chunk, view.leader[lane]), view.offset[lane]);
    }
}

/* Whether the gang's rounds leave out half of the row or more, which other gangs of the group load. Where
 * they do not, the hardware's prefetcher follows. Lanes that load parts of blocks leave out less. */
static bool has_gaps(struct simd *s, LLVMValueRef ahead) {
    struct span span = shape_span(s, shape_of(s, ahead), 0, s->lanes);
    LLVMValueRef next = LLVMGetOperand(ahead, 0);
    int64_t step = LLVMConstIntGetSExtValue(LLVMGetOperand(next, 1));
    return 2 * (span.most - span.least) <= step;
}

bool emit_prefetch(struct simd *s, LLVMValueRef i, int chunk) {
    if (strncmp(called_name(i), PREFETCH ".", sizeof PREFETCH) != 0) return false;
    LLVMValueRef address = LLVMGetOperand(i, 0);
    int shape = shape_of(s, address);
    if (LLVMConstIntGetZExtValue(LLVMGetOperand(i, 2)) == ROW_CACHE) {
        if (shape > SHAPE_UNIFORM && has_gaps(s, address)) prefetch_affine(s, i, address, chunk);
    } else if (shape == SHAPE_UNIFORM) {
        if (chunk == s->first_chunk) prefetch_at(s, i, scalar_of(s, address), 0);
    } else if (shape != SHAPE_VARYING) {
        prefetch_affine(s, i, address, chunk);
    } else if (s->chunk_lanes > 1) {
        prefetch_rows(s, i, address, chunk);
    }
    return true;
}
