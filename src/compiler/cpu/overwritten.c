/* Holds stores to threadgroup memory back until other simdgroups have loaded what they overwrite.
 *
 * Public kernels use an array of partial results again without a barrier in between: all simdgroups load the
 * first sum, and each stores its part of the second one. That is a race. On a GPU, whose simdgroups run side
 * by side, the loads come long before the stores; here, one simdgroup would run up to its next barrier before
 * the others load. So a barrier is added before such a store, where all threads pass.
 *
 * A race is recognised from addresses that depend only on a thread's place in its group. Loads with a loop's
 * counter as index, if the threads of a simdgroup begin alike, read all from its first value on, up to where
 * another simdgroup begins.
 *
 * On the scalar engine, lanes of a simdgroup run ahead of each other, too: all load a sum, and one replaces
 * it. There a barrier of the simdgroup is added between the two.
 *
 * Requires: the optimised entry of one thread. Maintains: kernels without such a race stay as they are, so do
 * those in which not all threads that reach some barrier pass a place before the store. */
#include "compiler/cpu/thread_value.h"
#include "compiler/analysis/flow.h"

#include <llvm-c/DebugInfo.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ACCESSES 128  /* of each kind, and barriers; kernels with more stay as they are */
#define MOST_BYTES 32768   /* of a variable or argument that are looked at */
#define USUAL_THREADS 256  /* if the group's size is not known */
#define MOST_GUARDS 16     /* branches around an access */
#define MOST_STEPS 4000000 /* values of threads that are computed: bounds the time of the pass */

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
    bool lanes_run_ahead;
    uint64_t steps; /* left of MOST_STEPS; at 0, the rest of the kernel stays as it is */
    bool *seen;     /* by block */
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

static struct thread_place place_of(struct search *s, uint32_t thread) {
    struct thread_place place = thread_place_of(s->size, thread);
    place.steps = &s->steps;
    return place;
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

/* Of a byte. */
struct reader {
    int16_t simdgroup;
    int8_t lane;
};

static void mark_read(struct reader *readers, uint64_t from, uint64_t to, int simdgroup, int lane) {
    for (uint64_t i = from; i < to && i < MOST_BYTES; i++) {
        struct reader *r = &readers[i];
        bool first = r->simdgroup == NOBODY;
        r->lane = (int8_t)(first || r->lane == lane ? lane : SEVERAL);
        r->simdgroup = (int16_t)(first || r->simdgroup == simdgroup ? simdgroup : SEVERAL);
    }
}

#define MOST_SIMDGROUPS 32
#define NO_BEGIN UINT64_MAX

/* Of loops over parts of the memory, one for each simdgroup: each part ends where the next one begins. */
static void mark_parts(struct reader *readers, const uint64_t *begins) {
    for (int g = 0; g < MOST_SIMDGROUPS; g++) {
        uint64_t end = MOST_BYTES;
        if (begins[g] == NO_BEGIN) continue;
        for (int k = 0; k < MOST_SIMDGROUPS; k++)
            if (begins[k] > begins[g] && begins[k] < end) end = begins[k];
        mark_read(readers, begins[g], end, g, 0);
        mark_read(readers, begins[g], end, g, 1);
    }
}

/* By byte, who reads it; false: unknown. */
static bool find_readers(struct search *s, const struct access *load, struct reader *readers) {
    uint64_t begins[MOST_SIMDGROUPS]; /* of what a loop reads, for all threads of a simdgroup alike */
    for (int g = 0; g < MOST_SIMDGROUPS; g++) begins[g] = NO_BEGIN;
    for (int i = 0; i < MOST_BYTES; i++) readers[i] = (struct reader){NOBODY, NOBODY};
    for (uint32_t i = 0; i < s->threads && i / 32 < MOST_SIMDGROUPS; i++) {
        struct thread_place thread = place_of(s, i);
        uint64_t offset = 0, *begin = &begins[i / 32];
        if (!may_run(s, load->instruction, &thread)) continue;
        if (thread_offset(s->unit, load->address, load->root, &thread, &offset)) {
            mark_read(readers, offset, offset + load->bytes, (int)(i / 32), (int)(i % 32));
            continue;
        }
        thread.first_round = true;
        offset = 0;
        if (!thread_offset(s->unit, load->address, load->root, &thread, &offset)) return false;
        if (*begin != NO_BEGIN && *begin != offset) return false;
        *begin = offset;
    }
    mark_parts(readers, begins);
    return true;
}

enum race { NO_RACE, IN_SIMDGROUP, AMONG_SIMDGROUPS };

/* Whether a thread stores to a byte that another one loads. */
static enum race overwrites(struct search *s, const struct access *store, const struct reader *readers) {
    enum race race = NO_RACE;
    for (uint32_t i = 0; i < s->threads; i++) {
        struct thread_place thread = place_of(s, i);
        uint64_t offset = 0;
        if (!may_run(s, store->instruction, &thread)) continue;
        if (!thread_offset(s->unit, store->address, store->root, &thread, &offset)) return NO_RACE;
        for (uint64_t b = 0; b < store->bytes && offset < MOST_BYTES && offset + b < MOST_BYTES; b++) {
            const struct reader *r = &readers[offset + b];
            if (r->simdgroup == NOBODY) continue;
            if (r->simdgroup != (int)(i / 32)) return AMONG_SIMDGROUPS;
            if (r->lane != (int)(i % 32)) race = IN_SIMDGROUP;
        }
    }
    return race;
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
static enum meeting scan(LLVMValueRef from, LLVMValueRef to, LLVMValueRef stop, enum race race) {
    for (LLVMValueRef i = from; i; i = LLVMGetNextInstruction(i)) {
        enum intrinsic intrinsic = intrinsic_of(i);
        if (i == stop || intrinsic == INTRINSIC_THREADGROUP_BARRIER) return STOPPED;
        if (race == IN_SIMDGROUP && intrinsic_is_of_simdgroup(intrinsic)) return STOPPED;
        if (i == to) return FOUND;
    }
    return PASSED;
}

/* Whether a thread may come from one instruction to another without what the other threads of the race wait
 * for, and without coming to `stop`. */
static bool reaches(struct search *s, LLVMValueRef from, LLVMValueRef to, LLVMValueRef stop, enum race race) {
    int depth = 0;
    memset(s->seen, 0, (size_t)s->flow.block_count * sizeof *s->seen);
    enum meeting met = scan(LLVMGetNextInstruction(from), to, stop, race);
    if (met != PASSED) return met == FOUND;
    visit_successors(s, LLVMGetInstructionParent(from), &depth);
    while (depth) {
        LLVMBasicBlockRef block = s->flow.blocks[s->stack[--depth]].block;
        met = scan(LLVMGetFirstInstruction(block), to, stop, race);
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
    if (!place || reaches(s, load->instruction, store->instruction, place, AMONG_SIMDGROUPS)) return;
    LLVMPositionBuilderBefore(s->unit->builder, place);
    LLVMInsertIntoBuilder(s->unit->builder, LLVMInstructionClone(model));
}

static void add_simdgroup_barrier(struct unit *unit, LLVMValueRef place, LLVMValueRef store) {
    LLVMTypeRef word = LLVMInt32TypeInContext(unit->context);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(unit->context), &word, 1, false);
    LLVMValueRef flags = LLVMConstInt(word, 2, false);
    LLVMPositionBuilderBefore(unit->builder, place);
    LLVMSetCurrentDebugLocation2(unit->builder, LLVMInstructionGetDebugLoc(store));
    LLVMBuildCall2(unit->builder, type, intrinsic_declare(unit->module, INTRINSIC_SIMDGROUP_BARRIER, type),
                   &flags, 1, "");
}

/* Before the branch to the store's block, or before the store. Lanes that come there later are waited for. */
static void hold_back_lanes(struct search *s, const struct access *load, const struct access *store) {
    int own = block_of(s, store->instruction), above = s->flow.blocks[own].dominator;
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(s->flow.blocks[above].block);
    bool cut = above != own && !reaches(s, load->instruction, store->instruction, branch, IN_SIMDGROUP);
    add_simdgroup_barrier(s->unit, cut ? branch : store->instruction, store->instruction);
}

static void hold_all_back(struct search *s, struct reader *readers) {
    for (int i = 0; i < s->load_count; i++) {
        const struct access *load = &s->loads[i];
        bool known = false, unknown = false;
        for (int k = 0; k < s->store_count && !unknown; k++) {
            const struct access *store = &s->stores[k];
            if (!is_same_root(load->root, store->root) ||
                !reaches(s, load->instruction, store->instruction, NULL, AMONG_SIMDGROUPS))
                continue;
            if (!known) known = find_readers(s, load, readers);
            unknown = !known;
            enum race race = known ? overwrites(s, store, readers) : NO_RACE;
            if (!s->steps) return;
            if (race == AMONG_SIMDGROUPS) hold_back(s, load, store);
            if (race == IN_SIMDGROUP && s->lanes_run_ahead &&
                reaches(s, load->instruction, store->instruction, NULL, IN_SIMDGROUP))
                hold_back_lanes(s, load, store);
        }
    }
}

smelt_status pass_overwritten(struct unit *unit) {
    struct arena arena = {0};
    struct search *s = calloc(1, sizeof *s);
    struct reader *readers = malloc(MOST_BYTES * sizeof *readers);
    smelt_status status = SMELT_ERROR_OUT_OF_MEMORY;
    if (!s || !readers) goto end;
    const uint32_t *size = unit->request->shape.size;
    bool known = size[0] && size[1] && size[2];
    s->unit = unit;
    s->steps = MOST_STEPS;
    s->lanes_run_ahead = !unit->target->wants_vectors;
    memcpy(s->size, known ? size : (const uint32_t[]){USUAL_THREADS, 1, 1}, sizeof s->size);
    s->threads = s->size[0] * s->size[1] * s->size[2];
    status = SMELT_OK;
    if (s->threads <= 32 && !s->lanes_run_ahead) goto end;
    find_accesses(s);
    if (s->too_many || !s->load_count || !s->store_count) goto end;
    status = flow_find(unit, unit->entry, &arena, &s->flow);
    if (status != SMELT_OK) goto end;
    s->seen = arena_alloc(&arena, (size_t)s->flow.block_count);
    s->stack = arena_alloc(&arena, (size_t)s->flow.block_count * sizeof *s->stack);
    if (!s->seen || !s->stack)
        status = SMELT_ERROR_OUT_OF_MEMORY;
    else if (!s->flow.irreducible)
        hold_all_back(s, readers);
end:
    arena_free(&arena);
    free(readers);
    free(s);
    return status;
}
