/* Paths through guards (guarded.h). */
#include "compiler/ptx/memory/guarded.h"

bool guarded_add(struct guarded *g, LLVMBasicBlockRef block) {
    if (g->size.blocks == GUARDED_MOST_BLOCKS) return false;
    g->blocks[g->size.blocks++] = block;
    return true;
}

bool guarded_has(const struct guarded *g, LLVMBasicBlockRef block) {
    for (int i = 0; i < g->size.blocks; i++)
        if (g->blocks[i] == block) return true;
    return false;
}

LLVMValueRef guarded_value(const struct guarded *g, LLVMValueRef phi) {
    for (int i = 0; i < g->size.joins; i++)
        if (g->joins[i].block == LLVMGetInstructionParent(phi)) return phi_incoming(phi, g->joins[i].from);
    return NULL;
}

bool guarded_divides(LLVMValueRef value) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    bool divides = opcode == LLVMUDiv || opcode == LLVMSDiv || opcode == LLVMURem || opcode == LLVMSRem;
    return divides && !LLVMIsAConstantInt(LLVMGetOperand(value, 1));
}

static int predecessors(const struct guarded *g, LLVMBasicBlockRef block) {
    int place = flow_index(g->flow, block);
    return place < 0 ? 0 : g->flow->blocks[place].predecessor_count;
}

/* Follows one guard: its conditions, one after the other, then the block that they all lead to if they hold.
 * `taken`: the successor of the first branch where its condition holds. On failure, `g` keeps what was added.
 */
static LLVMBasicBlockRef follow(struct guarded *g, LLVMValueRef branch, unsigned taken) {
    LLVMBasicBlockRef join = LLVMGetSuccessor(branch, 1 - taken), then = NULL;
    int conditions = 0;
    while (LLVMIsABranchInst(branch) && LLVMIsConditional(branch)) {
        if (conditions) taken = LLVMGetSuccessor(branch, 0) == join;
        then = LLVMGetSuccessor(branch, taken);
        if (LLVMGetSuccessor(branch, 1 - taken) != join || then == join || predecessors(g, then) != 1 ||
            g->size.conditions == GUARDED_MOST || !guarded_add(g, then))
            return NULL;
        g->conditions[g->size.conditions].branch = branch;
        g->conditions[g->size.conditions++].taken = taken;
        conditions++;
        branch = LLVMGetBasicBlockTerminator(then);
    }
    if (LLVMGetNumSuccessors(branch) != 1 || LLVMGetSuccessor(branch, 0) != join ||
        predecessors(g, join) != conditions + 1 || g->size.joins == GUARDED_MOST)
        return NULL;
    g->joins[g->size.joins].block = join;
    g->joins[g->size.joins++].from = then;
    return join;
}

LLVMBasicBlockRef guarded_follow(struct guarded *g, LLVMBasicBlockRef from) {
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(from);
    struct guarded_size before = g->size;
    if (!LLVMIsABranchInst(branch) || !LLVMIsConditional(branch)) return NULL;
    for (unsigned taken = 0; taken < 2; taken++) {
        LLVMBasicBlockRef join = follow(g, branch, taken);
        if (join) return join;
        g->size = before;
    }
    return NULL;
}
