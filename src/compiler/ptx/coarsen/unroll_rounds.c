/* Inner loops of a few rounds, whose number is constant, are unrolled fully: the positions of a window, in
 * `for (int dx = -3; dx <= 3; dx++)`, become parts of addresses. LLVM has done so if all rounds together are
 * short; here they may be longer.
 *
 * LLVM unrolls short loops whose number of rounds is known only at run time: four or eight rounds run at
 * once, and a second loop runs the remaining ones, which in a window of three by three are all. If rounds
 * have guards, the second loop is unrolled, too, so that the assembler can begin its loads together. (It does
 * so itself in loops of one block.) Kernels with dozens of loops stay as they are, since their code would
 * grow several times and take LLVM's code generator too long. So does a long thread without loops, whose code
 * is clean already.
 *
 * Requires: the module lowered and cleaned. Maintains: what the code does. */
#include "base/arena.h"
#include "compiler/flow.h"
#include "compiler/ptx/coarsen/coarse.h"
#include "compiler/ptx/ptx.h"

#define MOST_ROUNDS 16 /* as LLVM's own limit (compiler.c) */
/* Of all rounds: seven taps of a bilateral filter have 420; LLVM's limit is 300. */
#define MOST_INSTRUCTIONS 512

static bool is_innermost(const struct flow *flow, int loop) {
    for (int i = 0; i < flow->loop_count; i++)
        if (flow->loops[i].parent == loop) return false;
    return true;
}

/* An estimate, from the comparison that ends the loop, of a counter that starts at a constant; 0: unknown. */
static int64_t count_rounds(const struct flow *flow, int loop) {
    const struct flow_loop *l = &flow->loops[loop];
    if (l->latch_count != 1) return 0;
    LLVMBasicBlockRef latch = flow->blocks[l->latches[0]].block;
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(latch);
    LLVMValueRef test =
        LLVMIsABranchInst(branch) && LLVMIsConditional(branch) ? LLVMGetCondition(branch) : NULL;
    if (!test || !LLVMIsAICmpInst(test)) return 0;
    LLVMValueRef next = LLVMGetOperand(test, 0), end = LLVMGetOperand(test, 1);
    if (!LLVMIsAConstantInt(end) || !LLVMIsAInstruction(next) || LLVMGetInstructionOpcode(next) != LLVMAdd)
        return 0;
    LLVMValueRef counter = LLVMGetOperand(next, 0), step = LLVMGetOperand(next, 1);
    if (!LLVMIsAPHINode(counter) || LLVMCountIncoming(counter) != 2 || !LLVMIsAConstantInt(step)) return 0;
    if (LLVMGetInstructionParent(counter) != flow->blocks[l->header].block) return 0;
    LLVMValueRef first = LLVMGetIncomingValue(counter, LLVMGetIncomingBlock(counter, 0) == latch);
    int64_t by = LLVMConstIntGetSExtValue(step), distance;
    if (!LLVMIsAConstantInt(first) || by == 0) return 0;
    bool overflows =
        __builtin_sub_overflow(LLVMConstIntGetSExtValue(end), LLVMConstIntGetSExtValue(first), &distance);
    return overflows || distance == INT64_MIN ? 0 : distance / by; /* INT64_MIN / -1 overflows, too */
}

static int64_t count_instructions(const struct flow *flow, int loop) {
    int64_t count = 0;
    for (int i = 0; i < flow->block_count; i++) {
        if (flow->blocks[i].loop != loop) continue;
        FOR_EACH_INSTRUCTION(instruction, flow->blocks[i].block) count++;
    }
    return count;
}

/* ---- Loops that search: each round loads, compares, and may change what was found. */

#define ROUNDS_OF_SEARCH 4
#define MOST_IN_SEARCH 96 /* instructions of a round */

/* Whether a loop loads from device memory in each round, stores nothing, and has code that some rounds skip.
 * LLVM unrolls longer rounds less. But the time of such a loop is that of its loads: with four in flight
 * instead of two, NVIDIA's compiler took 0.65 of the time for the eight largest of columns (on an H200). */
static bool is_search(struct unit *unit, const struct flow *flow, int loop) {
    const struct flow_loop *l = &flow->loops[loop];
    bool loads = false;
    if (l->latch_count != 1 || l->latches[0] == l->header || count_instructions(flow, loop) > MOST_IN_SEARCH)
        return false;
    for (int i = 0; i < flow->block_count; i++) {
        if (flow->blocks[i].loop != loop) continue;
        FOR_EACH_INSTRUCTION(instruction, flow->blocks[i].block) {
            if (LLVMIsALoadInst(instruction))
                loads |= i == l->header &&
                         LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(instruction, 0))) == PTX_GLOBAL;
            else if (!LLVMIsAPHINode(instruction) && !LLVMIsATerminatorInst(instruction) &&
                     !coarse_is_pure(unit, instruction))
                return false;
        }
    }
    return loads;
}

static smelt_status ask_for_short(struct unit *unit) {
    struct arena arena = {0};
    struct flow flow;
    smelt_status status = flow_find(unit, unit->entry, &arena, &flow);
    for (int i = 0; status == SMELT_OK && i < flow.loop_count; i++) {
        int64_t rounds = is_innermost(&flow, i) ? count_rounds(&flow, i) : 0;
        if (rounds > 1 && rounds <= MOST_ROUNDS && rounds * count_instructions(&flow, i) <= MOST_INSTRUCTIONS)
            ptx_ask_to_unroll(unit, &flow, i);
        else if (is_innermost(&flow, i) && !rounds && is_search(unit, &flow, i))
            ptx_ask_for_rounds(unit, &flow, i, ROUNDS_OF_SEARCH);
    }
    arena_free(&arena);
    return status;
}

/* ---- Loops that run the remaining rounds. */

/* The headers of loops that have metadata. */
struct told {
    LLVMBasicBlockRef *headers;
    int count;
};

static LLVMValueRef branch_of(const struct flow *flow, int loop) {
    return LLVMGetBasicBlockTerminator(flow->blocks[flow->loops[loop].latches[0]].block);
}

static unsigned loop_note(struct unit *unit) {
    return LLVMGetMDKindIDInContext(unit->context, "llvm.loop", 9);
}

/* The loops whose unrolling the source or an earlier pass has decided. */
static smelt_status find_told(struct unit *unit, struct arena *arena, struct told *told) {
    struct flow flow;
    TRY(flow_find(unit, unit->entry, arena, &flow));
    told->headers = arena_alloc(arena, (size_t)(flow.loop_count + 1) * sizeof *told->headers);
    if (!told->headers) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for loops");
    for (int i = 0; i < flow.loop_count; i++)
        if (LLVMGetMetadata(branch_of(&flow, i), loop_note(unit)))
            told->headers[told->count++] = flow.blocks[flow.loops[i].header].block;
    return SMELT_OK;
}

static bool was_told(const struct told *told, LLVMBasicBlockRef header) {
    for (int i = 0; i < told->count; i++)
        if (told->headers[i] == header) return true;
    return false;
}

/* LLVM has marked the loops of remaining rounds as not to be unrolled. Removes these marks. *any: whether
 * there was one. */
static smelt_status free_rests(struct unit *unit, struct arena *arena, const struct told *told, bool *any) {
    struct flow flow;
    *any = false;
    TRY(flow_find(unit, unit->entry, arena, &flow));
    for (int i = 0; i < flow.loop_count; i++) {
        const struct flow_loop *l = &flow.loops[i];
        LLVMBasicBlockRef header = flow.blocks[l->header].block;
        if (!is_innermost(&flow, i) || l->latch_count != 1 || l->latches[0] == l->header) continue;
        if (!LLVMGetMetadata(branch_of(&flow, i), loop_note(unit)) || was_told(told, header)) continue;
        LLVMSetMetadata(branch_of(&flow, i), loop_note(unit), NULL);
        *any = true;
    }
    return SMELT_OK;
}

static smelt_status unroll(struct unit *unit, struct arena *arena) {
    struct told told = {0};
    bool rests;
    TRY(find_told(unit, arena, &told));
    TRY(ask_for_short(unit));
    TRY(ptx_run_passes(unit, "function(loop-unroll<O3>)"));
    TRY(free_rests(unit, arena, &told, &rests));
    if (rests) TRY(ptx_run_passes(unit, "function(loop-unroll<O3;upperbound;no-runtime;no-partial>)"));
    return ptx_run_passes(unit, "function(instcombine<no-verify-fixpoint>,simplifycfg,early-cse<memssa>)");
}

smelt_status pass_ptx_unroll_rounds(struct unit *unit) {
    bool many;
    int loops;
    TRY(landmarks_are_needed(unit, &many));
    TRY(flow_count_loops(unit, &loops));
    if (many || (unit->long_thread && !loops)) return SMELT_OK;
    struct arena arena = {0};
    smelt_status status = unroll(unit, &arena);
    arena_free(&arena);
    return status;
}
