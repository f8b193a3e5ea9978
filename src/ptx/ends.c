#include "ptx/warp.h"

static bool goes_on_without(const struct divergence *d, int place) {
    const struct divergence_block *block = &d->blocks[place];
    return block->divergent || block->leaf || !is_reached_by_all(d, place);
}

static void end_here(struct unit *unit, LLVMBasicBlockRef block, unsigned successor) {
    LLVMBasicBlockRef edge = split_edge(unit, block, successor);
    LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(edge));
    LLVMPositionBuilderAtEnd(unit->builder, edge);
    ptx_intrinsic(unit, "llvm.nvvm.exit", NULL, 0);
    LLVMBuildUnreachable(unit->builder);
}

void ptx_end_lanes(const struct divergence *d) {
    for (int place = 0; place < d->block_count; place++) {
        if (!goes_on_without(d, place)) continue;
        LLVMValueRef branch = LLVMGetBasicBlockTerminator(d->blocks[place].block);
        for (unsigned s = 0; s < LLVMGetNumSuccessors(branch); s++)
            if (is_end(LLVMGetSuccessor(branch, s))) end_here(d->unit, d->blocks[place].block, s);
    }
}
