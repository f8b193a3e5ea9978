/* Which values differ between lanes, which branches diverge, and which blocks therefore run for some lanes
 * only.
 *
 * A fixpoint: shapes only move from unknown through uniform or affine to varying. When a branch becomes
 * divergent, its paths are followed to where they all have met again (compiler/analysis/paths.c). Blocks on
 * the way run for some lanes only; in blocks where different paths meet, each lane has the value from its own
 * path. A loop that some lanes leave earlier than others counts as a branch to its exits. (After Karrenberg
 * and Hack, "Whole-function vectorization", CGO 2011, and Rosemann, Moll and Hack, "An abstract
 * interpretation for SPMD divergence on reducible control flow graphs", POPL 2021.)
 *
 * Requires: simd_order; loops with LCSSA phis at their exits. Establishes: shapes of values; what s->paths
 * finds; mask_of of blocks. */
#include "compiler/simd/lanes/packed.h"

#include <string.h>

/* ---- Shapes. */

static int shape_of_phi(struct simd *s, LLVMValueRef phi, const struct path_block *block) {
    int shape = SHAPE_UNKNOWN;
    LLVMValueRef only = NULL;
    bool same = true;
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMValueRef value = LLVMGetIncomingValue(phi, i);
        if (value == phi || LLVMIsUndef(value) || LLVMIsPoison(value)) continue;
        shape = shape_join(shape, shape_of(s, value));
        if (!only) only = value;
        same &= only == value;
    }
    if (!only) return SHAPE_UNIFORM;
    /* After a loop that lanes left in different rounds, its values differ between lanes. */
    bool constant = same && !LLVMIsAInstruction(only);
    if (block->join && !constant && shape != SHAPE_UNKNOWN) {
        bool of_this_round = same && value_of(s, only)->block >= 0 &&
                             s->paths.blocks[value_of(s, only)->block].loop == block->loop;
        if (!of_this_round) return SHAPE_VARYING;
    }
    return shape;
}

/* The piece of a varying value moves from unknown through a shape to none. */
static bool update_piece(struct simd *s, struct value *v, LLVMValueRef instruction, int place) {
    if (v->piece == NO_PIECE) return false;
    bool phi = LLVMIsAPHINode(instruction) != NULL;
    int piece = phi && s->paths.blocks[place].join ? NO_PIECE
                : phi                              ? piece_of_phi(s, instruction)
                                                   : piece_transfer(s, instruction);
    if (v->piece != PIECE_UNKNOWN && piece != v->piece) piece = NO_PIECE;
    if (piece == v->piece) return false;
    v->piece = piece;
    return true;
}

static bool update_packed(struct simd *s, struct value *v, LLVMValueRef instruction, int place) {
    if (!v->packed || packed_stays(s, instruction, s->paths.blocks[place].join)) return false;
    v->packed = false;
    return true;
}

static bool update_varying(struct simd *s, struct value *v, LLVMValueRef instruction, int place) {
    bool changed = update_piece(s, v, instruction, place);
    return update_packed(s, v, instruction, place) || changed;
}

static bool update_shape(struct simd *s, LLVMValueRef instruction, int place) {
    struct value *v = value_of(s, instruction);
    if (v->shape == SHAPE_VARYING) return update_varying(s, v, instruction, place);
    int shape = LLVMIsAPHINode(instruction) ? shape_of_phi(s, instruction, &s->paths.blocks[place])
                                            : shape_transfer(s, instruction);
    shape = shape_join(v->shape, shape);
    if (shape == v->shape) return false;
    v->shape = shape;
    if (shape == SHAPE_VARYING) (void)update_varying(s, v, instruction, place);
    return true;
}

/* The condition of a branch, or NULL. */
static LLVMValueRef condition_of(LLVMValueRef terminator) {
    switch (LLVMGetInstructionOpcode(terminator)) {
    case LLVMBr:
        return LLVMIsConditional(terminator) ? LLVMGetCondition(terminator) : NULL;
    case LLVMSwitch:
        return LLVMGetOperand(terminator, 0);
    default:
        return NULL;
    }
}

static bool analyse_block(struct simd *s, int place) {
    struct path_block *block = &s->paths.blocks[place];
    bool changed = false;
    FOR_EACH_INSTRUCTION(instruction, block->block) {
        if (LLVMGetTypeKind(LLVMTypeOf(instruction)) != LLVMVoidTypeKind)
            changed |= update_shape(s, instruction, place);
    }
    LLVMValueRef condition = condition_of(LLVMGetBasicBlockTerminator(block->block));
    if (condition && !block->divergent) {
        int shape = shape_of(s, condition);
        if (shape == SHAPE_VARYING || shape > SHAPE_UNIFORM) {
            paths_part(&s->paths, place);
            changed = true;
        }
    }
    return changed;
}

/* ---- Masks. */

static bool regions_equal(const struct simd *s, int a, int b) {
    return memcmp(s->paths.blocks[a].regions, s->paths.blocks[b].regions,
                  (size_t)s->paths.region_words * 8) == 0;
}

/* Whether all blocks between a block and one that it dominates are dominated by it, too, so that nothing else
 * comes in between. */
static bool is_compact(const struct simd *s, int above, int below) {
    for (int place = above + 1; place < below; place++) {
        int at = place;
        while (at > above) at = s->paths.blocks[at].dominator;
        if (at != above) return false;
    }
    return true;
}

static int find_mask(const struct simd *s, int place) {
    const struct path_block *block = &s->paths.blocks[place];
    if (place == 0) return 0;
    int loop = block->loop;
    bool header = loop >= 0 && s->paths.loops[loop].header == place;
    if (header && s->paths.loops[loop].divergent) return place;
    int level = header ? s->paths.loops[loop].parent : loop;
    int above = block->dominator;
    while (s->paths.blocks[above].loop != level) above = s->paths.blocks[above].dominator;
    return regions_equal(s, place, above) && is_compact(s, above, place) ? s->blocks[above].mask_of : place;
}

/* A phi whose values come only from itself and from undefined values (a variable that is not initialised
 * before a loop) is still unknown in the end. It is assumed to be uniform, until a value computed from it
 * shows otherwise. */
static bool settle_unknown(struct simd *s) {
    for (int place = 0; place < s->paths.block_count; place++)
        FOR_EACH_INSTRUCTION(phi, s->blocks[place].original) {
            if (!LLVMIsAPHINode(phi)) break;
            if (value_of(s, phi)->shape != SHAPE_UNKNOWN) continue;
            value_of(s, phi)->shape = SHAPE_UNIFORM;
            return true;
        }
    return false;
}

smelt_status simd_analyse(struct simd *s) {
    for (int place = 0; place < s->paths.block_count; place++) {
        struct block *block = &s->blocks[place];
        value_of(s, LLVMBasicBlockAsValue(block->original))->block = place;
        FOR_EACH_INSTRUCTION(instruction, block->original) {
            struct value *v = value_of(s, instruction);
            v->shape = SHAPE_UNKNOWN;
            v->piece = PIECE_UNKNOWN;
            v->packed = packed_are_possible(s);
            v->block = place;
        }
    }
    paths_forget(&s->paths);
    for (bool changed = true; changed && !s->arena.failed;) {
        changed = false;
        for (int place = 0; place < s->paths.block_count; place++) changed |= analyse_block(s, place);
        if (!changed) changed = settle_unknown(s);
    }
    bool divergent = false; /* without divergent branches, all lanes run the same blocks */
    for (int place = 0; place < s->paths.block_count; place++) divergent |= s->paths.blocks[place].divergent;
    for (int place = 0; place < s->paths.block_count; place++)
        s->blocks[place].mask_of = divergent ? find_mask(s, place) : 0;
    if (s->arena.failed) return unit_fail(s->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for the analysis");
    return SMELT_OK;
}
