/* For the scalar engine: intrinsics become loads from the thread's context or calls of the runtime,
 * threadgroup variables become offsets into the group's memory, loops poll the stop flag, simdgroup
 * operations get sites.
 *
 * Requires: the optimised entry, everything inlined. Establishes: the entry takes a struct thread_context *.
 */
#include "abi/cpu_context.h"
#include "compiler/combine.h"
#include "compiler/cpu/inside.h"
#include "compiler/analysis/flow.h"
#include "compiler/analysis/phases.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct lowering {
    struct unit *unit;
    struct arena arena;
    LLVMValueRef context; /* the entry's parameter */
    LLVMValueRef group;   /* loaded once in the entry block */
};

static LLVMValueRef field_address(struct lowering *l, LLVMValueRef base, size_t offset) {
    LLVMValueRef index = LLVMConstInt(type_i64(l->unit), offset, false);
    return LLVMBuildGEP2(l->unit->builder, LLVMInt8TypeInContext(l->unit->context), base, &index, 1, "");
}

/* Generated code only reads these fields: loads may move and merge freely. */
static LLVMValueRef read_field(struct lowering *l, LLVMTypeRef type, LLVMValueRef base, size_t offset) {
    LLVMValueRef load = LLVMBuildLoad2(l->unit->builder, type, field_address(l, base, offset), "");
    unsigned kind = LLVMGetMDKindIDInContext(l->unit->context, "invariant.load", 14);
    LLVMSetMetadata(load, kind,
                    LLVMMetadataAsValue(l->unit->context, LLVMMDNodeInContext2(l->unit->context, NULL, 0)));
    return load;
}

static void replace(LLVMValueRef call, LLVMValueRef value) {
    LLVMReplaceAllUsesWith(call, value);
    LLVMInstructionEraseFromParent(call);
}

/* ---- Positions and addresses. */

static const struct {
    enum intrinsic intrinsic;
    bool of_group;
    size_t offset; /* of a uint32_t, or of three indexed by the argument */
    bool indexed;
} context_fields[] = {
    {INTRINSIC_POSITION_IN_THREADGROUP, false, offsetof(struct thread_context, position), true},
    {INTRINSIC_THREAD_INDEX, false, offsetof(struct thread_context, index), false},
    {INTRINSIC_LANE, false, offsetof(struct thread_context, lane), false},
    {INTRINSIC_SIMDGROUP, false, offsetof(struct thread_context, simdgroup), false},
    {INTRINSIC_THREADGROUP_POSITION, true, offsetof(struct group_context, position), true},
    {INTRINSIC_THREADGROUP_SIZE, true, offsetof(struct group_context, size), true},
    {INTRINSIC_DISPATCH_THREADGROUP_SIZE, true, offsetof(struct group_context, dispatch_size), true},
    {INTRINSIC_GRID_THREADS, true, offsetof(struct group_context, grid), true},
    {INTRINSIC_GRID_GROUPS, true, offsetof(struct group_context, groups), true},
    {INTRINSIC_SIMDGROUP_COUNT, true, offsetof(struct group_context, simdgroup_count), false},
};

static smelt_status constant_argument(struct lowering *l, LLVMValueRef call, unsigned index, uint64_t limit,
                                      uint64_t *value) {
    if (is_constant_integer(LLVMGetOperand(call, index), value) && *value < limit) return SMELT_OK;
    return unit_fail(l->unit, SMELT_ERROR_UNSUPPORTED, "argument %u of %s is not a constant below %llu",
                     index, called_name(call), (unsigned long long)limit);
}

static smelt_status lower_context_field(struct lowering *l, LLVMValueRef call, enum intrinsic intrinsic,
                                        bool *done) {
    for (size_t i = 0; i < sizeof context_fields / sizeof *context_fields; i++) {
        if (intrinsic != context_fields[i].intrinsic) continue;
        uint64_t dimension = 0;
        if (context_fields[i].indexed) TRY(constant_argument(l, call, 0, 3, &dimension));
        LLVMValueRef base = context_fields[i].of_group ? l->group : l->context;
        replace(call, read_field(l, type_i32(l->unit), base, context_fields[i].offset + 4 * dimension));
        *done = true;
        return SMELT_OK;
    }
    return SMELT_OK;
}

/* Position in the grid; all groups before this one are full. */
static smelt_status lower_thread_position(struct lowering *l, LLVMValueRef call) {
    uint64_t dimension;
    TRY(constant_argument(l, call, 0, 3, &dimension));
    LLVMBuilderRef b = l->unit->builder;
    LLVMTypeRef i32 = type_i32(l->unit);
    LLVMValueRef group =
        read_field(l, i32, l->group, offsetof(struct group_context, position) + 4 * dimension);
    LLVMValueRef size =
        read_field(l, i32, l->group, offsetof(struct group_context, dispatch_size) + 4 * dimension);
    LLVMValueRef own =
        read_field(l, i32, l->context, offsetof(struct thread_context, position) + 4 * dimension);
    replace(call, LLVMBuildAdd(b, LLVMBuildMul(b, group, size, ""), own, ""));
    return SMELT_OK;
}

static smelt_status lower_address(struct lowering *l, LLVMValueRef call, bool threadgroup) {
    uint64_t slot;
    TRY(constant_argument(l, call, 0, threadgroup ? CPU_MAX_THREADGROUP_SLOTS : CPU_MAX_SLOTS, &slot));
    LLVMTypeRef pointer = type_pointer(l->unit);
    if (threadgroup) {
        size_t offset = offsetof(struct group_context, threadgroup_slots) + slot * sizeof(void *);
        replace(call, read_field(l, pointer, l->group, offset));
    } else {
        LLVMValueRef table = read_field(l, pointer, l->group, offsetof(struct group_context, buffers));
        replace(call, read_field(l, pointer, table, slot * sizeof(void *)));
    }
    return SMELT_OK;
}

/* Extents of arguments. */
static smelt_status lower_extent(struct lowering *l, LLVMValueRef call, enum intrinsic intrinsic) {
    bool threadgroup = intrinsic == INTRINSIC_THREADGROUP_START || intrinsic == INTRINSIC_THREADGROUP_EXTENT;
    uint64_t slot;
    TRY(constant_argument(l, call, 0, threadgroup ? CPU_MAX_THREADGROUP_SLOTS : CPU_MAX_SLOTS, &slot));
    replace(call, inside_extent(l->unit, l->group, intrinsic, slot));
    return SMELT_OK;
}

/* ---- Calls of the runtime. */

static LLVMValueRef call_runtime(struct lowering *l, const char *name, LLVMTypeRef result,
                                 LLVMValueRef *arguments, unsigned count) {
    LLVMTypeRef types[5];
    for (unsigned i = 0; i < count; i++) types[i] = LLVMTypeOf(arguments[i]);
    LLVMTypeRef type = LLVMFunctionType(result, types, count, false);
    LLVMValueRef function = LLVMGetNamedFunction(l->unit->module, name);
    if (!function) function = LLVMAddFunction(l->unit->module, name, type);
    return LLVMBuildCall2(l->unit->builder, type, function, arguments, count, "");
}

static LLVMTypeRef type_void(struct lowering *l) {
    return LLVMVoidTypeInContext(l->unit->context);
}

static void lower_barrier(struct lowering *l, LLVMValueRef call) {
    LLVMValueRef file = LLVMGetOperand(call, 2);
    LLVMValueRef arguments[3] = {l->context, LLVMGetOperand(call, 1), file};
    call_runtime(l, "smelt_runtime_barrier", type_void(l), arguments, 3);
    LLVMInstructionEraseFromParent(call);
}

static void lower_return(struct lowering *l, LLVMValueRef call) {
    LLVMValueRef address = field_address(l, l->context, offsetof(struct thread_context, returned));
    LLVMBuildStore(l->unit->builder, constant_i32(l->unit, 1), address);
    LLVMInstructionEraseFromParent(call);
}

/* A call of the runtime with words in memory. */
static void lower_words(struct lowering *l, LLVMValueRef call, const char *function) {
    LLVMBuilderRef b = l->unit->builder;
    LLVMTypeRef word = type_i64(l->unit);
    unsigned count = LLVMGetNumArgOperands(call);
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(l->unit->entry);
    LLVMPositionBuilder(b, entry, LLVMGetFirstInstruction(entry));
    LLVMValueRef words = LLVMBuildAlloca(b, LLVMArrayType2(word, count), "words");
    LLVMPositionBuilderBefore(b, call);
    for (unsigned i = 0; i < count; i++)
        LLVMBuildStore(b, LLVMGetOperand(call, i), field_address(l, words, 8 * (size_t)i));
    LLVMValueRef arguments[3] = {l->context, constant_i32(l->unit, count), words};
    call_runtime(l, function, type_void(l), arguments, 3);
    LLVMInstructionEraseFromParent(call);
}

/* ---- Simdgroup operations. */

static enum simd_type type_of(enum intrinsic operation) {
    switch (operation) {
    case INTRINSIC_SIMD_SHUFFLE_I64:
    case INTRINSIC_SIMD_REDUCE_I64:
    case INTRINSIC_SIMD_SCAN_I64:
        return SIMD_I64;
    case INTRINSIC_SIMD_REDUCE_F32:
    case INTRINSIC_SIMD_SCAN_F32:
    case INTRINSIC_SIMD_MATRIX_PRODUCT:
        return SIMD_F32;
    default:
        return SIMD_I32;
    }
}

static LLVMValueRef to_bits(struct lowering *l, LLVMValueRef value) {
    LLVMBuilderRef b = l->unit->builder;
    LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(value));
    if (kind == LLVMFloatTypeKind) value = LLVMBuildBitCast(b, value, type_i32(l->unit), "");
    return LLVMBuildZExtOrBitCast(b, value, type_i64(l->unit), "");
}

static LLVMValueRef from_bits(struct lowering *l, LLVMValueRef bits, LLVMTypeRef type) {
    LLVMBuilderRef b = l->unit->builder;
    if (LLVMGetTypeKind(type) == LLVMFloatTypeKind)
        return LLVMBuildBitCast(b, LLVMBuildTrunc(b, bits, type_i32(l->unit), ""), type, "");
    return LLVMBuildTruncOrBitCast(b, bits, type, "");
}

/* Four floats are passed on the thread's stack, which stays valid while the thread waits. */
static LLVMValueRef store_operands(struct lowering *l, LLVMValueRef call) {
    LLVMBuilderRef b = l->unit->builder;
    LLVMTypeRef element = LLVMTypeOf(call);
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(l->unit->entry)));
    LLVMValueRef slot = LLVMBuildAlloca(b, LLVMArrayType2(element, 4), "");
    LLVMPositionBuilderBefore(b, call);
    for (unsigned i = 0; i < 4; i++) {
        LLVMValueRef index = constant_i32(l->unit, i);
        LLVMBuildStore(b, LLVMGetOperand(call, i), LLVMBuildInBoundsGEP2(b, element, slot, &index, 1, ""));
    }
    return LLVMBuildPtrToInt(b, slot, type_i64(l->unit), "");
}

static smelt_status lower_simd(struct lowering *l, LLVMValueRef call, enum simd_kind kind, int site) {
    uint64_t what = 0, width = SIMDGROUP_LANES;
    LLVMValueRef argument = constant_i32(l->unit, 0), value = NULL;
    switch (kind) {
    case SIMD_REDUCE:
    case SIMD_SCAN:
        TRY(constant_argument(l, call, 0, 32, &what));
        TRY(constant_argument(l, call, 1, SIMDGROUP_LANES + 1, &width));
        value = LLVMGetOperand(call, 2);
        break;
    case SIMD_SHUFFLE:
        argument = LLVMGetOperand(call, 1);
        value = LLVMGetOperand(call, 0);
        break;
    case SIMD_BALLOT:
        value = LLVMGetOperand(call, 0);
        break;
    case SIMD_MATRIX:
        value = store_operands(l, call);
        break;
    case SIMD_BARRIER:
        break;
    }
    LLVMPositionBuilderBefore(l->unit->builder, call);
    uint32_t code = SIMD_CODE(kind, type_of(intrinsic_of(call)), what, width);
    LLVMValueRef bits = value ? to_bits(l, value) : LLVMConstInt(type_i64(l->unit), 0, false);
    LLVMValueRef arguments[5] = {l->context, constant_i32(l->unit, (uint32_t)site),
                                 constant_i32(l->unit, code), argument, bits};
    LLVMValueRef result = call_runtime(l, "smelt_runtime_simdgroup", type_i64(l->unit), arguments, 5);
    if (LLVMGetTypeKind(LLVMTypeOf(call)) == LLVMVoidTypeKind)
        LLVMInstructionEraseFromParent(call);
    else
        replace(call, from_bits(l, result, LLVMTypeOf(call)));
    return SMELT_OK;
}

static int loops_around(const struct flow *flow, int loop) {
    int count = 0;
    for (; loop >= 0; loop = flow->loops[loop].parent) count++;
    return count;
}

/* The path of an operation: the loops around it with their positions, which are marked, then its own
 * position. Positions count blocks and operations in reverse post-order, which orders any two blocks of a
 * loop as control flow does; a loop has the position of its header. */
static smelt_status fill_site(struct lowering *l, const struct flow *flow, int block,
                              const int *block_positions, int position, bool *counted, struct site *site) {
    int loop = flow->blocks[block].loop, depth = loops_around(flow, loop);
    if (depth > SITE_MAX_DEPTH)
        return unit_fail(l->unit, SMELT_ERROR_UNSUPPORTED,
                         "a simdgroup function is in %d nested loops; expected at most %d on device "
                         "'cpu-scalar'",
                         depth, SITE_MAX_DEPTH);
    site->depth = depth;
    site->position[depth] = position;
    for (; loop >= 0; loop = flow->loops[loop].parent) {
        site->position[--depth] = block_positions[flow->loops[loop].header];
        counted[loop] = true;
    }
    return SMELT_OK;
}

/* The iteration count starts at 0 on each entry to the loop and grows on each back edge. */
static void count_iterations(struct lowering *l, const struct flow *flow, const struct flow_loop *loop) {
    LLVMBuilderRef b = l->unit->builder;
    size_t offset =
        offsetof(struct thread_context, iterations) + 4 * (size_t)loops_around(flow, loop->parent);
    const struct flow_block *header = &flow->blocks[loop->header];
    for (int p = 0; p < header->predecessor_count; p++) {
        int predecessor = header->predecessors[p];
        bool back = false;
        for (int i = 0; i < loop->latch_count; i++) back |= loop->latches[i] == predecessor;
        LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(flow->blocks[predecessor].block));
        LLVMValueRef address = field_address(l, l->context, offset);
        LLVMValueRef value = constant_i32(l->unit, 0);
        if (back) {
            LLVMValueRef old = LLVMBuildLoad2(b, type_i32(l->unit), address, "");
            value = LLVMBuildAdd(b, old, constant_i32(l->unit, 1), "");
        }
        LLVMBuildStore(b, value, address);
    }
}

static smelt_status lower_simd_operations(struct lowering *l, const struct flow *flow) {
    struct image *image = &l->unit->result->image;
    bool *counted = arena_alloc(&l->arena, (size_t)flow->loop_count + 1);
    int *block_positions = arena_alloc(&l->arena, (size_t)flow->block_count * sizeof *block_positions);
    int capacity = 0, position = 0;
    if (!counted || !block_positions)
        return unit_fail(l->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for loops");
    for (int i = 0; i < flow->block_count; i++) {
        block_positions[i] = position++;
        FOR_EACH_INSTRUCTION(instruction, flow->blocks[i].block) {
            enum simd_kind kind;
            if (!simdgroup_kind(intrinsic_of(instruction), &kind)) continue;
            if (image->site_count == capacity) {
                capacity = capacity ? 2 * capacity : 16;
                struct site *grown = realloc(image->sites, (size_t)capacity * sizeof *grown);
                if (!grown)
                    return unit_fail(l->unit, SMELT_ERROR_OUT_OF_MEMORY,
                                     "no memory for simdgroup operations");
                image->sites = grown;
            }
            struct site *site = &image->sites[image->site_count];
            memset(site, 0, sizeof *site);
            TRY(fill_site(l, flow, i, block_positions, position++, counted, site));
            TRY(lower_simd(l, instruction, kind, image->site_count++));
        }
    }
    for (int i = 0; i < flow->loop_count; i++)
        if (counted[i]) count_iterations(l, flow, &flow->loops[i]);
    return SMELT_OK;
}

/* ---- Back edges poll the stop flag, so that a time-out ends any loop. */

static void poll_back_edges(struct lowering *l, const struct flow *flow) {
    struct unit *unit = l->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMBasicBlockRef stop = NULL;
    for (int i = 0; i < flow->block_count; i++) {
        LLVMBasicBlockRef from = flow->blocks[i].block;
        LLVMValueRef terminator = LLVMGetBasicBlockTerminator(from);
        for (unsigned s = 0; s < LLVMGetNumSuccessors(terminator); s++) {
            LLVMBasicBlockRef to = LLVMGetSuccessor(terminator, s);
            int target = flow_index(flow, to);
            if (target < 0 || target > i) continue;
            LLVMBasicBlockRef edge = flow_split_edge(unit, from, s);
            if (!stop) {
                stop = LLVMAppendBasicBlockInContext(unit->context, unit->entry, "stopped");
                LLVMPositionBuilderAtEnd(b, stop);
                call_runtime(l, "smelt_runtime_stop", type_void(l), &l->context, 1);
                LLVMBuildUnreachable(b);
            }
            LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(edge));
            LLVMPositionBuilderAtEnd(b, edge);
            LLVMValueRef address =
                read_field(l, type_pointer(unit), l->group, offsetof(struct group_context, stop));
            LLVMValueRef flag = LLVMBuildLoad2(b, type_i32(unit), address, "");
            LLVMSetVolatile(flag, true);
            LLVMValueRef set = LLVMBuildICmp(b, LLVMIntNE, flag, constant_i32(unit, 0), "");
            LLVMBuildCondBr(b, set, stop, to);
        }
    }
}

/* ---- The pass. */

static smelt_status lower_call(struct lowering *l, LLVMValueRef call, enum intrinsic intrinsic) {
    bool done = false;
    LLVMPositionBuilderBefore(l->unit->builder, call);
    TRY(lower_context_field(l, call, intrinsic, &done));
    if (done) return SMELT_OK;
    if (intrinsic == INTRINSIC_THREAD_POSITION) return lower_thread_position(l, call);
    if (intrinsic == INTRINSIC_BUFFER_ADDRESS) return lower_address(l, call, false);
    if (intrinsic == INTRINSIC_THREADGROUP_ADDRESS) return lower_address(l, call, true);
    if (inside_is_extent(intrinsic)) return lower_extent(l, call, intrinsic);
    if (intrinsic == INTRINSIC_THREADGROUP_BARRIER) {
        lower_barrier(l, call);
    } else if (intrinsic == INTRINSIC_THREAD_RETURN) {
        lower_return(l, call);
    } else if (intrinsic == INTRINSIC_NEVER) {
        replace(call, LLVMConstNull(LLVMTypeOf(call)));
    } else if (intrinsic == INTRINSIC_LOG) {
        lower_words(l, call, "smelt_runtime_log");
    } else if (intrinsic == INTRINSIC_TILE_MEMORY) {
        replace(call, call_runtime(l, "smelt_runtime_tile_memory", LLVMTypeOf(call), &l->context, 1));
    } else if (intrinsic == INTRINSIC_TILE_PRODUCT) {
        lower_words(l, call, "smelt_runtime_tile");
    } else if (intrinsic == INTRINSIC_MAX_THREADS) {
        LLVMInstructionEraseFromParent(call); /* after pass_thread_limits has read it */
    } else if (intrinsic != INTRINSIC_NONE) {
        return unit_fail(l->unit, SMELT_ERROR_INTERNAL, "the scalar engine does not support the intrinsic %s",
                         called_name(call));
    }
    return SMELT_OK;
}

static smelt_status lower(struct lowering *l) {
    struct unit *unit = l->unit;
    l->context = LLVMGetParam(unit->entry, 0);
    LLVMPositionBuilder(unit->builder, LLVMGetEntryBasicBlock(unit->entry),
                        LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(unit->entry)));
    l->group = read_field(l, type_pointer(unit), l->context, offsetof(struct thread_context, group));
    inside_lower(unit, unit->entry);
    TRY(memory_measure_private(unit));
    TRY(memory_place_variables(unit, unit->entry, l->group));
    struct flow flow;
    TRY(flow_find(unit, unit->entry, &l->arena, &flow));
    TRY(lower_simd_operations(l, &flow));
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (LLVMIsACallInst(instruction)) TRY(lower_call(l, instruction, intrinsic_of(instruction)));
    }
    poll_back_edges(l, &flow);
    return SMELT_OK;
}

smelt_status pass_lower_scalar(struct unit *unit) {
    /* Sites are ordered by loops, so every loop needs one header that dominates it. */
    TRY(flow_make_reducible(unit));
    TRY(run_passes(unit, "function(loop-simplify)"));
    hold_release(unit, unit->entry);
    struct lowering l = {.unit = unit};
    smelt_status status = lower(&l);
    arena_free(&l.arena);
    if (status != SMELT_OK) return status;
    return run_passes(unit, "function(early-cse,instcombine<no-verify-fixpoint>,simplifycfg),globaldce");
}
