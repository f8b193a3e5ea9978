/* Control flow of a gang. Uniform branches stay branches. After a divergent branch, the blocks of all its
 * paths run one after another, each under the mask of the lanes that take it, and skipped if there are none.
 * In the same way, a loop's rounds run until no lane needs another. (After Moll and Hack, "Partial
 * control-flow linearization", PLDI 2018: each item of the layout records which later items must still be
 * visited.) branches.c has the branches, blocks.c the blocks, and this file loops and the whole function.
 *
 * Requires: simd_analyse. Establishes: the function s->gang. */
#include "compiler/simd/control/control.h"
#include "compiler/simd/matrix/matrix.h"
#include "compiler/simd/memory/neighbours.h"
#include "compiler/simd/control/turns.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

/* ---- Ends of loops. */

/* The end of a divergent loop's round: another one if any lane needs it. Returns the block after the loop. */
static LLVMBasicBlockRef end_round(struct simd *s, int number) {
    LLVMBuilderRef b = s->unit->builder;
    struct block *header = &s->blocks[s->paths.loops[number].header];
    LLVMPositionBuilderAtEnd(b, s->loops[number].end);
    LLVMBasicBlockRef again = simd_block(s, "round"), after = simd_block(s, "left");
    LLVMValueRef *live = arena_alloc(&s->arena, (size_t)s->chunk_count * sizeof *live);
    if (!live) return after;
    for (int c = 0; c < s->chunk_count; c++)
        live[c] = LLVMBuildLoad2(b, mask_type(s), header->mask_slots[c], "");
    LLVMBuildCondBr(b, mask_any(s, live, s->chunk_count), again, after);
    LLVMPositionBuilderAtEnd(b, again);
    control_poll(s);
    LLVMBuildBr(b, header->head);
    return after;
}

static void write_loop_end(struct simd *s, int number) {
    LLVMBuilderRef b = s->unit->builder;
    const struct path_loop *loop = &s->paths.loops[number];
    int *items = arena_alloc(&s->arena, (size_t)s->item_count * sizeof *items), count = 0;
    if (!items) return;
    LLVMBasicBlockRef done = NULL;
    if (s->turns) {
        turns_end(s, number, end_round(s, number));
        done = LLVMGetInsertBlock(b);
    }
    LLVMBasicBlockRef after = end_round(s, number);
    if (done) {
        LLVMPositionBuilderAtEnd(b, done);
        LLVMBuildBr(b, after);
    }
    LLVMPositionBuilderAtEnd(b, after);
    for (int place = loop->header; place <= loop->last; place++) {
        LLVMValueRef terminator = LLVMGetBasicBlockTerminator(s->blocks[place].original);
        for (unsigned i = 0; i < LLVMGetNumSuccessors(terminator); i++) {
            int to = simd_place(s, LLVMGetSuccessor(terminator, i));
            if (paths_within(&s->paths, to, number)) continue;
            int item = control_target_item(s, loop->parent, to);
            bool seen = false;
            for (int j = 0; j < count; j++) seen |= items[j] == item;
            if (!seen) items[count++] = item;
        }
    }
    control_go_on(s, s->loops[number].item, items, count);
}

/* ---- Full rounds. A loop that lanes leave by comparing neighbours with a bound (`i < n`) is written twice:
 * first without masks, for as long as a comparison of scalars shows that all lanes stay; then with masks, for
 * the last round or two. If only some lanes enter the loop, which is asked once, all rounds have masks. So
 * they do if an access of the loop may miss its array: full rounds do not test what is known before the loop.
 */

/* Asks before the loop whether all lanes enter it, if that is not sure, and whether its accesses are inside
 * (`outside` NULL: not asked): `full`, or else `masked`. */
static void ask_before_loop(struct simd *s, const struct block *header, bool who, LLVMValueRef outside,
                            LLVMBasicBlockRef question, LLVMBasicBlockRef full, LLVMBasicBlockRef masked) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef all = NULL;
    LLVMPositionBuilderAtEnd(b, question);
    if (outside) {
        LLVMBasicBlockRef inside = who ? simd_block(s, "inside") : full;
        control_ask_outside(s, outside, masked, inside);
        if (!who) return;
        LLVMPositionBuilderAtEnd(b, inside);
    }
    for (int c = 0; c < s->chunk_count; c++) {
        LLVMValueRef mask = LLVMBuildLoad2(b, mask_type(s), header->mask_slots[c], "");
        all = all ? LLVMBuildAnd(b, all, mask, "") : mask;
    }
    LLVMValueRef bits = mask_bits(s, all);
    all = LLVMBuildICmp(b, LLVMIntEQ, bits, LLVMConstAllOnes(LLVMTypeOf(bits)), "all_enter");
    LLVMBuildCondBr(b, all, full, masked);
}

static void write_full_rounds(struct simd *s, int loop) {
    const struct path_loop *l = &s->paths.loops[loop];
    size_t words = (size_t)(s->item_count + 63) / 64;
    int entered = s->blocks[s->paths.blocks[l->header].dominator].mask_of;
    int first = s->blocks[l->header].item;
    bool who = !simd_full_rounds_all_enter(s, entered);
    LLVMValueRef outside = emit_inside_answer(s, loop);
    bool ask = who || outside;
    LLVMBasicBlockRef full = s->blocks[l->header].head, question = NULL;
    uint64_t *pending = arena_alloc(&s->arena, words * 8);
    if (!pending) return;
    memcpy(pending, s->items[first].pending, words * 8);
    if (ask) question = control_put_before(s, full);
    for (int place = l->header; place <= l->last; place++)
        if (s->blocks[place].mask_of == l->header) s->blocks[place].mask_of = ALL_ON;
    s->loops[loop].full_rounds = true;
    s->inside_answered = outside;
    for (int item = first; item < s->loops[loop].item && !s->refused; item++)
        if (s->items[item].block >= 0) control_write_block(s, s->items[item].block);
    s->loops[loop].full_rounds = false;
    s->inside_answered = NULL;
    /* The masked rounds are written next, with blocks of their own. */
    for (int place = l->header; place <= l->last; place++) {
        struct block *block = &s->blocks[place];
        memset(s->items[block->item].pending, 0, words * 8);
        if (block->mask_of == ALL_ON) block->mask_of = l->header;
        control_make_new_blocks(s, block);
        if (place > l->header && control_owns_mask(s, place)) control_make_mask(s, place);
    }
    memcpy(s->items[first].pending, pending, words * 8);
    s->loops[loop].last_rounds = !who || simd_full_rounds_guarded(s, loop, entered);
    if (ask)
        ask_before_loop(s, &s->blocks[l->header], who, outside, question, full, s->blocks[l->header].head);
}

/* ---- The function. */

static void write_item(struct simd *s, int number) {
    const struct item *item = &s->items[number];
    if (item->block < 0) {
        if (s->paths.loops[item->loop].divergent) write_loop_end(s, item->loop);
        return;
    }
    int loop = s->paths.blocks[item->block].loop;
    bool header = loop >= 0 && s->paths.loops[loop].header == item->block;
    if (header && simd_full_rounds_suit(s, loop)) {
        write_full_rounds(s, loop);
        if (turns_suit(s, loop)) turns_begin(s, loop);
    }
    if (!s->refused) control_write_block(s, item->block);
}

/* An empty function, and in it what all code of the gang needs. */
static void start_function(struct simd *s) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef pointer = type_pointer(s->unit);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(s->unit->context), &pointer, 1, false);
    s->gang = LLVMAddFunction(s->unit->module, "gang", type);
    s->context = LLVMGetParam(s->gang, 0);
    s->slots_block = control_append_block(s, "entry");
    s->start = control_append_block(s, "start");
    LLVMPositionBuilderAtEnd(b, s->slots_block);
    LLVMBuildBr(b, s->start);
    LLVMPositionBuilderAtEnd(b, s->start);
    LLVMSetCurrentDebugLocation2(b, NULL);
    gang_start(s);
}

/* Once, or a second time in front of what was written the first time. */
smelt_status simd_emit(struct simd *s) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMSetCurrentDebugLocation2(b, NULL);
    if (!s->gang) {
        start_function(s);
    } else {
        LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(s->start));
        LLVMPositionBuilderAtEnd(b, s->start);
    }
    matrix_find(s);
    s->matrix_forms = &matrix_forms;
    neighbours_find(s);
    control_make_blocks(s);
    if (s->arena.failed)
        return unit_fail(s->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for the gang's code");
    LLVMBuildBr(b, s->blocks[0].head);
    for (int item = 0; item < s->item_count && !s->refused; item++) write_item(s, item);
    LLVMSetCurrentDebugLocation2(b, NULL);
    if (s->arena.failed)
        return unit_fail(s->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for the gang's code");
    return SMELT_OK;
}
