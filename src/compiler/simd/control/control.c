/* Control flow of a gang. Uniform branches stay branches. After a divergent branch, the blocks of all its
 * paths run one after another, each under the mask of the lanes that take it, and skipped if there are none.
 * In the same way, a loop's rounds run until no lane needs another. (After Moll and Hack, "Partial
 * control-flow linearization", PLDI 2018: each item of the layout records which later items must still be
 * visited.)
 *
 * Taking an edge of the original writes to stack slots: the lanes that arrive, in the mask of the target, and
 * the values of its phis for those lanes.
 *
 * Requires: simd_analyse. Establishes: the function s->gang. */
#include "compiler/cpu/inside.h"
#include "compiler/simd/matrix/matrix.h"
#include "compiler/simd/memory/neighbours.h"
#include "compiler/simd/control/turns.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

/* As mask_of: all lanes are on, whatever the mask of the function's first block. */
#define ALL_ON (-1)

static bool owns_mask(const struct simd *s, int place) {
    return place > 0 && s->blocks[place].mask_of == place;
}

static bool is_header(const struct simd *s, int place) {
    int loop = s->paths.blocks[place].loop;
    return loop >= 0 && s->paths.loops[loop].header == place;
}

/* The loop in one round of which edges lead to the block, from outside for a header; -1: the function. */
static int level_of(const struct simd *s, int place) {
    int loop = s->paths.blocks[place].loop;
    return is_header(s, place) ? s->paths.loops[loop].parent : loop;
}

/* ---- Where edges lead in the layout. */

#define BACK (-1) /* directly to the header of a uniform loop */

/* From inside `loop` (and the loops around it) to a block: divergent loops are left, and repeated, only at
 * their end. */
static int target_item(const struct simd *s, int loop, int target) {
    for (; loop >= 0; loop = s->paths.loops[loop].parent) {
        bool again = s->paths.loops[loop].header == target;
        if (!again && paths_within(&s->paths, target, loop)) break;
        if (s->paths.loops[loop].divergent) return s->loops[loop].item;
        if (again) return BACK;
    }
    return s->blocks[target].item;
}

static void add_pending(struct simd *s, int item, int target) {
    s->items[item].pending[target / 64] |= UINT64_C(1) << (target % 64);
}

/* The next item after `from` if these targets must still be visited: the first of them and of those pending.
 * It takes over the others. -1: none is left. */
static int next_item(struct simd *s, int from, const int *targets, int count) {
    int words = (s->item_count + 63) / 64, next = -1;
    for (int w = 0; w < words && next < 0; w++)
        if (s->items[from].pending[w]) next = 64 * w + __builtin_ctzll(s->items[from].pending[w]);
    for (int i = 0; i < count; i++)
        if (next < 0 || targets[i] < next) next = targets[i];
    if (next < 0) return -1;
    for (int w = 0; w < words; w++) s->items[next].pending[w] |= s->items[from].pending[w];
    for (int i = 0; i < count; i++) add_pending(s, next, targets[i]);
    s->items[next].pending[next / 64] &= ~(UINT64_C(1) << (next % 64));
    return next;
}

static LLVMBasicBlockRef start_of_item(struct simd *s, int item) {
    if (s->items[item].block < 0) return s->loops[s->items[item].loop].end;
    const struct block *block = &s->blocks[s->items[item].block];
    return block->guard ? block->guard : block->head;
}

static void go_on(struct simd *s, int from, const int *targets, int count) {
    int next = next_item(s, from, targets, count);
    if (next < 0)
        LLVMBuildRetVoid(s->unit->builder);
    else
        LLVMBuildBr(s->unit->builder, start_of_item(s, next));
}

/* ---- Edges. */

static bool is_empty(LLVMValueRef value) {
    return LLVMIsUndef(value) || LLVMIsPoison(value);
}

static void make_phi_slots(struct simd *s, LLVMValueRef phi) {
    struct value *v = value_of(s, phi);
    if (v->slot || v->slots) return;
    int place = simd_place(s, LLVMGetInstructionParent(phi)), loop = level_of(s, place);
    bool packed = packed_is(s, phi);
    if (v->shape != SHAPE_VARYING || packed) {
        LLVMTypeRef type = packed ? packed_type(s, LLVMTypeOf(phi)) : LLVMTypeOf(phi);
        v->slot = simd_round_slot(s, type, NULL, loop);
        return;
    }
    v->chunks = arena_alloc(&s->arena, (size_t)s->chunk_count * sizeof(LLVMValueRef));
    v->slots = arena_alloc(&s->arena, (size_t)s->chunk_count * sizeof(LLVMValueRef));
    LLVMTypeRef type = v->piece >= 0 ? LLVMTypeOf(phi) : chunk_type(s, LLVMTypeOf(phi));
    for (int c = 0; c < s->chunk_count; c++) v->slots[c] = simd_round_slot(s, type, NULL, loop);
}

struct incoming {
    LLVMValueRef slot, value, mask; /* mask NULL: for all lanes that are on in the target */
    struct incoming *next;
};

static void add_incoming(struct simd *s, struct incoming **list, LLVMValueRef slot, LLVMValueRef value,
                         LLVMValueRef mask) {
    struct incoming *one = arena_alloc(&s->arena, sizeof *one);
    if (!one) return;
    *one = (struct incoming){slot, value, mask, *list};
    *list = one;
}

/* Whether the phi and its value are stages of one sum, which lies in memory. */
static bool matrix_stays(struct simd *s, LLVMValueRef phi, LLVMValueRef value) {
    const struct matrix *to = matrix_of(s, phi),
                        *from = LLVMIsAInstruction(value) ? matrix_of(s, value) : NULL;
    return to->sum && from && from->sum == to->sum && (to->halves[1] == phi) == (from->halves[1] == value);
}

/* Lanes `masks` of block `from` (NULL entries: all) go on to block `to`. All values are read before any is
 * written, since phis may exchange values. */
static void take_edge(struct simd *s, int from, int to, LLVMValueRef const *masks, bool divergent) {
    LLVMBuilderRef b = s->unit->builder;
    struct block *target = &s->blocks[to];
    /* Immediately, not when their block runs: a barrier may come first. */
    if (target->returns && !s->blocks[from].returns) context_mark_returned(s, masks);
    if (owns_mask(s, to))
        for (int c = 0; c < s->chunk_count; c++) {
            LLVMValueRef slot = target->mask_slots[c], on = masks[c] ? masks[c] : mask_all(s);
            LLVMValueRef before = LLVMBuildLoad2(b, mask_type(s), slot, "");
            LLVMBuildStore(b, LLVMBuildOr(b, before, on, ""), slot);
        }
    /* All lanes of the target arrive along this edge: at loop headers, and if the masks are the same. */
    bool all = is_header(s, to) || (!divergent && s->blocks[from].mask_of == target->mask_of);
    struct incoming *list = NULL;
    FOR_EACH_INSTRUCTION(phi, target->original) {
        if (!LLVMIsAPHINode(phi)) break;
        LLVMValueRef value = phi_incoming(phi, s->blocks[from].original);
        bool matrix = matrix_of(s, phi) != NULL;
        if (!value || (is_empty(value) && !matrix) || (matrix && matrix_stays(s, phi, value))) continue;
        make_phi_slots(s, phi);
        const struct value *v = value_of(s, phi);
        if (v->slot)
            add_incoming(s, &list, v->slot, packed_is(s, phi) ? packed_of(s, value) : scalar_of(s, value),
                         NULL);
        for (int c = s->first_chunk; v->slots && c < s->end_chunk; c++) {
            if (matrix && !matrix_loop_arrives(s, phi, s->blocks[from].original, c)) continue;
            bool piece = piece_is(s, phi);
            LLVMValueRef own = matrix  ? matrix_incoming(s, phi, s->blocks[from].original, c)
                               : piece ? piece_first_lane(s, value, c)
                                       : chunk_of(s, value, c);
            add_incoming(s, &list, v->slots[c], own, all || piece ? NULL : masks[c]);
        }
    }
    for (; list; list = list->next) {
        LLVMValueRef value = list->value;
        if (list->mask) {
            LLVMValueRef before = LLVMBuildLoad2(b, LLVMTypeOf(value), list->slot, "");
            value = LLVMBuildSelect(b, list->mask, value, before, "");
        }
        LLVMBuildStore(b, value, list->slot);
    }
}

/* Before another round: ends the gang if the launch has been stopped. */
static void poll(struct simd *s) {
    if (!s->code->polled) return;
    LLVMBuilderRef b = s->unit->builder;
    LLVMBasicBlockRef go = simd_block(s, "again"), stop = simd_block(s, "stop");
    LLVMValueRef flag = LLVMBuildLoad2(b, type_i32(s->unit), gang_stop_flag(s), "");
    LLVMSetVolatile(flag, true);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntNE, flag, simd_i32(s, 0), ""), stop, go);
    LLVMPositionBuilderAtEnd(b, stop);
    gang_stop(s);
    LLVMBuildUnreachable(b);
    LLVMPositionBuilderAtEnd(b, go);
}

/* ---- Ends of blocks. */

/* A uniform branch to one successor. */
static void leave_uniformly(struct simd *s, int place, LLVMBasicBlockRef successor) {
    struct block *block = &s->blocks[place];
    int to = simd_place(s, successor), item = target_item(s, s->paths.blocks[place].loop, to);
    take_edge(s, place, to, block->mask, false);
    if (item == BACK) {
        if (to != place || !simd_has_few_rounds(block->original)) poll(s);
        LLVMBuildBr(s->unit->builder, s->blocks[to].head);
    } else {
        go_on(s, block->item, &item, 1);
    }
}

static void end_uniformly(struct simd *s, int place, LLVMValueRef terminator) {
    LLVMBuilderRef b = s->unit->builder;
    unsigned count = LLVMGetNumSuccessors(terminator);
    if (count == 0) {
        go_on(s, s->blocks[place].item, NULL, 0);
        return;
    }
    if (count == 1) {
        leave_uniformly(s, place, LLVMGetSuccessor(terminator, 0));
        return;
    }
    LLVMValueRef condition =
        scalar_of(s, LLVMGetInstructionOpcode(terminator) == LLVMSwitch ? LLVMGetOperand(terminator, 0)
                                                                        : LLVMGetCondition(terminator));
    LLVMBasicBlockRef *ways = arena_alloc(&s->arena, count * sizeof *ways);
    if (!ways) return;
    for (unsigned i = 0; i < count; i++) ways[i] = simd_block(s, "way");
    if (LLVMGetInstructionOpcode(terminator) == LLVMSwitch) {
        LLVMValueRef choice = LLVMBuildSwitch(b, condition, ways[0], count - 1);
        for (unsigned i = 1; i < count; i++) LLVMAddCase(choice, LLVMGetOperand(terminator, 2 * i), ways[i]);
    } else {
        LLVMBuildCondBr(b, condition, ways[0], ways[1]);
    }
    for (unsigned i = 0; i < count; i++) {
        LLVMPositionBuilderAtEnd(b, ways[i]);
        leave_uniformly(s, place, LLVMGetSuccessor(terminator, i));
    }
}

/* x & y for masks; the bits of y are ignored for inactive lanes. */
static LLVMValueRef narrow_mask(struct simd *s, LLVMValueRef mask, LLVMValueRef condition) {
    if (!mask) return condition;
    return LLVMBuildSelect(s->unit->builder, mask, condition, LLVMConstNull(mask_type(s)), "");
}

/* The lanes of a chunk that go to successor `number`. */
static LLVMValueRef edge_mask(struct simd *s, LLVMValueRef terminator, unsigned number, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef mask = mask_chunk(s, chunk);
    if (LLVMGetInstructionOpcode(terminator) != LLVMSwitch) {
        LLVMValueRef condition = chunk_of(s, LLVMGetCondition(terminator), chunk);
        return narrow_mask(s, mask, number ? LLVMBuildNot(b, condition, "") : condition);
    }
    LLVMValueRef value = chunk_of(s, LLVMGetOperand(terminator, 0), chunk);
    if (number)
        return narrow_mask(
            s, mask,
            LLVMBuildICmp(b, LLVMIntEQ, value, chunk_splat(s, LLVMGetOperand(terminator, 2 * number)), ""));
    LLVMValueRef others = LLVMConstNull(mask_type(s));
    for (unsigned i = 1; i < LLVMGetNumSuccessors(terminator); i++)
        others = LLVMBuildOr(
            b, others,
            LLVMBuildICmp(b, LLVMIntEQ, value, chunk_splat(s, LLVMGetOperand(terminator, 2 * i)), ""), "");
    return narrow_mask(s, mask, LLVMBuildNot(b, others, ""));
}

/* All ways are taken, one after another. */
static void end_divergently(struct simd *s, int place, LLVMValueRef terminator) {
    LLVMBuilderRef b = s->unit->builder;
    struct block *block = &s->blocks[place];
    unsigned count = LLVMGetNumSuccessors(terminator);
    int *items = arena_alloc(&s->arena, count * sizeof *items), item_count = 0;
    LLVMValueRef *masks = arena_alloc(&s->arena, (size_t)s->chunk_count * sizeof *masks);
    if (!items || !masks) return;
    for (unsigned i = 0; i < count; i++) {
        LLVMBasicBlockRef successor = LLVMGetSuccessor(terminator, i);
        bool seen = false;
        for (unsigned j = 0; j < i; j++) seen |= LLVMGetSuccessor(terminator, j) == successor;
        if (seen) continue;
        for (int c = 0; c < s->chunk_count; c++) {
            masks[c] = edge_mask(s, terminator, i, c);
            for (unsigned j = i + 1; j < count; j++)
                if (LLVMGetSuccessor(terminator, j) == successor)
                    masks[c] = LLVMBuildOr(b, masks[c], edge_mask(s, terminator, j, c), "");
        }
        int to = simd_place(s, successor);
        take_edge(s, place, to, masks, true);
        items[item_count++] = target_item(s, s->paths.blocks[place].loop, to);
    }
    go_on(s, block->item, items, item_count);
}

/* ---- Blocks. */

static void load_mask(struct simd *s, struct block *block) {
    LLVMBuilderRef b = s->unit->builder;
    const struct block *owner = block->mask_of == ALL_ON ? NULL : &s->blocks[block->mask_of];
    /* Only behind its guard: the lanes are on then. */
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
    int next = next_item(s, block->item, NULL, 0);
    if (next < 0) { /* nothing else to go to: then there are lanes */
        LLVMBuildBr(b, block->head);
        return;
    }
    LLVMValueRef *masks = arena_alloc(&s->arena, (size_t)s->chunk_count * sizeof *masks);
    if (!masks) return;
    for (int c = 0; c < s->chunk_count; c++)
        masks[c] = LLVMBuildLoad2(b, mask_type(s), block->mask_slots[c], "");
    LLVMBuildCondBr(b, mask_any(s, masks, s->chunk_count), block->head, start_of_item(s, next));
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
    if (is_header(s, place)) hold_mask(s, block);
    LLVMBuildBr(b, block->body);
}

static void end_full_round(struct simd *s, int loop);

static void make_new_blocks(struct simd *s, struct block *block);
static LLVMBasicBlockRef append_block(struct simd *s, const char *name);

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
    take_edge(s, place, place, block->mask, false);
    bool rows = s->matrix_part != NO_PART;
    if (!simd_has_few_rounds(block->original)) poll(s);
    LLVMBuildBr(b, block->head);
    LLVMPositionBuilderAtEnd(b, left);
    if (rows) matrix_loop_end(s, place);
    if (rows ? matrix_loop_is_last(s) : s->end_chunk == s->chunk_count) {
        leave_uniformly(s, place, LLVMGetSuccessor(terminator, again_first));
        return;
    }
    if (!rows) {
        take_edge(s, place, simd_place(s, LLVMGetSuccessor(terminator, again_first)), block->mask, false);
        s->first_chunk = s->end_chunk;
    }
    take_edge(s, before, place, block->mask, false);
    make_new_blocks(s, block);
    LLVMBuildBr(b, block->head);
}

/* Rounds begin at a new head; the old one runs once, before the first. */
static void begin_rounds(struct simd *s, struct block *block) {
    s->matrix_entry = block->head;
    block->head = append_block(s, "round");
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

static void write_once(struct simd *s, int place) {
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
        end_full_round(s, loop);
    else if (s->paths.blocks[place].divergent)
        end_divergently(s, place, terminator);
    else
        end_uniformly(s, place, terminator);
}

/* Before a loop that is written twice: branches to the code with tests if an access may miss its array, else
 * to `full`, the code without them. */
static void ask_outside(struct simd *s, LLVMValueRef outside, LLVMBasicBlockRef tested,
                        LLVMBasicBlockRef full) {
    const struct value *v = value_of(s, outside);
    LLVMValueRef own =
        v->slot ? LLVMBuildLoad2(s->unit->builder, LLVMTypeOf(outside), v->slot, "") : v->scalar;
    inside_branch(s->unit, own, tested, full);
}

/* Redirects all branches to the block to a new one. */
static LLVMBasicBlockRef put_before(struct simd *s, LLVMBasicBlockRef block) {
    LLVMBasicBlockRef question = append_block(s, "question");
    LLVMReplaceAllUsesWith(LLVMBasicBlockAsValue(block), LLVMBasicBlockAsValue(question));
    return question;
}

/* A loop with tests that wait for one answer is written once without them and once with them. */
static void write_block(struct simd *s, int place) {
    struct block *block = &s->blocks[place];
    LLVMValueRef outside = simd_full_rounds_answer(s, place);
    if (!outside) {
        write_once(s, place);
        return;
    }
    LLVMBasicBlockRef full = block->head, question = put_before(s, full);
    s->inside_answered = outside;
    write_once(s, place);
    s->inside_answered = NULL;
    make_new_blocks(s, block);
    LLVMBasicBlockRef tested = block->head;
    if (!s->refused) write_once(s, place);
    LLVMPositionBuilderAtEnd(s->unit->builder, question);
    ask_outside(s, outside, tested, full);
}

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
    poll(s);
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
            int item = target_item(s, loop->parent, to);
            bool seen = false;
            for (int j = 0; j < count; j++) seen |= items[j] == item;
            if (!seen) items[count++] = item;
        }
    }
    go_on(s, s->loops[number].item, items, count);
}

static LLVMValueRef *mask_slots(struct simd *s, LLVMValueRef first, int loop) {
    LLVMValueRef *slots = arena_alloc(&s->arena, (size_t)s->chunk_count * sizeof *slots);
    for (int c = 0; slots && c < s->chunk_count; c++)
        slots[c] = simd_round_slot(s, mask_type(s), first, loop);
    return slots;
}

/* The block's own mask is empty when a round starts. */
static void make_mask(struct simd *s, int place) {
    s->blocks[place].mask_slots = mask_slots(s, LLVMConstNull(mask_type(s)), level_of(s, place));
}

static LLVMBasicBlockRef append_block(struct simd *s, const char *name) {
    return LLVMAppendBasicBlockInContext(s->unit->context, s->gang, name);
}

static void make_new_blocks(struct simd *s, struct block *block) {
    if (block->mask_slots && !block->held_slots) block->guard = append_block(s, "guard");
    block->head = append_block(s, "head");
    block->body = append_block(s, "body");
}

static void make_blocks(struct simd *s) {
    for (int place = 0; place < s->paths.block_count; place++) {
        struct block *block = &s->blocks[place];
        block->mask = arena_alloc(&s->arena, (size_t)s->chunk_count * sizeof *block->mask);
        if (owns_mask(s, place)) {
            make_mask(s, place);
            if (is_header(s, place)) block->held_slots = mask_slots(s, NULL, level_of(s, place));
        }
        make_new_blocks(s, block);
    }
    for (int i = 0; i < s->paths.loop_count; i++)
        if (s->paths.loops[i].divergent) s->loops[i].end = append_block(s, "end");
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(phi, block) {
        if (!LLVMIsAPHINode(phi)) break;
        make_phi_slots(s, phi);
    }
}

/* ---- Full rounds. A loop that lanes leave by comparing neighbours with a bound (`i < n`) is written twice:
 * first without masks, for as long as a comparison of scalars shows that all lanes stay; then with masks, for
 * the last round or two. If only some lanes enter the loop, which is asked once, all rounds have masks. So
 * they do if an access of the loop may miss its array: full rounds do not test what is known before the loop.
 */

/* The latch of a full round: another full one, or the masked ones. */
static void end_full_round(struct simd *s, int loop) {
    LLVMBuilderRef b = s->unit->builder;
    int place = s->paths.loops[loop].last, header = s->paths.loops[loop].header;
    LLVMIntPredicate predicate = LLVMIntEQ;
    LLVMValueRef condition = simd_full_rounds_condition(s, loop, &predicate);
    LLVMBasicBlockRef all = simd_block(s, "all"), some = simd_block(s, "some");
    LLVMValueRef stay = edges_all_hold(s, LLVMGetOperand(condition, 0), predicate,
                                       scalar_of(s, LLVMGetOperand(condition, 1)));
    LLVMBuildCondBr(b, stay, all, some);
    LLVMPositionBuilderAtEnd(b, all);
    take_edge(s, place, header, s->blocks[place].mask, false);
    poll(s);
    LLVMBuildBr(b, s->blocks[header].head);
    LLVMPositionBuilderAtEnd(b, some);
    int entered = s->blocks[header].mask_of;
    s->blocks[header].mask_of = header; /* the masked rounds' */
    end_divergently(s, place, LLVMGetBasicBlockTerminator(s->blocks[place].original));
    s->blocks[header].mask_of = entered;
}

/* Asks before the loop whether all lanes enter it, if that is not sure, and whether its accesses are inside
 * (`outside` NULL: not asked): `full`, or else `masked`. */
static void ask_before_loop(struct simd *s, const struct block *header, bool who, LLVMValueRef outside,
                            LLVMBasicBlockRef question, LLVMBasicBlockRef full, LLVMBasicBlockRef masked) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef all = NULL;
    LLVMPositionBuilderAtEnd(b, question);
    if (outside) {
        LLVMBasicBlockRef inside = who ? simd_block(s, "inside") : full;
        ask_outside(s, outside, masked, inside);
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
    if (ask) question = put_before(s, full);
    for (int place = l->header; place <= l->last; place++)
        if (s->blocks[place].mask_of == l->header) s->blocks[place].mask_of = ALL_ON;
    s->loops[loop].full_rounds = true;
    s->inside_answered = outside;
    for (int item = first; item < s->loops[loop].item && !s->refused; item++)
        if (s->items[item].block >= 0) write_block(s, s->items[item].block);
    s->loops[loop].full_rounds = false;
    s->inside_answered = NULL;
    /* The masked rounds are written next, with blocks of their own. */
    for (int place = l->header; place <= l->last; place++) {
        struct block *block = &s->blocks[place];
        memset(s->items[block->item].pending, 0, words * 8);
        if (block->mask_of == ALL_ON) block->mask_of = l->header;
        make_new_blocks(s, block);
        if (place > l->header && owns_mask(s, place)) make_mask(s, place);
    }
    memcpy(s->items[first].pending, pending, words * 8);
    s->loops[loop].last_rounds = !who || simd_full_rounds_guarded(s, loop, entered);
    if (ask)
        ask_before_loop(s, &s->blocks[l->header], who, outside, question, full, s->blocks[l->header].head);
}

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
    if (!s->refused) write_block(s, item->block);
}

/* An empty function, and in it what all code of the gang needs. */
static void start_function(struct simd *s) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef pointer = type_pointer(s->unit);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(s->unit->context), &pointer, 1, false);
    s->gang = LLVMAddFunction(s->unit->module, "gang", type);
    s->context = LLVMGetParam(s->gang, 0);
    s->slots_block = append_block(s, "entry");
    s->start = append_block(s, "start");
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
    make_blocks(s);
    if (s->arena.failed)
        return unit_fail(s->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for the gang's code");
    LLVMBuildBr(b, s->blocks[0].head);
    for (int item = 0; item < s->item_count && !s->refused; item++) write_item(s, item);
    LLVMSetCurrentDebugLocation2(b, NULL);
    if (s->arena.failed)
        return unit_fail(s->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for the gang's code");
    return SMELT_OK;
}
