/* Places marks in long rows of loops, so that LLVM's optimiser takes less time. When it moves a load out of a
 * loop, it searches all paths back through the earlier loops for the last write to memory. A kernel that
 * writes only at its end has no earlier write, so the time grows with the square of the number of loops. A
 * mark before every 16th loop ends the searches: to LLVM, it is a write to memory that no load reads.
 * docs/public-kernels.md has the times of a kernel with 400 loops.
 *
 * Requires: everything inlined. Maintains: what the code does; kernels with few loops stay as they are.
 * landmarks-removed, after the optimiser, deletes the marks. */
#include "compiler/analysis/flow.h"

#include <string.h>

#define FEW_LOOPS 48
#define LOOPS_PER_MARK 16

static const char mark[] = "llvm.sideeffect";

/* The block outside a loop that leads only to its header, or NULL. */
static LLVMBasicBlockRef preheader(const struct flow *flow, int loop) {
    const struct flow_block *header = &flow->blocks[flow->loops[loop].header];
    int before = -1, others = 0;
    for (int p = 0; p < header->predecessor_count; p++)
        if (!flow_block_within(flow, header->predecessors[p], loop)) {
            before = header->predecessors[p];
            others++;
        }
    if (others != 1) return NULL;
    LLVMBasicBlockRef block = flow->blocks[before].block;
    return LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(block)) == 1 ? block : NULL;
}

static void place_mark(struct unit *unit, LLVMValueRef before) {
    LLVMPositionBuilderBefore(unit->builder, before);
    build_function(unit, mark, NULL, 0);
}

static void place_marks(struct unit *unit, const struct flow *flow, landmarks_place *place) {
    for (int loop = LOOPS_PER_MARK - 1; loop < flow->loop_count; loop += LOOPS_PER_MARK) {
        LLVMBasicBlockRef block = preheader(flow, loop);
        if (block) place(unit, LLVMGetBasicBlockTerminator(block));
    }
}

/* *many: whether the entry has many loops. With `place`, such an entry gets the marks. */
static smelt_status look_at_loops(struct unit *unit, landmarks_place *place, bool *many) {
    struct arena arena = {0};
    struct flow flow;
    smelt_status status = flow_find(unit, unit->entry, &arena, &flow);
    *many = status == SMELT_OK && flow.loop_count > FEW_LOOPS;
    if (*many && place) place_marks(unit, &flow, place);
    arena_free(&arena);
    return status;
}

smelt_status landmarks_are_needed(struct unit *unit, bool *many) {
    return look_at_loops(unit, NULL, many);
}

smelt_status landmarks_visit(struct unit *unit, landmarks_place *place) {
    bool many;
    TRY(landmarks_are_needed(unit, &many));
    if (!many) return SMELT_OK;
    TRY(run_passes(unit, "function(loop-simplify)")); /* gives every loop a preheader */
    return look_at_loops(unit, place, &many);
}

smelt_status pass_landmarks(struct unit *unit) {
    return landmarks_visit(unit, place_mark);
}

smelt_status pass_landmarks_removed(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        if (strcmp(called_name(i), mark) == 0) LLVMInstructionEraseFromParent(i);
    }
    return SMELT_OK;
}
