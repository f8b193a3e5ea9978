/* Branches. A uniform one stays a branch. After a divergent one, the blocks of all its paths run one after
 * another: each item of the layout records which later items must still be visited.
 *
 * Taking an edge of the original writes two things to stack slots: the lanes that arrive, to the mask of the
 * target, and the values of its phis for those lanes. */
#include "compiler/simd/control/control.h"
#include "compiler/simd/lanes/packed.h"
#include "compiler/simd/matrix/matrix.h"

bool control_owns_mask(const struct simd *s, int place) {
    return place > 0 && s->blocks[place].mask_of == place;
}

bool control_is_header(const struct simd *s, int place) {
    int loop = s->paths.blocks[place].loop;
    return loop >= 0 && s->paths.loops[loop].header == place;
}

int control_level(const struct simd *s, int place) {
    int loop = s->paths.blocks[place].loop;
    return control_is_header(s, place) ? s->paths.loops[loop].parent : loop;
}

/* ---- Where edges lead in the layout. */

#define BACK (-1) /* directly to the header of a uniform loop */

int control_target_item(const struct simd *s, int loop, int target) {
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

int control_next_item(struct simd *s, int from, const int *targets, int count) {
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

LLVMBasicBlockRef control_start_of_item(struct simd *s, int item) {
    if (s->items[item].block < 0) return s->loops[s->items[item].loop].end;
    const struct block *block = &s->blocks[s->items[item].block];
    return block->guard ? block->guard : block->head;
}

void control_go_on(struct simd *s, int from, const int *targets, int count) {
    int next = control_next_item(s, from, targets, count);
    if (next < 0)
        LLVMBuildRetVoid(s->unit->builder);
    else
        LLVMBuildBr(s->unit->builder, control_start_of_item(s, next));
}

/* ---- Edges. */

static bool is_empty(LLVMValueRef value) {
    return LLVMIsUndef(value) || LLVMIsPoison(value);
}

void control_make_phi_slots(struct simd *s, LLVMValueRef phi) {
    struct value *v = value_of(s, phi);
    if (v->slot || v->slots) return;
    int place = simd_place(s, LLVMGetInstructionParent(phi)), loop = control_level(s, place);
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

void control_take_edge(struct simd *s, int from, int to, LLVMValueRef const *masks, bool divergent) {
    LLVMBuilderRef b = s->unit->builder;
    struct block *target = &s->blocks[to];
    /* Immediately, not when their block runs: a barrier may come first. */
    if (target->returns && !s->blocks[from].returns) context_mark_returned(s, masks);
    if (control_owns_mask(s, to))
        for (int c = 0; c < s->chunk_count; c++) {
            LLVMValueRef slot = target->mask_slots[c], on = masks[c] ? masks[c] : mask_all(s);
            LLVMValueRef before = LLVMBuildLoad2(b, mask_type(s), slot, "");
            LLVMBuildStore(b, LLVMBuildOr(b, before, on, ""), slot);
        }
    /* All lanes of the target arrive along this edge: at loop headers, and if the masks are the same. */
    bool all = control_is_header(s, to) || (!divergent && s->blocks[from].mask_of == target->mask_of);
    struct incoming *list = NULL;
    FOR_EACH_INSTRUCTION(phi, target->original) {
        if (!LLVMIsAPHINode(phi)) break;
        LLVMValueRef value = phi_incoming(phi, s->blocks[from].original);
        bool matrix = matrix_of(s, phi) != NULL;
        if (!value || (is_empty(value) && !matrix) || (matrix && matrix_stays(s, phi, value))) continue;
        control_make_phi_slots(s, phi);
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

void control_poll(struct simd *s) {
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

void control_leave_uniformly(struct simd *s, int place, LLVMBasicBlockRef successor) {
    struct block *block = &s->blocks[place];
    int to = simd_place(s, successor), item = control_target_item(s, s->paths.blocks[place].loop, to);
    control_take_edge(s, place, to, block->mask, false);
    if (item == BACK) {
        if (to != place || !simd_has_few_rounds(block->original)) control_poll(s);
        LLVMBuildBr(s->unit->builder, s->blocks[to].head);
    } else {
        control_go_on(s, block->item, &item, 1);
    }
}

void control_end_uniformly(struct simd *s, int place, LLVMValueRef terminator) {
    LLVMBuilderRef b = s->unit->builder;
    unsigned count = LLVMGetNumSuccessors(terminator);
    if (count == 0) {
        control_go_on(s, s->blocks[place].item, NULL, 0);
        return;
    }
    if (count == 1) {
        control_leave_uniformly(s, place, LLVMGetSuccessor(terminator, 0));
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
        control_leave_uniformly(s, place, LLVMGetSuccessor(terminator, i));
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

void control_end_divergently(struct simd *s, int place, LLVMValueRef terminator) {
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
        control_take_edge(s, place, to, masks, true);
        items[item_count++] = control_target_item(s, s->paths.blocks[place].loop, to);
    }
    control_go_on(s, block->item, items, item_count);
}

/* From a round after which no lane stays: past the masked rounds. */
static void leave_full_rounds(struct simd *s, int loop) {
    int place = s->paths.loops[loop].last;
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(s->blocks[place].original);
    int exit = simd_place(s, LLVMGetSuccessor(branch, 0));
    if (exit == s->paths.loops[loop].header) exit = simd_place(s, LLVMGetSuccessor(branch, 1));
    int item = control_target_item(s, s->paths.loops[loop].parent, exit);
    control_take_edge(s, place, exit, s->blocks[place].mask, true);
    control_go_on(s, s->blocks[place].item, &item, 1);
}

void control_end_full_round(struct simd *s, int loop) {
    LLVMBuilderRef b = s->unit->builder;
    int place = s->paths.loops[loop].last, header = s->paths.loops[loop].header;
    bool holds = false;
    LLVMValueRef condition = simd_full_rounds_condition(s, loop, &holds);
    LLVMBasicBlockRef all = simd_block(s, "all"), others = simd_block(s, "others"),
                      some = simd_block(s, "some"), none = simd_block(s, "none");
    LLVMBuildCondBr(b, edges_all_agree(s, condition, holds), all, others);
    LLVMPositionBuilderAtEnd(b, others);
    LLVMBuildCondBr(b, edges_all_agree(s, condition, !holds), none, some);
    LLVMPositionBuilderAtEnd(b, none);
    leave_full_rounds(s, loop);
    LLVMPositionBuilderAtEnd(b, all);
    control_take_edge(s, place, header, s->blocks[place].mask, false);
    control_poll(s);
    LLVMBuildBr(b, s->blocks[header].head);
    LLVMPositionBuilderAtEnd(b, some);
    int entered = s->blocks[header].mask_of;
    s->blocks[header].mask_of = header; /* the masked rounds' */
    control_end_divergently(s, place, LLVMGetBasicBlockTerminator(s->blocks[place].original));
    s->blocks[header].mask_of = entered;
}
