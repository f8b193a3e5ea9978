/* The code of matrices whose chunks are rows (matrix.h): rows from lanes' order and back, loads, stores,
 * arithmetic. matrix_products.c has the products. */
#include "compiler/simd/matrix/matrix_rows.h"
#include "compiler/simd/arithmetic/arithmetic.h"
#include "compiler/simd/lanes/lanes.h"

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

LLVMValueRef matrix_row_of(struct simd *s, LLVMValueRef first, LLVMValueRef second, int group, int row) {
    int chunk = MATRIX_CHUNKS * group + row % 4;
    if (matrix_of_halves(s, first, second)) return chunk_kept(s, row < 4 ? first : second, chunk);
    if (first == second && shape_of(s, first) == SHAPE_UNIFORM) return chunk_kept(s, first, chunk);
    return row_from_lanes(s, first, second, group, row);
}

LLVMValueRef matrix_lanes_of_half(struct simd *s, LLVMValueRef value, int chunk) {
    static const int low[] = {0, 1, 2, 3, 8, 9, 10, 11}, high[] = {4, 5, 6, 7, 12, 13, 14, 15};
    static const int even[] = {0, 2, 8, 10, 4, 6, 12, 14}, odd[] = {1, 3, 9, 11, 5, 7, 13, 15};
    const struct matrix *matrix = matrix_of(s, value);
    int place = chunk % MATRIX_CHUNKS, first_chunk = chunk - place;
    LLVMValueRef from = matrix->halves[place / 2], rows[4], pairs[2];
    for (int r = 0; r < 4; r++) rows[r] = chunk_kept(s, from, first_chunk + r);
    for (int n = 0; n < 2; n++) pairs[n] = shuffle(s, rows[n], rows[n + 2], place % 2 ? high : low);
    return shuffle(s, pairs[0], pairs[1], value == matrix->halves[0] ? even : odd);
}

LLVMValueRef matrix_operand_of_reader(struct simd *s, LLVMValueRef operand, int chunk) {
    const struct matrix *matrix = matrix_of(s, s->row_reader);
    int second = s->row_reader == matrix->halves[1], n = 0;
    while (LLVMGetOperand(s->row_reader, (unsigned)n) != operand) n++;
    return matrix_row_of(s, LLVMGetOperand(matrix->halves[0], (unsigned)n),
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
    return matrix_row_of(s, values[0], values[1], chunk / MATRIX_CHUNKS,
                         chunk % MATRIX_CHUNKS + 4 * (phi == matrix->halves[1]));
}

/* ---- Memory. */

LLVMValueRef matrix_address_at(struct simd *s, LLVMValueRef base, int64_t bytes) {
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
                                     matrix_address_at(s, base, at + matrix->bytes), "");
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
            LLVMValueRef row =
                matrix_row_of(s, LLVMGetOperand(first, 0), LLVMGetOperand(second, 0), group, r);
            int64_t at = matrix->offsets[group * SIMDGROUP_LANES + matrix_lane(r, 0)];
            LLVMValueRef store =
                LLVMBuildStore(s->unit->builder, row, matrix_address_at(s, base, at + matrix->bytes));
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
