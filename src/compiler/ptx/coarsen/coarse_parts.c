/* Takes a kernel's code apart for coarsening: guards, blocks that always run, and what may run first. */
#include "compiler/ptx/coarsen/coarse.h"

#include <stdlib.h>
#include <string.h>

struct coarse_number {
    LLVMValueRef value;
    int index;
};

static int compare_numbers(const void *a, const void *b) {
    const struct coarse_number *p = a, *q = b;
    return p->value < q->value ? -1 : p->value > q->value;
}

struct coarse_item *coarse_item_of(struct coarsening *c, LLVMValueRef value) {
    struct coarse_number key = {value, 0};
    const struct coarse_number *hit =
        bsearch(&key, c->numbers, (size_t)c->count, sizeof *c->numbers, compare_numbers);
    return hit ? &c->items[hit->index] : NULL;
}

static smelt_status number_items(struct coarsening *c) {
    int count = 0, n = 0;
    for (int i = 0; i < c->flow.block_count; i++)
        FOR_EACH_INSTRUCTION(value, c->flow.blocks[i].block) count++;
    c->items = arena_alloc(&c->arena, (size_t)count * sizeof *c->items);
    c->numbers = arena_alloc(&c->arena, (size_t)count * sizeof *c->numbers);
    c->blocks = arena_alloc(&c->arena, (size_t)c->flow.block_count * sizeof *c->blocks);
    if (c->arena.failed)
        return unit_fail(c->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %d instructions", count);
    for (int i = 0; i < c->flow.block_count; i++) FOR_EACH_INSTRUCTION(value, c->flow.blocks[i].block) {
            c->items[n] = (struct coarse_item){.value = value, .block = i};
            c->numbers[n] = (struct coarse_number){value, n};
            n++;
        }
    c->count = count;
    qsort(c->numbers, (size_t)count, sizeof *c->numbers, compare_numbers);
    return SMELT_OK;
}

/* ---- What instructions do. */

static bool touches_no_memory(LLVMValueRef function) {
    static const char name[] = "memory";
    LLVMAttributeRef attribute =
        LLVMGetEnumAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                    LLVMGetEnumAttributeKindForName(name, sizeof name - 1));
    return attribute && LLVMGetEnumAttributeValue(attribute) == 0;
}

static bool is_pure_call(struct unit *unit, LLVMValueRef call) {
    LLVMValueRef callee = LLVMGetCalledValue(call);
    enum intrinsic_kind kind = intrinsic_traits(intrinsic_of(call))->kind;
    (void)unit;
    if (kind != NOT_INTRINSIC) return kind == OF_THREAD;
    if (ptx_is_convergent(call)) return false;
    if (LLVMIsAInlineAsm(callee)) return !LLVMGetInlineAsmHasSideEffects(callee);
    return LLVMIsAFunction(callee) && LLVMIsDeclaration(callee) && touches_no_memory(callee);
}

bool coarse_is_pure(struct unit *unit, LLVMValueRef instruction) {
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMSelect:
    case LLVMGetElementPtr:
    case LLVMICmp:
    case LLVMFCmp:
    case LLVMExtractElement:
    case LLVMInsertElement:
    case LLVMShuffleVector:
    case LLVMExtractValue:
    case LLVMInsertValue:
    case LLVMFreeze:
    case LLVMFNeg:
        return true;
    case LLVMCall:
        return is_pure_call(unit, instruction);
    default:
        return LLVMIsABinaryOperator(instruction) || LLVMIsACastInst(instruction);
    }
}

bool coarse_is_plain_access(LLVMValueRef i) {
    return (LLVMIsALoadInst(i) || LLVMIsAStoreInst(i)) && !LLVMGetVolatile(i) &&
           LLVMGetOrdering(i) == LLVMAtomicOrderingNotAtomic;
}

/* Calls that are no code once the kernel is lowered. */
static bool is_mark(LLVMValueRef i) {
    enum intrinsic_kind kind = intrinsic_traits(intrinsic_of(i))->kind;
    return kind == OF_RETURN || kind == OF_LAUNCH;
}

/* Of a call that may have effects. */
static const char *obstacle_of_call(LLVMValueRef call) {
    static const char gpu[] = "llvm.nvvm.";
    if (LLVMIsAInlineAsm(LLVMGetCalledValue(call))) return "threads wait for each other or exchange values";
    if (strncmp(called_name(call), gpu, sizeof gpu - 1) != 0) return "threads call functions";
    bool barrier = strncmp(called_name(call) + sizeof gpu - 1, "barrier", 7) == 0;
    return barrier ? "threads wait for each other at a barrier" : "threads exchange values";
}

static const char *obstacle(struct unit *unit, LLVMValueRef i) {
    enum intrinsic_kind kind = intrinsic_traits(intrinsic_of(i))->kind;
    if (kind == OF_BARRIER) return "threads wait for each other at a barrier";
    if (kind == OF_SIMDGROUP || kind == OF_GPU || kind == OF_TILE) return "threads exchange values";
    if (kind == OF_LOG) return "threads log lines";
    if (LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i) || LLVMIsAFenceInst(i))
        return "threads use atomics";
    if (LLVMIsAAllocaInst(i)) return "threads have private arrays in memory";
    if (LLVMIsALoadInst(i) || LLVMIsAStoreInst(i))
        return coarse_is_plain_access(i) ? NULL : "threads access memory that is atomic or volatile";
    if (LLVMIsAPHINode(i) || LLVMIsATerminatorInst(i) || is_mark(i) || coarse_is_pure(unit, i)) return NULL;
    return LLVMIsACallInst(i) ? obstacle_of_call(i) : "threads execute an instruction of another kind";
}

/* ---- Ends, and loops that end the thread. */

static bool only_ends(LLVMBasicBlockRef block) {
    for (int steps = 0; steps < 4; steps++) {
        FOR_EACH_INSTRUCTION(i, block) {
            if (!LLVMIsATerminatorInst(i) && !is_mark(i)) return false;
        }
        LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
        if (LLVMIsAReturnInst(end)) return true;
        if (!LLVMIsABranchInst(end) || LLVMIsConditional(end)) return false;
        block = LLVMGetSuccessor(end, 0);
    }
    return false;
}

/* Whether threads know of no group. Loops over the rows of groups stay as they are: their rounds run together
 * (rounds.c), which reaches 0.96 of a copy's speed with floats. */
static bool knows_no_group(const struct coarsening *c) {
    for (int i = 0; i < c->count; i++) {
        enum intrinsic intrinsic = intrinsic_of(c->items[i].value);
        if (intrinsic_traits(intrinsic)->kind == OF_THREAD && intrinsic != INTRINSIC_THREAD_POSITION &&
            intrinsic != INTRINSIC_GRID_THREADS)
            return false;
    }
    return true;
}

static bool find_loop(struct coarsening *c) {
    const struct flow_loop *loop = &c->flow.loops[0];
    if (c->flow.loop_count != 1 || loop->latch_count != 1 || loop->latches[0] != loop->header) return false;
    c->loop = loop->header;
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(coarse_loop_block(c));
    if (!LLVMIsABranchInst(branch) || !LLVMIsConditional(branch)) return false;
    LLVMBasicBlockRef body = coarse_loop_block(c);
    bool stays = LLVMGetSuccessor(branch, 0) == body;
    if (!only_ends(LLVMGetSuccessor(branch, stays))) return false;
    int phis = 0;
    FOR_EACH_INSTRUCTION(i, body) phis += LLVMIsAPHINode(i) != NULL;
    return phis <= COARSE_PHIS && knows_no_group(c);
}

/* The phi of the block whose values a phi's are extensions of; NULL: there is none. */
static LLVMValueRef narrow_phi(LLVMBasicBlockRef block, LLVMValueRef phi) {
    FOR_EACH_INSTRUCTION(other, block) {
        if (!LLVMIsAPHINode(other)) break;
        bool all = true;
        for (unsigned i = 0; all && i < LLVMCountIncoming(phi); i++) {
            LLVMValueRef value = LLVMGetIncomingValue(phi, i);
            all = LLVMIsAZExtInst(value) &&
                  LLVMGetOperand(value, 0) == phi_incoming(other, LLVMGetIncomingBlock(phi, i));
        }
        if (all) return other;
    }
    return NULL;
}

static void narrow_phis(struct unit *unit, LLVMBasicBlockRef block) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef behind = LLVMGetFirstInstruction(block);
    while (LLVMIsAPHINode(behind)) behind = LLVMGetNextInstruction(behind);
    FOR_EACH_INSTRUCTION(phi, block) {
        if (!LLVMIsAPHINode(phi)) break;
        LLVMValueRef narrow = narrow_phi(block, phi);
        if (!narrow || narrow == phi) continue;
        LLVMPositionBuilderBefore(b, behind);
        LLVMReplaceAllUsesWith(phi, LLVMBuildZExt(b, narrow, LLVMTypeOf(phi), ""));
        LLVMInstructionEraseFromParent(phi);
    }
}

/* `behind`: the block behind the last guard. */
static bool loop_stands_alone(struct coarsening *c, int behind) {
    if (behind != c->loop) return false;
    for (int i = 0; i < c->count; i++) {
        const struct coarse_item *item = &c->items[i];
        if (!c->blocks[item->block].always || item->block == c->loop) continue;
        bool moves = item->first || LLVMIsATerminatorInst(item->value) || is_mark(item->value);
        if (!moves) return false;
    }
    return true;
}

static const char *find_obstacle(struct coarsening *c) {
    for (LLVMValueRef g = LLVMGetFirstGlobal(c->unit->module); g; g = LLVMGetNextGlobal(g))
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(g)) == PTX_SHARED && LLVMGetFirstUse(g))
            return "threads share threadgroup memory";
    for (int i = 0; i < c->unit->result->image.binding_count; i++)
        if (c->unit->result->image.bindings[i].kind == BINDING_THREADGROUP)
            return "threads share threadgroup memory";
    for (int i = 0; i < c->count; i++) {
        const char *found = obstacle(c->unit, c->items[i].value);
        if (found) return found;
    }
    return NULL;
}

/* ---- Guards: a branch near the start, of which one way only ends the thread. */

/* Whether a value is computed from positions and what is alike for all threads. */
static bool is_simple(struct coarsening *c, LLVMValueRef value, bool positions, int depth) {
    struct coarse_item *item = coarse_item_of(c, value);
    if (!item) return true;
    if (depth == 0) return false;
    bool load = LLVMIsALoadInst(value);
    if (load ? !coarse_is_plain_access(value) : !coarse_is_pure(c->unit, value)) return false;
    enum intrinsic intrinsic = intrinsic_of(value);
    bool sizes = intrinsic == INTRINSIC_GRID_THREADS || intrinsic == INTRINSIC_GRID_GROUPS ||
                 intrinsic == INTRINSIC_DISPATCH_THREADGROUP_SIZE;
    if (intrinsic != INTRINSIC_NONE && !sizes && !positions) return false;
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (!is_simple(c, LLVMGetOperand(value, (unsigned)i), positions && !load, depth - 1)) return false;
    return true;
}

#define MOST_DEPTH 12 /* of a guard's condition */

/* Whether the loads that a value follows from are in the first block, and whether it follows from no other
 * memory. */
static bool loads_at_start(struct coarsening *c, LLVMValueRef value, int depth) {
    const struct coarse_item *item = coarse_item_of(c, value);
    if (!item) return true;
    if (depth == 0) return false;
    if (LLVMIsALoadInst(value)) {
        LLVMValueRef from = LLVMGetOperand(value, 0);
        bool parameter =
            LLVMIsAGetElementPtrInst(from) && LLVMGetOperand(from, 0) == LLVMGetParam(c->unit->entry, 0);
        if (item->block != 0 && !parameter) return false;
    }
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (!loads_at_start(c, LLVMGetOperand(value, (unsigned)i), depth - 1)) return false;
    return true;
}

bool coarse_is_simple(struct coarsening *c, LLVMValueRef value) {
    return is_simple(c, value, true, MOST_DEPTH) && loads_at_start(c, value, MOST_DEPTH);
}

static int guard_of(struct coarsening *c, int block) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(c->flow.blocks[block].block);
    if (!LLVMIsABranchInst(end) || !LLVMIsConditional(end)) return -1;
    bool ends[2];
    for (unsigned s = 0; s < 2; s++) ends[s] = only_ends(LLVMGetSuccessor(end, s));
    if (ends[0] == ends[1] || !is_simple(c, LLVMGetCondition(end), true, MOST_DEPTH)) return -1;
    return ends[0] ? 1 : 0;
}

static bool has_store(LLVMBasicBlockRef block) {
    FOR_EACH_INSTRUCTION(i, block) {
        if (LLVMIsAStoreInst(i)) return true;
    }
    return false;
}

/* The block behind the last guard. A load of a later guard's condition may not pass a store. */
static int find_guards(struct coarsening *c) {
    int at = 0;
    for (int i = 0; i < c->flow.block_count; i++) c->blocks[i].guard = -1;
    for (;;) {
        LLVMBasicBlockRef block = c->flow.blocks[at].block;
        LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
        c->blocks[at].always = c->blocks[at].inside = true;
        if (at == c->loop || has_store(block) || !LLVMIsABranchInst(end)) return at;
        int stays = LLVMIsConditional(end) ? guard_of(c, at) : 0;
        if (stays < 0) return at;
        int next = flow_index(&c->flow, LLVMGetSuccessor(end, (unsigned)stays));
        if (LLVMIsConditional(end)) c->blocks[at].guard = stays;
        at = next;
    }
}

static void follow(struct coarsening *c, int from) {
    c->blocks[from].inside = true;
    for (int i = from; i < c->flow.block_count; i++) {
        if (!c->blocks[i].inside || c->blocks[i].guard >= 0) continue;
        LLVMValueRef end = LLVMGetBasicBlockTerminator(c->flow.blocks[i].block);
        for (unsigned s = 0; s < LLVMGetNumSuccessors(end); s++)
            c->blocks[flow_index(&c->flow, LLVMGetSuccessor(end, s))].inside = true;
    }
}

/* Marks blocks `inside` and `always`. Every path from the last guard to an end passes through a block that is
 * marked `always`. But for a loop's own block, branches lead only to later blocks: such a block is one that
 * no earlier block branches past, and before which no block ends the thread. Returns the block behind the
 * last guard. */
static int mark_blocks(struct coarsening *c) {
    int from = find_guards(c), farthest = from;
    follow(c, from);
    for (int i = from; i < c->flow.block_count; i++) {
        if (!c->blocks[i].inside) continue;
        c->blocks[i].always = farthest <= i;
        LLVMValueRef end = LLVMGetBasicBlockTerminator(c->flow.blocks[i].block);
        unsigned count = LLVMGetNumSuccessors(end);
        if (!count) farthest = c->flow.block_count;
        for (unsigned s = 0; s < count; s++) {
            int next = flow_index(&c->flow, LLVMGetSuccessor(end, s));
            if (next > farthest) farthest = next;
        }
    }
    return from;
}

/* ---- The first part. */

static bool operands_first(struct coarsening *c, LLVMValueRef value) {
    for (int i = 0; i < LLVMGetNumOperands(value); i++) {
        const struct coarse_item *operand = coarse_item_of(c, LLVMGetOperand(value, (unsigned)i));
        if (operand && !operand->first) return false;
    }
    return true;
}

/* A thread's own stores stay before its later loads, which may read what they wrote. */
static bool passes_stores(struct coarsening *c, int load) {
    for (int i = 0; i < load; i++) {
        const struct coarse_item *item = &c->items[i];
        if (!c->blocks[item->block].inside || !LLVMIsAStoreInst(item->value)) continue;
        LLVMValueRef stored = LLVMGetOperand(item->value, 1);
        if (!ptx_are_apart(c->unit, LLVMGetOperand(c->items[load].value, 0), stored)) return false;
    }
    return true;
}

static void mark_first(struct coarsening *c) {
    for (int i = 0; i < c->count; i++) {
        struct coarse_item *item = &c->items[i];
        if (!c->blocks[item->block].always) continue;
        bool load = LLVMIsALoadInst(item->value) && passes_stores(c, i);
        bool phi = item->block == c->loop && LLVMIsAPHINode(item->value);
        item->first =
            phi || ((load || coarse_is_pure(c->unit, item->value)) && operands_first(c, item->value));
    }
}

smelt_status coarse_take_apart(struct coarsening *c) {
    TRY(flow_find(c->unit, c->unit->entry, &c->arena, &c->flow));
    if (c->flow.loop_count == 1) narrow_phis(c->unit, c->flow.blocks[c->flow.loops[0].header].block);
    TRY(number_items(c));
    c->because = find_obstacle(c);
    if (c->because) return SMELT_OK;
    if (c->flow.irreducible || (c->flow.loop_count && !find_loop(c))) {
        c->because = "threads run loops";
        c->branches = knows_no_group(c);
        return SMELT_OK;
    }
    int behind = mark_blocks(c);
    mark_first(c);
    if (c->loop >= 0 && !loop_stands_alone(c, behind)) c->because = "threads run loops";
    return SMELT_OK;
}
