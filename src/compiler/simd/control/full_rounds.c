/* Which loops are written twice: first without masks, or without the tests of accesses that an answer before
 * the loop makes needless (control.c). */
#include "compiler/pass.h"
#include "compiler/simd/simd.h"

#define MAX_FULL_ROUND_BLOCKS 12

LLVMValueRef simd_full_rounds_condition(struct simd *s, int loop, bool *holds) {
    struct block *latch = &s->blocks[s->paths.loops[loop].last],
                 *header = &s->blocks[s->paths.loops[loop].header];
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(latch->original);
    if (LLVMGetInstructionOpcode(branch) != LLVMBr || !LLVMIsConditional(branch)) return NULL;
    *holds = LLVMGetSuccessor(branch, 0) == header->original;
    if (!*holds && LLVMGetSuccessor(branch, 1) != header->original) return NULL;
    LLVMValueRef condition = LLVMGetCondition(branch);
    return edges_bound(s, condition) ? condition : NULL;
}

bool simd_full_rounds_suit(struct simd *s, int loop) {
    const struct path_loop *l = &s->paths.loops[loop];
    bool holds;
    if (s->unit->form != FORM_BEST || !l->divergent || l->last - l->header >= MAX_FULL_ROUND_BLOCKS)
        return false;
    for (int place = l->header; place <= l->last; place++) {
        LLVMValueRef terminator = LLVMGetBasicBlockTerminator(s->blocks[place].original);
        for (unsigned i = 0; place < l->last && i < LLVMGetNumSuccessors(terminator); i++)
            if (!paths_within(&s->paths, simd_place(s, LLVMGetSuccessor(terminator, i)), loop)) return false;
        int inner = s->paths.blocks[place].loop;
        if (inner != loop && s->paths.loops[inner].divergent) return false;
    }
    return s->blocks[l->last].mask_of == l->header && simd_full_rounds_condition(s, loop, &holds) != NULL;
}

bool simd_full_rounds_all_enter(const struct simd *s, int entered) {
    bool all = entered == 0;
    for (int c = 0; c < s->chunk_count; c++) all &= s->entry_mask[c] == NULL;
    return all;
}

/* The loop comes after a comparison with its own bound. */
bool simd_full_rounds_guarded(struct simd *s, int loop, int entered) {
    bool holds;
    LLVMValueRef bound = edges_bound(s, simd_full_rounds_condition(s, loop, &holds));
    int before = entered > 0 ? s->paths.blocks[entered].dominator : -1;
    if (before < 0 || !simd_full_rounds_all_enter(s, s->blocks[before].mask_of)) return false;
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(s->blocks[before].original);
    if (LLVMGetInstructionOpcode(branch) != LLVMBr || !LLVMIsConditional(branch)) return false;
    return edges_bound(s, LLVMGetCondition(branch)) == bound;
}

/* In a longer loop, a branch per round costs little, and a second copy takes long to compile. */
enum { MOST_INSTRUCTIONS = 64 };

static bool is_short(LLVMBasicBlockRef block) {
    int count = 0;
    FOR_EACH_INSTRUCTION(i, block) {
        if (++count > MOST_INSTRUCTIONS) return false;
    }
    return true;
}

/* A branch to the tests in each round would keep LLVM from updating sums in place, and from moving loads. */
LLVMValueRef simd_full_rounds_answer(struct simd *s, int place) {
    int loop = s->paths.blocks[place].loop;
    if (s->unit->form != FORM_BEST || loop < 0 || s->blocks[place].guard || s->inside_answered) return NULL;
    const struct path_loop *l = &s->paths.loops[loop];
    if (l->header != place || l->last != place || l->divergent) return NULL;
    return is_short(s->blocks[place].original) ? emit_inside_answer(s, loop) : NULL;
}
