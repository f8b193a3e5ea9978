/* The masked rounds of a loop that is written twice (control.c): at most the last one or two, of which some
 * lanes run none. They are written for one chunk, inside a loop over the chunks: each in turn runs all its
 * rounds. A row loop's tail is then a fraction of its code, and chunks without active lanes cost a branch.
 *
 * What differs between chunks is in arrays during the turns: masks, the values that the loop carries and
 * those that come from before it, and what it leaves behind. Affine values of a turn start from the chunk's
 * first lane, so their offsets must be the same in all chunks.
 *
 * This holds for loops of one block in which no lane meets another, and whose accesses are to neighbours or
 * to one element.
 *
 * Requires: the analysis. Establishes, between turns_begin and turns_end: a gang of one chunk. */
#include "compiler/bounds/bounds.h"
#include "compiler/simd/memory/neighbours.h"
#include "compiler/simd/matrix/tiles.h"
#include "compiler/simd/control/turns.h"

#include <string.h>

/* Fewer chunks are faster side by side: one does not wait for the results of another. */
#define FEWEST_CHUNKS 8

/* ---- Which loops. */

/* Whether the chunks are equal steps apart and their lanes' offsets the same. */
static bool is_regular(struct simd *s, int shape) {
    const int64_t *offsets = shape_offsets(s, shape);
    int lanes = s->chunk_lanes;
    for (int l = 0; l < s->lanes; l++)
        if (offsets[l] != offsets[l % lanes] + l / lanes * offsets[lanes]) return false;
    return true;
}

/* Values that are the same in all lanes, regular, or vectors. */
static bool suits_value(struct simd *s, LLVMValueRef value) {
    if (!LLVMIsAInstruction(value)) return true;
    const struct value *v = value_of(s, value);
    if (v->matrix || v->speculated || v->shape == SHAPE_UNKNOWN || private_is(s, value)) return false;
    if (v->shape == SHAPE_VARYING) return v->piece < 0;
    return v->shape == SHAPE_UNIFORM || is_regular(s, v->shape);
}

static bool suits_address(struct simd *s, LLVMValueRef address, LLVMTypeRef element) {
    int shape = shape_of(s, address);
    if (shape == SHAPE_UNIFORM) return true;
    if (shape < 0) return false;
    return shape_offsets(s, shape)[1] == (int64_t)LLVMABISizeOfType(s->unit->layout, element);
}

static bool suits_access(struct simd *s, LLVMValueRef i) {
    bool load = LLVMIsALoadInst(i) != NULL;
    LLVMValueRef address = LLVMGetOperand(i, load ? 0 : 1);
    LLVMTypeRef element = LLVMTypeOf(load ? i : LLVMGetOperand(i, 0));
    bool plain = LLVMGetOrdering(i) == LLVMAtomicOrderingNotAtomic && !LLVMGetVolatile(i);
    bool one = !load && shape_of(s, address) == SHAPE_UNIFORM;
    return plain && !one && !value_of(s, i)->neighbours && suits_address(s, address, element);
}

/* Of a test of an access: the index that it may compare instead of the address (inside_chunk.c), or NULL. */
static LLVMValueRef tested_index(struct simd *s, LLVMValueRef i) {
    if (intrinsic_of(i) != INTRINSIC_INSIDE) return NULL;
    LLVMValueRef index = bounds_steps(s->unit, LLVMGetOperand(i, INSIDE_ADDRESS)).index;
    return index && shape_of(s, index) > SHAPE_UNIFORM ? index : NULL;
}

static bool suits_instruction(struct simd *s, LLVMValueRef i) {
    for (int o = 0; o < LLVMGetNumOperands(i); o++)
        if (!suits_value(s, LLVMGetOperand(i, (unsigned)o))) return false;
    bool result = LLVMGetTypeKind(LLVMTypeOf(i)) != LLVMVoidTypeKind;
    if (result && (!suits_value(s, i) || packed_is(s, i))) return false;
    if (LLVMIsALoadInst(i) || LLVMIsAStoreInst(i)) return suits_access(s, i);
    LLVMValueRef index = tested_index(s, i);
    if (index && !suits_value(s, index)) return false;
    if (intrinsic_of(i) == INTRINSIC_INSIDE) return emit_inside_is_once(s, i);
    return simd_is_alone(s, i);
}

/* What the loop leaves behind in blocks after it. */
static bool suits_exit(struct simd *s, int place, int to) {
    if (s->blocks[to].returns != s->blocks[place].returns) return false;
    FOR_EACH_INSTRUCTION(phi, s->blocks[to].original) {
        if (!LLVMIsAPHINode(phi)) break;
        LLVMValueRef value = phi_incoming(phi, s->blocks[place].original);
        if (value && (!suits_value(s, value) || !suits_value(s, phi) || packed_is(s, phi) ||
                      shape_of(s, phi) > SHAPE_UNIFORM))
            return false;
    }
    return true;
}

bool turns_suit(struct simd *s, int loop) {
    const struct path_loop *l = &s->paths.loops[loop];
    LLVMBasicBlockRef block = s->blocks[l->header].original;
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    if (l->header != l->last || s->chunk_count < FEWEST_CHUNKS || s->chunk_lanes == 1 || s->matrices)
        return false;
    FOR_EACH_INSTRUCTION(i, block) {
        if (!suits_instruction(s, i)) return false;
    }
    for (unsigned n = 0; n < LLVMGetNumSuccessors(end); n++) {
        int to = simd_place(s, LLVMGetSuccessor(end, n));
        if (to != l->header && !suits_exit(s, l->header, to)) return false;
    }
    return true;
}

/* ---- What differs between chunks. */

/* Slots of all chunks, for which one slot stands during a turn. */
struct taken {
    LLVMValueRef **slots, *own, one, array;
    bool back; /* the turn's contents are needed after the loop */
    struct taken *next;
};

/* A value's properties outside the turns. */
struct put_aside {
    struct value *value, before;
    struct put_aside *next;
};

struct turns {
    int lanes, chunks, header;
    LLVMBasicBlockRef enter, end; /* of the loop, for all chunks */
    LLVMBasicBlockRef turn;
    LLVMValueRef number; /* slot: of the chunk whose turn it is */
    struct taken *taken;
    struct put_aside *aside;
};

static LLVMValueRef element(struct simd *s, LLVMValueRef array, LLVMValueRef number) {
    LLVMValueRef indexes[2] = {simd_i32(s, 0), number};
    return LLVMBuildGEP2(s->unit->builder, LLVMGetAllocatedType(array), array, indexes, 2, "");
}

static LLVMValueRef new_array(struct simd *s, LLVMTypeRef type) {
    return simd_slot(s, LLVMArrayType2(type, (uint64_t)s->turns->chunks));
}

/* The builder is in the code before the turns. */
static void take_slots(struct simd *s, LLVMValueRef **slots, bool back) {
    LLVMBuilderRef b = s->unit->builder;
    struct turns *t = s->turns;
    struct taken *one = arena_alloc(&s->arena, sizeof *one);
    LLVMValueRef *only = arena_alloc(&s->arena, sizeof *only);
    if (!one || !only) return;
    LLVMTypeRef type = simd_slot_type((*slots)[0]);
    *only = simd_slot(s, type);
    *one = (struct taken){slots, *slots, *only, new_array(s, type), back, t->taken};
    for (int c = 0; c < t->chunks; c++) {
        LLVMValueRef contents = LLVMBuildLoad2(b, type, one->own[c], "");
        LLVMBuildStore(b, contents, element(s, one->array, simd_i32(s, c)));
    }
    *slots = only;
    t->taken = one;
}

static struct value *put_aside(struct simd *s, LLVMValueRef original) {
    struct turns *t = s->turns;
    for (struct put_aside *one = t->aside; one; one = one->next)
        if (one->value->original == original) return NULL;
    struct put_aside *one = arena_alloc(&s->arena, sizeof *one);
    if (!one) return NULL;
    *one = (struct put_aside){value_of(s, original), *value_of(s, original), t->aside};
    t->aside = one;
    return one->value;
}

/* The value in the first lane of the chunk whose turn it is. */
static LLVMValueRef in_first_lane(struct simd *s, LLVMValueRef scalar, int shape, LLVMValueRef number) {
    LLVMBuilderRef b = s->unit->builder;
    int64_t step = shape > SHAPE_UNIFORM ? shape_offsets(s, shape)[s->chunk_lanes] : 0;
    if (!step) return scalar;
    bool address = LLVMGetTypeKind(LLVMTypeOf(scalar)) == LLVMPointerTypeKind;
    LLVMTypeRef type = address ? type_i64(s->unit) : LLVMTypeOf(scalar);
    LLVMValueRef steps = LLVMBuildIntCast2(b, number, type, false, "");
    steps = LLVMBuildMul(b, steps, LLVMConstInt(type, (uint64_t)step, true), "");
    return address ? LLVMBuildGEP2(b, LLVMInt8TypeInContext(s->unit->context), scalar, &steps, 1, "")
                   : LLVMBuildAdd(b, scalar, steps, "");
}

/* ---- Values from before the loop. */

struct outer {
    LLVMValueRef original, scalar, array;
    struct outer *next;
};

static void find_outer(struct simd *s, LLVMValueRef value, struct outer **list) {
    LLVMBuilderRef b = s->unit->builder;
    if (!LLVMIsAInstruction(value) || value_of(s, value)->block == s->turns->header) return;
    int shape = shape_of(s, value);
    if (shape == SHAPE_UNIFORM) return;
    for (struct outer *o = *list; o; o = o->next)
        if (o->original == value) return;
    struct outer *one = arena_alloc(&s->arena, sizeof *one);
    if (!one) return;
    *one = (struct outer){.original = value, .next = *list};
    *list = one;
    if (shape > SHAPE_UNIFORM) {
        one->scalar = scalar_of(s, value);
        return;
    }
    one->array = new_array(s, chunk_type(s, LLVMTypeOf(value)));
    for (int c = 0; c < s->turns->chunks; c++)
        LLVMBuildStore(b, chunk_of(s, value, c), element(s, one->array, simd_i32(s, c)));
}

static struct outer *find_all_outer(struct simd *s, LLVMBasicBlockRef block) {
    struct outer *list = NULL;
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    FOR_EACH_INSTRUCTION(i, block) {
        if (LLVMIsAPHINode(i)) {
            LLVMValueRef value = phi_incoming(i, block);
            if (value) find_outer(s, value, &list);
            continue;
        }
        for (int o = 0; o < LLVMGetNumOperands(i); o++) find_outer(s, LLVMGetOperand(i, (unsigned)o), &list);
        LLVMValueRef index = tested_index(s, i);
        if (index) find_outer(s, index, &list);
    }
    for (unsigned n = 0; n < LLVMGetNumSuccessors(end); n++) {
        FOR_EACH_INSTRUCTION(phi, LLVMGetSuccessor(end, n)) {
            if (!LLVMIsAPHINode(phi)) break;
            LLVMValueRef value = phi_incoming(phi, block);
            if (value) find_outer(s, value, &list);
        }
    }
    return list;
}

static void use_outer(struct simd *s, const struct outer *o, LLVMValueRef number) {
    struct value *v = put_aside(s, o->original);
    if (!v) return;
    v->packed = false;
    v->slot = NULL;
    v->slots = NULL;
    if (o->scalar) {
        v->scalar = in_first_lane(s, o->scalar, v->shape, number);
        return;
    }
    LLVMTypeRef type = chunk_type(s, LLVMTypeOf(o->original));
    v->chunks = arena_alloc(&s->arena, sizeof *v->chunks);
    if (v->chunks) v->chunks[0] = LLVMBuildLoad2(s->unit->builder, type, element(s, o->array, number), "");
}

/* ---- Values that the loop carries. */

struct start {
    LLVMValueRef phi, scalar;
    struct start *next;
};

/* Of uniform and affine values, lane 0's is where the turns begin. */
static struct start *take_carried(struct simd *s, LLVMBasicBlockRef block) {
    struct start *list = NULL;
    FOR_EACH_INSTRUCTION(phi, block) {
        if (!LLVMIsAPHINode(phi)) break;
        struct value *v = put_aside(s, phi);
        struct start *one = arena_alloc(&s->arena, sizeof *one);
        if (!v || !one) break;
        if (v->slots) take_slots(s, &v->slots, false);
        if (!v->slot) continue;
        LLVMTypeRef type = LLVMGetAllocatedType(v->slot);
        *one = (struct start){phi, LLVMBuildLoad2(s->unit->builder, type, v->slot, ""), list};
        v->slot = simd_slot(s, type);
        list = one;
    }
    return list;
}

static void take_exits(struct simd *s, LLVMBasicBlockRef block) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    for (unsigned n = 0; n < LLVMGetNumSuccessors(end); n++) {
        int to = simd_place(s, LLVMGetSuccessor(end, n));
        if (to == s->turns->header) continue;
        struct block *target = &s->blocks[to];
        if (target->mask_of == to && target->mask_slots) take_slots(s, &target->mask_slots, true);
        FOR_EACH_INSTRUCTION(phi, target->original) {
            if (!LLVMIsAPHINode(phi)) break;
            struct value *v = value_of(s, phi);
            if (v->slots && phi_incoming(phi, block)) take_slots(s, &v->slots, true);
        }
    }
}

/* ---- The turns. */

static LLVMBasicBlockRef append(struct simd *s, const char *name) {
    return LLVMAppendBasicBlockInContext(s->unit->context, s->gang, name);
}

/* Before its rounds, what a chunk has is taken from the arrays; afterwards, it is put there. */
static void exchange(struct simd *s, LLVMValueRef number, bool begin) {
    LLVMBuilderRef b = s->unit->builder;
    for (const struct taken *one = s->turns->taken; one; one = one->next) {
        LLVMTypeRef type = LLVMGetAllocatedType(one->one);
        LLVMValueRef place = element(s, one->array, number);
        if (begin)
            LLVMBuildStore(b, LLVMBuildLoad2(b, type, place, ""), one->one);
        else if (one->back)
            LLVMBuildStore(b, LLVMBuildLoad2(b, type, one->one, ""), place);
    }
}

void turns_begin(struct simd *s, int loop) {
    LLVMBuilderRef b = s->unit->builder;
    struct turns *t = arena_alloc(&s->arena, sizeof *t);
    int header = s->paths.loops[loop].header;
    struct block *block = &s->blocks[header];
    if (!t) return;
    *t = (struct turns){.lanes = s->lanes,
                        .chunks = s->chunk_count,
                        .header = header,
                        .enter = block->head,
                        .end = s->loops[loop].end};
    s->turns = t;
    t->turn = append(s, "turn");
    t->number = simd_slot(s, type_i32(s->unit));
    LLVMBasicBlockRef round = append(s, "round"), next = append(s, "next");
    /* As the code of a block: values in slots are loaded before its branch. */
    s->current = header;
    s->serial++;
    block->body = append(s, "arrays");
    LLVMPositionBuilderAtEnd(b, block->head);
    LLVMBuildBr(b, block->body);
    LLVMPositionBuilderAtEnd(b, block->body);
    struct outer *outer = find_all_outer(s, block->original);
    take_slots(s, &block->mask_slots, false);
    take_slots(s, &block->held_slots, false);
    struct start *starts = take_carried(s, block->original);
    take_exits(s, block->original);
    LLVMBuildStore(b, simd_i32(s, 0), t->number);
    LLVMBuildBr(b, t->turn);
    LLVMPositionBuilderAtEnd(b, t->turn);
    LLVMValueRef number = LLVMBuildLoad2(b, type_i32(s->unit), t->number, "");
    exchange(s, number, true);
    for (const struct outer *o = outer; o; o = o->next) use_outer(s, o, number);
    for (const struct start *one = starts; one; one = one->next)
        LLVMBuildStore(b, in_first_lane(s, one->scalar, shape_of(s, one->phi), number),
                       value_of(s, one->phi)->slot);
    s->chunk_count = s->end_chunk = 1;
    s->lanes = s->chunk_lanes;
    LLVMValueRef mask = LLVMBuildLoad2(b, mask_type(s), block->mask_slots[0], "");
    LLVMBuildCondBr(b, mask_any(s, &mask, 1), round, next);
    block->head = round;
    block->body = append(s, "body");
    s->loops[loop].end = next;
}

void turns_end(struct simd *s, int loop, LLVMBasicBlockRef rounds_end) {
    LLVMBuilderRef b = s->unit->builder;
    struct turns *t = s->turns;
    LLVMPositionBuilderAtEnd(b, rounds_end);
    LLVMValueRef number = LLVMBuildLoad2(b, type_i32(s->unit), t->number, "");
    exchange(s, number, false);
    number = LLVMBuildAdd(b, number, simd_i32(s, 1), "");
    LLVMBuildStore(b, number, t->number);
    LLVMBasicBlockRef done = append(s, "done");
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULT, number, simd_i32(s, t->chunks), ""), t->turn, done);
    LLVMPositionBuilderAtEnd(b, done);
    for (const struct taken *one = t->taken; one; one = one->next) {
        *one->slots = one->own;
        for (int c = 0; one->back && c < t->chunks; c++) {
            LLVMValueRef place = element(s, one->array, simd_i32(s, c));
            LLVMBuildStore(b, LLVMBuildLoad2(b, LLVMGetAllocatedType(one->one), place, ""), one->own[c]);
        }
    }
    for (const struct put_aside *one = t->aside; one; one = one->next) *one->value = one->before;
    s->chunk_count = s->end_chunk = t->chunks;
    s->lanes = t->lanes;
    s->blocks[t->header].head = t->enter;
    s->loops[loop].end = t->end;
    s->turns = NULL;
}
