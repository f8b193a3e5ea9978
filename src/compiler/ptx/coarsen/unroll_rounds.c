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
#include "compiler/analysis/flow.h"
#include "compiler/ptx/coarsen/coarse.h"
#include "compiler/ptx/ptx.h"

#define MOST_ROUNDS 16 /* as LLVM's own limit (compiler.c) */
/* Of all rounds: seven taps of a bilateral filter have 420; LLVM's limit is 300. */
#define MOST_INSTRUCTIONS 512
#define MOST_INNER 2048 /* of all loops together that unrolling made constant */

static bool is_innermost(const struct flow *flow, int loop) {
    for (int i = 0; i < flow->loop_count; i++)
        if (flow->loops[i].parent == loop) return false;
    return true;
}

/* ---- How many rounds a loop has, from the comparison that ends it. */

struct counted {
    LLVMValueRef counter, next, first; /* the counter's value in the next round, and in the first one */
    LLVMValueRef test, tested, end;    /* the comparison, of the counter or of `next`, with a constant */
    bool stays;                        /* what the comparison is if there is a next round */
};

/* A loop whose counter starts at a constant and changes by one in each round. */
static bool find_counter(const struct flow *flow, int loop, struct counted *c) {
    const struct flow_loop *l = &flow->loops[loop];
    if (l->latch_count != 1) return false;
    LLVMBasicBlockRef latch = flow->blocks[l->latches[0]].block, header = flow->blocks[l->header].block;
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(latch);
    c->test = LLVMIsABranchInst(branch) && LLVMIsConditional(branch) ? LLVMGetCondition(branch) : NULL;
    if (!c->test || !LLVMIsAICmpInst(c->test)) return false;
    c->tested = LLVMGetOperand(c->test, 0);
    c->end = LLVMGetOperand(c->test, 1);
    c->stays = LLVMGetSuccessor(branch, 0) == header;
    c->counter = LLVMIsABinaryOperator(c->tested) ? LLVMGetOperand(c->tested, 0) : c->tested;
    if (!LLVMIsAPHINode(c->counter) || LLVMCountIncoming(c->counter) != 2 ||
        LLVMGetInstructionParent(c->counter) != header)
        return false;
    bool second = LLVMGetIncomingBlock(c->counter, 1) == latch;
    c->next = LLVMGetIncomingValue(c->counter, second);
    c->first = LLVMGetIncomingValue(c->counter, !second);
    return LLVMIsAConstantInt(c->end) && LLVMIsAConstantInt(c->first) && LLVMIsABinaryOperator(c->next) &&
           LLVMGetOperand(c->next, 0) == c->counter && LLVMIsAConstantInt(LLVMGetOperand(c->next, 1)) &&
           (c->tested == c->counter || c->tested == c->next);
}

/* An estimate, for a counter to which a constant is added; 0: unknown. */
static int64_t estimate_rounds(const struct counted *c) {
    int64_t by = LLVMConstIntGetSExtValue(LLVMGetOperand(c->next, 1)), distance;
    if (by == 0) return 0;
    bool overflows = __builtin_sub_overflow(LLVMConstIntGetSExtValue(c->end),
                                            LLVMConstIntGetSExtValue(c->first), &distance);
    return overflows || distance == INT64_MIN ? 0 : distance / by; /* INT64_MIN / -1 overflows, too */
}

/* For counters that are halved, doubled …; 0: more than MOST_ROUNDS, or unknown. */
static int64_t run_rounds(struct unit *unit, const struct counted *c) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef value = c->first, step = LLVMGetOperand(c->next, 1);
    LLVMPositionBuilderBefore(b, c->test);
    for (int64_t round = 1; round <= MOST_ROUNDS; round++) {
        /* Of constants, LLVM builds constants. */
        LLVMValueRef next = LLVMBuildBinOp(b, LLVMGetInstructionOpcode(c->next), value, step, "");
        LLVMValueRef tested = c->tested == c->next ? next : value;
        LLVMValueRef test = LLVMBuildICmp(b, LLVMGetICmpPredicate(c->test), tested, c->end, "");
        if (!LLVMIsAConstantInt(next) || !LLVMIsAConstantInt(test)) return 0;
        if ((LLVMConstIntGetZExtValue(test) != 0) != c->stays) return round;
        value = next;
    }
    return 0;
}

static int64_t count_rounds(struct unit *unit, const struct flow *flow, int loop) {
    struct counted c;
    if (!find_counter(flow, loop, &c)) return 0;
    switch (LLVMGetInstructionOpcode(c.next)) {
    case LLVMAdd:
        return c.tested == c.next ? estimate_rounds(&c) : 0;
    case LLVMLShr:
    case LLVMAShr:
    case LLVMShl:
    case LLVMMul:
        return run_rounds(unit, &c);
    default:
        return 0;
    }
}

static int64_t count_instructions(const struct flow *flow, int loop) {
    int64_t count = 0;
    for (int i = 0; i < flow->block_count; i++) {
        if (flow->blocks[i].loop != loop) continue;
        FOR_EACH_INSTRUCTION(instruction, flow->blocks[i].block) count++;
    }
    return count;
}

static bool is_short(const struct flow *flow, int loop, int64_t rounds) {
    return rounds > 1 && rounds <= MOST_ROUNDS &&
           rounds * count_instructions(flow, loop) <= MOST_INSTRUCTIONS;
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
        if (!is_innermost(&flow, i)) continue;
        int64_t rounds = count_rounds(unit, &flow, i);
        if (is_short(&flow, i, rounds))
            ptx_ask_to_unroll(unit, &flow, i);
        else if (!rounds && is_search(unit, &flow, i))
            ptx_ask_for_rounds(unit, &flow, i, ROUNDS_OF_SEARCH);
    }
    arena_free(&arena);
    return status;
}

/* ---- Loops whose number of rounds became constant when a loop around them was unrolled, as in bitonic
 * sorts. */

static smelt_status unroll_inner(struct unit *unit) {
    struct arena arena = {0};
    struct flow flow;
    int64_t all = 0;
    bool any = false;
    smelt_status status = flow_find(unit, unit->entry, &arena, &flow);
    for (int i = 0; status == SMELT_OK && i < flow.loop_count; i++) {
        int64_t rounds = is_innermost(&flow, i) ? count_rounds(unit, &flow, i) : 0;
        if (!is_short(&flow, i, rounds)) continue;
        all += rounds * count_instructions(&flow, i);
        if (all > MOST_INNER) break;
        ptx_ask_to_unroll(unit, &flow, i);
        any = true;
    }
    arena_free(&arena);
    return status == SMELT_OK && any ? ptx_run_passes(unit, "function(loop-unroll<O3;no-runtime;no-partial>)")
                                     : status;
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
    TRY(unroll_inner(unit));
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
