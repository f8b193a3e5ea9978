/* Inner loops of a few rounds, whose number is constant, are unrolled fully: the positions of a window, in
 * `for (int dx = -3; dx <= 3; dx++)`, become parts of addresses. LLVM has done so if all rounds together are
 * short; here they may be longer.
 *
 * LLVM unrolls short loops whose number of rounds is known only at run time: four rounds run at once, and a
 * second loop runs the rest. Kernels with dozens of loops stay as they are, since their code would grow
 * several times and take LLVM's code generator too long. So does a long thread without loops, whose code is
 * clean already.
 *
 * Requires: the module lowered and cleaned. Maintains: what the code does. */
#include "base/arena.h"
#include "compiler/flow.h"
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

static smelt_status ask_for_short(struct unit *unit) {
    struct arena arena = {0};
    struct flow flow;
    smelt_status status = flow_find(unit, unit->entry, &arena, &flow);
    for (int i = 0; status == SMELT_OK && i < flow.loop_count; i++) {
        int64_t rounds = is_innermost(&flow, i) ? count_rounds(&flow, i) : 0;
        if (rounds > 1 && rounds <= MOST_ROUNDS && rounds * count_instructions(&flow, i) <= MOST_INSTRUCTIONS)
            ptx_ask_to_unroll(unit, &flow, i);
    }
    arena_free(&arena);
    return status;
}

smelt_status pass_ptx_unroll_rounds(struct unit *unit) {
    bool many;
    int loops;
    TRY(landmarks_are_needed(unit, &many));
    TRY(flow_count_loops(unit, &loops));
    if (many || (unit->long_thread && !loops)) return SMELT_OK;
    TRY(ask_for_short(unit));
    return ptx_run_passes(unit, "function(loop-unroll<O3>,instcombine<no-verify-fixpoint>,simplifycfg,"
                                "early-cse<memssa>)");
}
