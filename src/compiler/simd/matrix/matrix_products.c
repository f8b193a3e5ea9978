/* Which products of matrices whose chunks are rows (matrix.h) are written together.
 *
 * Operands lie in memory, in rows of floats that their definition stores: a product loads a row of
 * the right matrix as a vector, and elements of the left one to all lanes. Only sums are in registers. So
 * that each is loaded and stored rarely, products wait until a result is needed, or until their block ends;
 * then those that add to the same sums, one after another, are written together, for some rows of up to four
 * sums that share left matrices (matrix_tile.c): eight to twelve registers. With 512 bits, rows of two such
 * sums are side by side in a register, as are those of their right matrices: eight to sixteen registers.
 *
 * An element of a product is the same chain of fused multiply-adds, for each column of the left matrix in
 * order, as in lanes' order (matrix.c). */
#include "compiler/simd/matrix/matrix_products.h"
#include "compiler/simd/matrix/matrix_block.h"

#include <llvm-c/DebugInfo.h>

void matrix_emit_later(struct simd *s, LLVMValueRef product) {
    struct matrix *matrix = matrix_of(s, product), **last = &s->pending_matrices;
    if (product != matrix->halves[0]) return;
    while (*last) last = &(*last)->pending;
    *last = matrix;
    matrix->waits = true;
    matrix->pending = NULL;
    matrix->chained = false;
}

static bool is_stage_of(struct simd *s, LLVMValueRef value, const struct matrix_sum *sum) {
    const struct matrix *matrix = matrix_of(s, value);
    return matrix && matrix->sum == sum;
}

/* Whether a product that waits multiplies a stage of the sum: its memory may change only afterwards. */
static bool is_multiplied_later(struct simd *s, const struct matrix_sum *sum) {
    for (const struct matrix *p = s->pending_matrices; p && sum; p = p->pending)
        for (unsigned n = 0; n < 3; n++)
            for (int h = 0; h < 2; h++)
                if (is_stage_of(s, LLVMGetOperand(p->halves[h], n), sum)) return true;
    return false;
}

/* A sum may wait for another one. */
bool matrix_is_awaited(struct simd *s, LLVMValueRef instruction) {
    const struct matrix *own = matrix_of(s, instruction);
    bool product = own && own->kind == MATRIX_PRODUCT;
    if (!s->pending_matrices || LLVMIsAPHINode(instruction)) return false;
    if (product && is_multiplied_later(s, own->sum)) return true;
    for (int n = 0; n < LLVMGetNumOperands(instruction); n++) {
        const struct matrix *matrix = matrix_of(s, LLVMGetOperand(instruction, (unsigned)n));
        if (!matrix || !matrix->waits) continue;
        bool adds = product && n == 3 &&
                    matrix_of_halves(s, LLVMGetOperand(own->halves[0], 3), LLVMGetOperand(own->halves[1], 3));
        if (!adds) return true;
    }
    return false;
}

/* The product that adds to this one's result. */
static struct matrix *next_in_chain(const struct matrix *product) {
    for (struct matrix *next = product->pending; next; next = next->pending)
        if (!next->chained && matrix_adds_to(next, product)) return next;
    return NULL;
}

static bool take_chain(struct simd *s, struct chains *chains, struct matrix *first) {
    int length = 0, room = 0;
    for (struct matrix *p = first; p; p = p->pending) room++;
    struct matrix **products = arena_alloc(&s->arena, (size_t)room * sizeof(struct matrix *));
    if (!products) return false;
    for (struct matrix *p = first; p; p = next_in_chain(p)) {
        products[length++] = p;
        p->chained = true;
    }
    bool suits = !chains->count || chains->length == length;
    for (int n = 0; n < length && suits && chains->count; n++)
        suits = matrix_has_left_of(products[n], chains->products[0][n]);
    for (int n = 0; n < length && !suits; n++) products[n]->chained = false;
    if (!suits) return false;
    chains->products[chains->count++] = products;
    chains->length = length;
    return true;
}

/* Rows of two chains share a register where that has room for both. */
static int count_pairs(const struct simd *s, const struct chains *chains) {
    return s->registers > 16 ? chains->count / 2 : 0;
}

/* The memory of operands that no other product needs serves the next ones. */
static void release_operands(struct simd *s, const struct matrix *product) {
    for (int right = 0; right < 2; right++) {
        LLVMValueRef halves[2];
        matrix_operand(product, right, halves);
        struct matrix *matrix = matrix_of_halves(s, halves[0], halves[1]);
        if (!matrix || matrix->far || --matrix->left || !matrix->rows) continue;
        matrix_give_rows(s, matrix->rows);
        matrix->rows = NULL;
    }
}

void matrix_emit_pending(struct simd *s) {
    struct matrix_rows *list = NULL;
    if (s->matrix_block) {
        matrix_block_note_round(s);
        for (struct matrix *p = s->pending_matrices; p; p = p->pending) p->waits = false;
        s->pending_matrices = NULL;
        return;
    }
    for (struct matrix *first = s->pending_matrices; first && !s->arena.failed; first = first->pending) {
        struct chains chains = {.count = 0};
        if (first->chained || !take_chain(s, &chains, first)) continue;
        int most = simd_matrix_is_outlined(s) ? 1 : MOST_CHAINS;
        for (struct matrix *p = first->pending; p && chains.count < most; p = p->pending) {
            const struct matrix *sums = matrix_of(s, LLVMGetOperand(p->halves[0], 3));
            if (!p->chained && !(sums && sums->waits)) (void)take_chain(s, &chains, p);
        }
        LLVMSetCurrentDebugLocation2(s->unit->builder, LLVMInstructionGetDebugLoc(first->halves[0]));
        chains.pairs = count_pairs(s, &chains);
        matrix_write_chains(s, &chains, &list);
        for (int c = 0; c < chains.count; c++)
            for (int n = 0; n < chains.length; n++) chains.products[c][n]->waits = false;
    }
    for (struct matrix *p = s->pending_matrices; p; p = p->pending) release_operands(s, p);
    s->pending_matrices = NULL;
    while (list) {
        struct matrix_rows *rows = list;
        list = rows->next;
        matrix_give_rows(s, rows);
    }
}
