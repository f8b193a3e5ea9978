/* Operands of products (matrix_products.c), in memory: in the kernel's own, or in rows of floats that their
 * definition stores. */
#include "compiler/simd/matrix/matrix_operands.h"
#include "compiler/simd/arithmetic/arithmetic.h"

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

void matrix_give_rows(struct simd *s, struct matrix_rows *rows) {
    rows->next = s->free_matrix_rows;
    s->free_matrix_rows = rows;
}

#define WORDS_BYTES (MATRIX_SIZE * 2)

static void store_row(struct simd *s, const struct matrix_rows *rows, int group, int row,
                      LLVMValueRef vector) {
    unsigned bytes = (unsigned)LLVMABISizeOfType(s->unit->layout, LLVMTypeOf(vector));
    LLVMValueRef at = matrix_address_at(s, rows->slot, (group * MATRIX_SIZE + row) * (int64_t)bytes);
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
            store_row(s, rows, group, r, matrix_row_of(s, first, second, group, r));
    rows->first = first;
    rows->second = second;
    rows->next = *list;
    *list = rows;
    return rows;
}

bool matrix_find_operand(struct simd *s, const struct matrix *product, bool right, struct matrix_rows **list,
                         struct product_operand *operand) {
    LLVMValueRef halves[2];
    matrix_operand(product, right, halves);
    const struct matrix *matrix = matrix_of_halves(s, halves[0], halves[1]);
    *operand = (struct product_operand){.direct = matrix && matrix->direct ? matrix : NULL};
    if (!operand->direct) operand->rows = rows_of_operand(s, halves[0], halves[1], list);
    return operand->direct || operand->rows;
}

void matrix_forget_rows(struct simd *s, const struct matrix_rows *rows) {
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
    LLVMValueRef at = matrix_address_at(s, rows->slot, (group * MATRIX_SIZE + row) * ROW_BYTES);
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
        LLVMValueRef at = matrix_address_at(s, matrix->address, matrix_element(matrix, group, row, 0));
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

LLVMValueRef matrix_load_row_of(struct simd *s, const struct product_operand *right, int group, int row) {
    return right->direct ? load_row_directly(s, right->direct, group, row)
                         : load_row(s, right->rows, group, row);
}

LLVMValueRef matrix_load_element(struct simd *s, const struct product_operand *operand, int group, int row,
                                 int column) {
    LLVMValueRef at =
        operand->direct
            ? matrix_address_at(s, operand->direct->address,
                                matrix_element(operand->direct, group, row, column))
            : matrix_address_at(s, operand->rows->slot, (group * MATRIX_SIZE + row) * ROW_BYTES + 4 * column);
    LLVMTypeRef type = LLVMFloatTypeInContext(s->unit->context);
    LLVMValueRef load = LLVMBuildLoad2(s->unit->builder, type, at, "");
    LLVMSetAlignment(load, 4);
    return load;
}

bool matrix_find_left(struct simd *s, const struct matrix *product, int group, int row, int rows,
                      struct matrix_rows **list, struct product_operand *left) {
    if (!matrix_find_operand(s, product, false, list, left)) return false;
    if (!left->direct || left->direct->kind == MATRIX_LOAD) return true;
    struct matrix_rows *stored = take_rows(s);
    if (!stored) return false;
    for (int r = row; r < row + rows; r++)
        store_row(s, stored, group, r, load_row_directly(s, left->direct, group, r));
    *left = (struct product_operand){.rows = stored};
    stored->first = stored->second = NULL;
    stored->next = *list;
    *list = stored;
    return true;
}

/* ---- Pairs of bfloats. */

/* Where an element of words lies. */
static LLVMValueRef address_of_word(struct simd *s, const struct product_operand *operand, int group, int row,
                                    int column) {
    const struct matrix *direct = operand->direct;
    if (direct) return matrix_address_at(s, direct->address, matrix_element(direct, group, row, column));
    return matrix_address_at(s, operand->rows->slot, (group * MATRIX_SIZE + row) * WORDS_BYTES + 2 * column);
}

LLVMValueRef matrix_load_words(struct simd *s, const struct product_operand *operand, int group, int row) {
    LLVMTypeRef type = chunk_type(s, LLVMInt16TypeInContext(s->unit->context));
    LLVMValueRef load =
        LLVMBuildLoad2(s->unit->builder, type, address_of_word(s, operand, group, row, 0), "");
    LLVMSetAlignment(load, operand->direct ? 2 : WORDS_BYTES);
    return load;
}

LLVMValueRef matrix_load_pair(struct simd *s, const struct product_operand *operand, int group, int row,
                              int column) {
    LLVMValueRef load = LLVMBuildLoad2(s->unit->builder, type_i32(s->unit),
                                       address_of_word(s, operand, group, row, column), "");
    LLVMSetAlignment(load, operand->direct ? 2 : 4);
    return load;
}

const struct matrix_forms matrix_forms = {
    .lanes = matrix_lanes_of_half, .operand = matrix_operand_of_reader, .keep_row = keep_row};
