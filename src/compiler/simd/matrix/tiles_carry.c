/* Sums of tiles (tiles_write.c) outside the tile's loop. Phis in the loops around it and in the code after it
 * become phis of vectors; loads, and stores, of neighbouring sums become one.
 *
 * Maintains: values. */
#include "compiler/simd/analysis/spots.h"
#include "compiler/simd/matrix/tiles_writer.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

/* A phi of vectors, and the scalar phis that are its elements. */
struct carried {
    LLVMValueRef phi;
    LLVMValueRef const *elements;
    struct carried *next;
};

struct dead {
    LLVMValueRef phi;
    struct dead *next;
};

/* ---- Vectors of scalars. */

LLVMTypeRef tile_vector_type(struct tile_writer *w, LLVMValueRef element) {
    return LLVMVectorType(LLVMTypeOf(element), (unsigned)w->tile->width);
}

LLVMValueRef tile_number(struct tile_writer *w, int value) {
    return LLVMConstInt(type_i32(w->s->unit), (unsigned long long)value, false);
}

bool tile_are_equal(struct tile_writer *w, LLVMValueRef const *elements) {
    for (int n = 1; n < w->tile->width; n++)
        if (elements[n] != elements[0]) return false;
    return true;
}

LLVMValueRef tile_gather(struct tile_writer *w, LLVMValueRef const *elements) {
    LLVMValueRef vector = LLVMGetPoison(tile_vector_type(w, elements[0]));
    for (int n = 0; n < w->tile->width; n++)
        vector = LLVMBuildInsertElement(w->s->unit->builder, vector, elements[n], tile_number(w, n), "");
    return vector;
}

static struct spot spot_of_access(struct tile_writer *w, LLVMValueRef access) {
    LLVMValueRef address = LLVMGetOperand(access, LLVMIsALoadInst(access) ? 0 : 1);
    return spot_of(w->s, address, TILE_INDEXES);
}

int64_t tile_size_of(struct tile_writer *w, LLVMValueRef value) {
    return (int64_t)LLVMABISizeOfType(w->s->unit->layout, LLVMTypeOf(value));
}

bool tile_are_neighbours(struct tile_writer *w, LLVMValueRef const *accesses, int count, int64_t size) {
    struct spot first = spot_of_access(w, accesses[0]);
    for (int n = 1; n < count; n++) {
        struct spot own = spot_of_access(w, accesses[n]);
        if (!spot_is_same(&first, &own) || own.bytes != first.bytes + n * size) return false;
    }
    return true;
}

/* ---- Sums in memory. */

static bool has_plain_access(LLVMValueRef i) {
    return (LLVMIsALoadInst(i) || LLVMIsAStoreInst(i)) && !LLVMGetVolatile(i) &&
           LLVMGetOrdering(i) == LLVMAtomicOrderingNotAtomic;
}

/* Whether the accesses, of one block, can be joined where the last of them is: instructions between them
 * access other elements of the same array or, for loads, write nothing. */
static bool can_be_last(struct tile_writer *w, LLVMValueRef const *accesses, int count, LLVMValueRef *last) {
    LLVMBasicBlockRef block = LLVMGetInstructionParent(accesses[0]);
    bool loads = LLVMIsALoadInst(accesses[0]) != NULL;
    struct spot first = spot_of_access(w, accesses[0]);
    int64_t size = tile_size_of(w, loads ? accesses[0] : LLVMGetOperand(accesses[0], 0)) * count;
    int seen = 0;
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i && seen < count; i = LLVMGetNextInstruction(i)) {
        bool member = false;
        for (int n = 0; n < count; n++) member |= accesses[n] == i;
        seen += member;
        if (member) *last = i;
        if (!seen || member || LLVMIsAPHINode(i)) continue;
        if (!has_plain_access(i)) {
            if (LLVMIsACallInst(i) || LLVMIsALoadInst(i) || LLVMIsAStoreInst(i) || LLVMIsAFenceInst(i) ||
                LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i))
                return false;
            continue;
        }
        if (loads && LLVMIsALoadInst(i)) continue;
        struct spot own = spot_of_access(w, i);
        int64_t bytes = tile_size_of(w, LLVMIsALoadInst(i) ? i : LLVMGetOperand(i, 0));
        if (!spot_is_same(&first, &own) ||
            (own.bytes < first.bytes + size && first.bytes < own.bytes + bytes))
            return false;
    }
    return seen == count;
}

static bool are_of_one_block(LLVMValueRef const *instructions, int count) {
    for (int n = 1; n < count; n++)
        if (LLVMGetInstructionParent(instructions[n]) != LLVMGetInstructionParent(instructions[0]))
            return false;
    return true;
}

/* The fewest accesses that are joined: a vector may span the rows of several threads, and is then accessed
 * row by row. */
#define FEWEST_JOINED 4

/* Elements `from` to `from + count` of one vector, or of two in a row. */
static LLVMValueRef choose_elements(struct tile_writer *w, LLVMValueRef first, LLVMValueRef second, int from,
                                    int count) {
    LLVMValueRef numbers[GANG_MAX_LANES];
    for (int n = 0; n < count; n++) numbers[n] = tile_number(w, from + n);
    if (!second) second = LLVMGetPoison(LLVMTypeOf(first));
    return LLVMBuildShuffleVector(w->s->unit->builder, first, second,
                                  LLVMConstVector(numbers, (unsigned)count), "");
}

/* Elements that one block loads, as one load or, if not all are neighbours, as one for each half. NULL:
 * others. */
static LLVMValueRef load_run(struct tile_writer *w, LLVMValueRef const *elements, int count) {
    LLVMBuilderRef b = w->s->unit->builder;
    LLVMValueRef last = NULL;
    if (tile_are_neighbours(w, elements, count, tile_size_of(w, elements[0])) &&
        can_be_last(w, elements, count, &last)) {
        LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(elements[0]), (unsigned)count);
        LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(last));
        LLVMValueRef vector = LLVMBuildLoad2(b, type, LLVMGetOperand(elements[0], 0), "");
        LLVMSetAlignment(vector, LLVMGetAlignment(elements[0]));
        return vector;
    }
    int half = count / 2;
    if (half < FEWEST_JOINED) return NULL;
    LLVMValueRef first = load_run(w, elements, half),
                 second = first ? load_run(w, elements + half, half) : NULL;
    if (!second) return NULL;
    LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(LLVMGetInstructionParent(elements[0])));
    return choose_elements(w, first, second, 0, count);
}

static LLVMValueRef load_together(struct tile_writer *w, LLVMValueRef const *elements) {
    for (int n = 0; n < w->tile->width; n++)
        if (!LLVMIsALoadInst(elements[n]) || !has_plain_access(elements[n])) return NULL;
    return are_of_one_block(elements, w->tile->width) ? load_run(w, elements, w->tile->width) : NULL;
}

/* The element's only user, if that stores it. */
static LLVMValueRef store_of(LLVMValueRef element) {
    LLVMUseRef use = LLVMGetFirstUse(element);
    LLVMValueRef user = use && !LLVMGetNextUse(use) ? LLVMGetUser(use) : NULL;
    return user && LLVMIsAStoreInst(user) && has_plain_access(user) && LLVMGetOperand(user, 0) == element
               ? user
               : NULL;
}

/* Stores of the elements of a vector, from number `from` on, become one or, if not all are neighbours, one
 * for each half. */
static void store_run(struct tile_writer *w, LLVMValueRef vector, LLVMValueRef const *stores, int from,
                      int count) {
    LLVMBuilderRef b = w->s->unit->builder;
    LLVMValueRef last = NULL;
    if (!tile_are_neighbours(w, stores + from, count, tile_size_of(w, LLVMGetOperand(stores[from], 0))) ||
        !can_be_last(w, stores + from, count, &last)) {
        if (count / 2 < FEWEST_JOINED) return;
        store_run(w, vector, stores, from, count / 2);
        store_run(w, vector, stores, from + count / 2, count / 2);
        return;
    }
    LLVMPositionBuilderBefore(b, last);
    LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(last));
    LLVMValueRef part = count == w->tile->width ? vector : choose_elements(w, vector, NULL, from, count);
    LLVMValueRef store = LLVMBuildStore(b, part, LLVMGetOperand(stores[from], 1));
    LLVMSetAlignment(store, LLVMGetAlignment(stores[from]));
    for (int n = from; n < from + count; n++) LLVMInstructionEraseFromParent(stores[n]);
}

static void store_together(struct tile_writer *w, LLVMValueRef vector, LLVMValueRef const *elements) {
    LLVMValueRef stores[GANG_MAX_LANES];
    for (int n = 0; n < w->tile->width; n++) {
        stores[n] = store_of(elements[n]);
        if (!stores[n]) return;
    }
    if (are_of_one_block(stores, w->tile->width)) store_run(w, vector, stores, 0, w->tile->width);
}

/* ---- Sums outside of the loop. */

static bool are_phis_of_one_block(struct tile_writer *w, LLVMValueRef const *elements) {
    for (int n = 0; n < w->tile->width; n++)
        if (!LLVMIsAPHINode(elements[n]) ||
            LLVMGetInstructionParent(elements[n]) != LLVMGetInstructionParent(elements[0]))
            return false;
    return true;
}

/* The vector whose elements these results are after the loop; NULL: others. */
static LLVMValueRef written_vector(struct tile_writer *w, LLVMValueRef const *elements) {
    size_t bytes = (size_t)w->tile->width * sizeof *elements;
    for (int v = 0; v < w->tile->count; v++)
        if (memcmp(w->tile->vectors[v].results, elements, bytes) == 0) return w->tile->vectors[v].written;
    return NULL;
}

static const struct carried *find_carried(struct tile_writer *w, LLVMValueRef const *elements) {
    for (const struct carried *c = w->carried; c; c = c->next)
        if (memcmp(c->elements, elements, (size_t)w->tile->width * sizeof *elements) == 0) return c;
    return NULL;
}

/* Phis of one block become one of vectors. */
static LLVMValueRef carry(struct tile_writer *w, LLVMValueRef const *elements) {
    LLVMBuilderRef b = w->s->unit->builder;
    struct carried *c = arena_alloc(&w->s->arena, 2 * sizeof *c);
    if (!c) return NULL;
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(LLVMGetInstructionParent(elements[0])));
    c[0] = (struct carried){LLVMBuildPhi(b, tile_vector_type(w, elements[0]), ""), elements, w->carried};
    c[1] = (struct carried){c[0].phi, elements, w->todo};
    w->carried = &c[0];
    w->todo = &c[1];
    return c[0].phi;
}

static LLVMValueRef phi_of(LLVMValueRef value, LLVMBasicBlockRef block) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMIsAPHINode(user) && LLVMGetInstructionParent(user) == block) return user;
    }
    return NULL;
}

/* Carries the phis that use the values. */
static void carry_on(struct tile_writer *w, LLVMValueRef const *elements) {
    for (LLVMUseRef use = LLVMGetFirstUse(elements[0]); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use), *phis = NULL;
        LLVMBasicBlockRef block = LLVMGetInstructionParent(user);
        bool all = LLVMIsAPHINode(user) && block != w->tile->block;
        if (all) phis = arena_alloc(&w->s->arena, (size_t)w->tile->width * sizeof *phis);
        for (int n = 0; phis && n < w->tile->width; n++) {
            phis[n] = phi_of(elements[n], block);
            all &= phis[n] != NULL;
        }
        if (phis && all && !tile_are_equal(w, phis) && !find_carried(w, phis)) (void)carry(w, phis);
    }
}

LLVMValueRef tile_carry_in(struct tile_writer *w, LLVMValueRef const *elements, LLVMBasicBlockRef block) {
    LLVMBuilderRef b = w->s->unit->builder;
    LLVMValueRef vector = written_vector(w, elements);
    if (vector) return vector;
    const struct carried *known = find_carried(w, elements);
    if (known) return known->phi;
    vector = load_together(w, elements);
    if (vector) return vector;
    if (!are_phis_of_one_block(w, elements) || tile_are_equal(w, elements)) {
        LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(block));
        return tile_are_equal(w, elements) ? lanes_splat(w->s, elements[0], w->tile->width)
                                           : tile_gather(w, elements);
    }
    return carry(w, elements);
}

static void finish_carried(struct tile_writer *w, const struct carried *c) {
    LLVMBasicBlockRef from = NULL;
    for (unsigned i = 0; i < LLVMCountIncoming(c->elements[0]); i++) {
        from = LLVMGetIncomingBlock(c->elements[0], i);
        LLVMValueRef *values = arena_alloc(&w->s->arena, (size_t)w->tile->width * sizeof *values);
        for (int n = 0; values && n < w->tile->width; n++) {
            LLVMValueRef phi = c->elements[n];
            for (unsigned j = 0; j < LLVMCountIncoming(phi); j++)
                if (LLVMGetIncomingBlock(phi, j) == from) values[n] = LLVMGetIncomingValue(phi, j);
        }
        LLVMValueRef vector = values ? phi_incoming(c->phi, from) : NULL;
        if (values && !vector) vector = tile_carry_in(w, values, from);
        if (!vector) return;
        LLVMAddIncoming(c->phi, &vector, &from, 1);
    }
}

/* An unused phi is erased later: it may be an element of other carried phis. */
static void drop(struct tile_writer *w, LLVMValueRef phi) {
    LLVMValueRef poison = LLVMGetPoison(LLVMTypeOf(phi));
    bool dropped = true;
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        dropped &= LLVMGetIncomingValue(phi, i) == poison;
        LLVMSetOperand(phi, i, poison);
    }
    struct dead *dead = dropped ? NULL : arena_alloc(&w->s->arena, sizeof *dead);
    if (!dead) return;
    *dead = (struct dead){phi, w->dead};
    w->dead = dead;
}

/* Replaces uses of the phis with elements of the vector. */
static void take_apart(struct tile_writer *w, const struct carried *c) {
    LLVMBuilderRef b = w->s->unit->builder;
    LLVMValueRef place = c->phi;
    while (LLVMIsAPHINode(place)) place = LLVMGetNextInstruction(place);
    LLVMPositionBuilderBefore(b, place);
    LLVMValueRef scalars[GANG_MAX_LANES];
    for (int n = 0; n < w->tile->width; n++) {
        scalars[n] = LLVMBuildExtractElement(b, c->phi, tile_number(w, n), "");
        LLVMReplaceAllUsesWith(c->elements[n], scalars[n]);
        drop(w, c->elements[n]);
    }
    store_together(w, c->phi, scalars);
}

void tile_carry_on(struct tile_writer *w) {
    for (int v = 0; v < w->tile->count; v++) carry_on(w, w->tile->vectors[v].results);
    while (w->todo) {
        struct carried *c = w->todo;
        w->todo = c->next;
        finish_carried(w, c);
        carry_on(w, c->elements);
    }
}

void tile_carry_apart(struct tile_writer *w) {
    for (struct carried *c = w->carried; c; c = c->next) take_apart(w, c);
}

void tile_carry_end(struct tile_writer *w, LLVMValueRef const *scalars) {
    for (struct dead *dead = w->dead; dead; dead = dead->next) LLVMInstructionEraseFromParent(dead->phi);
    for (int v = 0; v < w->tile->count; v++)
        store_together(w, w->tile->vectors[v].written, scalars + (ptrdiff_t)v * w->tile->width);
}
