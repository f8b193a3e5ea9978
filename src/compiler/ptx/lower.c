/* Intrinsics become what a GPU has: special registers, the kernel's parameter, barriers. Atomics get fences;
 * loops poll the stop flag.
 *
 * Blocks have one dimension and as many threads as a full group, so that simdgroups are warps. Positions are
 * computed from the thread's number and its group's own size; surplus threads of a group at the edge leave at
 * once.
 *
 * Requires: the retargeted module, without simdgroup operations. Establishes: no intrinsic of smelt is left;
 * the entry's parameter is a struct cuda_parameters; image.threadgroup_bytes, log_words, max_threads. */
#include "abi/cuda_parameters.h"
#include "compiler/analysis/phases.h"
#include "compiler/ptx/warp/lanes.h"
#include "compiler/ptx/ptx.h"

#include <stddef.h>

#define PTX_SHARED_NAME INTRINSIC_PREFIX "shared"

struct lowering {
    struct unit *unit;
    const struct code_shape *shape;
    LLVMValueRef shared; /* all threadgroup memory */
    /* Computed once, at the start of the entry. */
    LLVMValueRef thread;          /* in the group */
    LLVMValueRef position[3];     /* of the thread in its group */
    LLVMValueRef group[3];        /* the group's in the grid */
    LLVMValueRef size[3], own[3]; /* of a full group, of this one */
    LLVMValueRef grid[3], groups[3];
    LLVMValueRef threads; /* of this group */
};

static LLVMValueRef parameter_i32(struct lowering *l, size_t offset) {
    return ptx_parameter(l->unit, type_i32(l->unit), offset);
}

static void leave_if(struct lowering *l, LLVMValueRef condition) {
    LLVMValueRef word = LLVMBuildZExt(l->unit->builder, condition, type_i32(l->unit), "");
    ptx_assembly(l->unit, "{ .reg .pred p; setp.ne.u32 p, $0, 0; @p exit; }", "r,~{memory}", NULL, &word, 1,
                 true);
}

/* ---- Positions. */

static bool is_line(const struct code_shape *shape) {
    return shape->size[1] == 1 && shape->size[2] == 1;
}

/* More groups than a hardware grid has in a dimension are numbered in rows of at most 2^30. */
static void unfold_groups(struct lowering *l) {
    struct unit *unit = l->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef wide = type_i64(unit);
    LLVMValueRef row = LLVMBuildZExt(b, ptx_register(unit, "ctaid.y"), wide, "");
    LLVMValueRef width = LLVMBuildZExt(b, ptx_register(unit, "nctaid.x"), wide, "");
    LLVMValueRef index = LLVMBuildZExt(b, ptx_register(unit, "ctaid.x"), wide, "");
    LLVMValueRef rest = LLVMBuildAdd(b, LLVMBuildMul(b, row, width, ""), index, "");
    for (int d = 0; d < 2; d++) {
        LLVMValueRef count = LLVMBuildZExt(b, l->groups[d], wide, "");
        l->group[d] = LLVMBuildTrunc(b, LLVMBuildURem(b, rest, count, ""), type_i32(unit), "");
        rest = LLVMBuildUDiv(b, rest, count, "");
    }
    LLVMValueRef last = LLVMBuildZExt(b, l->groups[2], wide, "");
    leave_if(l, LLVMBuildICmp(b, LLVMIntUGE, rest, last, ""));
    l->group[2] = LLVMBuildTrunc(b, rest, type_i32(unit), "");
}

/* Groups of tensor products run in bands of rows, so that those at work at the same time share more of what
 * they read. The hardware numbers them row by row. */
#define BAND_ROWS 16

static void order_in_bands(struct lowering *l) {
    struct unit *unit = l->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef width = l->groups[0], most = constant_i32(unit, BAND_ROWS);
    LLVMValueRef number = LLVMBuildAdd(b, LLVMBuildMul(b, l->group[1], width, ""), l->group[0], "");
    LLVMValueRef in_band = LLVMBuildMul(b, width, most, "");
    LLVMValueRef top = LLVMBuildMul(b, LLVMBuildUDiv(b, number, in_band, ""), most, "");
    LLVMValueRef left = LLVMBuildSub(b, l->groups[1], top, "");
    LLVMValueRef full = LLVMBuildICmp(b, LLVMIntUGE, left, most, "");
    LLVMValueRef rows = LLVMBuildSelect(b, full, most, left, "");
    LLVMValueRef rest = LLVMBuildURem(b, number, in_band, "");
    l->group[0] = LLVMBuildUDiv(b, rest, rows, "");
    l->group[1] = LLVMBuildAdd(b, top, LLVMBuildURem(b, rest, rows, ""), "");
}

static void find_groups(struct lowering *l) {
    static const char *const registers[] = {"ctaid.x", "ctaid.y", "ctaid.z"};
    for (size_t d = 0; d < 3; d++) {
        l->grid[d] = parameter_i32(l, offsetof(struct cuda_parameters, grid) + 4 * d);
        l->groups[d] = parameter_i32(l, offsetof(struct cuda_parameters, groups) + 4 * d);
        l->size[d] = l->shape->size[d]
                         ? constant_i32(l->unit, l->shape->size[d])
                         : parameter_i32(l, offsetof(struct cuda_parameters, group_size) + 4 * d);
    }
    if (l->shape->folded) {
        unfold_groups(l);
        return;
    }
    for (size_t d = 0; d < 3; d++) l->group[d] = ptx_register(l->unit, registers[d]);
    if (LLVMGetNamedGlobal(l->unit->module, PTX_MAPS_NAME)) order_in_bands(l);
}

static void find_own_sizes(struct lowering *l) {
    LLVMBuilderRef b = l->unit->builder;
    for (int d = 0; d < 3; d++) {
        l->own[d] = l->size[d];
        if (!l->shape->masked || l->shape->size[d] == 1) continue;
        LLVMValueRef before = LLVMBuildMul(b, l->group[d], l->size[d], "");
        LLVMValueRef left = LLVMBuildSub(b, l->grid[d], before, "");
        LLVMValueRef full = LLVMBuildICmp(b, LLVMIntUGE, left, l->size[d], "");
        l->own[d] = LLVMBuildSelect(b, full, l->size[d], left, "");
    }
    l->threads = LLVMBuildMul(b, LLVMBuildMul(b, l->own[0], l->own[1], ""), l->own[2], "");
}

/* The thread's position in a group of these sizes. */
static void divide_thread(struct lowering *l, LLVMValueRef *sizes, LLVMValueRef *position) {
    LLVMBuilderRef b = l->unit->builder;
    LLVMValueRef rest = l->thread;
    for (int d = 0; d < 2; d++) {
        position[d] = LLVMBuildURem(b, rest, sizes[d], "");
        rest = LLVMBuildUDiv(b, rest, sizes[d], "");
    }
    position[2] = rest;
}

/* Full groups divide by constants, mostly powers of two, and groups at the edge by sizes known only at run
 * time: two such divisions take 35 instructions, as many as a small stencil. */
static void divide_by_edge(struct lowering *l, LLVMValueRef next) {
    struct unit *unit = l->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef full = LLVMConstInt(LLVMInt1TypeInContext(unit->context), 1, false), in_full[3], at_edge[3];
    for (int d = 0; d < 2; d++)
        full = LLVMBuildAnd(b, full, LLVMBuildICmp(b, LLVMIntEQ, l->own[d], l->size[d], ""), "");
    divide_thread(l, l->size, in_full);
    LLVMBasicBlockRef before = LLVMGetInstructionParent(next), rest = flow_split_block(unit, next),
                      edge = LLVMInsertBasicBlockInContext(unit->context, rest, "edge");
    LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(before));
    LLVMPositionBuilderAtEnd(b, before);
    LLVMBuildCondBr(b, full, rest, edge);
    LLVMPositionBuilderAtEnd(b, edge);
    divide_thread(l, l->own, at_edge);
    LLVMBuildBr(b, rest);
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(rest));
    for (int d = 0; d < 3; d++) {
        l->position[d] = LLVMBuildPhi(b, type_i32(unit), "");
        LLVMAddIncoming(l->position[d], &in_full[d], &before, 1);
        LLVMAddIncoming(l->position[d], &at_edge[d], &edge, 1);
    }
    LLVMPositionBuilderBefore(b, next);
}

/* next: the builder is before this instruction. */
static void find_position(struct lowering *l, LLVMValueRef next) {
    const uint32_t *size = l->shape->size;
    if (is_line(l->shape)) {
        l->position[0] = l->thread;
        l->position[1] = l->position[2] = constant_i32(l->unit, 0);
    } else if (l->shape->masked && size[0] && size[1]) {
        divide_by_edge(l, next);
    } else {
        divide_thread(l, l->own, l->position);
    }
}

static void begin(struct lowering *l) {
    struct unit *unit = l->unit;
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(unit->entry);
    LLVMValueRef first = LLVMGetFirstInstruction(entry);
    while (LLVMIsAAllocaInst(first)) first = LLVMGetNextInstruction(first);
    LLVMPositionBuilderBefore(unit->builder, first);
    l->thread = ptx_metal_thread(unit, ptx_register(unit, "tid.x"));
    find_groups(l);
    if (unit->result->image.coarse[0]) return; /* coarse_positions.c has computed the rest */
    find_own_sizes(l);
    if (l->shape->masked) leave_if(l, LLVMBuildICmp(unit->builder, LLVMIntUGE, l->thread, l->threads, ""));
    find_position(l, first);
}

static void replace(LLVMValueRef call, LLVMValueRef value) {
    LLVMReplaceAllUsesWith(call, value);
    LLVMInstructionEraseFromParent(call);
}

/* The value of an intrinsic that is a plain number; NULL: it is not one. */
static LLVMValueRef number_of(struct lowering *l, enum intrinsic intrinsic, uint64_t d) {
    LLVMBuilderRef b = l->unit->builder;
    const struct {
        enum intrinsic intrinsic;
        LLVMValueRef value;
    } fixed[] = {
        {INTRINSIC_POSITION_IN_THREADGROUP, l->position[d]},
        {INTRINSIC_THREADGROUP_POSITION, l->group[d]},
        {INTRINSIC_THREADGROUP_SIZE, l->own[d]},
        {INTRINSIC_DISPATCH_THREADGROUP_SIZE, l->size[d]},
        {INTRINSIC_GRID_THREADS, l->grid[d]},
        {INTRINSIC_GRID_GROUPS, l->groups[d]},
        {INTRINSIC_THREAD_INDEX, l->thread},
    };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (intrinsic == fixed[i].intrinsic) return fixed[i].value;
    if (intrinsic == INTRINSIC_THREAD_POSITION)
        return LLVMBuildAdd(b, LLVMBuildMul(b, l->group[d], l->size[d], ""), l->position[d], "");
    if (intrinsic == INTRINSIC_LANE) return LLVMBuildAnd(b, l->thread, constant_i32(l->unit, 31), "");
    if (intrinsic == INTRINSIC_SIMDGROUP) return LLVMBuildLShr(b, l->thread, constant_i32(l->unit, 5), "");
    if (intrinsic == INTRINSIC_SIMDGROUP_COUNT)
        return LLVMBuildLShr(b, LLVMBuildAdd(b, l->threads, constant_i32(l->unit, 31), ""),
                             constant_i32(l->unit, 5), "");
    return NULL;
}

/* ---- Memory. */

static LLVMValueRef shared_memory(struct lowering *l) {
    l->shared = LLVMGetNamedGlobal(l->unit->module, PTX_SHARED_NAME);
    if (l->shared) return l->shared;
    LLVMTypeRef type = LLVMArrayType2(LLVMInt8TypeInContext(l->unit->context), 0);
    l->shared = LLVMAddGlobalInAddressSpace(l->unit->module, type, PTX_SHARED_NAME, PTX_SHARED);
    LLVMSetAlignment(l->shared, 128);
    return l->shared;
}

/* Threadgroup variables follow one another at the start of all threadgroup memory, so that they may exceed
 * the 48 KiB limit of static variables. */
static void place_variables(struct lowering *l) {
    struct unit *unit = l->unit;
    uint64_t total = 0;
    LLVMValueRef next;
    for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module); g; g = next) {
        next = LLVMGetNextGlobal(g);
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(g)) != PTX_SHARED || g == l->shared) continue;
        if (LLVMGetFirstUse(g)) {
            uint64_t align = LLVMGetAlignment(g) > 16 ? LLVMGetAlignment(g) : 16;
            total = (total + align - 1) / align * align;
            LLVMValueRef offset = LLVMConstInt(type_i64(unit), total, false);
            if (align > LLVMGetAlignment(shared_memory(l))) LLVMSetAlignment(l->shared, (unsigned)align);
            LLVMReplaceAllUsesWith(
                g, LLVMConstInBoundsGEP2(LLVMInt8TypeInContext(unit->context), shared_memory(l), &offset, 1));
            total += LLVMABISizeOfType(unit->layout, LLVMGlobalGetValueType(g));
        }
        LLVMDeleteGlobal(g);
    }
    unit->result->image.threadgroup_bytes = total;
}

static LLVMValueRef address_in_slot(struct lowering *l, int kind, uint64_t offset) {
    struct unit *unit = l->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef address;
    if (kind == BINDING_BUFFER) {
        address = ptx_parameter(unit, LLVMPointerTypeInContext(unit->context, PTX_GLOBAL), offset);
        if (l->shape->aligned) ptx_mark_aligned(unit, address);
    } else {
        /* Visibly a multiple of 16, so that loads may be wide. */
        LLVMValueRef from = LLVMBuildAnd(b, parameter_i32(l, (size_t)offset), constant_i32(unit, ~15u), "");
        address = LLVMBuildGEP2(b, LLVMInt8TypeInContext(unit->context), shared_memory(l), &from, 1, "");
    }
    return LLVMBuildAddrSpaceCast(b, address, type_pointer(unit), "");
}

/* The index is not always a constant: LLVM merges two calls on different paths into one. */
static smelt_status lower_address(struct lowering *l, LLVMValueRef call, int kind) {
    struct unit *unit = l->unit;
    const struct image *image = &unit->result->image;
    LLVMValueRef index = LLVMGetOperand(call, 0), address = NULL;
    for (int32_t i = 0; i < image->binding_count; i++) {
        const struct binding *binding = &image->bindings[i];
        uint64_t constant;
        if (binding->kind != kind) continue;
        if (is_constant_integer(index, &constant) && (int64_t)constant != binding->index) continue;
        uint64_t offset = (uint64_t)ptx_slot_offset(image, kind, binding->index);
        LLVMValueRef this = address_in_slot(l, kind, offset);
        LLVMValueRef number = constant_i32(unit, (uint32_t)binding->index);
        LLVMValueRef meant = LLVMBuildICmp(unit->builder, LLVMIntEQ, index, number, "");
        address = address ? LLVMBuildSelect(unit->builder, meant, this, address, "") : this;
    }
    if (!address) return unit_fail(unit, SMELT_ERROR_INTERNAL, "an argument that is used is not bound");
    replace(call, address);
    return SMELT_OK;
}

/* ---- Atomics: LLVM 19 ignores their order on GPUs. Any order stronger than relaxed becomes fences before
 * and after. */

static void fence(struct unit *unit) {
    ptx_assembly(unit, "fence.sc.gpu;", "~{memory}", NULL, NULL, 0, true);
}

static void fence_around(struct unit *unit, LLVMValueRef instruction) {
    LLVMPositionBuilderBefore(unit->builder, instruction);
    fence(unit);
    LLVMPositionBuilderBefore(unit->builder, LLVMGetNextInstruction(instruction));
    fence(unit);
}

static bool is_ordered(LLVMAtomicOrdering ordering) {
    return ordering != LLVMAtomicOrderingNotAtomic && ordering != LLVMAtomicOrderingUnordered &&
           ordering != LLVMAtomicOrderingMonotonic;
}

static void lower_order(struct unit *unit, LLVMValueRef instruction) {
    if (LLVMIsAFenceInst(instruction)) {
        LLVMPositionBuilderBefore(unit->builder, instruction);
        fence(unit);
        LLVMInstructionEraseFromParent(instruction);
    } else if (LLVMIsAAtomicCmpXchgInst(instruction)) {
        if (!is_ordered(LLVMGetCmpXchgSuccessOrdering(instruction))) return;
        LLVMSetCmpXchgSuccessOrdering(instruction, LLVMAtomicOrderingMonotonic);
        LLVMSetCmpXchgFailureOrdering(instruction, LLVMAtomicOrderingMonotonic);
        fence_around(unit, instruction);
    } else if (LLVMIsALoadInst(instruction) || LLVMIsAStoreInst(instruction) ||
               LLVMIsAAtomicRMWInst(instruction)) {
        if (!is_ordered(LLVMGetOrdering(instruction))) return;
        LLVMSetOrdering(instruction, LLVMAtomicOrderingMonotonic);
        fence_around(unit, instruction);
    }
}

/* ---- Log lines (abi/cuda_parameters.h). */

static LLVMValueRef log_field(struct lowering *l, LLVMValueRef log, size_t offset) {
    LLVMValueRef bytes = LLVMConstInt(type_i64(l->unit), offset, false);
    return LLVMBuildGEP2(l->unit->builder, LLVMInt8TypeInContext(l->unit->context), log, &bytes, 1, "");
}

static void lower_log(struct lowering *l, LLVMValueRef call) {
    struct unit *unit = l->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef word = type_i64(unit), pointer = LLVMPointerTypeInContext(unit->context, PTX_GLOBAL);
    unsigned count = LLVMGetNumArgOperands(call);
    if (unit->result->image.log_words < count + CUDA_LOG_HEADER)
        unit->result->image.log_words = count + CUDA_LOG_HEADER;
    LLVMValueRef log = ptx_parameter(unit, pointer, offsetof(struct cuda_parameters, log));
    LLVMValueRef wanted = LLVMConstInt(word, count + CUDA_LOG_HEADER, false);
    LLVMValueRef at =
        LLVMBuildAtomicRMW(b, LLVMAtomicRMWBinOpAdd, log, wanted, LLVMAtomicOrderingMonotonic, false);
    LLVMValueRef one = LLVMConstInt(word, 1, false);
    LLVMValueRef capacity =
        LLVMBuildLoad2(b, word, log_field(l, log, offsetof(struct cuda_log, capacity)), "");
    LLVMBuildAtomicRMW(b, LLVMAtomicRMWBinOpAdd, log_field(l, log, offsetof(struct cuda_log, lines)), one,
                       LLVMAtomicOrderingMonotonic, false);
    LLVMValueRef end = LLVMBuildAdd(b, at, wanted, "");
    LLVMValueRef fits = LLVMBuildICmp(b, LLVMIntULE, end, capacity, "");
    /* Without a branch: each store is predicated. */
    LLVMValueRef words = log_field(l, log, offsetof(struct cuda_log, words));
    LLVMValueRef group = LLVMBuildZExt(b, l->group[2], word, "");
    for (int d = 1; d >= 0; d--) {
        group = LLVMBuildMul(b, group, LLVMBuildZExt(b, l->groups[d], word, ""), "");
        group = LLVMBuildAdd(b, group, LLVMBuildZExt(b, l->group[d], word, ""), "");
    }
    LLVMValueRef taken = LLVMBuildZExt(b, fits, type_i32(unit), "");
    for (unsigned i = 0; i < count + CUDA_LOG_HEADER; i++) {
        LLVMValueRef value = i == 0   ? LLVMConstInt(word, count, false)
                             : i == 1 ? group
                             : i == 2 ? LLVMBuildZExt(b, l->thread, word, "")
                                      : LLVMGetOperand(call, i - CUDA_LOG_HEADER);
        LLVMValueRef index = LLVMBuildAdd(b, at, LLVMConstInt(word, i, false), "");
        LLVMValueRef arguments[3] = {taken, LLVMBuildGEP2(b, word, words, &index, 1, ""), value};
        ptx_assembly(unit, "{ .reg .pred p; setp.ne.u32 p, $0, 0; @p st.global.u64 [$1], $2; }",
                     "r,l,l,~{memory}", NULL, arguments, 3, true);
    }
    LLVMInstructionEraseFromParent(call);
}

/* ---- Threads poll the stop flag when they begin and in loops, and leave if it is set. */

static void poll(struct lowering *l) {
    LLVMValueRef flag = ptx_parameter(l->unit, type_i64(l->unit), offsetof(struct cuda_parameters, stop));
    ptx_assembly(
        l->unit,
        "{ .reg .pred p; .reg .u32 r; ld.volatile.global.u32 r, [$0]; setp.ne.u32 p, r, 0; @p exit; }",
        "l,~{memory}", NULL, &flag, 1, true);
}

static smelt_status poll_back_edges(struct lowering *l) {
    struct unit *unit = l->unit;
    struct arena arena = {0};
    struct flow flow;
    smelt_status status = flow_find(unit, unit->entry, &arena, &flow);
    for (int i = 0; status == SMELT_OK && i < flow.block_count; i++) {
        LLVMValueRef terminator = LLVMGetBasicBlockTerminator(flow.blocks[i].block);
        bool back = false;
        for (unsigned s = 0; s < LLVMGetNumSuccessors(terminator); s++) {
            int target = flow_index(&flow, LLVMGetSuccessor(terminator, s));
            back |= target >= 0 && target <= i;
        }
        if (!back) continue;
        LLVMPositionBuilderBefore(unit->builder, terminator);
        poll(l);
    }
    arena_free(&arena);
    return status;
}

/* ---- The pass. */

static smelt_status lower_call(struct lowering *l, LLVMValueRef call, enum intrinsic intrinsic) {
    struct unit *unit = l->unit;
    uint64_t d = 0;
    LLVMPositionBuilderBefore(unit->builder, call);
    if (intrinsic == INTRINSIC_THREADGROUP_BARRIER) {
        ptx_assembly(unit, "barrier.sync 0;", "~{memory}", NULL, NULL, 0, true);
        LLVMInstructionEraseFromParent(call);
    } else if (intrinsic == INTRINSIC_THREAD_RETURN || intrinsic == INTRINSIC_MAX_THREADS) {
        LLVMInstructionEraseFromParent(call); /* after pass_thread_limits has read the latter */
    } else if (intrinsic == INTRINSIC_NEVER) {
        replace(call, LLVMConstNull(LLVMTypeOf(call)));
    } else if (intrinsic == INTRINSIC_LOG) {
        lower_log(l, call);
    } else {
        if (LLVMGetNumArgOperands(call) == 1 && (!is_constant_integer(LLVMGetOperand(call, 0), &d) || d > 2))
            return unit_fail(unit, SMELT_ERROR_UNSUPPORTED, "argument 0 of %s is not a constant below 3",
                             called_name(call));
        LLVMValueRef value = number_of(l, intrinsic, d);
        if (!value)
            return unit_fail(unit, SMELT_ERROR_INTERNAL, "the PTX engine does not support the intrinsic %s",
                             called_name(call));
        replace(call, value);
    }
    return SMELT_OK;
}

smelt_status pass_ptx_addresses(struct unit *unit) {
    struct lowering l = {.unit = unit, .shape = &unit->request->shape};
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(call, block) {
        bool buffer = intrinsic_of(call) == INTRINSIC_BUFFER_ADDRESS;
        if (!buffer && intrinsic_of(call) != INTRINSIC_THREADGROUP_ADDRESS) continue;
        LLVMPositionBuilderBefore(unit->builder, call);
        TRY(lower_address(&l, call, buffer ? BINDING_BUFFER : BINDING_THREADGROUP));
    }
    return SMELT_OK;
}

smelt_status pass_ptx_lower(struct unit *unit) {
    struct lowering l = {.unit = unit, .shape = &unit->request->shape};
    l.shared = LLVMGetNamedGlobal(unit->module, PTX_SHARED_NAME);
    begin(&l);
    if (l.shape->polled) poll(&l);
    place_variables(&l);
    if (l.shape->polled) TRY(poll_back_edges(&l));
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        lower_order(unit, instruction);
    }
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        enum intrinsic intrinsic = intrinsic_of(instruction);
        if (intrinsic != INTRINSIC_NONE) TRY(lower_call(&l, instruction, intrinsic));
    }
    return SMELT_OK;
}
