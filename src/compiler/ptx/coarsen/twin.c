#include "compiler/ptx/coarsen/twin.h"

#include <stdint.h>

static size_t slot_of(const struct twin *twin, LLVMValueRef value) {
    size_t slot = ((uintptr_t)value >> 4) * 0x9e3779b97f4a7c15u % twin->capacity;
    while (twin->pairs[slot].own && twin->pairs[slot].own != value) slot = (slot + 1) % twin->capacity;
    return slot;
}

LLVMValueRef ptx_twin_value(const struct twin *twin, LLVMValueRef value) {
    if (!LLVMIsAInstruction(value)) return value;
    const struct twin_pair *pair = &twin->pairs[slot_of(twin, value)];
    return pair->own ? pair->copy : value;
}

static LLVMBasicBlockRef twin_block(const struct twin *twin, LLVMBasicBlockRef block) {
    for (int i = 0; i < twin->block_count; i++)
        if (twin->blocks[i] == block) return twin->copies[i];
    return block;
}

/* ---- The first block. */

/* Private arrays are allocated by the entry's first block only. */
static void make_choice(struct twin *twin) {
    struct unit *unit = twin->unit;
    LLVMBasicBlockRef first = LLVMGetEntryBasicBlock(unit->entry);
    twin->choice = LLVMInsertBasicBlockInContext(unit->context, first, "choice");
    FOR_EACH_INSTRUCTION(instruction, first) {
        if (!LLVMIsAAllocaInst(instruction)) continue;
        LLVMInstructionRemoveFromParent(instruction);
        LLVMPositionBuilderAtEnd(unit->builder, twin->choice);
        LLVMInsertIntoBuilder(unit->builder, instruction);
    }
}

static bool count(struct twin *twin) {
    size_t instructions = 0;
    FOR_EACH_BLOCK(block, twin->unit->entry) {
        if (block == twin->choice) continue;
        twin->block_count++;
        FOR_EACH_INSTRUCTION(instruction, block) instructions++;
    }
    size_t blocks = (size_t)twin->block_count;
    twin->capacity = 2 * instructions + 1;
    twin->pairs = arena_alloc(&twin->arena, twin->capacity * sizeof *twin->pairs);
    twin->blocks = arena_alloc(&twin->arena, blocks * sizeof(LLVMBasicBlockRef));
    twin->copies = arena_alloc(&twin->arena, blocks * sizeof(LLVMBasicBlockRef));
    return twin->pairs && twin->blocks && twin->copies;
}

/* ---- The copy. */

static void copy_instruction(struct twin *twin, LLVMValueRef instruction) {
    LLVMBuilderRef b = twin->unit->builder;
    LLVMValueRef copy;
    if (LLVMIsAPHINode(instruction)) {
        copy = LLVMBuildPhi(b, LLVMTypeOf(instruction), "");
    } else {
        copy = LLVMInstructionClone(instruction);
        LLVMInsertIntoBuilder(b, copy);
    }
    twin->pairs[slot_of(twin, instruction)] = (struct twin_pair){instruction, copy};
}

static void connect(struct twin *twin, LLVMValueRef instruction) {
    LLVMValueRef copy = ptx_twin_value(twin, instruction);
    if (LLVMIsAPHINode(instruction)) {
        for (unsigned i = 0; i < LLVMCountIncoming(instruction); i++) {
            LLVMValueRef value = ptx_twin_value(twin, LLVMGetIncomingValue(instruction, i));
            LLVMBasicBlockRef from = twin_block(twin, LLVMGetIncomingBlock(instruction, i));
            LLVMAddIncoming(copy, &value, &from, 1);
        }
        return;
    }
    for (unsigned i = 0; i < (unsigned)LLVMGetNumOperands(copy); i++) {
        LLVMValueRef operand = LLVMGetOperand(copy, i);
        if (LLVMIsAInstruction(operand)) LLVMSetOperand(copy, i, ptx_twin_value(twin, operand));
    }
    if (!LLVMIsATerminatorInst(copy)) return;
    for (unsigned i = 0; i < LLVMGetNumSuccessors(copy); i++)
        LLVMSetSuccessor(copy, i, twin_block(twin, LLVMGetSuccessor(copy, i)));
}

smelt_status ptx_twin_build(struct unit *unit, struct twin *twin) {
    *twin = (struct twin){.unit = unit};
    make_choice(twin);
    if (!count(twin)) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for a second version");
    int number = 0;
    for (LLVMBasicBlockRef block = LLVMGetNextBasicBlock(twin->choice); block;
         block = LLVMGetNextBasicBlock(block))
        twin->blocks[number++] = block;
    for (int i = 0; i < number; i++) {
        twin->copies[i] = LLVMAppendBasicBlockInContext(unit->context, unit->entry, "");
        LLVMPositionBuilderAtEnd(unit->builder, twin->copies[i]);
        FOR_EACH_INSTRUCTION(instruction, twin->blocks[i]) copy_instruction(twin, instruction);
    }
    for (int i = 0; i < number; i++)
        FOR_EACH_INSTRUCTION(instruction, twin->blocks[i]) connect(twin, instruction);
    return SMELT_OK;
}

void ptx_twin_choose(struct twin *twin, LLVMValueRef condition) {
    LLVMPositionBuilderAtEnd(twin->unit->builder, twin->choice);
    LLVMBuildCondBr(twin->unit->builder, condition, twin->copies[0], twin->blocks[0]);
}

void ptx_twin_free(struct twin *twin) {
    arena_free(&twin->arena);
}
