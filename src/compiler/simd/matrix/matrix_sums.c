/* Sums of products that loops carry, in memory of their own.
 *
 * The phis and products through which a sum passes are its *stages*. A kernel with a tile of matrices has
 * more sums than registers, so each stage would be loaded, and stored for the next one: before and after the
 * inner loop, and on the edges of the outer one. Where no two stages are needed at the same time, all stages
 * of a sum lie in one place, and the edges between them are no code. Rows of two sums that products write
 * side by side (matrix_tile.c) are side by side there, too.
 *
 * Requires: the matrices, in order. Establishes: matrix.sum. */
#include "compiler/simd/matrix/matrix_sums.h"

#include <string.h>

/* ---- Stages. */

static bool can_be_stage(const struct matrix *matrix) {
    return matrix->kind == MATRIX_PRODUCT ||
           (matrix->kind == MATRIX_PHI &&
            LLVMGetTypeKind(LLVMTypeOf(matrix->halves[0])) == LLVMFloatTypeKind);
}

/* The stage that the product adds to, or whose value the phi has along an edge; or NULL. */
static struct matrix *addend_of(struct simd *s, const struct matrix *product) {
    struct matrix *stage =
        matrix_of_halves(s, LLVMGetOperand(product->halves[0], 3), LLVMGetOperand(product->halves[1], 3));
    return stage && can_be_stage(stage) ? stage : NULL;
}

static struct matrix *incoming_of(struct simd *s, const struct matrix *phi, unsigned n) {
    LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi->halves[0], n);
    LLVMValueRef second = phi_incoming(phi->halves[1], from);
    struct matrix *stage =
        second ? matrix_of_halves(s, LLVMGetIncomingValue(phi->halves[0], n), second) : NULL;
    return stage && can_be_stage(stage) ? stage : NULL;
}

static void replace(struct simd *s, const struct matrix_sum *from, struct matrix_sum *to) {
    for (struct matrix *m = s->matrices; m; m = m->next)
        if (m->sum == from) m->sum = to;
}

static void join(struct simd *s, const struct matrix *a, const struct matrix *b) {
    if (b && a->sum && b->sum && a->sum != b->sum) replace(s, b->sum, a->sum);
}

/* Each stage gets a sum; those that follow each other get the same one. */
static void join_stages(struct simd *s) {
    for (struct matrix *m = s->matrices; m; m = m->next) {
        if (!can_be_stage(m)) continue;
        m->sum = arena_alloc(&s->arena, sizeof *m->sum);
        if (m->sum) *m->sum = (struct matrix_sum){.tile = NULL};
    }
    for (struct matrix *m = s->matrices; m; m = m->next) {
        if (!m->sum) continue;
        if (m->kind == MATRIX_PRODUCT) {
            join(s, m, addend_of(s, m));
            continue;
        }
        for (unsigned n = 0; n < LLVMCountIncoming(m->halves[0]); n++) join(s, m, incoming_of(s, m, n));
    }
}

/* ---- One at a time. */

/* Which stage of a sum lies in memory where a block begins. */
struct contents {
    const struct matrix *stage; /* NULL: none; or several, or not known yet */
    bool known;
};

struct trace {
    struct simd *s;
    const struct matrix_sum *sum;
    struct contents *begin; /* by place */
};

static const struct matrix *stage_of(struct simd *s, const struct matrix_sum *sum, LLVMValueRef i) {
    const struct matrix *matrix = matrix_of(s, i);
    return matrix && matrix->sum == sum && matrix->halves[0] == i ? matrix : NULL;
}

/* What lies there before the instruction of the block; NULL: at its end. */
static const struct matrix *contents_at(const struct trace *t, LLVMBasicBlockRef block, LLVMValueRef at) {
    const struct matrix *stage = t->begin[simd_place(t->s, block)].stage;
    FOR_EACH_INSTRUCTION(i, block) {
        if (i == at && !LLVMIsAPHINode(i)) break;
        const struct matrix *own = stage_of(t->s, t->sum, i);
        if (own) stage = own;
    }
    return stage;
}

static bool arrive(const struct trace *t, LLVMBasicBlockRef to, const struct matrix *stage) {
    struct contents *begin = &t->begin[simd_place(t->s, to)];
    if (begin->known && (begin->stage == stage || !begin->stage)) return false;
    *begin = (struct contents){.stage = begin->known ? NULL : stage, .known = true};
    return true;
}

static void find_contents(const struct trace *t) {
    bool changed = true;
    t->begin[simd_place(t->s, LLVMGetEntryBasicBlock(t->s->entry))].known = true;
    while (changed) {
        changed = false;
        FOR_EACH_BLOCK(block, t->s->entry) {
            LLVMValueRef terminator = LLVMGetBasicBlockTerminator(block);
            if (simd_place(t->s, block) < 0 || !t->begin[simd_place(t->s, block)].known) continue;
            const struct matrix *end = contents_at(t, block, NULL);
            for (unsigned n = 0; n < LLVMGetNumSuccessors(terminator); n++)
                changed |= arrive(t, LLVMGetSuccessor(terminator, n), end);
        }
    }
}

/* Whether the stage's value is there where the user of one of its halves needs it. A product adds to it where
 * its first half is. */
static bool is_there(const struct trace *t, const struct matrix *stage, LLVMValueRef half,
                     LLVMValueRef user) {
    const struct matrix *own = matrix_of(t->s, user);
    LLVMBasicBlockRef block = LLVMGetInstructionParent(user);
    if (!LLVMIsAPHINode(user)) {
        if (own && own->kind == MATRIX_PRODUCT) return contents_at(t, block, own->halves[0]) == stage;
        return contents_at(t, block, user) == stage &&
               (!own || (contents_at(t, block, own->halves[0]) == stage &&
                         contents_at(t, block, own->halves[1]) == stage));
    }
    for (unsigned n = 0; n < LLVMCountIncoming(user); n++)
        if (LLVMGetIncomingValue(user, n) == half &&
            contents_at(t, LLVMGetIncomingBlock(user, n), NULL) != stage)
            return false;
    return true;
}

static bool is_always_there(const struct trace *t, const struct matrix *stage) {
    for (int h = 0; h < 2; h++)
        for (LLVMUseRef use = LLVMGetFirstUse(stage->halves[h]); use; use = LLVMGetNextUse(use))
            if (!is_there(t, stage, stage->halves[h], LLVMGetUser(use))) return false;
    return true;
}

/* Whether a loop carries the sum, and its stages are there where they are needed. */
static bool is_carried(struct simd *s, const struct matrix_sum *sum) {
    size_t bytes = (size_t)s->flow.block_count * sizeof(struct contents);
    struct trace t = {.s = s, .sum = sum, .begin = arena_alloc(&s->arena, bytes)};
    bool phi = false, product = false;
    if (!t.begin) return false;
    memset(t.begin, 0, bytes);
    find_contents(&t);
    for (const struct matrix *m = s->matrices; m; m = m->next) {
        if (m->sum != sum) continue;
        if (!is_always_there(&t, m)) return false;
        phi |= m->kind == MATRIX_PHI;
        product |= m->kind == MATRIX_PRODUCT;
    }
    return phi && product;
}

static void keep_carried(struct simd *s) {
    for (struct matrix *m = s->matrices; m; m = m->next) {
        struct matrix_sum *sum = m->sum;
        if (!sum || sum->carried) continue;
        sum->carried = is_carried(s, sum);
        if (!sum->carried) replace(s, sum, NULL);
    }
}

/* ---- Places. */

#define TILE_ROWS (2 * MATRIX_SIZE) /* of two left matrices */
#define TILE_ROW_BYTES (4 * MATRIX_SIZE * 4)

/* The sums of up to four products with one left matrix lie side by side; those with the next left matrix
 * below them. */
static LLVMValueRef allocate_tile(struct simd *s) {
    unsigned count = (unsigned)(packed_count(s) * TILE_ROWS * TILE_ROW_BYTES / 4);
    LLVMValueRef tile = simd_slot(s, LLVMArrayType2(LLVMFloatTypeInContext(s->unit->context), count));
    LLVMSetAlignment(tile, 64);
    return tile;
}

static void lay_rows(struct simd *s, struct matrix_sum *sum, LLVMValueRef tile, int row, int column) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
    LLVMTypeRef type = chunk_type(s, LLVMFloatTypeInContext(s->unit->context));
    int groups = packed_count(s);
    sum->tile = tile;
    sum->row = row;
    sum->column = column;
    sum->rows = arena_alloc(&s->arena, (size_t)(groups * MATRIX_SIZE) * sizeof(LLVMValueRef));
    if (!sum->rows) return;
    LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(s->slots_block));
    for (int r = 0; r < groups * MATRIX_SIZE; r++) {
        int line = r / MATRIX_SIZE * TILE_ROWS + row + r % MATRIX_SIZE;
        LLVMValueRef at = LLVMConstInt(type_i64(s->unit), (unsigned)(line * 4 + column), false);
        sum->rows[r] = LLVMBuildGEP2(b, type, tile, &at, 1, "");
    }
    LLVMPositionBuilderAtEnd(b, here);
}

/* From a product on, those of its block with the same left matrix. Returns how many there are. */
static int take_side_by_side(const struct matrix *first, struct matrix_sum **sums) {
    int count = 0;
    for (const struct matrix *m = first; m && count < 4; m = m->next) {
        bool taken = !m->sum || m->sum->tile || m->kind != MATRIX_PRODUCT || !matrix_has_left_of(m, first) ||
                     LLVMGetInstructionParent(m->halves[0]) != LLVMGetInstructionParent(first->halves[0]);
        for (int n = 0; n < count; n++) taken |= sums[n] == m->sum;
        if (!taken) sums[count++] = m->sum;
    }
    return count;
}

static void lay_sums(struct simd *s) {
    LLVMValueRef tile = NULL;
    LLVMBasicBlockRef of = NULL;
    int before = 0;
    for (struct matrix *m = s->matrices; m; m = m->next) {
        if (!m->sum || m->sum->tile || m->kind != MATRIX_PRODUCT) continue;
        struct matrix_sum *sums[4];
        int count = take_side_by_side(m, sums);
        bool below = tile && of == LLVMGetInstructionParent(m->halves[0]) && before == count;
        if (!below) tile = allocate_tile(s);
        for (int n = 0; n < count; n++) lay_rows(s, sums[n], tile, below ? MATRIX_SIZE : 0, n);
        if (below) tile = NULL;
        of = LLVMGetInstructionParent(m->halves[0]);
        before = count;
    }
}

/* The stages' chunks are loaded from there. */
static void set_slots(struct simd *s, const struct matrix *stage) {
    size_t bytes = (size_t)s->chunk_count * sizeof(LLVMValueRef);
    for (int h = 0; h < 2; h++) {
        struct value *v = value_of(s, stage->halves[h]);
        v->chunks = arena_alloc(&s->arena, bytes);
        v->slots = arena_alloc(&s->arena, bytes);
        if (!v->chunks || !v->slots) return;
        for (int c = 0; c < s->chunk_count; c++)
            v->slots[c] =
                stage->sum->rows[c / MATRIX_CHUNKS * MATRIX_SIZE + c % MATRIX_CHUNKS + h * MATRIX_CHUNKS];
    }
}

void matrix_find_sums(struct simd *s) {
    if (s->registers <= 16 || simd_matrix_is_outlined(s)) return;
    join_stages(s);
    keep_carried(s);
    lay_sums(s);
    for (struct matrix *m = s->matrices; m && !s->arena.failed; m = m->next)
        if (m->sum) set_slots(s, m);
}

/* ---- Code. */

LLVMValueRef matrix_sum_address(const struct matrix *stage, int group, int row) {
    return stage->sum->rows[group * MATRIX_SIZE + row];
}

bool matrix_sum_is_neighbour(const struct matrix *a, const struct matrix *b) {
    return a->sum && b->sum && a->sum->tile == b->sum->tile && a->sum->row == b->sum->row &&
           a->sum->column % 2 == 0 && b->sum->column == a->sum->column + 1;
}

LLVMValueRef matrix_sum_load(struct simd *s, const struct matrix *stage, int group, int row, int matrices) {
    LLVMTypeRef type =
        LLVMVectorType(LLVMFloatTypeInContext(s->unit->context), (unsigned)(matrices * MATRIX_SIZE));
    LLVMValueRef load = LLVMBuildLoad2(s->unit->builder, type, matrix_sum_address(stage, group, row), "");
    LLVMSetAlignment(load, (unsigned)matrices * MATRIX_SIZE * 4);
    return load;
}

void matrix_sum_store(struct simd *s, const struct matrix *stage, int group, int row, LLVMValueRef vector) {
    LLVMValueRef store = LLVMBuildStore(s->unit->builder, vector, matrix_sum_address(stage, group, row));
    LLVMSetAlignment(store, LLVMGetVectorSize(LLVMTypeOf(vector)) * 4);
}
