/* Tiles as loops of vectors (tiles.h), one loop for each part of the vectors that fits the registers: all
 * rounds for the first part, then all rounds for the next. What a part needs is written in its loop, so
 * elements are loaded again for each part. The sums stay vectors in the loops around this one.
 *
 * Requires: a gang of threads side by side. Maintains: values; each sum is computed as before. */
#include "compiler/simd/spots.h"
#include "compiler/simd/tiles.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

/* A value of the original loop, and that of the loop being written. */
struct copy {
    LLVMValueRef from, to;
};

struct vector {
    LLVMValueRef const *elements;
    LLVMValueRef vector;
    struct vector *next;
};

/* A phi of vectors that does not have its values yet, and the phis whose elements it has. */
struct carried {
    LLVMValueRef phi;
    LLVMValueRef const *elements;
    struct carried *next;
};

struct dead {
    LLVMValueRef phi;
    struct dead *next;
};

struct writer {
    struct simd *s;
    const struct tile *tile;
    LLVMBasicBlockRef loop; /* being written */
    struct copy *copies;
    unsigned size; /* of the table, a power of two */
    struct vector *vectors;
    struct carried *carried, *todo;
    struct dead *dead;
};

/* ---- Scalars of the loop being written. */

static struct copy *copy_of(struct writer *w, LLVMValueRef from) {
    unsigned at = (unsigned)((uintptr_t)from >> 4) * 2654435761u & (w->size - 1);
    while (w->copies[at].from && w->copies[at].from != from) at = (at + 1) & (w->size - 1);
    return &w->copies[at];
}

static bool is_inside(const struct writer *w, LLVMValueRef value) {
    return LLVMIsAInstruction(value) && LLVMGetInstructionParent(value) == w->tile->block;
}

static LLVMValueRef write_scalar(struct writer *w, LLVMValueRef value) {
    if (!is_inside(w, value)) return value;
    struct copy *copy = copy_of(w, value);
    if (copy->from) return copy->to;
    LLVMValueRef clone = LLVMInstructionClone(value);
    for (int o = 0; o < LLVMGetNumOperands(value); o++) {
        LLVMValueRef operand = LLVMGetOperand(value, (unsigned)o);
        if (LLVMIsAInstruction(operand)) LLVMSetOperand(clone, (unsigned)o, write_scalar(w, operand));
    }
    LLVMInsertIntoBuilder(w->s->unit->builder, clone);
    *copy_of(w, value) = (struct copy){value, clone};
    return clone;
}

/* ---- Vectors. */

static LLVMTypeRef vector_type(struct writer *w, LLVMValueRef element) {
    return LLVMVectorType(LLVMTypeOf(element), (unsigned)w->tile->width);
}

static LLVMValueRef number(struct writer *w, int value) {
    return LLVMConstInt(type_i32(w->s->unit), (unsigned long long)value, false);
}

static bool are_equal(struct writer *w, LLVMValueRef const *elements) {
    for (int n = 1; n < w->tile->width; n++)
        if (elements[n] != elements[0]) return false;
    return true;
}

static LLVMValueRef gather_elements(struct writer *w, LLVMValueRef const *elements) {
    LLVMValueRef vector = LLVMGetPoison(vector_type(w, elements[0]));
    for (int n = 0; n < w->tile->width; n++)
        vector = LLVMBuildInsertElement(w->s->unit->builder, vector, elements[n], number(w, n), "");
    return vector;
}

/* An operand of all elements. Factors are in the order of those of the first element, if they are the same.
 */
static LLVMValueRef *operands_of(struct writer *w, LLVMValueRef const *elements, unsigned operand) {
    LLVMValueRef *operands = arena_alloc(&w->s->arena, (size_t)w->tile->width * sizeof(LLVMValueRef));
    bool product = LLVMIsACallInst(elements[0]) || LLVMGetInstructionOpcode(elements[0]) == LLVMFMul;
    for (int n = 0; operands && n < w->tile->width; n++) {
        unsigned own = operand;
        if (product && operand < 2 &&
            (LLVMGetOperand(elements[n], 0) == LLVMGetOperand(elements[0], 1) ||
             LLVMGetOperand(elements[n], 1) == LLVMGetOperand(elements[0], 0)))
            own = 1 - operand;
        operands[n] = LLVMGetOperand(elements[n], own);
    }
    return operands;
}

/* … the sums, or the products, of elements that are sums. */
static LLVMValueRef *terms_of(struct writer *w, LLVMValueRef const *elements, bool sums) {
    LLVMValueRef *terms = arena_alloc(&w->s->arena, (size_t)w->tile->width * sizeof(LLVMValueRef));
    for (int n = 0; terms && n < w->tile->width; n++) {
        LLVMValueRef factors[2], addend = tile_addend(elements[n], factors);
        if (!addend) return NULL;
        unsigned other = LLVMGetOperand(elements[n], 0) == addend;
        terms[n] = sums ? addend : LLVMGetOperand(elements[n], other);
    }
    return terms;
}

static bool are_alike(struct writer *w, LLVMValueRef const *elements) {
    for (int n = 0; n < w->tile->width; n++)
        if (!is_inside(w, elements[n]) || LLVMIsAPHINode(elements[n]) ||
            LLVMGetInstructionOpcode(elements[n]) != LLVMGetInstructionOpcode(elements[0]) ||
            LLVMTypeOf(elements[n]) != LLVMTypeOf(elements[0]) ||
            (LLVMIsACallInst(elements[n]) && strcmp(called_name(elements[n]), "llvm.fma.f32") != 0))
            return false;
    return true;
}

static struct spot spot_of_access(struct writer *w, LLVMValueRef access) {
    LLVMValueRef address = LLVMGetOperand(access, LLVMIsALoadInst(access) ? 0 : 1);
    return spot_of(w->s, address, TILE_INDEXES);
}

static int64_t size_of(struct writer *w, LLVMValueRef value) {
    return (int64_t)LLVMABISizeOfType(w->s->unit->layout, LLVMTypeOf(value));
}

/* Accesses to elements of `size` bytes that follow each other. */
static bool are_neighbours(struct writer *w, LLVMValueRef const *accesses, int64_t size) {
    struct spot first = spot_of_access(w, accesses[0]);
    for (int n = 1; n < w->tile->width; n++) {
        struct spot own = spot_of_access(w, accesses[n]);
        if (!spot_is_same(&first, &own) || own.bytes != first.bytes + n * size) return false;
    }
    return true;
}

static LLVMValueRef write_vector(struct writer *w, LLVMValueRef const *elements);

static LLVMValueRef write_operation(struct writer *w, LLVMValueRef const *elements) {
    LLVMBuilderRef b = w->s->unit->builder;
    LLVMValueRef first = elements[0], operands[3], result;
    LLVMTypeRef type = vector_type(w, first);
    LLVMOpcode opcode = LLVMGetInstructionOpcode(first);
    if (opcode == LLVMLoad) {
        result = LLVMBuildLoad2(b, type, write_scalar(w, LLVMGetOperand(first, 0)), "");
        LLVMSetAlignment(result, LLVMGetAlignment(first));
        return result;
    }
    unsigned count = opcode == LLVMFPExt ? 1 : opcode == LLVMCall ? 3 : 2;
    for (unsigned o = 0; o < count; o++) {
        LLVMValueRef const *own =
            opcode == LLVMFAdd ? terms_of(w, elements, o == 0) : operands_of(w, elements, o);
        if (!own) return NULL;
        operands[o] = write_vector(w, own);
        if (!operands[o]) return NULL;
    }
    LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(first));
    if (opcode == LLVMFPExt) return LLVMBuildCast(b, opcode, operands[0], type, "");
    if (opcode == LLVMCall) return simd_intrinsic(w->s, "llvm.fma", &type, 1, operands, 3);
    result = LLVMBuildBinOp(b, opcode, operands[0], operands[1], "");
    if (LLVMIsAInstruction(result)) copy_flags(first, result);
    return result;
}

static bool is_operation(LLVMValueRef value) {
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMFPExt:
    case LLVMCall:
    case LLVMFAdd:
    case LLVMFMul:
        return true;
    default:
        return false;
    }
}

/* The elements, of the original loop, as a vector of the loop being written. */
static LLVMValueRef write_vector(struct writer *w, LLVMValueRef const *elements) {
    size_t bytes = (size_t)w->tile->width * sizeof *elements;
    for (struct vector *v = w->vectors; v; v = v->next)
        if (memcmp(v->elements, elements, bytes) == 0) return v->vector;
    LLVMValueRef vector = NULL;
    if (are_equal(w, elements)) {
        vector = lanes_splat(w->s, write_scalar(w, elements[0]), w->tile->width);
    } else if (are_alike(w, elements) &&
               (is_operation(elements[0]) ||
                (LLVMIsALoadInst(elements[0]) && are_neighbours(w, elements, size_of(w, elements[0]))))) {
        vector = write_operation(w, elements);
    } else {
        LLVMValueRef scalars[GANG_MAX_LANES];
        for (int n = 0; n < w->tile->width; n++) scalars[n] = write_scalar(w, elements[n]);
        vector = gather_elements(w, scalars);
    }
    struct vector *known = arena_alloc(&w->s->arena, sizeof *known);
    if (!known || !vector) return NULL;
    *known = (struct vector){elements, vector, w->vectors};
    w->vectors = known;
    return vector;
}

/* ---- Sums in memory. */

static bool has_plain_access(LLVMValueRef i) {
    return (LLVMIsALoadInst(i) || LLVMIsAStoreInst(i)) && !LLVMGetVolatile(i) &&
           LLVMGetOrdering(i) == LLVMAtomicOrderingNotAtomic;
}

/* Whether the accesses, of one block, can be done together where the last of them is: whatever is between
 * them accesses other elements of the same array, or, for loads, writes nothing. */
static bool can_be_last(struct writer *w, LLVMValueRef const *accesses, LLVMValueRef *last) {
    LLVMBasicBlockRef block = LLVMGetInstructionParent(accesses[0]);
    bool loads = LLVMIsALoadInst(accesses[0]) != NULL;
    struct spot first = spot_of_access(w, accesses[0]);
    int64_t size = size_of(w, loads ? accesses[0] : LLVMGetOperand(accesses[0], 0)) * w->tile->width;
    int seen = 0;
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i && seen < w->tile->width;
         i = LLVMGetNextInstruction(i)) {
        bool member = false;
        for (int n = 0; n < w->tile->width; n++) member |= accesses[n] == i;
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
        int64_t bytes = size_of(w, LLVMIsALoadInst(i) ? i : LLVMGetOperand(i, 0));
        if (!spot_is_same(&first, &own) ||
            (own.bytes < first.bytes + size && first.bytes < own.bytes + bytes))
            return false;
    }
    return seen == w->tile->width;
}

static bool are_of_one_block(struct writer *w, LLVMValueRef const *instructions) {
    for (int n = 1; n < w->tile->width; n++)
        if (LLVMGetInstructionParent(instructions[n]) != LLVMGetInstructionParent(instructions[0]))
            return false;
    return true;
}

/* Sums that the block before has loaded; NULL: others. */
static LLVMValueRef load_together(struct writer *w, LLVMValueRef const *elements) {
    LLVMBuilderRef b = w->s->unit->builder;
    LLVMValueRef last = NULL;
    for (int n = 0; n < w->tile->width; n++)
        if (!LLVMIsALoadInst(elements[n]) || !has_plain_access(elements[n])) return NULL;
    if (!are_of_one_block(w, elements) || !are_neighbours(w, elements, size_of(w, elements[0])) ||
        !can_be_last(w, elements, &last))
        return NULL;
    LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(last));
    LLVMValueRef vector = LLVMBuildLoad2(b, vector_type(w, elements[0]), LLVMGetOperand(elements[0], 0), "");
    LLVMSetAlignment(vector, LLVMGetAlignment(elements[0]));
    return vector;
}

/* The element's only user, if that stores it. */
static LLVMValueRef store_of(LLVMValueRef element) {
    LLVMUseRef use = LLVMGetFirstUse(element);
    LLVMValueRef user = use && !LLVMGetNextUse(use) ? LLVMGetUser(use) : NULL;
    return user && LLVMIsAStoreInst(user) && has_plain_access(user) && LLVMGetOperand(user, 0) == element
               ? user
               : NULL;
}

/* Stores of the elements of a vector become one. */
static void store_together(struct writer *w, LLVMValueRef vector, LLVMValueRef const *elements) {
    LLVMBuilderRef b = w->s->unit->builder;
    LLVMValueRef stores[GANG_MAX_LANES], last = NULL;
    for (int n = 0; n < w->tile->width; n++) {
        stores[n] = store_of(elements[n]);
        if (!stores[n]) return;
    }
    if (!are_of_one_block(w, stores) || !are_neighbours(w, stores, size_of(w, elements[0])) ||
        !can_be_last(w, stores, &last))
        return;
    LLVMPositionBuilderBefore(b, last);
    LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(last));
    LLVMValueRef store = LLVMBuildStore(b, vector, LLVMGetOperand(stores[0], 1));
    LLVMSetAlignment(store, LLVMGetAlignment(stores[0]));
    for (int n = 0; n < w->tile->width; n++) LLVMInstructionEraseFromParent(stores[n]);
}

/* ---- Sums outside of the loop. */

static bool are_phis_of_one_block(struct writer *w, LLVMValueRef const *elements) {
    for (int n = 0; n < w->tile->width; n++)
        if (!LLVMIsAPHINode(elements[n]) ||
            LLVMGetInstructionParent(elements[n]) != LLVMGetInstructionParent(elements[0]))
            return false;
    return true;
}

/* The vector of sums that these are after the loop; NULL: others. */
static LLVMValueRef written_vector(struct writer *w, LLVMValueRef const *elements) {
    size_t bytes = (size_t)w->tile->width * sizeof *elements;
    for (int v = 0; v < w->tile->count; v++)
        if (memcmp(w->tile->vectors[v].results, elements, bytes) == 0) return w->tile->vectors[v].written;
    return NULL;
}

static const struct carried *find_carried(struct writer *w, LLVMValueRef const *elements) {
    for (const struct carried *c = w->carried; c; c = c->next)
        if (memcmp(c->elements, elements, (size_t)w->tile->width * sizeof *elements) == 0) return c;
    return NULL;
}

/* Phis of one block become one of vectors. */
static LLVMValueRef carry(struct writer *w, LLVMValueRef const *elements) {
    LLVMBuilderRef b = w->s->unit->builder;
    struct carried *c = arena_alloc(&w->s->arena, 2 * sizeof *c);
    if (!c) return NULL;
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(LLVMGetInstructionParent(elements[0])));
    c[0] = (struct carried){LLVMBuildPhi(b, vector_type(w, elements[0]), ""), elements, w->carried};
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

/* The phis that the values reach are carried, too. */
static void carry_on(struct writer *w, LLVMValueRef const *elements) {
    for (LLVMUseRef use = LLVMGetFirstUse(elements[0]); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use), *phis = NULL;
        LLVMBasicBlockRef block = LLVMGetInstructionParent(user);
        bool all = LLVMIsAPHINode(user) && block != w->tile->block;
        if (all) phis = arena_alloc(&w->s->arena, (size_t)w->tile->width * sizeof *phis);
        for (int n = 0; phis && n < w->tile->width; n++) {
            phis[n] = phi_of(elements[n], block);
            all &= phis[n] != NULL;
        }
        if (phis && all && !are_equal(w, phis) && !find_carried(w, phis)) (void)carry(w, phis);
    }
}

/* The elements, from outside of the loop, as a vector at the end of the block. Phis are carried as vectors;
 * their values follow when the loops are there. */
static LLVMValueRef vector_outside(struct writer *w, LLVMValueRef const *elements, LLVMBasicBlockRef block) {
    LLVMBuilderRef b = w->s->unit->builder;
    LLVMValueRef vector = written_vector(w, elements);
    if (vector) return vector;
    const struct carried *known = find_carried(w, elements);
    if (known) return known->phi;
    vector = load_together(w, elements);
    if (vector) return vector;
    if (!are_phis_of_one_block(w, elements) || are_equal(w, elements)) {
        LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(block));
        return are_equal(w, elements) ? lanes_splat(w->s, elements[0], w->tile->width)
                                      : gather_elements(w, elements);
    }
    return carry(w, elements);
}

/* The phi's value by way of the block, if it has it: a switch may lead to a block twice. */
static LLVMValueRef known_incoming(LLVMValueRef phi, LLVMBasicBlockRef from) {
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++)
        if (LLVMGetIncomingBlock(phi, i) == from) return LLVMGetIncomingValue(phi, i);
    return NULL;
}

static void finish_carried(struct writer *w, const struct carried *c) {
    LLVMBasicBlockRef from = NULL;
    for (unsigned i = 0; i < LLVMCountIncoming(c->elements[0]); i++) {
        from = LLVMGetIncomingBlock(c->elements[0], i);
        LLVMValueRef *values = arena_alloc(&w->s->arena, (size_t)w->tile->width * sizeof *values);
        for (int n = 0; values && n < w->tile->width; n++) {
            LLVMValueRef phi = c->elements[n];
            for (unsigned j = 0; j < LLVMCountIncoming(phi); j++)
                if (LLVMGetIncomingBlock(phi, j) == from) values[n] = LLVMGetIncomingValue(phi, j);
        }
        LLVMValueRef vector = values ? known_incoming(c->phi, from) : NULL;
        if (values && !vector) vector = vector_outside(w, values, from);
        if (!vector) return;
        LLVMAddIncoming(c->phi, &vector, &from, 1);
    }
}

/* A phi that nothing uses is erased later, as others may have it among their elements. */
static void drop(struct writer *w, LLVMValueRef phi) {
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

/* Scalars for those who used the phis. */
static void take_apart(struct writer *w, const struct carried *c) {
    LLVMBuilderRef b = w->s->unit->builder;
    LLVMValueRef place = c->phi;
    while (LLVMIsAPHINode(place)) place = LLVMGetNextInstruction(place);
    LLVMPositionBuilderBefore(b, place);
    LLVMValueRef scalars[GANG_MAX_LANES];
    for (int n = 0; n < w->tile->width; n++) {
        scalars[n] = LLVMBuildExtractElement(b, c->phi, number(w, n), "");
        LLVMReplaceAllUsesWith(c->elements[n], scalars[n]);
        drop(w, c->elements[n]);
    }
    store_together(w, c->phi, scalars);
}

/* ---- Loops. */

static LLVMValueRef value_from(LLVMValueRef phi, LLVMBasicBlockRef block, bool from) {
    return LLVMGetIncomingValue(phi, (LLVMGetIncomingBlock(phi, 0) == block) == from ? 0 : 1);
}

static LLVMBasicBlockRef block_before(const struct tile *tile) {
    LLVMValueRef phi = LLVMGetFirstInstruction(tile->block);
    return LLVMGetIncomingBlock(phi, LLVMGetIncomingBlock(phi, 0) == tile->block ? 1 : 0);
}

static bool is_sum(LLVMValueRef phi) {
    return LLVMGetTypeKind(LLVMTypeOf(phi)) == LLVMFloatTypeKind;
}

static void add_scalar_phis(struct writer *w, LLVMBasicBlockRef from) {
    FOR_EACH_INSTRUCTION(phi, w->tile->block) {
        if (!LLVMIsAPHINode(phi)) break;
        if (is_sum(phi)) continue;
        LLVMValueRef own = LLVMBuildPhi(w->s->unit->builder, LLVMTypeOf(phi), "");
        LLVMValueRef first = value_from(phi, w->tile->block, false);
        LLVMAddIncoming(own, &first, &from, 1);
        *copy_of(w, phi) = (struct copy){phi, own};
    }
}

static void end_scalar_phis(struct writer *w) {
    FOR_EACH_INSTRUCTION(phi, w->tile->block) {
        if (!LLVMIsAPHINode(phi)) break;
        if (is_sum(phi)) continue;
        LLVMValueRef own = copy_of(w, phi)->to;
        LLVMValueRef next = write_scalar(w, value_from(phi, w->tile->block, true));
        LLVMAddIncoming(own, &next, &w->loop, 1);
    }
}

struct part {
    int row, column, rows, columns;
};

static bool is_in(const struct tile_vector *v, const struct part *part) {
    return v->row >= part->row && v->row < part->row + part->rows && v->column >= part->column &&
           v->column < part->column + part->columns;
}

/* All rounds for one part, but the end; `from` leads to them. Returns false if the part is empty. */
static bool write_loop(struct writer *w, const struct part *part, LLVMBasicBlockRef from,
                       LLVMValueRef *first) {
    const struct tile *tile = w->tile;
    LLVMBuilderRef b = w->s->unit->builder;
    bool some = false;
    for (int v = 0; v < tile->count; v++) some |= is_in(&tile->vectors[v], part);
    if (!some) return false;
    memset(w->copies, 0, w->size * sizeof *w->copies);
    w->vectors = NULL;
    w->loop = LLVMInsertBasicBlockInContext(w->s->unit->context, tile->block, "part");
    LLVMPositionBuilderAtEnd(b, w->loop);
    add_scalar_phis(w, from);
    struct vector *phis = NULL;
    for (int v = 0; v < tile->count; v++) {
        struct vector *known = arena_alloc(&w->s->arena, 2 * sizeof *known);
        if (!is_in(&tile->vectors[v], part) || !known) continue;
        LLVMValueRef phi = LLVMBuildPhi(b, vector_type(w, tile->vectors[v].sums[0]), "");
        LLVMAddIncoming(phi, &first[v], &from, 1);
        known[0] = (struct vector){tile->vectors[v].sums, phi, w->vectors};
        known[1] = (struct vector){tile->vectors[v].sums, phi, phis};
        w->vectors = &known[0];
        phis = &known[1];
    }
    for (int v = 0; v < tile->count; v++)
        if (is_in(&tile->vectors[v], part))
            tile->vectors[v].written = write_vector(w, tile->vectors[v].results);
    for (int v = tile->count - 1; v >= 0; v--) {
        if (!is_in(&tile->vectors[v], part) || !phis) continue;
        LLVMAddIncoming(phis->vector, &tile->vectors[v].written, &w->loop, 1);
        phis = phis->next;
    }
    end_scalar_phis(w);
    return true;
}

/* Another round, or on to the tile's block. */
static void end_loop(struct writer *w) {
    LLVMBuilderRef b = w->s->unit->builder;
    LLVMValueRef end = LLVMGetBasicBlockTerminator(w->tile->block);
    bool again_first = LLVMGetSuccessor(end, 0) == w->tile->block;
    LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(end));
    LLVMValueRef condition = write_scalar(w, LLVMGetCondition(end));
    LLVMBuildCondBr(b, condition, again_first ? w->loop : w->tile->block,
                    again_first ? w->tile->block : w->loop);
}

static void lead_to(LLVMBasicBlockRef from, LLVMBasicBlockRef old, LLVMBasicBlockRef new) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(from);
    for (unsigned n = 0; n < LLVMGetNumSuccessors(end); n++)
        if (LLVMGetSuccessor(end, n) == old) LLVMSetSuccessor(end, n, new);
}

static void write_loops(struct writer *w, LLVMValueRef *first) {
    const struct tile *tile = w->tile;
    LLVMBasicBlockRef from = block_before(tile);
    int rows = tile->rows, columns = tile->columns;
    (void)tile_choose(w->s, tile, &rows, &columns);
    for (int column = 0; column < tile->columns; column += columns)
        for (int row = 0; row < tile->rows; row += rows) {
            const struct part part = {row, column, rows, columns};
            if (!write_loop(w, &part, from, first)) continue;
            end_loop(w);
            lead_to(from, tile->block, w->loop);
            from = w->loop;
        }
}

/* ---- The block of the old loop, where the new ones end. */

static bool is_used_outside(const struct writer *w, LLVMValueRef value) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use))
        if (!is_inside(w, LLVMGetUser(use))) return true;
    return false;
}

static bool is_result(const struct writer *w, LLVMValueRef value) {
    for (int v = 0; v < w->tile->count; v++)
        for (int n = 0; n < w->tile->width; n++)
            if (w->tile->vectors[v].results[n] == value) return true;
    return false;
}

/* What the last loop has instead of the old one's other values. */
static void write_others(struct writer *w) {
    LLVMPositionBuilderBefore(w->s->unit->builder, LLVMGetBasicBlockTerminator(w->loop));
    FOR_EACH_INSTRUCTION(i, w->tile->block) {
        if (LLVMGetTypeKind(LLVMTypeOf(i)) != LLVMVoidTypeKind && !is_result(w, i) && is_used_outside(w, i))
            (void)write_scalar(w, i);
    }
}

static int count_instructions(LLVMBasicBlockRef block) {
    int count = 0;
    FOR_EACH_INSTRUCTION(i, block) count++;
    return count;
}

static void replace_loop(struct writer *w) {
    const struct tile *tile = w->tile;
    LLVMBuilderRef b = w->s->unit->builder;
    int count = count_instructions(tile->block), sums = tile->count * tile->width, n = 0;
    LLVMValueRef *old = arena_alloc(&w->s->arena, (size_t)count * sizeof *old);
    LLVMValueRef *scalars = arena_alloc(&w->s->arena, (size_t)sums * sizeof *scalars);
    LLVMValueRef end = LLVMGetBasicBlockTerminator(tile->block);
    if (!old || !scalars) return;
    LLVMBasicBlockRef after = LLVMGetSuccessor(end, LLVMGetSuccessor(end, 0) == tile->block ? 1 : 0);
    FOR_EACH_INSTRUCTION(i, tile->block) old[n++] = i;
    LLVMPositionBuilderAtEnd(b, tile->block);
    for (n = 0; n < sums; n++)
        scalars[n] = LLVMBuildExtractElement(b, tile->vectors[n / tile->width].written,
                                             number(w, n % tile->width), "");
    LLVMBuildBr(b, after);
    LLVMInstructionEraseFromParent(end);
    for (n = 0; n < tile->count; n++) carry_on(w, tile->vectors[n].results);
    while (w->todo) {
        struct carried *c = w->todo;
        w->todo = c->next;
        finish_carried(w, c);
        carry_on(w, c->elements);
    }
    for (n = 0; n < sums; n++)
        LLVMReplaceAllUsesWith(tile->vectors[n / tile->width].results[n % tile->width], scalars[n]);
    for (struct carried *c = w->carried; c; c = c->next) take_apart(w, c);
    for (n = 0; n < count - 1; n++) {
        struct copy *copy = copy_of(w, old[n]);
        LLVMReplaceAllUsesWith(old[n], copy->from ? copy->to : LLVMGetPoison(LLVMTypeOf(old[n])));
    }
    for (n = 0; n < count - 1; n++) LLVMInstructionEraseFromParent(old[n]);
    for (struct dead *dead = w->dead; dead; dead = dead->next) LLVMInstructionEraseFromParent(dead->phi);
    for (n = 0; n < tile->count; n++)
        store_together(w, tile->vectors[n].written, scalars + (ptrdiff_t)n * tile->width);
}

static void write_tile(struct simd *s, const struct tile *tile) {
    struct writer w = {.s = s, .tile = tile, .size = 64};
    while (w.size < 2 * (unsigned)count_instructions(tile->block)) w.size *= 2;
    w.copies = arena_alloc(&s->arena, w.size * sizeof *w.copies);
    LLVMValueRef *first = arena_alloc(&s->arena, (size_t)tile->count * sizeof *first);
    LLVMValueRef *sums = arena_alloc(&s->arena, (size_t)(tile->count * tile->width) * sizeof *sums);
    if (!w.copies || !first || !sums) return;
    for (int v = 0; v < tile->count; v++) {
        LLVMValueRef *own = sums + (ptrdiff_t)v * tile->width;
        for (int n = 0; n < tile->width; n++)
            own[n] = value_from(tile->vectors[v].sums[n], tile->block, false);
        first[v] = vector_outside(&w, own, block_before(tile));
    }
    write_loops(&w, first);
    write_others(&w);
    replace_loop(&w);
    LLVMSetCurrentDebugLocation2(s->unit->builder, NULL);
}

smelt_status tiles_write(struct simd *s) {
    LLVMBasicBlockRef next;
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(s->gang); block; block = next) {
        struct tile tile;
        next = LLVMGetNextBasicBlock(block);
        if (tile_find(s, block, s->vector_bits / 32, &tile)) write_tile(s, &tile);
        if (s->arena.failed)
            return unit_fail(s->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for the gang's tiles");
    }
    return SMELT_OK;
}
