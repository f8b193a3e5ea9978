/* Which instructions run before all effects of their thread: a gang can still start again there. */
#include "compiler/simd/simd.h"

#include <string.h>

/* Whether a gang cannot start again after the instruction. It can after a return, which only marks the
 * thread: the thread returns, and is marked, once more. */
static bool has_effects(LLVMValueRef i) {
    if (LLVMIsAStoreInst(i) || LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i) || LLVMIsAFenceInst(i))
        return true;
    if (!LLVMIsACallInst(i)) return false;
    enum intrinsic intrinsic = intrinsic_of(i);
    if (intrinsic == INTRINSIC_INSIDE) return false; /* the test may be repeated */
    if (intrinsic == INTRINSIC_NONE) return strncmp(called_name(i), "llvm.", 5) != 0;
    return intrinsic_traits(intrinsic)->purity == ORDERED;
}

void effects_find(struct simd *s) {
    s->first_effect = s->paths.block_count;
    for (int place = s->paths.block_count - 1; place >= 0; place--)
        FOR_EACH_INSTRUCTION(i, s->blocks[place].original) {
            if (has_effects(i)) s->first_effect = place;
        }
}

/* A gang runs its blocks in the order of places, also those of paths that do not lead to each other. */
bool effects_follow(struct simd *s, LLVMValueRef i) {
    int place = simd_place(s, LLVMGetInstructionParent(i));
    if (s->first_effect < place) return false;

    for (int loop = s->paths.blocks[place].loop; loop >= 0; loop = s->paths.loops[loop].parent)
        if (s->first_effect <= s->paths.loops[loop].last) return false;
    for (LLVMValueRef before = LLVMGetPreviousInstruction(i); before;
         before = LLVMGetPreviousInstruction(before))
        if (has_effects(before)) return false;
    return true;
}
