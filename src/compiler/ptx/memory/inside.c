/* Tests of accesses (compiler/bounds) in the code of GPUs.
 *
 * A thread whose access fails a test ends before the access. The first such thread of a launch describes the
 * access in the launch's struct cuda_stop and sets its flag; the other threads end when they poll it. The
 * test is one piece of assembly with a predicated `exit`, so other passes see no branch.
 *
 * Requires: the optimised entry, not retargeted. Establishes: no intrinsic of tests or extents is left. */
#include "abi/cuda_parameters.h"
#include "compiler/cpu/inside.h"
#include "compiler/ptx/ptx.h"

#include <stddef.h>

#define OFFSET(field, number) \
    _Static_assert(offsetof(struct cuda_stop, field) == (number), "the assembly stores it there")
OFFSET(flag, 0);
OFFSET(found, 4);
OFFSET(sites, 8);
OFFSET(address, 16);
OFFSET(start, 24);
OFFSET(extent, 32);
OFFSET(group, 40);
OFFSET(thread, 48);

/* $0: not 0 if the access fails the test; $1: the address of the struct cuda_stop; $2 to $7: its fields from
 * `sites` to `thread`; $8: its `found`. */
#define DESCRIBE                                \
    "{ .reg .pred p, q; .reg .b32 r; "          \
    "setp.ne.u32 p, $0, 0; mov.b32 r, 1; "      \
    "@p atom.global.cas.b32 r, [$1+4], 0, $8; " \
    "setp.eq.u32 q, r, 0; "                     \
    "@q st.global.u64 [$1+8], $2; "             \
    "@q st.global.u64 [$1+16], $3; "            \
    "@q st.global.u64 [$1+24], $4; "            \
    "@q st.global.u64 [$1+32], $5; "            \
    "@q st.global.u64 [$1+40], $6; "            \
    "@q st.global.u64 [$1+48], $7; "            \
    "@q fence.sc.gpu; "                         \
    "@q st.volatile.global.u32 [$1], 1; "       \
    "@p exit; }"

struct inside {
    struct unit *unit;
    LLVMValueRef stop, group, thread; /* i64, computed in the entry block */
};

static LLVMValueRef number(struct unit *unit, enum intrinsic intrinsic, int dimension) {
    LLVMTypeRef i32 = type_i32(unit), i64 = type_i64(unit);
    LLVMValueRef argument = constant_i32(unit, (uint32_t)dimension);
    LLVMTypeRef type = LLVMFunctionType(i32, &i32, dimension >= 0, false);
    const char *name = intrinsic_traits(intrinsic)->name;
    LLVMValueRef function = LLVMGetNamedFunction(unit->module, name);
    if (!function) {
        function = LLVMAddFunction(unit->module, name, type);
        declare_pure(unit, function);
    }
    LLVMValueRef call = LLVMBuildCall2(unit->builder, type, function, &argument, dimension >= 0, "");
    return LLVMBuildZExt(unit->builder, call, i64, "");
}

/* Computes the numbers of the thread and of its group, and the address of the struct cuda_stop. */
static void begin(struct inside *in) {
    struct unit *unit = in->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef first = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(unit->entry));
    while (LLVMIsAAllocaInst(first)) first = LLVMGetNextInstruction(first);
    LLVMPositionBuilderBefore(b, first);
    in->stop = ptx_parameter(unit, type_i64(unit), offsetof(struct cuda_parameters, stop));
    in->thread = number(unit, INTRINSIC_THREAD_INDEX, -1);
    in->group = number(unit, INTRINSIC_THREADGROUP_POSITION, 2);
    for (int d = 1; d >= 0; d--) {
        in->group = LLVMBuildMul(b, in->group, number(unit, INTRINSIC_GRID_GROUPS, d), "");
        in->group = LLVMBuildAdd(b, in->group, number(unit, INTRINSIC_THREADGROUP_POSITION, d), "");
    }
}

/* Ends the thread if `misses`, an i1, is true. The other arguments are as in struct cuda_stop. */
static void end_if(const struct inside *in, LLVMValueRef misses, enum cuda_found found, LLVMValueRef sites,
                   LLVMValueRef address, LLVMValueRef start, LLVMValueRef extent) {
    struct unit *unit = in->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef operands[] = {LLVMBuildZExt(b, misses, type_i32(unit), ""),
                               in->stop,
                               LLVMBuildPtrToInt(b, sites, type_i64(unit), ""),
                               address,
                               start,
                               extent,
                               in->group,
                               in->thread,
                               constant_i32(unit, found)};
    ptx_assembly(unit, DESCRIBE, "r,l,l,l,l,l,l,l,n,~{memory}", NULL, operands,
                 sizeof operands / sizeof *operands, true);
}

static void lower_inside(const struct inside *in, LLVMValueRef call) {
    LLVMValueRef address, misses = inside_misses(in->unit, call, &address);
    end_if(in, misses, CUDA_FOUND_OUTSIDE, LLVMGetOperand(call, INSIDE_SITES), address,
           LLVMGetOperand(call, INSIDE_START), LLVMGetOperand(call, INSIDE_EXTENT));
    LLVMInstructionEraseFromParent(call);
}

static void lower_aligned(const struct inside *in, LLVMValueRef call) {
    struct unit *unit = in->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef bytes = LLVMGetOperand(call, ALIGNED_BYTES), zero = LLVMConstNull(type_i64(unit));
    LLVMValueRef address = inside_number(unit, LLVMGetOperand(call, ALIGNED_ADDRESS));
    LLVMValueRef rest = LLVMBuildURem(b, address, bytes, "");
    LLVMValueRef misses = LLVMBuildICmp(b, LLVMIntNE, rest, zero, "");
    end_if(in, misses, CUDA_FOUND_MISALIGNED, LLVMGetOperand(call, ALIGNED_SITES), address, zero, bytes);
    LLVMInstructionEraseFromParent(call);
}

/* The start of a threadgroup argument is its address. Other starts, and all sizes, come from the launch. */
static smelt_status lower_extent(struct unit *unit, LLVMValueRef call, enum intrinsic intrinsic) {
    bool threadgroup = intrinsic == INTRINSIC_THREADGROUP_START || intrinsic == INTRINSIC_THREADGROUP_EXTENT;
    bool start = intrinsic == INTRINSIC_THREADGROUP_START || intrinsic == INTRINSIC_BUFFER_START;
    LLVMValueRef slot = LLVMGetOperand(call, 0), value;
    if (threadgroup && start) {
        LLVMTypeRef i32 = type_i32(unit), type = LLVMFunctionType(type_pointer(unit), &i32, 1, false);
        LLVMValueRef function =
            LLVMGetNamedFunction(unit->module, intrinsic_traits(INTRINSIC_THREADGROUP_ADDRESS)->name);
        LLVMValueRef address = LLVMBuildCall2(unit->builder, type, function, &slot, 1, "");
        value = LLVMBuildPtrToInt(unit->builder, address, type_i64(unit), "");
    } else {
        int64_t offset =
            ptx_extent_offset(&unit->result->image, threadgroup ? BINDING_THREADGROUP : BINDING_BUFFER,
                              (int64_t)LLVMConstIntGetZExtValue(slot));
        if (offset < 0) return unit_fail(unit, SMELT_ERROR_INTERNAL, "the image lacks a tested argument");
        size_t field = start ? offsetof(struct cuda_extent, start) : offsetof(struct cuda_extent, bytes);
        value = ptx_parameter(unit, type_i64(unit), (uint64_t)offset + field);
    }
    LLVMReplaceAllUsesWith(call, value);
    LLVMInstructionEraseFromParent(call);
    return SMELT_OK;
}

smelt_status pass_ptx_inside(struct unit *unit) {
    struct inside in = {.unit = unit};
    if (!unit->request->shape.tested) return SMELT_OK;
    begin(&in);
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        enum intrinsic intrinsic = intrinsic_of(i);
        LLVMPositionBuilderBefore(unit->builder, i);
        if (intrinsic == INTRINSIC_LEAVES) inside_lower_leaves(unit, i);
        if (intrinsic == INTRINSIC_INSIDE) lower_inside(&in, i);
        if (intrinsic == INTRINSIC_ALIGNED) lower_aligned(&in, i);
        if (inside_is_extent(intrinsic)) TRY(lower_extent(unit, i, intrinsic));
    }
    return SMELT_OK;
}
