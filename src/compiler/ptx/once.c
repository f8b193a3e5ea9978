/* Floating-point operations on the launch's arguments alone move out of loops, to the start of the kernel:
 * `d / (2 * s * s)` in a loop, with a `constant float &s`. LLVM leaves them where they are if only some
 * rounds need them, since it does not know that the kernel's parameter can always be read. So does NVIDIA's
 * assembler. Integers stay: the assembler computes them for a warp at once, and each value that moves takes a
 * register throughout the loop.
 *
 * Requires: the module lowered and cleaned. Maintains: what the code does. */
#include "base/arena.h"
#include "compiler/analysis/flow.h"
#include "compiler/ptx/ptx.h"

#define MOST_MOVED 8 /* results of float or double: the registers that they may take */

struct once {
    struct unit *unit;
    struct arena arena;
    struct flow flow;
    LLVMValueRef place; /* what moves is put before it */
    int left;
};

static bool is_floating(LLVMValueRef value) {
    LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(value));
    return kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind;
}

static bool is_operation(LLVMValueRef value) {
    switch (LLVMIsAInstruction(value) ? LLVMGetInstructionOpcode(value) : LLVMUnreachable) {
    case LLVMFNeg:
    case LLVMFAdd:
    case LLVMFSub:
    case LLVMFMul:
    case LLVMFDiv:
    case LLVMSIToFP:
    case LLVMUIToFP:
        return is_floating(value);
    default:
        return false;
    }
}

/* Whether a value can be computed before any loop: it is loaded from the parameter, or an operation of the
 * first block, where what has moved is, too. */
static bool is_known(struct once *o, LLVMValueRef value) {
    if (LLVMIsAConstant(value)) return true;
    if (LLVMIsALoadInst(value))
        return !LLVMGetVolatile(value) && ptx_is_in_parameter(o->unit, LLVMGetOperand(value, 0), true);
    return is_operation(value) && flow_index(&o->flow, LLVMGetInstructionParent(value)) == 0;
}

static bool all_known(struct once *o, LLVMValueRef operation) {
    for (int i = 0; i < LLVMGetNumOperands(operation); i++)
        if (!is_known(o, LLVMGetOperand(operation, (unsigned)i))) return false;
    return true;
}

/* Moves an instruction, after what it is computed from. */
static void move(struct once *o, LLVMValueRef value) {
    if (!LLVMIsAInstruction(value) || LLVMGetInstructionParent(value) == o->flow.blocks[0].block) return;
    for (int i = 0; i < LLVMGetNumOperands(value); i++) move(o, LLVMGetOperand(value, (unsigned)i));
    LLVMInstructionRemoveFromParent(value);
    LLVMPositionBuilderBefore(o->unit->builder, o->place);
    LLVMInsertIntoBuilder(o->unit->builder, value);
}

smelt_status pass_ptx_once(struct unit *unit) {
    struct once o = {.unit = unit, .left = MOST_MOVED};
    smelt_status status = flow_find(unit, unit->entry, &o.arena, &o.flow);
    if (status == SMELT_OK) o.place = LLVMGetBasicBlockTerminator(o.flow.blocks[0].block);
    for (int i = 1; status == SMELT_OK && i < o.flow.block_count; i++) {
        if (o.flow.blocks[i].loop < 0) continue;
        FOR_EACH_INSTRUCTION(operation, o.flow.blocks[i].block) {
            if (!is_operation(operation) || !all_known(&o, operation) || o.left == 0) continue;
            move(&o, operation);
            o.left--;
        }
    }
    arena_free(&o.arena);
    return status;
}
