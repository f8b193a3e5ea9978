/* Masks of blocks that only the first gang of a group enters: `if (t < 16) part[t] += part[t + 16];`, with
 * t from 0 on. Its active lanes are constants, so loads and stores need no masks computed at run time; a
 * load that follows a store with such a mask has to wait for it.
 *
 * Other gangs have greater numbers in all lanes: lane 0's is a multiple of a power of two that is not below
 * the bound.
 *
 * Requires: the analysis; the code of the block before. */
#include "compiler/simd/simd.h"

struct bound {
    LLVMValueRef number;
    uint64_t least, end; /* of the numbers that enter */
};

/* The numbers for which a comparison with a constant gives `wanted`, if they begin with 0 or are one. */
static bool find_bound(LLVMValueRef condition, bool wanted, struct bound *bound) {
    uint64_t constant;
    if (!LLVMIsAICmpInst(condition) || !is_constant_integer(LLVMGetOperand(condition, 1), &constant) ||
        constant >= GANG_MAX_LANES)
        return false;
    bound->number = LLVMGetOperand(condition, 0);
    LLVMIntPredicate predicate = LLVMGetICmpPredicate(condition);
    bool below = predicate == (wanted ? LLVMIntULT : LLVMIntUGE),
         to = predicate == (wanted ? LLVMIntULE : LLVMIntUGT),
         one = predicate == (wanted ? LLVMIntEQ : LLVMIntNE);
    bound->least = one ? constant : 0;
    bound->end = below ? constant : constant + 1;
    return below || to || one;
}

/* Whether all numbers are those of lane 0 plus a constant, none wraps around, and all lanes of a gang whose
 * lane 0 does not have 0 are beyond the bound. */
static bool suits(struct simd *s, const struct bound *bound) {
    int shape = shape_of(s, bound->number);
    unsigned width = shape_width(bound->number), zeros;
    if (shape <= SHAPE_UNIFORM || width < 16) return false;
    uint64_t limit = UINT64_C(1) << (width - 1);
    if (range_unsigned(s, bound->number).high >= limit) return false;
    const int64_t *offsets = shape_offsets(s, shape);
    for (int l = 0; l < s->lanes; l++)
        if (offsets[l] < 0 || (uint64_t)offsets[l] >= limit) return false;
    zeros = range_zero_bits(s, bound->number);
    return zeros >= 32 || bound->end <= UINT64_C(1) << zeros;
}

bool first_gang_mask(struct simd *s, int place, LLVMValueRef *mask) {
    const struct path_block *block = &s->paths.blocks[place];
    if (place == 0 || block->predecessor_count != 1 || s->chunk_lanes == 1) return false;
    const struct block *before = &s->blocks[block->dominator];
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(before->original);
    if (!LLVMIsABranchInst(branch) || !LLVMIsConditional(branch) ||
        LLVMGetSuccessor(branch, 0) == LLVMGetSuccessor(branch, 1))
        return false;
    bool wanted = LLVMGetSuccessor(branch, 0) == s->blocks[place].original;
    struct bound bound;
    if (!find_bound(LLVMGetCondition(branch), wanted, &bound) || !suits(s, &bound)) return false;
    for (int c = 0; c < s->chunk_count; c++)
        if (before->mask[c]) return false;
    const int64_t *offsets = shape_offsets(s, shape_of(s, bound.number));
    for (int c = 0; c < s->chunk_count; c++) {
        int64_t on[GANG_MAX_LANES];
        bool all = true;
        for (int l = 0; l < s->chunk_lanes; l++) {
            uint64_t number = (uint64_t)offsets[c * s->chunk_lanes + l];
            on[l] = number >= bound.least && number < bound.end;
            all &= on[l] != 0;
        }
        mask[c] = all ? NULL : lanes_constant(s, simd_i1(s), on, s->chunk_lanes);
    }
    return true;
}
