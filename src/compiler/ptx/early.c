/* Loads from device memory that nothing in the kernel writes move to before the barriers above them.
 *
 * Kernels that stage tiles load one operand, wait at a barrier, store it, load the other operand and store
 * that: each load waits for the one before. Moved up, they are under way together, and while the group's
 * other threads are waited for. The assembler moves no load past a barrier.
 *
 * Requires: the retargeted module, operations of simdgroups lowered, barriers not. What is loaded stays the
 * same. */
#include "compiler/ptx/coarse.h"

#include <string.h>

#define MOST_BYTES 64    /* that a block's moved loads bring: registers */
#define MOST_WRITERS 256 /* stores to device memory that are compared with a load */
#define MOST_DEPTH 16    /* of an address's computation */
#define MOST_MOVED 64    /* instructions of one load's address */

struct early {
    struct unit *unit;
    LLVMValueRef writers[MOST_WRITERS]; /* the addresses that are written */
    int writer_count;
    bool unknown; /* other memory may be written */
    /* Of the block at work: */
    LLVMValueRef place; /* loads move to before it; NULL: there is no barrier yet */
    LLVMValueRef last;  /* the last load so far */
    uint64_t bytes;
};

static bool is_device(LLVMValueRef pointer) {
    return LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) == PTX_GLOBAL;
}

/* ---- What the kernel writes. */

static void add_writer(struct early *e, LLVMValueRef pointer) {
    if (LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) == PTX_SHARED) return;
    if (e->writer_count == MOST_WRITERS)
        e->unknown = true;
    else
        e->writers[e->writer_count++] = pointer;
}

static bool call_writes_nothing(LLVMValueRef call) {
    static const char llvm[] = "llvm.", copies[] = "llvm.mem";
    enum intrinsic_kind kind = intrinsic_traits(intrinsic_of(call))->kind;
    LLVMValueRef callee = LLVMGetCalledValue(call);
    if (LLVMIsAInlineAsm(callee)) return !LLVMGetInlineAsmHasSideEffects(callee);
    if (kind != NOT_INTRINSIC)
        return kind == OF_THREAD || kind == OF_BINDING || kind == OF_BARRIER || kind == OF_RETURN ||
               kind == OF_LAUNCH || kind == OF_SIMDGROUP;
    return strncmp(called_name(call), llvm, sizeof llvm - 1) == 0 &&
           strncmp(called_name(call), copies, sizeof copies - 1) != 0;
}

static void find_writers(struct early *e) {
    FOR_EACH_BLOCK(block, e->unit->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        if (LLVMIsAStoreInst(i)) add_writer(e, LLVMGetOperand(i, 1));
        if (LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i)) add_writer(e, LLVMGetOperand(i, 0));
        if (LLVMIsACallInst(i) && !call_writes_nothing(i)) e->unknown = true;
    }
}

static bool is_written(const struct early *e, LLVMValueRef pointer) {
    for (int i = 0; i < e->writer_count; i++)
        if (!ptx_are_apart(e->unit, pointer, e->writers[i])) return true;
    return false;
}

/* ---- One load. */

static bool stands_before(LLVMValueRef value, LLVMValueRef place) {
    for (LLVMValueRef i = LLVMGetNextInstruction(value); i; i = LLVMGetNextInstruction(i))
        if (i == place) return true;
    return value == place;
}

/* Adds to `moved` what the value follows from behind `place`, operands first. False: it may not move. */
static bool collect(const struct early *e, LLVMValueRef value, LLVMBasicBlockRef block, LLVMValueRef *moved,
                    int *count, int depth) {
    if (!LLVMIsAInstruction(value) || LLVMGetInstructionParent(value) != block || LLVMIsAPHINode(value) ||
        (value != e->place && stands_before(value, e->place)))
        return true;
    for (int i = 0; i < *count; i++)
        if (moved[i] == value) return true;
    if (depth == 0 || *count == MOST_MOVED || value == e->place) return false;
    if (!coarse_is_pure(e->unit, value)) return false;
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (!collect(e, LLVMGetOperand(value, (unsigned)i), block, moved, count, depth - 1)) return false;
    if (*count == MOST_MOVED) return false;
    moved[(*count)++] = value;
    return true;
}

static bool is_plain_load(LLVMValueRef i) {
    return LLVMIsALoadInst(i) && !LLVMGetVolatile(i) && LLVMGetOrdering(i) == LLVMAtomicOrderingNotAtomic &&
           is_device(LLVMGetOperand(i, 0));
}

static void move_before(struct early *e, LLVMValueRef instruction) {
    LLVMInstructionRemoveFromParent(instruction);
    LLVMPositionBuilderBefore(e->unit->builder, e->place);
    LLVMInsertIntoBuilder(e->unit->builder, instruction);
}

static void move_load(struct early *e, LLVMValueRef load, LLVMBasicBlockRef block) {
    LLVMValueRef moved[MOST_MOVED];
    int count = 0;
    uint64_t bytes = LLVMStoreSizeOfType(e->unit->layout, LLVMTypeOf(load));
    LLVMValueRef pointer = LLVMGetOperand(load, 0);
    if (e->bytes + bytes > MOST_BYTES || is_written(e, pointer)) return;
    if (!collect(e, pointer, block, moved, &count, MOST_DEPTH)) return;
    for (int i = 0; i < count; i++) move_before(e, moved[i]);
    move_before(e, load);
    e->bytes += bytes;
}

static bool is_barrier(LLVMValueRef i) {
    static const char barrier[] = "llvm.nvvm.bar";
    return LLVMIsACallInst(i) && (intrinsic_traits(intrinsic_of(i))->kind == OF_BARRIER ||
                                  strncmp(called_name(i), barrier, sizeof barrier - 1) == 0);
}

static void look_at_block(struct early *e, LLVMBasicBlockRef block) {
    e->place = e->last = NULL;
    e->bytes = 0;
    FOR_EACH_INSTRUCTION(i, block) {
        if (is_barrier(i) && !e->place) e->place = e->last ? LLVMGetNextInstruction(e->last) : i;
        if (!is_plain_load(i)) continue;
        if (e->place)
            move_load(e, i, block);
        else
            e->last = i;
    }
}

smelt_status pass_ptx_early(struct unit *unit) {
    struct early e = {.unit = unit};
    find_writers(&e);
    if (e.unknown) return SMELT_OK;
    FOR_EACH_BLOCK(block, unit->entry) look_at_block(&e, block);
    return SMELT_OK;
}
