/* Finds threadgroup variables that need not be filled before each group, because all threads together write
 * them before any thread reads them. If the code reaches a barrier without a divergent branch, the addresses
 * of the stores before it are computed for each thread of the group. A part that no store covers keeps its
 * value if nothing else writes it.
 *
 * Requires: the optimised entry of one thread, for full groups of known size. Maintains: the code. Each
 * variable found gets the section WRITTEN_FIRST_SECTION, which memory_layout.c reads. */
#include "compiler/cpu/thread_value.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 24        /* of an address's expression */
#define MAX_EARLY_STORES 32 /* of a variable: 1024 threads compute each address */
#define MAX_USES 256

struct variable {
    struct unit *unit;
    LLVMValueRef global;
    LLVMValueRef barrier; /* the first one, which all threads reach */
    uint64_t bytes;
    char *written;               /* by byte: before the barrier, by some thread */
    LLVMValueRef late[MAX_USES]; /* stores that not all threads execute before the barrier */
    int late_count, early_count;
};

/* Marks the bytes that the group's threads write; without `mark`, tells whether all of them are marked. */
static bool for_all_threads(struct variable *v, LLVMValueRef store, bool mark) {
    const uint32_t *size = v->unit->request->shape.size;
    uint64_t bytes = LLVMStoreSizeOfType(v->unit->layout, LLVMTypeOf(LLVMGetOperand(store, 0)));
    for (uint32_t i = 0; i < size[0] * size[1] * size[2]; i++) {
        struct thread_place thread = thread_place_of(size, i);
        uint64_t offset = 0;
        if (!thread_offset(v->unit, LLVMGetOperand(store, 1), v->global, &thread, &offset)) return false;
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
        bool good = thread_address_is_computed(user) && LLVMGetOperand(user, 0) == address
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
