#include "compiler/analysis/phases.h"

bool phases_is_never(LLVMValueRef terminator, unsigned successor) {
    return successor == 0 && LLVMIsABranchInst(terminator) && LLVMIsConditional(terminator) &&
           intrinsic_of(LLVMGetCondition(terminator)) == INTRINSIC_NEVER;
}

LLVMValueRef phases_build_never(struct unit *unit) {
    LLVMTypeRef type = LLVMFunctionType(LLVMInt1TypeInContext(unit->context), NULL, 0, false);
    LLVMValueRef function = intrinsic_function(unit->module, INTRINSIC_NEVER);
    if (!function) {
        function = intrinsic_declare(unit->module, INTRINSIC_NEVER, type);
        declare_convergent(unit, function);
    }
    return LLVMBuildCall2(unit->builder, type, function, NULL, 0, "");
}

static void find_waits(const struct flow *flow, bool *waits) {
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = flow->block_count - 1; i >= 0; i--)
            for (int p = 0; waits[i] && p < flow->blocks[i].predecessor_count; p++) {
                int from = flow->blocks[i].predecessors[p];
                LLVMValueRef end = LLVMGetBasicBlockTerminator(flow->blocks[from].block);
                if (waits[from] ||
                    (phases_is_never(end, 0) && LLVMGetSuccessor(end, 0) == flow->blocks[i].block))
                    continue;
                waits[from] = changed = true;
            }
    }
}

/* The level at the end of a block, or after the loops that the edge from it leaves. */
static int level_behind(const struct flow *flow, const int *level, const int *behind, int from, int to) {
    int loop = flow->blocks[from].loop, most = level[from];
    for (; loop >= 0 && !flow_block_within(flow, to, loop); loop = flow->loops[loop].parent)
        if (behind[loop] > most) most = behind[loop];
    return most;
}

/* behind: by loop, the highest level at the end of any of its blocks. */
static void find_levels(const struct flow *flow, const bool *barriers, int *level, int *behind) {
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < flow->block_count; i++) {
            int most = 0;
            for (int p = 0; p < flow->blocks[i].predecessor_count; p++) {
                int from = flow->blocks[i].predecessors[p];
                if (from >= i) continue;
                int before = level_behind(flow, level, behind, from, i);
                if (before > most) most = before;
            }
            most += barriers[i];
            changed |= most != level[i];
            level[i] = most;
            for (int loop = flow->blocks[i].loop; loop >= 0; loop = flow->loops[loop].parent) {
                if (behind[loop] >= most) break;
                behind[loop] = most;
                changed = true;
            }
        }
    }
}

bool phases_find(const struct flow *flow, struct arena *arena, struct phases *phases) {
    size_t count = (size_t)flow->block_count, loops = (size_t)flow->loop_count + 1;
    bool *barriers = arena_alloc(arena, count);
    int *behind = arena_alloc(arena, loops * sizeof *behind);
    *phases = (struct phases){barriers, arena_alloc(arena, count), arena_alloc(arena, loops),
                              arena_alloc(arena, count * sizeof(int))};
    if (arena->failed) return false;
    for (int i = 0; i < flow->block_count; i++) {
        phases->waits[i] = barriers[i] =
            intrinsic_in_block(flow->blocks[i].block, INTRINSIC_THREADGROUP_BARRIER);
        int loop = barriers[i] ? flow->blocks[i].loop : -1;
        for (; loop >= 0; loop = flow->loops[loop].parent) phases->holds[loop] = true;
    }
    find_waits(flow, phases->waits);
    find_levels(flow, barriers, phases->level, behind);
    return true;
}

struct phase phase_left(const struct flow *flow, const struct phases *phases, int from) {
    int loop = flow->blocks[from].loop;
    while (loop >= 0 && !phases->holds[loop]) loop = flow->loops[loop].parent;
    return (struct phase){loop, phases->level[from]};
}

void phases_copy_block(struct unit *unit, LLVMBasicBlockRef block, LLVMBasicBlockRef copy) {
    LLVMPositionBuilderAtEnd(unit->builder, copy);
    FOR_EACH_INSTRUCTION(instruction, block) {
        build_kept(unit->builder, LLVMInstructionClone(instruction));
    }
    LLVMValueRef to = LLVMGetFirstInstruction(copy);
    for (LLVMValueRef from = LLVMGetFirstInstruction(block); from; from = LLVMGetNextInstruction(from)) {
        for (LLVMUseRef use = LLVMGetFirstUse(from), next; use; use = next) {
            LLVMValueRef user = LLVMGetUser(use);
            next = LLVMGetNextUse(use);
            if (!LLVMIsAInstruction(user) || LLVMGetInstructionParent(user) != copy) continue;
            for (int o = 0; o < LLVMGetNumOperands(user); o++)
                if (LLVMGetOperand(user, (unsigned)o) == from) LLVMSetOperand(user, (unsigned)o, to);
            next = LLVMGetFirstUse(from);
        }
        to = LLVMGetNextInstruction(to);
    }
}
