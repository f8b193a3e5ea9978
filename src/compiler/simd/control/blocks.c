/* The code of one block: under the mask of the lanes that take it, and skipped if there are none. The block
 * of a loop may be written in parts, or twice: without and with tests of its accesses. */
#include "compiler/cpu/inside.h"
#include "compiler/simd/control/control.h"
#include "compiler/simd/matrix/matrix.h"

#include <llvm-c/DebugInfo.h>

/* ---- Their masks and new blocks. */

static LLVMValueRef *mask_slots(struct simd *s, LLVMValueRef first, int loop) {
    LLVMValueRef *slots = arena_alloc(&s->arena, (size_t)s->chunk_count * sizeof *slots);
    for (int c = 0; slots && c < s->chunk_count; c++)
        slots[c] = simd_round_slot(s, mask_type(s), first, loop);
    return slots;
}

void control_make_mask(struct simd *s, int place) {
    s->blocks[place].mask_slots = mask_slots(s, LLVMConstNull(mask_type(s)), control_level(s, place));
}

LLVMBasicBlockRef control_append_block(struct simd *s, const char *name) {
    return LLVMAppendBasicBlockInContext(s->unit->context, s->gang, name);
}

void control_make_new_blocks(struct simd *s, struct block *block) {
    if (block->mask_slots && !block->held_slots) block->guard = control_append_block(s, "guard");
    block->head = control_append_block(s, "head");
    block->body = control_append_block(s, "body");
}

void control_make_blocks(struct simd *s) {
    for (int place = 0; place < s->paths.block_count; place++) {
        struct block *block = &s->blocks[place];
        block->mask = arena_alloc(&s->arena, (size_t)s->chunk_count * sizeof *block->mask);
        if (control_owns_mask(s, place)) {
            control_make_mask(s, place);
            if (control_is_header(s, place)) block->held_slots = mask_slots(s, NULL, control_level(s, place));
        }
        control_make_new_blocks(s, block);
    }
    for (int i = 0; i < s->paths.loop_count; i++)
        if (s->paths.loops[i].divergent) s->loops[i].end = control_append_block(s, "end");
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(phi, block) {
        if (!LLVMIsAPHINode(phi)) break;
        control_make_phi_slots(s, phi);
    }
}

/* ---- Heads. */

static void load_mask(struct simd *s, struct block *block) {
    LLVMBuilderRef b = s->unit->builder;
    const struct block *owner = block->mask_of == ALL_ON ? NULL : &s->blocks[block->mask_of];
    /* Only after its guard: the lanes are on then. */
    if (owner == block && block->guard && first_gang_mask(s, block->mask_of, block->mask)) return;
    for (int c = 0; c < s->chunk_count; c++) {
        if (!owner) {
            block->mask[c] = NULL;
        } else if (block->mask_of == 0) {
            block->mask[c] = s->entry_mask[c];
        } else {
            LLVMValueRef *slots = owner->held_slots && owner != block ? owner->held_slots : owner->mask_slots;
            block->mask[c] = LLVMBuildLoad2(b, mask_type(s), slots[c], "mask");
        }
    }
}

/* Skips the block if no lane needs it. */
static void write_guard(struct simd *s, struct block *block) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMPositionBuilderAtEnd(b, block->guard);
    int next = control_next_item(s, block->item, NULL, 0);
    if (next < 0) { /* nothing else to go to: then there are lanes */
        LLVMBuildBr(b, block->head);
        return;
    }
    LLVMValueRef *masks = arena_alloc(&s->arena, (size_t)s->chunk_count * sizeof *masks);
    if (!masks) return;
    for (int c = 0; c < s->chunk_count; c++)
        masks[c] = LLVMBuildLoad2(b, mask_type(s), block->mask_slots[c], "");
    LLVMBuildCondBr(b, mask_any(s, masks, s->chunk_count), block->head, control_start_of_item(s, next));
}

/* The mask of the round that starts: for blocks of the loop that have it, too. */
static void hold_mask(struct simd *s, struct block *header) {
    LLVMBuilderRef b = s->unit->builder;
    if (!header->held_slots) return;
    for (int c = 0; c < s->chunk_count; c++) {
        LLVMBuildStore(b, header->mask[c] ? header->mask[c] : mask_all(s), header->held_slots[c]);
        LLVMBuildStore(b, LLVMConstNull(mask_type(s)), header->mask_slots[c]);
    }
}

static void write_head(struct simd *s, int place) {
    LLVMBuilderRef b = s->unit->builder;
    struct block *block = &s->blocks[place];
    LLVMPositionBuilderAtEnd(b, block->head);
    load_mask(s, block);
    if (control_is_header(s, place)) hold_mask(s, block);
    LLVMBuildBr(b, block->body);
}

/* ---- Blocks that are written in parts. */

/* The end of a loop's block that is written in parts, for some chunks or some rows of matrices: another
 * round, or the first round of the next part, for which what all lanes share begins anew. */
static void end_part(struct simd *s, int place, int before, LLVMValueRef terminator) {
    LLVMBuilderRef b = s->unit->builder;
    struct block *block = &s->blocks[place];
    LLVMValueRef condition = scalar_of(s, LLVMGetCondition(terminator));
    bool again_first = LLVMGetSuccessor(terminator, 0) == block->original;
    LLVMBasicBlockRef again = simd_block(s, "again"), left = simd_block(s, "left");
    LLVMBuildCondBr(b, condition, again_first ? again : left, again_first ? left : again);
    LLVMPositionBuilderAtEnd(b, again);
    control_take_edge(s, place, place, block->mask, false);
    bool rows = s->matrix_part != NO_PART;
    if (!simd_has_few_rounds(block->original)) control_poll(s);
    LLVMBuildBr(b, block->head);
    LLVMPositionBuilderAtEnd(b, left);
    if (rows) matrix_loop_end(s, place);
    if (rows ? matrix_loop_is_last(s) : s->end_chunk == s->chunk_count) {
        control_leave_uniformly(s, place, LLVMGetSuccessor(terminator, again_first));
        return;
    }
    if (!rows) {
        control_take_edge(s, place, simd_place(s, LLVMGetSuccessor(terminator, again_first)), block->mask,
                          false);
        s->first_chunk = s->end_chunk;
    }
    control_take_edge(s, before, place, block->mask, false);
    control_make_new_blocks(s, block);
    LLVMBuildBr(b, block->head);
}

/* Rounds begin at a new head; the old one runs once, before the first. */
static void begin_rounds(struct simd *s, struct block *block) {
    s->matrix_entry = block->head;
    block->head = control_append_block(s, "round");
    LLVMPositionBuilderAtEnd(s->unit->builder, s->matrix_entry);
    LLVMBuildBr(s->unit->builder, block->head);
}

static void write_part(struct simd *s, int place, int before) {
    struct block *block = &s->blocks[place];
    LLVMValueRef terminator = LLVMGetBasicBlockTerminator(block->original);
    if (s->matrix_part != NO_PART) begin_rounds(s, block);
    s->current = place;
    s->serial++;
    write_head(s, place);
    LLVMPositionBuilderAtEnd(s->unit->builder, block->body);
    emit_instructions(s, block->original);
    LLVMSetCurrentDebugLocation2(s->unit->builder, LLVMInstructionGetDebugLoc(terminator));
    if (!s->refused) end_part(s, place, before, terminator);
}

static void write_block_in_parts(struct simd *s, int place, int before, int chunks) {
    simd_remark(s, LLVMGetBasicBlockTerminator(s->blocks[place].original),
                "loop: for %d of %d vectors of lanes at a time, whose values fit the registers", chunks,
                s->chunk_count);
    for (int first = 0; first < s->chunk_count && !s->refused; first += chunks) {
        s->first_chunk = first;
        s->end_chunk = first + chunks;
        write_part(s, place, before);
    }
    s->first_chunk = 0;
    s->end_chunk = s->chunk_count;
}

/* ---- All blocks. */

static void write_chunks(struct simd *s, int place) {
    int before = -1, chunks = simd_part_chunks(s, place, &before);
    if (chunks < s->chunk_count) {
        write_block_in_parts(s, place, before, chunks);
        return;
    }
    if (matrix_loop_begin(s, place, &before)) {
        simd_remark(s, LLVMGetBasicBlockTerminator(s->blocks[place].original),
                    "loop: for some rows of simdgroup matrices at a time, whose sums fit the registers");
        do write_part(s, place, before);
        while (!s->refused && matrix_loop_next(s));
        return;
    }
    struct block *block = &s->blocks[place];
    LLVMValueRef terminator = LLVMGetBasicBlockTerminator(block->original);
    s->current = place;
    s->serial++;
    if (block->guard) write_guard(s, block);
    write_head(s, place);
    LLVMPositionBuilderAtEnd(s->unit->builder, block->body);
    emit_instructions(s, block->original);
    LLVMSetCurrentDebugLocation2(s->unit->builder, LLVMInstructionGetDebugLoc(terminator));
    if (s->refused) return;
    int loop = s->paths.blocks[place].loop;
    if (loop >= 0 && s->loops[loop].full_rounds && s->paths.loops[loop].last == place)
        control_end_full_round(s, loop);
    else if (s->paths.blocks[place].divergent)
        control_end_divergently(s, place, terminator);
    else
        control_end_uniformly(s, place, terminator);
}

void control_ask_outside(struct simd *s, LLVMValueRef outside, LLVMBasicBlockRef tested,
                         LLVMBasicBlockRef full) {
    const struct value *v = value_of(s, outside);
    LLVMValueRef own =
        v->slot ? LLVMBuildLoad2(s->unit->builder, LLVMTypeOf(outside), v->slot, "") : v->scalar;
    inside_branch(s->unit, own, tested, full);
}

LLVMBasicBlockRef control_put_before(struct simd *s, LLVMBasicBlockRef block) {
    LLVMBasicBlockRef question = control_append_block(s, "question");
    LLVMReplaceAllUsesWith(LLVMBasicBlockAsValue(block), LLVMBasicBlockAsValue(question));
    return question;
}

/* The code for the first chunks, if there is any, and that for all. */
static void write_once(struct simd *s, int place) {
    int chunks = control_few_chunks(s, place);
    if (chunks == s->chunk_count) {
        write_chunks(s, place);
        return;
    }
    struct block *block = &s->blocks[place];
    LLVMBasicBlockRef question = block->head; /* what leads to the block, also later, leads here */
    control_make_new_blocks(s, block);
    LLVMBasicBlockRef few = block->head;
    s->end_chunk = chunks;
    write_chunks(s, place);
    s->end_chunk = s->chunk_count;
    control_make_new_blocks(s, block);
    LLVMBasicBlockRef all = block->head;
    if (!s->refused) write_chunks(s, place);
    LLVMPositionBuilderAtEnd(s->unit->builder, question);
    control_ask_for_few(s, place, chunks, few, all);
}

void control_write_block(struct simd *s, int place) {
    struct block *block = &s->blocks[place];
    LLVMValueRef outside = simd_full_rounds_answer(s, place);
    if (!outside) {
        write_once(s, place);
        return;
    }
    LLVMBasicBlockRef full = block->head, question = control_put_before(s, full);
    s->inside_answered = outside;
    write_once(s, place);
    s->inside_answered = NULL;
    control_make_new_blocks(s, block);
    LLVMBasicBlockRef tested = block->head;
    if (!s->refused) write_once(s, place);
    LLVMPositionBuilderAtEnd(s->unit->builder, question);
    control_ask_outside(s, outside, tested, full);
}
