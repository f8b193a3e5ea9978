/* The function that answers questions about all threads of a launch (launch.c), and values that it computes
 * as the kernel does: from sizes of the launch and from constant memory. */
#include "abi/entry_names.h"
#include "compiler/bounds/launch.h"
#include "compiler/cpu/inside.h"

#include <llvm-c/DebugInfo.h>

#include <stddef.h>
#include <string.h>

struct questions *bounds_launch_begin_function(struct bounds *b) {
    struct unit *unit = b->unit;
    struct questions *q = arena_alloc(&b->arena, sizeof *q);
    if (!q) return NULL;
    LLVMTypeRef pointer = type_pointer(unit);
    *q = (struct questions){.block = -1};
    q->function =
        LLVMAddFunction(unit->module, QUESTIONS_NAME, LLVMFunctionType(type_i64(unit), &pointer, 1, false));
    q->group = LLVMGetParam(q->function, 0);
    q->wrong = LLVMConstInt(LLVMInt1TypeInContext(unit->context), 0, false);
    LLVMAppendBasicBlockInContext(unit->context, q->function, "");
    return q;
}

void bounds_launch_continue_function(struct bounds *b) {
    LLVMPositionBuilderAtEnd(b->unit->builder, LLVMGetEntryBasicBlock(b->questions->function));
    LLVMSetCurrentDebugLocation2(b->unit->builder, NULL);
}

LLVMValueRef bounds_launch_field(struct bounds *b, LLVMTypeRef type, LLVMValueRef base, size_t offset) {
    LLVMValueRef index = bounds_i64(b, offset);
    LLVMTypeRef i8 = LLVMInt8TypeInContext(b->unit->context);
    LLVMValueRef address = LLVMBuildGEP2(b->unit->builder, i8, base, &index, 1, "");
    return LLVMBuildLoad2(b->unit->builder, type, address, "");
}

LLVMValueRef bounds_launch_argument_address(struct bounds *b, uint64_t slot) {
    LLVMTypeRef pointer = type_pointer(b->unit);
    LLVMValueRef buffers =
        bounds_launch_field(b, pointer, b->questions->group, offsetof(struct group_context, buffers));
    return bounds_launch_field(b, pointer, buffers, slot * sizeof(void *));
}

LLVMValueRef bounds_launch_extent(struct bounds *b, enum intrinsic intrinsic, uint64_t slot) {
    return inside_extent(b->unit, b->questions->group, intrinsic, slot);
}

/* A size of the grid. */
static LLVMValueRef size_of(struct bounds *b, LLVMValueRef call) {
    static const struct {
        enum intrinsic intrinsic;
        size_t offset;
    } sizes[] = {{INTRINSIC_GRID_THREADS, offsetof(struct group_context, grid)},
                 {INTRINSIC_GRID_GROUPS, offsetof(struct group_context, groups)},
                 {INTRINSIC_DISPATCH_THREADGROUP_SIZE, offsetof(struct group_context, dispatch_size)}};
    uint64_t dimension;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (intrinsic_of(call) != sizes[i].intrinsic) continue;
        if (!is_constant_integer(LLVMGetOperand(call, 0), &dimension) || dimension > 2) return NULL;
        return bounds_launch_field(b, LLVMTypeOf(call), b->questions->group,
                                   sizes[i].offset + 4 * (size_t)dimension);
    }
    return NULL;
}

/* A load of constant memory at a constant offset. The kernel need not execute it: `wrong` says whether such
 * memory is missing. If buffers may overlap, the kernel may write there after the question. */
static LLVMValueRef constant_of(struct bounds *b, LLVMValueRef load) {
    LLVMBuilderRef builder = b->unit->builder;
    struct place place = bounds_place(b->unit, LLVMGetOperand(load, 0));
    uint64_t slot, bytes = LLVMStoreSizeOfType(b->unit->layout, LLVMTypeOf(load));
    unsigned invariant = LLVMGetMDKindIDInContext(b->unit->context, "invariant.load", 14);
    if (!b->unit->request->shape.distinct || place.index ||
        intrinsic_of(place.root) != INTRINSIC_BUFFER_ADDRESS || place.constant < 0 ||
        place.constant > INT32_MAX || !LLVMGetMetadata(load, invariant) ||
        !is_constant_integer(LLVMGetOperand(place.root, 0), &slot))
        return NULL;
    LLVMValueRef argument = bounds_launch_argument_address(b, slot);
    LLVMValueRef start = LLVMBuildPtrToInt(builder, argument, type_i64(b->unit), "");
    start = LLVMBuildSub(builder, start, bounds_launch_extent(b, INTRINSIC_BUFFER_START, slot), "");
    LLVMValueRef end = LLVMBuildAdd(builder, start, bounds_i64(b, (uint64_t)place.constant + bytes), "");
    LLVMValueRef extent = bounds_launch_extent(b, INTRINSIC_BUFFER_EXTENT, slot);
    LLVMValueRef there = LLVMBuildICmp(builder, LLVMIntULE, end, extent, "");
    LLVMValueRef missing = LLVMBuildNot(builder, there, "");
    b->questions->wrong = LLVMBuildOr(builder, b->questions->wrong, missing, "");
    /* The context is longer than any constant that is loaded. */
    LLVMValueRef offset =
        LLVMBuildSelect(builder, there, bounds_i64(b, (uint64_t)place.constant), bounds_i64(b, 0), "");
    LLVMValueRef base = LLVMBuildSelect(builder, there, argument, b->questions->group, "");
    LLVMTypeRef i8 = LLVMInt8TypeInContext(b->unit->context);
    LLVMValueRef copy =
        LLVMBuildLoad2(builder, LLVMTypeOf(load), LLVMBuildGEP2(builder, i8, base, &offset, 1, ""), "");
    LLVMSetAlignment(copy, 1);
    b->questions->loads = true;
    return copy;
}

static bool is_extreme(LLVMValueRef call) {
    static const char *const names[] = {"llvm.umin.", "llvm.umax.", "llvm.smin.", "llvm.smax."};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(called_name(call), names[i], strlen(names[i])) == 0) return true;
    return false;
}

static bool never_traps(LLVMValueRef value) {
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMUDiv:
    case LLVMURem: {
        uint64_t divisor;
        return is_constant_integer(LLVMGetOperand(value, 1), &divisor) && divisor;
    }
    case LLVMSDiv:
    case LLVMSRem:
        return false;
    default:
        return LLVMIsABinaryOperator(value) || LLVMIsACastInst(value) || LLVMIsAICmpInst(value) ||
               LLVMIsASelectInst(value) || LLVMIsAFreezeInst(value) ||
               (LLVMIsACallInst(value) && is_extreme(value));
    }
}

/* Integers only, computed from integers. In the function, they are computed without the conditions that keep
 * them from being poison in the thread's code. */
static LLVMValueRef computed(struct bounds *b, LLVMValueRef value, int depth) {
    int count = LLVMIsACallInst(value) ? 2 : LLVMGetNumOperands(value);
    LLVMValueRef operands[3];
    if (count > 3 || !never_traps(value)) return NULL;
    for (int i = 0; i < count; i++) {
        operands[i] = bounds_launch_copy(b, LLVMGetOperand(value, (unsigned)i), depth + 1);
        if (!operands[i]) return NULL;
    }
    LLVMValueRef copy = LLVMInstructionClone(value);
    for (int i = 0; i < count; i++) LLVMSetOperand(copy, (unsigned)i, operands[i]);
    LLVMInstructionSetDebugLoc(copy, NULL);
    LLVMInsertIntoBuilder(b->unit->builder, copy);
    return LLVMBuildFreeze(b->unit->builder, copy, "");
}

LLVMValueRef bounds_launch_copy(struct bounds *b, LLVMValueRef value, int depth) {
    LLVMTypeRef type = LLVMTypeOf(value);
    if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(type) > 64) return NULL;
    if (LLVMIsAConstantInt(value)) return value;
    if (!LLVMIsAInstruction(value) || depth > MOST_DEPTH) return NULL;
    for (struct known *k = b->questions->known; k; k = k->next)
        if (k->value == value) return k->copy;
    struct known *known = arena_alloc(&b->arena, sizeof *known);
    if (!known) return NULL;
    LLVMValueRef copy = LLVMIsALoadInst(value)   ? constant_of(b, value)
                        : LLVMIsACallInst(value) ? size_of(b, value)
                                                 : NULL;
    if (!copy && !LLVMIsALoadInst(value)) copy = computed(b, value, depth);
    *known = (struct known){value, copy, b->questions->known};
    b->questions->known = known;
    return copy;
}
