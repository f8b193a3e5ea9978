/* Questions of loops (compiler/bounds): whether an address of the gang leaves its object. */
#include "compiler/simd/memory/reach.h"

/* Whether each round that reaches the loop's end has run the block, for all its lanes. */
static bool runs_each_round(struct simd *s, int loop, int place) {
    const struct path_loop *l = &s->paths.loops[loop];
    int above = l->last;
    while (above > place && above > l->header) above = s->paths.blocks[above].dominator;
    return above == place && s->blocks[place].mask_of == l->header;
}

LLVMValueRef emit_inside_answer(struct simd *s, int loop) {
    const struct path_loop *l = &s->paths.loops[loop];
    LLVMValueRef answer = NULL;
    for (int place = l->header; place <= l->last; place++)
        FOR_EACH_INSTRUCTION(i, s->blocks[place].original) {
            if (intrinsic_of(i) != INTRINSIC_INSIDE) continue;
            LLVMValueRef when = LLVMGetOperand(i, INSIDE_WHEN);
            if (!LLVMIsAInstruction(when) || shape_of(s, when) != SHAPE_UNIFORM) continue;
            if (intrinsic_of(when) == INTRINSIC_LAUNCH_LEAVES) continue; /* of no loop */
            if (paths_within(&s->paths, simd_place(s, LLVMGetInstructionParent(when)), loop)) continue;
            bool sure = LLVMGetMetadata(when, bounds_sure_answer(s->unit)) || runs_each_round(s, loop, place);
            if (!sure || (answer && answer != when)) return NULL;
            answer = when;
        }
    return answer;
}

/* Which chunks' addresses are a constant apart. Their indexes of 32 bits might wrap around in between. They
 * do not if the first one and this constant lead to an element of an argument in a small launch: it is less
 * than 2^31 bytes behind the argument's address. */
static void find_rows(struct simd *s, LLVMValueRef address, LLVMValueRef extent, bool wraps,
                      struct row_view *rows) {
    struct place place = bounds_place(s->unit, address);
    bool narrow = place.index && place.extension && LLVMGetIntTypeWidth(LLVMTypeOf(place.index)) == 32 &&
                  place.constant >= -SMALL_REACH && place.constant <= SMALL_REACH;
    rows_find_chunks(s, address, rows);
    if (!wraps && narrow && s->code->small && reach_bound_address(s, address, extent, 1)) return;
    for (int c = 0; c < s->chunk_count; c++) rows->leader[c] = c, rows->offset[c] = 0;
}

/* i1: whether an address of a question is outside in any lane; of affine ones, active or not. */
static LLVMValueRef any_outside(struct simd *s, LLVMValueRef call, unsigned operand) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef address = LLVMGetOperand(call, operand), start = LLVMGetOperand(call, LEAVES_START),
                 extent = LLVMGetOperand(call, LEAVES_EXTENT), outside[GANG_MAX_LANES];
    uint64_t low = reach_constant(call, LEAVES_LOW), bytes = reach_constant(call, LEAVES_BYTES);
    bool uniform = shape_of(s, start) == SHAPE_UNIFORM && shape_of(s, extent) == SHAPE_UNIFORM;
    if (shape_of(s, address) >= 0 && uniform) {
        struct reach reach = {address, start, extent, shape_span(s, shape_of(s, address), 0, s->lanes),
                              low,     bytes};
        struct wrapped_indexes wrapped = reach_signs(s, &reach);
        return reach_either(s, reach_is_outside(s, &reach, NULL), wrapped_in_gang(s, &wrapped));
    }
    if (reach_is_piece(s, address, start, extent)) {
        LLVMValueRef any = NULL;
        struct row_view rows;
        struct wrapped_indexes wrapped = wrapped_find(s, address);
        find_rows(s, address, extent, wrapped.count > 0, &rows);
        for (int c = 0; c < s->chunk_count; c++) {
            if (rows.leader[c] != c) continue;
            struct span span = rows_span(s, value_of(s, address)->piece, &rows, c);
            struct reach reach = {address, start, extent, span, low, bytes};
            struct wrapped_indexes signs = reach_signs(s, &reach);
            any = reach_either(s, any, reach_is_outside(s, &reach, chunk_scalar(s, address, c)));
            any = reach_either(s, any, wrapped_in_chunk(s, &signs, c));
        }
        return any;
    }
    for (int c = 0; c < s->chunk_count; c++) {
        LLVMValueRef numbers = reach_lanes(s, address, c, low);
        outside[c] = reach_lanes_outside(s, numbers, start, extent, bytes, c);
    }
    return LLVMBuildFreeze(b, mask_any(s, outside, s->chunk_count), "");
}

void emit_leaves(struct simd *s, LLVMValueRef call) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef leaves = emit_any_lane(s, LLVMGetOperand(call, LEAVES_ALSO));
    leaves = LLVMBuildOr(b, leaves, any_outside(s, call, LEAVES_FIRST), "");
    if (LLVMGetOperand(call, LEAVES_FIRST) != LLVMGetOperand(call, LEAVES_LAST))
        leaves = LLVMBuildOr(b, leaves, any_outside(s, call, LEAVES_LAST), "");
    scalar_set(s, call, leaves);
}
