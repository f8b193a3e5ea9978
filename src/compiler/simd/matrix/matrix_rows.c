/* The code of matrices whose chunks are rows (matrix.h).
 *
 * Products. Operands lie in memory, in rows of floats that their definition stores: a product loads a row of
 * the right matrix as a vector, and elements of the left one to all lanes. Only sums are in registers. So
 * that each is loaded and stored rarely, products wait until a result is needed, or until their block ends;
 * then those that add to the same sums, one after another, are written together, for some rows of up to four
 * sums that share left matrices (struct tile): eight to twelve registers. With 512 bits, rows of two such
 * sums are side by side in a register, as are those of their right matrices: eight to sixteen registers.
 *
 * An element of a product is the same chain of fused multiply-adds, for each column of the left matrix in
 * order, as in lanes' order (matrix.c). */
#include "compiler/simd/matrix/matrix.h"
#include "compiler/simd/matrix/matrix_block.h"
#include "compiler/simd/matrix/matrix_pairs.h"
#include "compiler/simd/matrix/matrix_sums.h"
#include "compiler/simd/arithmetic/arithmetic.h"
#include "compiler/simd/lanes/lanes.h"

#include <llvm-c/DebugInfo.h>

/* ---- From lanes' order to rows, and back. Rows r to r + 3 are in two chunks of each half: columns 0 to 3,
 * and 4 to 7. */

/* Shuffles move bits: halves of two bytes are integers to it, as are floats. */
static LLVMValueRef shuffle(struct simd *s, LLVMValueRef a, LLVMValueRef b, const int *indexes) {
    return lanes_shuffle(s, a, b, indexes, MATRIX_SIZE);
}

static LLVMValueRef row_from_lanes(struct simd *s, LLVMValueRef first, LLVMValueRef second, int group,
                                   int row) {
    static const int rows_0_2[] = {0, 8, 1, 9, 4, 12, 5, 13}, rows_1_3[] = {2, 10, 3, 11, 6, 14, 7, 15};
    static const int low[] = {0, 1, 2, 3, 8, 9, 10, 11}, high[] = {4, 5, 6, 7, 12, 13, 14, 15};
    LLVMValueRef columns[2], reader = s->row_reader;
    s->row_reader = NULL;
    for (int n = 0; n < 2; n++) {
        int chunk = MATRIX_CHUNKS * group + row / 4 * 2 + n;
        columns[n] =
            shuffle(s, chunk_of(s, first, chunk), chunk_of(s, second, chunk), row % 2 ? rows_1_3 : rows_0_2);
    }
    s->row_reader = reader;
    return shuffle(s, columns[0], columns[1], row % 4 < 2 ? low : high);
}

static LLVMValueRef row_of(struct simd *s, LLVMValueRef first, LLVMValueRef second, int group, int row) {
    int chunk = MATRIX_CHUNKS * group + row % 4;
    if (matrix_of_halves(s, first, second)) return chunk_kept(s, row < 4 ? first : second, chunk);
    if (first == second && shape_of(s, first) == SHAPE_UNIFORM) return chunk_kept(s, first, chunk);
    return row_from_lanes(s, first, second, group, row);
}

/* A chunk of a half in lanes' order. */
static LLVMValueRef lanes_of_half(struct simd *s, LLVMValueRef value, int chunk) {
    static const int low[] = {0, 1, 2, 3, 8, 9, 10, 11}, high[] = {4, 5, 6, 7, 12, 13, 14, 15};
    static const int even[] = {0, 2, 8, 10, 4, 6, 12, 14}, odd[] = {1, 3, 9, 11, 5, 7, 13, 15};
    const struct matrix *matrix = matrix_of(s, value);
    int place = chunk % MATRIX_CHUNKS, first_chunk = chunk - place;
    LLVMValueRef from = matrix->halves[place / 2], rows[4], pairs[2];
    for (int r = 0; r < 4; r++) rows[r] = chunk_kept(s, from, first_chunk + r);
    for (int n = 0; n < 2; n++) pairs[n] = shuffle(s, rows[n], rows[n + 2], place % 2 ? high : low);
    return shuffle(s, pairs[0], pairs[1], value == matrix->halves[0] ? even : odd);
}

/* The operand of s->row_reader, a half, that belongs to its chunk. */
static LLVMValueRef operand_of_reader(struct simd *s, LLVMValueRef operand, int chunk) {
    const struct matrix *matrix = matrix_of(s, s->row_reader);
    int second = s->row_reader == matrix->halves[1], n = 0;
    while (LLVMGetOperand(s->row_reader, (unsigned)n) != operand) n++;
    return row_of(s, LLVMGetOperand(matrix->halves[0], (unsigned)n),
                  LLVMGetOperand(matrix->halves[1], (unsigned)n), chunk / MATRIX_CHUNKS,
                  chunk % MATRIX_CHUNKS + 4 * second);
}

LLVMValueRef matrix_incoming(struct simd *s, LLVMValueRef phi, LLVMBasicBlockRef from, int chunk) {
    const struct matrix *matrix = matrix_of(s, phi);
    LLVMValueRef values[2] = {NULL, NULL};
    for (int h = 0; h < 2; h++)
        for (unsigned n = 0; n < LLVMCountIncoming(matrix->halves[h]); n++)
            if (LLVMGetIncomingBlock(matrix->halves[h], n) == from)
                values[h] = LLVMGetIncomingValue(matrix->halves[h], n);
    return row_of(s, values[0], values[1], chunk / MATRIX_CHUNKS,
                  chunk % MATRIX_CHUNKS + 4 * (phi == matrix->halves[1]));
}

/* ---- Memory. */

static LLVMValueRef address_at(struct simd *s, LLVMValueRef base, int64_t bytes) {
    LLVMValueRef index = LLVMConstInt(type_i64(s->unit), (unsigned long long)bytes, true);
    return LLVMBuildGEP2(s->unit->builder, LLVMInt8TypeInContext(s->unit->context), base, &index, 1, "");
}

/* Columns become rows. Steps of equal shuffles, within 128 bits where the registers are wider. */
static void turn(struct simd *s, LLVMValueRef *vectors, int64_t size) {
    static const int words_low[] = {0, 8, 1, 9, 2, 10, 3, 11}, words_high[] = {4, 12, 5, 13, 6, 14, 7, 15};
    static const int low[] = {0, 8, 1, 9, 4, 12, 5, 13}, high[] = {2, 10, 3, 11, 6, 14, 7, 15};
    static const int pairs_low[] = {0, 1, 8, 9, 4, 5, 12, 13}, pairs_high[] = {2, 3, 10, 11, 6, 7, 14, 15};
    static const int fours_low[] = {0, 1, 2, 3, 8, 9, 10, 11}, fours_high[] = {4, 5, 6, 7, 12, 13, 14, 15};
    LLVMValueRef a[MATRIX_SIZE], b[MATRIX_SIZE];
    if (size == 2) {
        for (int step = 0; step < 3; step++) {
            for (int i = 0; i < 4; i++) {
                a[2 * i] = shuffle(s, vectors[i], vectors[i + 4], words_low);
                a[2 * i + 1] = shuffle(s, vectors[i], vectors[i + 4], words_high);
            }
            for (int i = 0; i < MATRIX_SIZE; i++) vectors[i] = a[i];
        }
        return;
    }
    for (int i = 0; i < MATRIX_SIZE; i += 2) { /* rows 0 4, 1 5 … of two columns */
        a[i] = shuffle(s, vectors[i], vectors[i + 1], low);
        a[i + 1] = shuffle(s, vectors[i], vectors[i + 1], high);
    }
    for (int i = 0; i < MATRIX_SIZE; i += 4) { /* of four columns */
        for (int n = 0; n < 2; n++) {
            b[i + 2 * n] = shuffle(s, a[i + n], a[i + 2 + n], pairs_low);
            b[i + 2 * n + 1] = shuffle(s, a[i + n], a[i + 2 + n], pairs_high);
        }
    }
    for (int r = 0; r < 4; r++) {
        vectors[r] = shuffle(s, b[r], b[r + 4], fours_low);
        vectors[r + 4] = shuffle(s, b[r], b[r + 4], fours_high);
    }
}

static void emit_load(struct simd *s, const struct matrix *matrix) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef first = matrix->halves[0], base = scalar_of(s, LLVMGetOperand(matrix->place, 0));
    LLVMTypeRef type = LLVMTypeOf(first);
    int64_t size = (int64_t)LLVMABISizeOfType(s->unit->layout, type);
    LLVMTypeRef bits = chunk_type(s, LLVMIntTypeInContext(s->unit->context, (unsigned)(8 * size)));
    for (int group = 0; group < s->lanes / SIMDGROUP_LANES; group++) {
        const int64_t *offsets = matrix->offsets + (ptrdiff_t)group * SIMDGROUP_LANES;
        LLVMValueRef rows[MATRIX_SIZE];
        for (int r = 0; r < MATRIX_SIZE; r++) {
            int64_t column = offsets[matrix_lane(0, r / 2)] +
                             r % 2 * (offsets[matrix_lane(0, 1)] - offsets[matrix_lane(0, 0)]) / 2;
            int64_t at = matrix->transposed ? column : offsets[matrix_lane(r, 0)];
            rows[r] = LLVMBuildLoad2(b, matrix->transposed ? bits : chunk_type(s, type),
                                     address_at(s, base, at + matrix->bytes), "");
            LLVMSetAlignment(rows[r], (unsigned)(LLVMGetAlignment(first) < size ? LLVMGetAlignment(first)
                                                                                : (unsigned)size));
        }
        if (matrix->transposed) turn(s, rows, size);
        for (int r = 0; r < MATRIX_SIZE; r++)
            chunk_set(s, matrix->halves[r / 4], MATRIX_CHUNKS * group + r % 4,
                      matrix->transposed ? LLVMBuildBitCast(b, rows[r], chunk_type(s, type), "") : rows[r]);
    }
}

static void emit_store(struct simd *s, const struct matrix *matrix) {
    LLVMValueRef first = matrix->halves[0], second = matrix->halves[1];
    LLVMValueRef base = scalar_of(s, LLVMGetOperand(matrix->place, 1));
    int64_t size = (int64_t)LLVMABISizeOfType(s->unit->layout, LLVMTypeOf(LLVMGetOperand(first, 0)));
    for (int group = 0; group < s->lanes / SIMDGROUP_LANES; group++)
        for (int r = 0; r < MATRIX_SIZE; r++) {
            LLVMValueRef row = row_of(s, LLVMGetOperand(first, 0), LLVMGetOperand(second, 0), group, r);
            int64_t at = matrix->offsets[group * SIMDGROUP_LANES + matrix_lane(r, 0)];
            LLVMValueRef store =
                LLVMBuildStore(s->unit->builder, row, address_at(s, base, at + matrix->bytes));
            LLVMSetAlignment(
                store, (unsigned)(LLVMGetAlignment(first) < size ? LLVMGetAlignment(first) : (unsigned)size));
        }
}

static void emit_elements(struct simd *s, LLVMValueRef half) {
    s->row_reader = half;
    for (int chunk = 0; chunk < s->chunk_count; chunk++) (void)emit_arithmetic(s, half, chunk);
    s->row_reader = NULL;
}

/* What is converted from a matrix is converted at once, so that it need not be kept twice. */
static void emit_conversions(struct simd *s, const struct matrix *matrix) {
    for (LLVMUseRef use = LLVMGetFirstUse(matrix->halves[0]); use; use = LLVMGetNextUse(use)) {
        struct matrix *user = matrix_of(s, LLVMGetUser(use));
        if (!user || user->kind != MATRIX_ARITHMETIC || user->mixed || user->converted == s->serial ||
            LLVMGetInstructionParent(user->halves[0]) != LLVMGetInstructionParent(matrix->halves[0]) ||
            LLVMGetOperand(user->halves[0], 0) != matrix->halves[0] || !matrix_is_conversion(user->halves[0]))
            continue;
        for (int h = 0; h < 2; h++) emit_elements(s, user->halves[h]);
        user->converted = s->serial;
        emit_conversions(s, user);
    }
}

void matrix_emit(struct simd *s, LLVMValueRef instruction) {
    const struct matrix *matrix = matrix_of(s, instruction);
    if (matrix->converted == s->serial) return;
    if (matrix->direct) {
        if (instruction == matrix->place) matrix_loop_set_address(s, instruction);
        return;
    }
    if (matrix->kind == MATRIX_LOAD && instruction == matrix->place) {
        emit_load(s, matrix);
        emit_conversions(s, matrix);
    }
    if (matrix->kind == MATRIX_STORE && instruction == matrix->place) emit_store(s, matrix);
    if (matrix->kind == MATRIX_ARITHMETIC) emit_elements(s, instruction);
}

/* ---- Operands of products in memory. */

struct matrix_rows {
    struct matrix_rows *next;
    LLVMValueRef slot;          /* float [simdgroups][8][8]; or words of bfloats, as densely, in half of it */
    LLVMValueRef first, second; /* of products that are being written: the halves, which are no matrix */
};

static struct matrix_rows *take_rows(struct simd *s) {
    struct matrix_rows *rows = s->free_matrix_rows;
    if (rows) {
        s->free_matrix_rows = rows->next;
        return rows;
    }
    rows = arena_alloc(&s->arena, sizeof *rows);
    if (!rows) return NULL;
    unsigned count = (unsigned)(s->lanes / SIMDGROUP_LANES * MATRIX_SIZE);
    LLVMTypeRef row = LLVMVectorType(LLVMFloatTypeInContext(s->unit->context), MATRIX_SIZE);
    *rows = (struct matrix_rows){.slot = simd_slot(s, LLVMArrayType2(row, count))};
    return rows;
}

static void give_rows(struct simd *s, struct matrix_rows *rows) {
    rows->next = s->free_matrix_rows;
    s->free_matrix_rows = rows;
}

#define ROW_BYTES (MATRIX_SIZE * 4)
#define WORDS_BYTES (MATRIX_SIZE * 2)

static void store_row(struct simd *s, const struct matrix_rows *rows, int group, int row,
                      LLVMValueRef vector) {
    unsigned bytes = (unsigned)LLVMABISizeOfType(s->unit->layout, LLVMTypeOf(vector));
    LLVMValueRef at = address_at(s, rows->slot, (group * MATRIX_SIZE + row) * (int64_t)bytes);
    LLVMSetAlignment(LLVMBuildStore(s->unit->builder, vector, at), bytes);
}

/* A row of an operand of products has been computed. */
static void keep_row(struct simd *s, LLVMValueRef half, int chunk, LLVMValueRef row) {
    struct matrix *matrix = matrix_of(s, half);
    if (!matrix->rows && !matrix->direct) matrix->rows = take_rows(s);
    if (!matrix->rows) return;
    int number = chunk % MATRIX_CHUNKS + (half == matrix->halves[1] ? 4 : 0);
    store_row(s, matrix->rows, chunk / MATRIX_CHUNKS, number, row);
    if (number == MATRIX_SIZE - 1) matrix_end_schedule(s);
}

/* Where an operand of a product lies. */
struct operand {
    const struct matrix *direct; /* in the kernel's memory; or NULL: … */
    const struct matrix_rows *rows;
};

/* Operands that are not kept at their definition are stored when products are written; `list` has them. */
static const struct matrix_rows *rows_of_operand(struct simd *s, LLVMValueRef first, LLVMValueRef second,
                                                 struct matrix_rows **list) {
    const struct matrix *matrix = matrix_of_halves(s, first, second);
    if (matrix && matrix->rows) return matrix->rows;
    for (struct matrix_rows *rows = *list; rows; rows = rows->next)
        if (rows->first == first && rows->second == second) return rows;
    struct matrix_rows *rows = take_rows(s);
    if (!rows) return NULL;
    for (int group = 0; group < s->lanes / SIMDGROUP_LANES; group++)
        for (int r = 0; r < MATRIX_SIZE; r++)
            store_row(s, rows, group, r, row_of(s, first, second, group, r));
    rows->first = first;
    rows->second = second;
    rows->next = *list;
    *list = rows;
    return rows;
}

static bool find_operand(struct simd *s, const struct matrix *product, bool right, struct matrix_rows **list,
                         struct operand *operand) {
    LLVMValueRef halves[2];
    matrix_operand(product, right, halves);
    const struct matrix *matrix = matrix_of_halves(s, halves[0], halves[1]);
    *operand = (struct operand){.direct = matrix && matrix->direct ? matrix : NULL};
    if (!operand->direct) operand->rows = rows_of_operand(s, halves[0], halves[1], list);
    return operand->direct || operand->rows;
}

/* ---- Products. */

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

/* Products that add to the same sums, in order; several such chains share their left matrices. */
#define MOST_CHAINS 4

struct chains {
    struct matrix **products[MOST_CHAINS];
    int length, count;
    int pairs; /* chains 2 i and 2 i + 1, for i below this: their rows lie side by side in one register */
};

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

static LLVMValueRef multiply_add(struct simd *s, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
    LLVMTypeRef type = LLVMTypeOf(a);
    return simd_intrinsic(s, "llvm.fma", &type, 1, (LLVMValueRef[]){a, b, c}, 3);
}

/* No instruction, but LLVM must assume that the rows have changed. It would otherwise keep what several
 * tiles load in registers that it does not have. */
static void forget_rows(struct simd *s, const struct matrix_rows *rows) {
    static const char constraints[] = "=*m,*m";
    LLVMContextRef context = s->unit->context;
    LLVMTypeRef types[2] = {LLVMTypeOf(rows->slot), LLVMTypeOf(rows->slot)};
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), types, 2, false);
    LLVMValueRef nothing = LLVMGetInlineAsm(type, "", 0, constraints, sizeof constraints - 1, true, false,
                                            LLVMInlineAsmDialectATT, false);
    LLVMValueRef call =
        LLVMBuildCall2(s->unit->builder, type, nothing, (LLVMValueRef[]){rows->slot, rows->slot}, 2, "");
    unsigned element = LLVMGetEnumAttributeKindForName("elementtype", 11);
    LLVMAttributeRef attribute = LLVMCreateTypeAttribute(context, element, LLVMGetAllocatedType(rows->slot));
    for (LLVMAttributeIndex n = 1; n <= 2; n++) LLVMAddCallSiteAttribute(call, n, attribute);
}

/* As integers: the code before would otherwise keep the vector that it has stored, in a register. */
static LLVMValueRef load_row(struct simd *s, const struct matrix_rows *rows, int group, int row) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef at = address_at(s, rows->slot, (group * MATRIX_SIZE + row) * ROW_BYTES);
    LLVMValueRef load = LLVMBuildLoad2(b, chunk_type(s, type_i32(s->unit)), at, "");
    LLVMSetAlignment(load, ROW_BYTES);
    return LLVMBuildBitCast(b, load, chunk_type(s, LLVMFloatTypeInContext(s->unit->context)), "");
}

/* From memory of the kernel, converted. */
static LLVMValueRef load_row_directly(struct simd *s, const struct matrix *matrix, int group, int row) {
    LLVMValueRef half = matrix->halves[row / 4];
    int chunk = MATRIX_CHUNKS * group + row % 4;
    if (matrix->kind == MATRIX_LOAD) {
        LLVMTypeRef type = LLVMTypeOf(half);
        LLVMValueRef at = address_at(s, matrix->address, matrix_element(matrix, group, row, 0));
        LLVMValueRef load = LLVMBuildLoad2(s->unit->builder, chunk_type(s, type), at, "");
        unsigned size = (unsigned)LLVMABISizeOfType(s->unit->layout, type);
        LLVMSetAlignment(load, LLVMGetAlignment(half) < size ? LLVMGetAlignment(half) : size);
        chunk_set(s, half, chunk, load);
        return load;
    }
    (void)load_row_directly(s, matrix_of(s, LLVMGetOperand(half, 0)), group, row);
    s->row_reader = half;
    (void)emit_arithmetic(s, half, chunk);
    s->row_reader = NULL;
    return chunk_kept(s, half, chunk);
}

static LLVMValueRef load_row_of(struct simd *s, const struct operand *right, int group, int row) {
    return right->direct ? load_row_directly(s, right->direct, group, row)
                         : load_row(s, right->rows, group, row);
}

static LLVMValueRef load_element(struct simd *s, const struct operand *operand, int group, int row,
                                 int column) {
    LLVMValueRef at =
        operand->direct
            ? address_at(s, operand->direct->address, matrix_element(operand->direct, group, row, column))
            : address_at(s, operand->rows->slot, (group * MATRIX_SIZE + row) * ROW_BYTES + 4 * column);
    LLVMTypeRef type = LLVMFloatTypeInContext(s->unit->context);
    LLVMValueRef load = LLVMBuildLoad2(s->unit->builder, type, at, "");
    LLVMSetAlignment(load, 4);
    return load;
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

/* A left matrix of which elements are loaded: what is converted is stored first, the tile's rows. */
static bool find_left(struct simd *s, const struct matrix *product, const struct tile *tile,
                      struct matrix_rows **list, struct operand *left) {
    if (!find_operand(s, product, false, list, left)) return false;
    if (!left->direct || left->direct->kind == MATRIX_LOAD) return true;
    struct matrix_rows *rows = take_rows(s);
    if (!rows) return false;
    for (int r = tile->row; r < tile->row + tile->rows; r++)
        store_row(s, rows, tile->group, r, load_row_directly(s, left->direct, tile->group, r));
    *left = (struct operand){.rows = rows};
    rows->first = rows->second = NULL;
    rows->next = *list;
    *list = rows;
    return true;
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
        rows[n] = row_of(s, LLVMGetOperand(halves[0], 3), LLVMGetOperand(halves[1], 3), tile->group, row);
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

static void multiply_tile(struct simd *s, const struct chains *chains, const struct operand *left,
                          const struct operand *right, struct tile *tile) {
    for (int k = 0; k < MATRIX_SIZE; k++) {
        LLVMValueRef elements[MATRIX_SIZE];
        for (int r = 0; r < tile->rows; r++)
            elements[r] = load_element(s, left, tile->group, tile->row + r, k);
        for (int v = 0; v < vectors_of(chains); v++) {
            int c = first_chain(chains, v), width = is_pair(chains, v) ? 2 * MATRIX_SIZE : MATRIX_SIZE;
            LLVMValueRef row = load_row_of(s, &right[c], tile->group, k);
            if (is_pair(chains, v)) row = lanes_join(s, row, load_row_of(s, &right[c + 1], tile->group, k));
            for (int r = 0; r < tile->rows; r++)
                tile->sums[v][r] = multiply_add(s, lanes_splat(s, elements[r], width), row, tile->sums[v][r]);
        }
    }
}

/* ---- Pairs of bfloats. */

/* Where an element of words lies. */
static LLVMValueRef address_of_word(struct simd *s, const struct operand *operand, int group, int row,
                                    int column) {
    const struct matrix *direct = operand->direct;
    if (direct) return address_at(s, direct->address, matrix_element(direct, group, row, column));
    return address_at(s, operand->rows->slot, (group * MATRIX_SIZE + row) * WORDS_BYTES + 2 * column);
}

static LLVMValueRef load_words(struct simd *s, const struct operand *operand, int group, int row) {
    LLVMTypeRef type = chunk_type(s, LLVMInt16TypeInContext(s->unit->context));
    LLVMValueRef load =
        LLVMBuildLoad2(s->unit->builder, type, address_of_word(s, operand, group, row, 0), "");
    LLVMSetAlignment(load, operand->direct ? 2 : WORDS_BYTES);
    return load;
}

/* Two neighbours of a row. */
static LLVMValueRef load_pair(struct simd *s, const struct operand *operand, int group, int row, int column) {
    LLVMValueRef load = LLVMBuildLoad2(s->unit->builder, type_i32(s->unit),
                                       address_of_word(s, operand, group, row, column), "");
    LLVMSetAlignment(load, operand->direct ? 2 : 4);
    return load;
}

static void multiply_pairs(struct simd *s, const struct chains *chains, const struct operand *left,
                           const struct operand *right, struct tile *tile) {
    for (int k = 0; k < MATRIX_SIZE; k += 2) {
        LLVMValueRef words[MATRIX_SIZE];
        for (int r = 0; r < tile->rows; r++) words[r] = load_pair(s, left, tile->group, tile->row + r, k);
        for (int v = 0; v < vectors_of(chains); v++) {
            LLVMValueRef rows[2][2];
            for (int c = 0; c < chains_of(chains, v); c++)
                for (int n = 0; n < 2; n++)
                    rows[c][n] = load_words(s, &right[first_chain(chains, v) + c], tile->group, k + n);
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
    struct operand left = {.rows = &rows[0]}, right = {.rows = &rows[1]};
    struct tile tile = {.rows = MATRIX_SIZE};
    for (int r = 0; r < MATRIX_SIZE; r++) tile.sums[0][r] = parameters[2 + r];
    multiply_tile(s, &one, &left, &right, &tile);
    for (int r = 0; r < MATRIX_SIZE; r++) results[r] = tile.sums[0][r];
}

static void call_product(struct simd *s, const struct operand *left, const struct operand *right,
                         struct tile *tile) {
    LLVMValueRef arguments[2 + MATRIX_SIZE];
    int64_t at = (int64_t)tile->group * MATRIX_SIZE * ROW_BYTES;
    arguments[0] = address_at(s, left->rows->slot, at);
    arguments[1] = address_at(s, right->rows->slot, at);
    for (int r = 0; r < MATRIX_SIZE; r++) arguments[2 + r] = tile->sums[0][r];
    simd_matrix_call(s, "product_of_rows", write_function, arguments, 2 + MATRIX_SIZE, tile->sums[0],
                     MATRIX_SIZE);
}

static void add_product(struct simd *s, const struct chains *chains, int n, struct tile *tile,
                        struct matrix_rows **list) {
    const struct matrix *first = chains->products[0][n];
    struct operand left, right[MOST_CHAINS];
    if (!find_left(s, first, tile, list, &left)) return;
    for (int c = 0; c < chains->count; c++)
        if (!find_operand(s, chains->products[c][n], true, list, &right[c])) return;
    if (simd_matrix_is_outlined(s)) {
        call_product(s, &left, right, tile);
        keep_sums(s, chains, n, tile);
        return;
    }
    for (int c = 0; c < chains->count; c++)
        if (right[c].rows) forget_rows(s, right[c].rows);
    if (left.rows) forget_rows(s, left.rows);
    (first->words[0] ? multiply_pairs : multiply_tile)(s, chains, &left, right, tile);
    matrix_end_schedule(s);
    keep_sums(s, chains, n, tile);
}

static void emit_chains(struct simd *s, const struct chains *chains, struct matrix_rows **list) {
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
        give_rows(s, matrix->rows);
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
        emit_chains(s, &chains, &list);
        for (int c = 0; c < chains.count; c++)
            for (int n = 0; n < chains.length; n++) chains.products[c][n]->waits = false;
    }
    for (struct matrix *p = s->pending_matrices; p; p = p->pending) release_operands(s, p);
    s->pending_matrices = NULL;
    while (list) {
        struct matrix_rows *rows = list;
        list = rows->next;
        give_rows(s, rows);
    }
}

const struct matrix_forms matrix_forms = {
    .lanes = lanes_of_half, .operand = operand_of_reader, .keep_row = keep_row};
