/* Writes chains of products (matrix_products.c), a tile of sums after another. */
#include "compiler/simd/matrix/matrix_products.h"
#include "compiler/simd/matrix/matrix_pairs.h"
#include "compiler/simd/matrix/matrix_sums.h"
#include "compiler/simd/lanes/lanes.h"

/* A vector of sums has a row of one chain, or of two. */
static int vectors_of(const struct chains *chains) {
    return chains->count - chains->pairs;
}
static bool is_pair(const struct chains *chains, int vector) {
    return vector < chains->pairs;
}
static int chains_of(const struct chains *chains, int vector) {
    return is_pair(chains, vector) ? 2 : 1;
}
static int first_chain(const struct chains *chains, int vector) {
    return is_pair(chains, vector) ? 2 * vector : vector + chains->pairs;
}

static LLVMValueRef multiply_add(struct simd *s, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
    LLVMTypeRef type = LLVMTypeOf(a);
    return simd_intrinsic(s, "llvm.fma", &type, 1, (LLVMValueRef[]){a, b, c}, 3);
}

/* Some rows of the sums of a few chains. A multiply-add takes four cycles, and two start in each, so fewer
 * than eight sums would wait for each other, and with more than twelve the operands would not fit 16
 * registers, nor with more than 24 fit 32. */
struct tile {
    int group, row, rows;
    LLVMValueRef sums[MOST_CHAINS][MATRIX_SIZE];  /* by vector */
    LLVMValueRef slots[MOST_CHAINS][MATRIX_SIZE]; /* in which a loop carries them, else NULL */
};

static int rows_of_tile(const struct simd *s, const struct chains *chains) {
    static const int rows[MOST_CHAINS + 1] = {0, 8, 4, 4, 3}, of_many[MOST_CHAINS + 1] = {0, 8, 8, 8, 4};
    return (s->registers > 16 ? of_many : rows)[vectors_of(chains)];
}

/* Whether the product adds to its sum as that lies in memory. */
static bool adds_to_stage(struct simd *s, const struct matrix *product) {
    const struct matrix *stage =
        matrix_of_halves(s, LLVMGetOperand(product->halves[0], 3), LLVMGetOperand(product->halves[1], 3));
    return product->sum && stage && stage->sum == product->sum;
}

static LLVMValueRef begin_sum(struct simd *s, const struct chains *chains, int vector, int row,
                              struct tile *tile) {
    struct matrix **const *products = &chains->products[first_chain(chains, vector)];
    const struct matrix *first = products[0][0], *second = is_pair(chains, vector) ? products[1][0] : NULL;
    LLVMValueRef rows[2];
    if ((second || first->sum) && s->matrix_part != NO_PART) {
        LLVMValueRef slot = matrix_loop_join(s, first, second, tile->group, row);
        tile->slots[vector][row - tile->row] = slot;
        return LLVMBuildLoad2(s->unit->builder, LLVMGetAllocatedType(slot), slot, "");
    }
    if (second && adds_to_stage(s, first) && adds_to_stage(s, second) &&
        matrix_sum_is_neighbour(first, second))
        return matrix_sum_load(s, first, tile->group, row, 2);
    for (int n = 0; n < chains_of(chains, vector); n++) {
        const LLVMValueRef *halves = products[n][0]->halves;
        rows[n] =
            matrix_row_of(s, LLVMGetOperand(halves[0], 3), LLVMGetOperand(halves[1], 3), tile->group, row);
    }
    return is_pair(chains, vector) ? lanes_join(s, rows[0], rows[1]) : rows[0];
}

/* Whether rows of the pair's sums are side by side in memory. */
static bool is_whole(const struct chains *chains, int vector) {
    struct matrix **const *products = &chains->products[first_chain(chains, vector)];
    return matrix_sum_is_neighbour(products[0][0], products[1][0]);
}

/* Stores a row of sums that lie in memory. */
static void store_sum(struct simd *s, const struct chains *chains, int vector, int group, int row,
                      LLVMValueRef sum) {
    struct matrix **const *products = &chains->products[first_chain(chains, vector)];
    bool pair = is_pair(chains, vector), whole = pair && is_whole(chains, vector);
    for (int p = 0; p < (pair && !whole ? 2 : 1); p++)
        if (products[p][0]->sum)
            matrix_sum_store(s, products[p][0], group, row, pair && !whole ? lanes_half(s, sum, p) : sum);
}

/* The sums are those after the chains' products `n`. */
static void keep_sums(struct simd *s, const struct chains *chains, int n, const struct tile *tile) {
    for (int v = 0; v < vectors_of(chains); v++)
        for (int r = 0; r < tile->rows; r++) {
            int row = tile->row + r, chunk = MATRIX_CHUNKS * tile->group + row % 4;
            LLVMValueRef sum = tile->sums[v][r], slot = tile->slots[v][r];
            if (slot && n == chains->length - 1) LLVMBuildStore(s->unit->builder, sum, slot);
            if (!slot && n == chains->length - 1) store_sum(s, chains, v, tile->group, row, sum);
            for (int p = 0; p < chains_of(chains, v) && !slot; p++)
                chunk_set(s, chains->products[first_chain(chains, v) + p][n]->halves[row / 4], chunk,
                          is_pair(chains, v) ? lanes_half(s, sum, p) : sum);
        }
    for (int v = 0; v < vectors_of(chains); v++)
        for (int p = 0; p < chains_of(chains, v); p++)
            matrix_loop_set_rows(s, chains->products[first_chain(chains, v) + p][n], tile->group, tile->row,
                                 tile->rows, tile->slots[v][0] ? tile->slots[v] : NULL, p,
                                 is_pair(chains, v) && is_whole(chains, v));
}

static void multiply_tile(struct simd *s, const struct chains *chains, const struct product_operand *left,
                          const struct product_operand *right, struct tile *tile) {
    for (int k = 0; k < MATRIX_SIZE; k++) {
        LLVMValueRef elements[MATRIX_SIZE];
        for (int r = 0; r < tile->rows; r++)
            elements[r] = matrix_load_element(s, left, tile->group, tile->row + r, k);
        for (int v = 0; v < vectors_of(chains); v++) {
            int c = first_chain(chains, v), width = is_pair(chains, v) ? 2 * MATRIX_SIZE : MATRIX_SIZE;
            LLVMValueRef row = matrix_load_row_of(s, &right[c], tile->group, k);
            if (is_pair(chains, v))
                row = lanes_join(s, row, matrix_load_row_of(s, &right[c + 1], tile->group, k));
            for (int r = 0; r < tile->rows; r++)
                tile->sums[v][r] = multiply_add(s, lanes_splat(s, elements[r], width), row, tile->sums[v][r]);
        }
    }
}

static void multiply_pairs(struct simd *s, const struct chains *chains, const struct product_operand *left,
                           const struct product_operand *right, struct tile *tile) {
    for (int k = 0; k < MATRIX_SIZE; k += 2) {
        LLVMValueRef words[MATRIX_SIZE];
        for (int r = 0; r < tile->rows; r++)
            words[r] = matrix_load_pair(s, left, tile->group, tile->row + r, k);
        for (int v = 0; v < vectors_of(chains); v++) {
            LLVMValueRef rows[2][2];
            for (int c = 0; c < chains_of(chains, v); c++)
                for (int n = 0; n < 2; n++)
                    rows[c][n] = matrix_load_words(s, &right[first_chain(chains, v) + c], tile->group, k + n);
            LLVMValueRef pairs = simd_matrix_pair_rows(s, rows, chains_of(chains, v));
            for (int r = 0; r < tile->rows; r++)
                tile->sums[v][r] = simd_matrix_add_pairs(s, words[r], pairs, tile->sums[v][r]);
        }
    }
}

/* ---- Quick code. */

/* The function of quick code (matrix_outlined.c): its parameters are the addresses of the left and the right
 * matrix, and rows of sums. */
static void write_function(struct simd *s, LLVMValueRef const *parameters, LLVMValueRef *results) {
    struct chains one = {.count = 1};
    struct matrix_rows rows[2] = {{.slot = parameters[0]}, {.slot = parameters[1]}};
    struct product_operand left = {.rows = &rows[0]}, right = {.rows = &rows[1]};
    struct tile tile = {.rows = MATRIX_SIZE};
    for (int r = 0; r < MATRIX_SIZE; r++) tile.sums[0][r] = parameters[2 + r];
    multiply_tile(s, &one, &left, &right, &tile);
    for (int r = 0; r < MATRIX_SIZE; r++) results[r] = tile.sums[0][r];
}

static void call_product(struct simd *s, const struct product_operand *left,
                         const struct product_operand *right, struct tile *tile) {
    LLVMValueRef arguments[2 + MATRIX_SIZE];
    int64_t at = (int64_t)tile->group * MATRIX_SIZE * ROW_BYTES;
    arguments[0] = matrix_address_at(s, left->rows->slot, at);
    arguments[1] = matrix_address_at(s, right->rows->slot, at);
    for (int r = 0; r < MATRIX_SIZE; r++) arguments[2 + r] = tile->sums[0][r];
    simd_matrix_call(s, "product_of_rows", write_function, arguments, 2 + MATRIX_SIZE, tile->sums[0],
                     MATRIX_SIZE);
}

static void add_product(struct simd *s, const struct chains *chains, int n, struct tile *tile,
                        struct matrix_rows **list) {
    const struct matrix *first = chains->products[0][n];
    struct product_operand left, right[MOST_CHAINS];
    if (!matrix_find_left(s, first, tile->group, tile->row, tile->rows, list, &left)) return;
    for (int c = 0; c < chains->count; c++)
        if (!matrix_find_operand(s, chains->products[c][n], true, list, &right[c])) return;
    if (simd_matrix_is_outlined(s)) {
        call_product(s, &left, right, tile);
        keep_sums(s, chains, n, tile);
        return;
    }
    for (int c = 0; c < chains->count; c++)
        if (right[c].rows) matrix_forget_rows(s, right[c].rows);
    if (left.rows) matrix_forget_rows(s, left.rows);
    (first->words[0] ? multiply_pairs : multiply_tile)(s, chains, &left, right, tile);
    matrix_end_schedule(s);
    keep_sums(s, chains, n, tile);
}

void matrix_write_chains(struct simd *s, const struct chains *chains, struct matrix_rows **list) {
    int most = simd_matrix_is_outlined(s) ? MATRIX_SIZE : rows_of_tile(s, chains);
    for (int group = 0; group < s->lanes / SIMDGROUP_LANES; group++)
        for (int row = 0; row < MATRIX_SIZE; row += most) {
            if (!matrix_loop_takes_tile(s)) continue;
            int rows = most < MATRIX_SIZE - row ? most : MATRIX_SIZE - row;
            struct tile tile = {.group = group, .row = row, .rows = rows};
            for (int v = 0; v < vectors_of(chains); v++)
                for (int r = 0; r < rows; r++) tile.sums[v][r] = begin_sum(s, chains, v, row + r, &tile);
            for (int n = 0; n < chains->length; n++) add_product(s, chains, n, &tile, list);
        }
}
