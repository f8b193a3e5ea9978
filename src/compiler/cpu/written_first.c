/* Finds threadgroup variables that need not be filled before each group, because all threads together write
 * them before any thread reads them. If the code reaches a barrier without a divergent branch, the addresses
 * of the stores before it are computed for each thread of the group. A part that no store covers keeps its
 * value if nothing else writes it.
 *
 * Requires: the optimised entry of one thread, for full groups of known size. Maintains: the code. Each
 * variable found gets the section WRITTEN_FIRST_SECTION, which memory_layout.c reads. */
#include "compiler/fold.h"
#include "compiler/pass.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 24        /* of an index's expression */
#define MAX_EARLY_STORES 32 /* of a variable: 1024 threads compute each address */
#define MAX_USES 256

struct thread_place {
    uint32_t position[3], index;
};

struct variable {
    struct unit *unit;
    LLVMValueRef global;
    LLVMValueRef barrier; /* the first one, which all threads reach */
    uint64_t bytes;
    char *written;               /* by byte: before the barrier, by some thread */
    LLVMValueRef late[MAX_USES]; /* stores that not all threads execute before the barrier */
    int late_count, early_count;
};

/* ---- The value of an index in one thread. */

static bool position_of(LLVMValueRef call, const struct thread_place *thread, uint64_t *value) {
    enum intrinsic intrinsic = intrinsic_of(call);
    uint64_t d;
    if (intrinsic == INTRINSIC_POSITION_IN_THREADGROUP && is_constant_integer(LLVMGetOperand(call, 0), &d) &&
        d < 3)
        *value = thread->position[d];
    else if (intrinsic == INTRINSIC_THREAD_INDEX)
        *value = thread->index;
    else if (intrinsic == INTRINSIC_LANE)
        *value = thread->index % 32;
    else if (intrinsic == INTRINSIC_SIMDGROUP)
        *value = thread->index / 32;
    else
        return false;
    return true;
}

static bool evaluate(LLVMValueRef index, const struct thread_place *thread, int depth, uint64_t *value) {
    LLVMTypeRef type = LLVMTypeOf(index);
    uint64_t a, b;
    if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(type) > 64) return false;
    if (is_constant_integer(index, value)) return true;
    if (!LLVMIsAInstruction(index) || depth == MAX_DEPTH) return false;
    if (LLVMIsACallInst(index)) return position_of(index, thread, value);
    if (LLVMGetNumOperands(index) < 1 || !evaluate(LLVMGetOperand(index, 0), thread, depth + 1, &a))
        return false;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(index);
    bool cast = opcode == LLVMZExt || opcode == LLVMTrunc;
    if (cast)
        *value = a;
    else if (LLVMGetNumOperands(index) != 2 || !evaluate(LLVMGetOperand(index, 1), thread, depth + 1, &b) ||
             !fold_integers(index, a, b, value))
        return false;
    *value = fold_cut(type, *value);
    return true;
}

/* ---- The offset of an address within the variable. */

static bool is_address(LLVMValueRef value) {
    return LLVMIsAGetElementPtrInst(value) ||
           (LLVMIsAConstantExpr(value) && LLVMGetConstOpcode(value) == LLVMGetElementPtr);
}

static bool step_into(struct variable *v, LLVMTypeRef *type, uint64_t index, uint64_t *offset) {
    switch (LLVMGetTypeKind(*type)) {
    case LLVMStructTypeKind:
        *offset += LLVMOffsetOfElement(v->unit->layout, *type, (unsigned)index);
        *type = LLVMStructGetTypeAtIndex(*type, (unsigned)index);
        return true;
    case LLVMArrayTypeKind:
        *type = LLVMGetElementType(*type);
        *offset += index * LLVMABISizeOfType(v->unit->layout, *type);
        return true;
    default:
        return false;
    }
}

/* A negative index is a large unsigned one: it fails the check at the end, or wraps to the right offset. */
static bool offset_of(struct variable *v, LLVMValueRef address, const struct thread_place *thread,
                      uint64_t *offset) {
    if (address == v->global) return true;
    if (!is_address(address)) return false;
    LLVMTypeRef type = LLVMGetGEPSourceElementType(address);
    uint64_t index;
    for (int i = 1; i < LLVMGetNumOperands(address); i++) {
        LLVMValueRef operand = LLVMGetOperand(address, (unsigned)i);
        if (!evaluate(operand, thread, 0, &index)) return false;
        if (LLVMGetIntTypeWidth(LLVMTypeOf(operand)) < 64) return false;
        if (i == 1)
            *offset += index * LLVMABISizeOfType(v->unit->layout, type);
        else if (!step_into(v, &type, index, offset))
            return false;
    }
    return offset_of(v, LLVMGetOperand(address, 0), thread, offset);
}

/* Marks the bytes that the group's threads write; without `mark`, tells whether all of them are marked. */
static bool for_all_threads(struct variable *v, LLVMValueRef store, bool mark) {
    const uint32_t *size = v->unit->request->shape.size;
    uint64_t bytes = LLVMStoreSizeOfType(v->unit->layout, LLVMTypeOf(LLVMGetOperand(store, 0)));
    for (uint32_t i = 0; i < size[0] * size[1] * size[2]; i++) {
        struct thread_place thread = {{i % size[0], i / size[0] % size[1], i / size[0] / size[1]}, i};
        uint64_t offset = 0;
        if (!offset_of(v, LLVMGetOperand(store, 1), &thread, &offset)) return false;
        if (offset >= v->bytes || bytes > v->bytes - offset) return false;
        if (mark)
            memset(v->written + offset, 1, bytes);
        else if (memchr(v->written + offset, 0, bytes))
            return false;
    }
    return true;
}

/* ---- The path from the entry to the first barrier. */

static LLVMBasicBlockRef only_successor(LLVMBasicBlockRef block) {
    LLVMValueRef terminator = LLVMGetBasicBlockTerminator(block);
    bool plain = LLVMIsABranchInst(terminator) && !LLVMIsConditional(terminator);
    return plain ? LLVMGetSuccessor(terminator, 0) : NULL;
}

/* The block that all threads reach next: the target of a branch, or the block where both sides of one meet,
 * with the blocks between in `sides`. NULL: threads may diverge further, or end. */
static LLVMBasicBlockRef next_for_all(LLVMBasicBlockRef block, LLVMBasicBlockRef sides[2]) {
    LLVMValueRef terminator = LLVMGetBasicBlockTerminator(block);
    sides[0] = sides[1] = NULL;
    if (!LLVMIsABranchInst(terminator) || !LLVMIsConditional(terminator)) return only_successor(block);
    LLVMBasicBlockRef yes = LLVMGetSuccessor(terminator, 0), no = LLVMGetSuccessor(terminator, 1);
    LLVMBasicBlockRef after_yes = only_successor(yes), after_no = only_successor(no);
    if (after_yes != no) sides[1] = no;
    if (after_no != yes) sides[0] = yes;
    return after_yes == no ? no : after_no == yes ? yes : after_yes == after_no ? after_yes : NULL;
}

#define MAX_WAY 64 /* blocks */

static LLVMValueRef first_barrier(LLVMValueRef entry) {
    LLVMBasicBlockRef block = LLVMGetEntryBasicBlock(entry), sides[2] = {NULL, NULL};
    for (int steps = 0; block && steps < MAX_WAY; steps++, block = next_for_all(block, sides))
        FOR_EACH_INSTRUCTION(call, block) {
            if (intrinsic_of(call) == INTRINSIC_THREADGROUP_BARRIER) return call;
        }
    return NULL;
}

static bool is_in(LLVMBasicBlockRef block, LLVMValueRef instruction) {
    return block && LLVMGetInstructionParent(instruction) == block;
}

/* Where an instruction is: on the path to the barrier, where all threads execute it; on one side of it, where
 * some may; or elsewhere. */
enum standing { BY_ALL, BY_SOME, LATE };

static enum standing standing_of(const struct variable *v, LLVMValueRef wanted) {
    LLVMBasicBlockRef block = LLVMGetEntryBasicBlock(v->unit->entry), sides[2] = {NULL, NULL};
    for (int steps = 0; block && steps < MAX_WAY; steps++, block = next_for_all(block, sides)) {
        if (is_in(sides[0], wanted) || is_in(sides[1], wanted)) return BY_SOME;
        FOR_EACH_INSTRUCTION(instruction, block) {
            if (instruction == v->barrier) return LATE;
            if (instruction == wanted) return BY_ALL;
        }
    }
    return LATE;
}

/* ---- The variable's uses. */

static bool take_store(struct variable *v, LLVMValueRef store, LLVMValueRef address) {
    if (LLVMGetOperand(store, 0) == address) return false;
    if (standing_of(v, store) == BY_ALL)
        return v->early_count++ < MAX_EARLY_STORES && for_all_threads(v, store, true);
    if (v->late_count == MAX_USES) return false;
    v->late[v->late_count++] = store;
    return true;
}

/* Whether an address, and all that is computed from it, is loaded from only after the barrier and otherwise
 * only stored to. */
static bool take_uses(struct variable *v, LLVMValueRef address, int depth) {
    for (LLVMUseRef use = LLVMGetFirstUse(address); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        bool good = is_address(user) && LLVMGetOperand(user, 0) == address
                        ? depth < MAX_DEPTH && take_uses(v, user, depth + 1)
                    : LLVMIsALoadInst(user)  ? standing_of(v, user) == LATE
                    : LLVMIsAStoreInst(user) ? take_store(v, user, address)
                                             : false;
        if (!good) return false;
    }
    return true;
}

static bool is_written_first(struct variable *v) {
    if (!take_uses(v, v->global, 0)) return false;
    if (!memchr(v->written, 0, v->bytes)) return true;
    for (int i = 0; i < v->late_count; i++)
        if (!for_all_threads(v, v->late[i], false)) return false;
    return true;
}

smelt_status pass_written_first(struct unit *unit) {
    const struct code_shape *shape = &unit->request->shape;
    bool known = shape->size[0] && shape->size[1] && shape->size[2];
    LLVMValueRef barrier = first_barrier(unit->entry);
    if (shape->masked || !known || !barrier) return SMELT_OK;
    for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module); g; g = LLVMGetNextGlobal(g)) {
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(g)) != THREADGROUP_SPACE) continue;
        struct variable v = {.unit = unit,
                             .global = g,
                             .barrier = barrier,
                             .bytes = LLVMABISizeOfType(unit->layout, LLVMGlobalGetValueType(g))};
        v.written = calloc(v.bytes + 1, 1);
        if (v.written && is_written_first(&v)) LLVMSetSection(g, WRITTEN_FIRST_SECTION);
        free(v.written);
    }
    return SMELT_OK;
}
