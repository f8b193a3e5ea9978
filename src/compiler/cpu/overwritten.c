/* Holds stores to threadgroup memory back until other simdgroups have loaded what they overwrite.
 *
 * Public kernels use an array of partial results again without a barrier in between: all simdgroups load the
 * first sum, and each stores its part of the second one. That is a race. On a GPU, whose simdgroups run side
 * by side, the loads come long before the stores; here, one simdgroup would run up to its next barrier before
 * the others load. So a barrier is added before such a store, where all threads pass.
 *
 * A race is recognised from addresses that depend only on a thread's place in its group. Loads with a loop's
 * counter as index, if all threads begin alike, read all from its first value on.
 *
 * Requires: the optimised entry of one thread. Maintains: kernels without such a race stay as they are, so do
 * those in which not all threads that reach some barrier pass a place before the store. */
#include "compiler/cpu/thread_value.h"
#include "compiler/analysis/flow.h"

#include <stdlib.h>
#include <string.h>

#define MOST_ACCESSES 128 /* of each kind, and barriers; kernels with more stay as they are */
#define MOST_BYTES 32768  /* of a variable or argument that are looked at */
#define USUAL_THREADS 256 /* if the group's size is not known */
#define MOST_GUARDS 16    /* branches around an access */

struct access {
    LLVMValueRef instruction, address, root;
    uint64_t bytes;
};

struct search {
    struct unit *unit;
    struct flow flow;
    struct access loads[MOST_ACCESSES], stores[MOST_ACCESSES];
    LLVMValueRef barriers[MOST_ACCESSES];
    int load_count, store_count, barrier_count;
    bool too_many;
    uint32_t size[3], threads;
    bool *seen; /* by block */
    int *stack;
};

/* ---- The accesses and the barriers. */

/* The call that gives an argument's address, or the value itself. */
static LLVMValueRef argument_of(LLVMValueRef root) {
    return LLVMIsAAddrSpaceCastInst(root) ? LLVMGetOperand(root, 0) : root;
}

static bool is_argument(LLVMValueRef root) {
    return intrinsic_of(argument_of(root)) == INTRINSIC_THREADGROUP_ADDRESS;
}

/* The variable, or the address of the argument; NULL: anything else. */
static LLVMValueRef root_of(LLVMValueRef address) {
    while (thread_address_is_computed(address)) address = LLVMGetOperand(address, 0);
    return LLVMIsAGlobalVariable(address) || is_argument(address) ? address : NULL;
}

static bool is_same_root(LLVMValueRef a, LLVMValueRef b) {
    return a == b || (is_argument(a) && is_argument(b) &&
                      LLVMGetOperand(argument_of(a), 0) == LLVMGetOperand(argument_of(b), 0));
}

static void note_access(struct search *s, LLVMValueRef instruction) {
    bool load = LLVMIsALoadInst(instruction) != NULL;
    LLVMValueRef address = LLVMGetOperand(instruction, load ? 0 : 1), root = root_of(address);
    LLVMTypeRef type = load ? LLVMTypeOf(instruction) : LLVMTypeOf(LLVMGetOperand(instruction, 0));
    int *count = load ? &s->load_count : &s->store_count;
    if (LLVMGetPointerAddressSpace(LLVMTypeOf(address)) != THREADGROUP_SPACE || !root) return;
    if (*count == MOST_ACCESSES) {
        s->too_many = true;
        return;
    }
    (load ? s->loads : s->stores)[(*count)++] =
        (struct access){instruction, address, root, LLVMStoreSizeOfType(s->unit->layout, type)};
}

static void find_accesses(struct search *s) {
    FOR_EACH_BLOCK(block, s->unit->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        if (intrinsic_of(i) == INTRINSIC_THREADGROUP_BARRIER) {
            if (s->barrier_count == MOST_ACCESSES)
                s->too_many = true;
            else
                s->barriers[s->barrier_count++] = i;
        } else if (LLVMIsALoadInst(i) || LLVMIsAStoreInst(i)) {
            note_access(s, i);
        }
    }
}

/* ---- Which threads access which bytes. */

static int block_of(const struct search *s, LLVMValueRef instruction) {
    return flow_index(&s->flow, LLVMGetInstructionParent(instruction));
}

/* Whether the branch at the end of `from` takes the thread elsewhere than to `to`. */
static bool turns_away(const struct search *s, int from, int to, const struct thread_place *thread) {
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(s->flow.blocks[from].block);
    uint64_t taken;
    if (!LLVMIsABranchInst(branch) || !LLVMIsConditional(branch)) return false;
    if (LLVMGetSuccessor(branch, 0) == LLVMGetSuccessor(branch, 1)) return false;
    if (!thread_value(LLVMGetCondition(branch), thread, &taken)) return false;
    return LLVMGetSuccessor(branch, taken & 1 ? 1 : 0) == s->flow.blocks[to].block;
}

/* Conditions that depend on more than the thread's place count as true. */
static bool may_run(const struct search *s, LLVMValueRef instruction, const struct thread_place *thread) {
    int block = block_of(s, instruction);
    for (int steps = 0; block > 0 && steps < MOST_GUARDS; steps++) {
        const struct flow_block *b = &s->flow.blocks[block];
        if (b->predecessor_count == 1 && turns_away(s, b->predecessors[0], block, thread)) return false;
        block = b->predecessor_count == 1 ? b->predecessors[0] : b->dominator;
    }
    return true;
}

enum { NOBODY = -1, SEVERAL = -2 };

static void mark_read(int16_t *reader, uint64_t from, uint64_t to, int simdgroup) {
    for (uint64_t i = from; i < to && i < MOST_BYTES; i++)
        reader[i] = (int16_t)(reader[i] == NOBODY || reader[i] == simdgroup ? simdgroup : SEVERAL);
}

/* By byte, the simdgroup that reads it; false: unknown. */
static bool find_readers(struct search *s, const struct access *load, int16_t *reader) {
    uint64_t begin = UINT64_MAX; /* of what a loop reads, for all threads alike */
    for (int i = 0; i < MOST_BYTES; i++) reader[i] = NOBODY;
    for (uint32_t i = 0; i < s->threads; i++) {
        struct thread_place thread = thread_place_of(s->size, i);
        uint64_t offset = 0;
        if (!may_run(s, load->instruction, &thread)) continue;
        bool known = thread_offset(s->unit, load->address, load->root, &thread, &offset);
        if (!known) {
            thread.first_round = true;
            offset = 0;
            if (!thread_offset(s->unit, load->address, load->root, &thread, &offset)) return false;
            if (begin != UINT64_MAX && begin != offset) return false;
            begin = offset;
        }
        mark_read(reader, offset, known ? offset + load->bytes : MOST_BYTES, (int)(i / 32));
    }
    return true;
}

/* Whether a thread stores to a byte that a thread of another simdgroup loads. */
static bool overwrites(struct search *s, const struct access *store, const int16_t *reader) {
    for (uint32_t i = 0; i < s->threads; i++) {
        struct thread_place thread = thread_place_of(s->size, i);
        uint64_t offset = 0;
        if (!may_run(s, store->instruction, &thread)) continue;
        if (!thread_offset(s->unit, store->address, store->root, &thread, &offset)) return false;
        for (uint64_t b = 0; b < store->bytes && offset < MOST_BYTES && offset + b < MOST_BYTES; b++)
            if (reader[offset + b] != NOBODY && reader[offset + b] != (int)(i / 32)) return true;
    }
    return false;
}

/* ---- Ways through the code. */

static void visit(struct search *s, LLVMBasicBlockRef block, int *depth) {
    int index = flow_index(&s->flow, block);
    if (index < 0 || s->seen[index]) return;
    s->seen[index] = true;
    s->stack[(*depth)++] = index;
}

static void visit_successors(struct search *s, LLVMBasicBlockRef block, int *depth) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    for (unsigned i = 0; i < LLVMGetNumSuccessors(end); i++) visit(s, LLVMGetSuccessor(end, i), depth);
}

enum meeting { PASSED, STOPPED, FOUND };

/* From an instruction on to the end of its block. */
static enum meeting scan(LLVMValueRef from, LLVMValueRef to, LLVMValueRef stop) {
    for (LLVMValueRef i = from; i; i = LLVMGetNextInstruction(i)) {
        if (i == stop || intrinsic_of(i) == INTRINSIC_THREADGROUP_BARRIER) return STOPPED;
        if (i == to) return FOUND;
    }
    return PASSED;
}

/* Whether a thread may come from one instruction to another without a barrier, and without coming to `stop`.
 */
static bool reaches(struct search *s, LLVMValueRef from, LLVMValueRef to, LLVMValueRef stop) {
    int depth = 0;
    memset(s->seen, 0, (size_t)s->flow.block_count * sizeof *s->seen);
    enum meeting met = scan(LLVMGetNextInstruction(from), to, stop);
    if (met != PASSED) return met == FOUND;
    visit_successors(s, LLVMGetInstructionParent(from), &depth);
    while (depth) {
        LLVMBasicBlockRef block = s->flow.blocks[s->stack[--depth]].block;
        met = scan(LLVMGetFirstInstruction(block), to, stop);
        if (met == FOUND) return true;
        if (met == PASSED) visit_successors(s, block, &depth);
    }
    return false;
}

/* Whether every way from one block comes to another one of its loop before it leaves the loop's round. */
static bool always_comes(struct search *s, int from, int to) {
    int loop = s->flow.blocks[from].loop, header = loop < 0 ? -1 : s->flow.loops[loop].header, depth = 0;
    memset(s->seen, 0, (size_t)s->flow.block_count * sizeof *s->seen);
    s->seen[to] = true;
    LLVMBasicBlockRef block = s->flow.blocks[from].block;
    if (!LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(block))) return false;
    visit_successors(s, block, &depth);
    while (depth) {
        int index = s->stack[--depth];
        block = s->flow.blocks[index].block;
        if (index == header || !flow_block_within(&s->flow, index, loop)) return false;
        if (!LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(block))) return false;
        visit_successors(s, block, &depth);
    }
    return true;
}

/* Whether a thread is as often in one block as in the other, and in turns. */
static bool go_together(struct search *s, int a, int b) {
    if (a == b) return true;
    if (s->flow.blocks[a].loop != s->flow.blocks[b].loop) return false;
    if (flow_dominates(&s->flow, a, b)) return always_comes(s, a, b);
    return flow_dominates(&s->flow, b, a) && always_comes(s, b, a);
}

/* ---- The added barrier. */

/* The instruction before the store, before which all threads that reach a barrier come; *model is that
 * barrier. */
static LLVMValueRef place_before(struct search *s, LLVMValueRef store, LLVMValueRef *model) {
    int own = block_of(s, store);
    for (int block = own;; block = s->flow.blocks[block].dominator) {
        for (int i = 0; i < s->barrier_count; i++)
            if (go_together(s, block, block_of(s, s->barriers[i]))) {
                *model = s->barriers[i];
                return block == own ? store : LLVMGetBasicBlockTerminator(s->flow.blocks[block].block);
            }
        if (block <= 0) return NULL;
    }
}

static void hold_back(struct search *s, const struct access *load, const struct access *store) {
    LLVMValueRef model, place = place_before(s, store->instruction, &model);
    if (!place || reaches(s, load->instruction, store->instruction, place)) return;
    LLVMPositionBuilderBefore(s->unit->builder, place);
    LLVMInsertIntoBuilder(s->unit->builder, LLVMInstructionClone(model));
}

static void hold_all_back(struct search *s, int16_t *reader) {
    for (int i = 0; i < s->load_count; i++) {
        const struct access *load = &s->loads[i];
        bool known = false, unknown = false;
        for (int k = 0; k < s->store_count && !unknown; k++) {
            const struct access *store = &s->stores[k];
            if (!is_same_root(load->root, store->root) ||
                !reaches(s, load->instruction, store->instruction, NULL))
                continue;
            if (!known) known = find_readers(s, load, reader);
            unknown = !known;
            if (known && overwrites(s, store, reader)) hold_back(s, load, store);
        }
    }
}

smelt_status pass_overwritten(struct unit *unit) {
    struct arena arena = {0};
    struct search *s = calloc(1, sizeof *s);
    int16_t *reader = malloc(MOST_BYTES * sizeof *reader);
    smelt_status status = SMELT_ERROR_OUT_OF_MEMORY;
    if (!s || !reader) goto end;
    const uint32_t *size = unit->request->shape.size;
    bool known = size[0] && size[1] && size[2];
    s->unit = unit;
    memcpy(s->size, known ? size : (const uint32_t[]){USUAL_THREADS, 1, 1}, sizeof s->size);
    s->threads = s->size[0] * s->size[1] * s->size[2];
    status = SMELT_OK;
    if (s->threads <= 32) goto end;
    find_accesses(s);
    if (s->too_many || !s->barrier_count || !s->load_count || !s->store_count) goto end;
    status = flow_find(unit, unit->entry, &arena, &s->flow);
    if (status != SMELT_OK) goto end;
    s->seen = arena_alloc(&arena, (size_t)s->flow.block_count);
    s->stack = arena_alloc(&arena, (size_t)s->flow.block_count * sizeof *s->stack);
    if (!s->seen || !s->stack)
        status = SMELT_ERROR_OUT_OF_MEMORY;
    else if (!s->flow.irreducible)
        hold_all_back(s, reader);
end:
    arena_free(&arena);
    free(reader);
    free(s);
    return status;
}
