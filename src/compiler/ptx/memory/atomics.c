/* Four atomic additions of floats to neighbours in device memory, whose old values are not used, become one
 * addition of a vector if the address is a multiple of 16: memory of compute capability 9.0 adds four at
 * once. Each element is still added atomically, and relaxed order does not apply between elements.
 *
 * Requires: the module lowered and cleaned. Maintains: what the code does. */
#include "compiler/ptx/ptx.h"

#include <string.h>

#define WIDTH 4

struct addition {
    LLVMValueRef instruction, base;
    int64_t offset; /* bytes from `base` */
};

/* An address as a base and a constant number of bytes. */
static LLVMValueRef find_base(struct unit *unit, LLVMValueRef address, int64_t *offset) {
    *offset = 0;
    while (LLVMIsAGetElementPtrInst(address) && LLVMGetNumIndices(address) == 1 &&
           LLVMIsAConstantInt(LLVMGetOperand(address, 1))) {
        uint64_t size = LLVMABISizeOfType(unit->layout, LLVMGetGEPSourceElementType(address));
        *offset += LLVMConstIntGetSExtValue(LLVMGetOperand(address, 1)) * (int64_t)size;
        address = LLVMGetOperand(address, 0);
    }
    return address;
}

static bool is_addition(struct unit *unit, LLVMValueRef instruction, struct addition *addition) {
    if (!LLVMIsAAtomicRMWInst(instruction) || LLVMGetFirstUse(instruction) ||
        LLVMGetAtomicRMWBinOp(instruction) != LLVMAtomicRMWBinOpFAdd ||
        LLVMGetOrdering(instruction) != LLVMAtomicOrderingMonotonic || LLVMGetVolatile(instruction))
        return false;
    LLVMValueRef address = LLVMGetOperand(instruction, 0);
    if (LLVMGetPointerAddressSpace(LLVMTypeOf(address)) != PTX_GLOBAL ||
        LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(instruction, 1))) != LLVMFloatTypeKind)
        return false;
    addition->instruction = instruction;
    addition->base = find_base(unit, address, &addition->offset);
    return true;
}

static bool touches_memory(LLVMValueRef instruction) {
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMLoad:
    case LLVMStore:
    case LLVMFence:
    case LLVMAtomicCmpXchg:
    case LLVMAtomicRMW:
    case LLVMCall:
        return true;
    default:
        return false;
    }
}

static void join(struct unit *unit, const struct addition *additions) {
    LLVMValueRef arguments[1 + WIDTH] = {LLVMGetOperand(additions[0].instruction, 0)};
    for (int i = 0; i < WIDTH; i++) arguments[1 + i] = LLVMGetOperand(additions[i].instruction, 1);
    LLVMPositionBuilderBefore(unit->builder, additions[WIDTH - 1].instruction);
    ptx_assembly(unit,
                 "{ .reg .pred p; .reg .b64 t; and.b64 t, $0, 15; setp.ne.u64 p, t, 0; @p bra ONE_BY_ONE; "
                 "red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $2, $3, $4}; bra ADDED; "
                 "ONE_BY_ONE: red.relaxed.gpu.global.add.f32 [$0], $1; "
                 "red.relaxed.gpu.global.add.f32 [$0+4], $2; red.relaxed.gpu.global.add.f32 [$0+8], $3; "
                 "red.relaxed.gpu.global.add.f32 [$0+12], $4; ADDED: }",
                 "l,f,f,f,f,~{memory}", NULL, arguments, 1 + WIDTH, true);
    for (int i = 0; i < WIDTH; i++) LLVMInstructionEraseFromParent(additions[i].instruction);
}

/* Additions in sequence, at increasing addresses, without other memory accesses between them. */
static void join_in(struct unit *unit, LLVMBasicBlockRef block) {
    struct addition run[WIDTH];
    int count = 0;
    FOR_EACH_INSTRUCTION(instruction, block) {
        struct addition one;
        if (!is_addition(unit, instruction, &one)) {
            if (touches_memory(instruction)) count = 0;
            continue;
        }
        bool follows = count > 0 && one.base == run[0].base &&
                       one.offset == run[0].offset + count * (int64_t)sizeof(float);
        if (!follows) count = 0;
        run[count++] = one;
        if (count < WIDTH) continue;
        join(unit, run);
        count = 0;
    }
}

smelt_status pass_ptx_atomics(struct unit *unit) {
    if (strncmp(unit->request->cpu, "sm_9", 4) != 0) return SMELT_OK;
    FOR_EACH_BLOCK(block, unit->entry) join_in(unit, block);
    return SMELT_OK;
}
