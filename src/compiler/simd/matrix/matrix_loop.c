/* Loops over products of matrices, written in parts: all rounds for as many rows of the sums as the registers
 * hold, then all rounds for the next rows. The sums are then loaded and stored once per loop, not once per
 * round.
 *
 * Such loops (parts.c) only read, and carry no matrices except the sums. Their products read the operands
 * directly from threadgroup memory: each part would otherwise copy them again. With 32 registers they convert
 * what is half or bfloat, too.
 *
 * Before the loop and after it, a part's sums are in the slots of their phis. */
#include "compiler/simd/lanes/lanes.h"
#include "compiler/simd/matrix/matrix.h"
#include "compiler/simd/matrix/matrix_block.h"
#include "compiler/simd/matrix/matrix_sums.h"

/* ---- Loops that suit. */

/* The product of this block whose halves are the sum's after a round; or NULL. */
static struct matrix *result_of(struct simd *s, LLVMValueRef phi) {
    const struct matrix *sum = matrix_of(s, phi);
    LLVMBasicBlockRef block = LLVMGetInstructionParent(phi);
    LLVMValueRef first = phi_incoming(sum->halves[0], block), second = phi_incoming(sum->halves[1], block);
    struct matrix *result = first && second ? matrix_of_halves(s, first, second) : NULL;
    return result && result->kind == MATRIX_PRODUCT ? result : NULL;
}

/* Whether the chain of products that ends in the sum's value after a round begins with its value before. */
static bool is_sum(struct simd *s, const struct matrix *phi) {
    LLVMBasicBlockRef block = LLVMGetInstructionParent(phi->halves[0]);
    const struct matrix *result = result_of(s, phi->halves[0]);
    while (result && result != phi) {
        LLVMValueRef first = LLVMGetOperand(result->halves[0], 3);
        struct matrix *addend = matrix_of_halves(s, first, LLVMGetOperand(result->halves[1], 3));
        if (!addend || !matrix_adds_to(result, addend) || LLVMGetInstructionParent(first) != block ||
            (addend->kind != MATRIX_PRODUCT && addend != phi))
            return false;
        result = addend;
    }
    return result != NULL;
}

/* Whether the loop only adds to the matrix. *sums: how many halves of sums have it as their value after a
 * round; *others: whether there are uses after the loop. */
static bool is_added_only(struct simd *s, const struct matrix *matrix, int *sums, bool *others) {
    LLVMBasicBlockRef block = LLVMGetInstructionParent(matrix->halves[0]);
    *sums = 0;
    *others = false;
    for (int h = 0; h < 2; h++)
        for (LLVMUseRef use = LLVMGetFirstUse(matrix->halves[h]); use; use = LLVMGetNextUse(use)) {
            LLVMValueRef user = LLVMGetUser(use);
            const struct matrix *own = matrix_of(s, user);
            if (LLVMGetInstructionParent(user) != block) {
                *others = true;
                continue;
            }
            if (!own || (own->kind == MATRIX_PRODUCT ? !matrix_adds_to(own, matrix) : own->halves[h] != user))
                return false;
            *sums += own->kind == MATRIX_PHI;
        }
    return matrix->uses == 0;
}

/* Whether the matrix, if it is used after the loop, is in the slots of a sum. */
static bool is_kept(struct simd *s, const struct matrix *matrix) {
    int sums;
    bool others;
    return is_added_only(s, matrix, &sums, &others) &&
           (matrix->kind == MATRIX_PRODUCT && sums ? sums == 2 : !others);
}

/* Whether rows of the matrix can be had from memory: a load, or conversions of one. Each part repeats
 * conversions. With 16 registers a part has so few rows that they cost more than sums in memory. */
static bool has_rows(struct simd *s, LLVMValueRef first, LLVMValueRef second) {
    const struct matrix *matrix = matrix_of_halves(s, first, second);
    if (!matrix || matrix->kind == MATRIX_LOAD) return matrix && !matrix->transposed;
    return s->registers > 16 && matrix->kind == MATRIX_ARITHMETIC && !matrix->mixed &&
           matrix_is_conversion(first) &&
           LLVMGetInstructionParent(LLVMGetOperand(first, 0)) == LLVMGetInstructionParent(first) &&
           has_rows(s, LLVMGetOperand(first, 0), LLVMGetOperand(second, 0));
}

/* Whether products can read the operand from memory: rows of the right matrix, rows of the left one, which
 * they convert, or its elements. */
static bool can_read(struct simd *s, LLVMValueRef first, LLVMValueRef second, bool right,
                     LLVMBasicBlockRef block) {
    const struct matrix *matrix = matrix_of_halves(s, first, second);
    if (!matrix || LLVMGetInstructionParent(first) != block ||
        LLVMGetTypeKind(LLVMTypeOf(first)) != LLVMFloatTypeKind)
        return false;
    return has_rows(s, first, second) || (matrix->kind == MATRIX_LOAD && !right);
}

/* Whether pairs can be read from memory: where rows are rows. */
static bool can_read_words(const struct matrix *words, LLVMBasicBlockRef block) {
    return words->kind == MATRIX_LOAD && !words->transposed &&
           LLVMGetInstructionParent(words->halves[0]) == block;
}

static bool reads_operands(struct simd *s, const struct matrix *product) {
    LLVMValueRef a = product->halves[0], b = product->halves[1];
    LLVMBasicBlockRef block = LLVMGetInstructionParent(a);
    if (product->words[0])
        return can_read_words(product->words[0], block) && can_read_words(product->words[1], block);
    return can_read(s, LLVMGetOperand(a, 0), LLVMGetOperand(a, 1), false, block) &&
           can_read(s, LLVMGetOperand(a, 2), LLVMGetOperand(b, 2), true, block);
}

/* Whether only products of this block read the operand, or what it is converted to. */
static bool is_read_here(struct simd *s, const struct matrix *operand) {
    for (int h = 0; h < 2; h++)
        for (LLVMUseRef use = LLVMGetFirstUse(operand->halves[h]); use; use = LLVMGetNextUse(use)) {
            const struct matrix *user = matrix_of(s, LLVMGetUser(use));
            if (!user || (user->kind != MATRIX_PRODUCT && user->kind != MATRIX_ARITHMETIC) ||
                LLVMGetInstructionParent(LLVMGetUser(use)) != LLVMGetInstructionParent(operand->halves[0]))
                return false;
        }
    return true;
}

static bool is_staged(const struct matrix *load) {
    LLVMValueRef address = LLVMGetOperand(load->halves[0], 0);
    return LLVMGetPointerAddressSpace(LLVMTypeOf(address)) == THREADGROUP_SPACE;
}

static bool suits(struct simd *s, LLVMValueRef i) {
    const struct matrix *matrix = matrix_of(s, i);
    if (!matrix) return !LLVMIsAStoreInst(i) && simd_is_alone(s, i);
    switch (matrix->kind) {
    case MATRIX_PRODUCT:
        return is_kept(s, matrix) && reads_operands(s, matrix);
    case MATRIX_PHI:
        return is_kept(s, matrix) && is_sum(s, matrix);
    case MATRIX_LOAD:
        return is_read_here(s, matrix) && is_staged(matrix);
    case MATRIX_ARITHMETIC:
        return is_read_here(s, matrix) && has_rows(s, matrix->halves[0], matrix->halves[1]);
    case MATRIX_STORE:
        break;
    }
    return false;
}

bool matrix_loop_begin(struct simd *s, int place, int *before) {
    LLVMBasicBlockRef block = s->blocks[place].original;
    bool some = false;
    if (!s->matrices || simd_matrix_is_outlined(s) || !simd_can_be_in_parts(s, place, suits, before))
        return false;
    FOR_EACH_INSTRUCTION(i, block) {
        struct matrix *matrix = matrix_of(s, i);
        if (!matrix) continue;
        some |= matrix->kind == MATRIX_PHI;
        matrix->direct = matrix->kind == MATRIX_LOAD || matrix->kind == MATRIX_ARITHMETIC;
    }
    if (some) s->matrix_block = matrix_block_of(s, block);
    s->matrix_part = some;
    s->matrix_tiles = 0;
    return some;
}

/* ---- Parts. */

bool matrix_loop_is_last(const struct simd *s) {
    return s->matrix_part == s->matrix_tiles;
}

bool matrix_loop_next(struct simd *s) {
    if (matrix_loop_is_last(s)) {
        s->matrix_part = NO_PART;
        s->matrix_block = NULL;
        return false;
    }
    s->matrix_part++;
    s->matrix_tiles = 0;
    return true;
}

bool matrix_loop_takes_tile(struct simd *s) {
    return s->matrix_part == NO_PART || ++s->matrix_tiles == s->matrix_part;
}

void matrix_loop_set_rows(struct simd *s, struct matrix *product, int group, int row, int rows,
                          LLVMValueRef const *slots, bool second, bool whole) {
    product->part = s->matrix_part;
    product->part_group = group;
    product->part_row = row;
    product->part_rows = rows;
    for (int r = 0; r < rows; r++) product->part_slots[r] = slots ? slots[r] : NULL;
    product->part_second = second;
    product->part_whole = whole;
}

/* The slot of the sum's row before the loop. */
static LLVMValueRef slot_of_row(struct simd *s, const struct matrix *product, int group, int row) {
    LLVMValueRef phi = matrix_of(s, LLVMGetOperand(product->halves[0], 3))->halves[row / 4];
    return value_of(s, phi)->slots[MATRIX_CHUNKS * group + row % 4];
}

static LLVMValueRef first_contents(struct simd *s, const struct matrix *first, const struct matrix *second,
                                   int group, int row) {
    const struct matrix *products[2] = {first, second};
    LLVMValueRef rows[2] = {NULL, NULL};
    if (second && matrix_sum_is_neighbour(first, second)) return matrix_sum_load(s, first, group, row, 2);
    for (int n = 0; n < (second ? 2 : 1); n++) {
        LLVMValueRef slot = slot_of_row(s, products[n], group, row);
        rows[n] = LLVMBuildLoad2(s->unit->builder, simd_slot_type(slot), slot, "");
    }
    return second ? lanes_join(s, rows[0], rows[1]) : rows[0];
}

LLVMValueRef matrix_loop_join(struct simd *s, const struct matrix *first, const struct matrix *second,
                              int group, int row) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
    LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(s->matrix_entry));
    LLVMValueRef joined = first_contents(s, first, second, group, row);
    LLVMValueRef slot = simd_slot(s, LLVMTypeOf(joined));
    LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(s->matrix_entry));
    LLVMBuildStore(b, joined, slot);
    LLVMPositionBuilderAtEnd(b, here);
    return slot;
}

static int row_of_chunk(struct simd *s, LLVMValueRef phi, int chunk) {
    return chunk % MATRIX_CHUNKS + (phi == matrix_of(s, phi)->halves[1] ? MATRIX_CHUNKS : 0);
}

static bool is_in_part(struct simd *s, LLVMValueRef phi, int chunk) {
    const struct matrix *product = result_of(s, phi);
    int row = row_of_chunk(s, phi, chunk);
    return product->part == s->matrix_part && product->part_group == chunk / MATRIX_CHUNKS &&
           row >= product->part_row && row < product->part_row + product->part_rows;
}

/* Of a row in the part: where it is side by side with another sum's; or NULL. */
static LLVMValueRef joined_slot(struct simd *s, LLVMValueRef phi, int chunk) {
    const struct matrix *product = result_of(s, phi);
    return product->part_slots[row_of_chunk(s, phi, chunk) - product->part_row];
}

bool matrix_loop_arrives(struct simd *s, LLVMValueRef phi, LLVMBasicBlockRef from, int chunk) {
    LLVMBasicBlockRef loop = s->blocks[s->current].original;
    if (s->matrix_part == NO_PART || LLVMGetInstructionParent(phi) != loop) return true;
    return from == loop && is_in_part(s, phi, chunk) && !joined_slot(s, phi, chunk);
}

/* A row of the sum after the part's last round. */
static LLVMValueRef last_row(struct simd *s, LLVMValueRef phi, int chunk) {
    LLVMValueRef slot = joined_slot(s, phi, chunk);
    if (!slot) return chunk_kept(s, phi_incoming(phi, LLVMGetInstructionParent(phi)), chunk);
    LLVMValueRef joined = LLVMBuildLoad2(s->unit->builder, LLVMGetAllocatedType(slot), slot, "");
    if (LLVMGetVectorSize(LLVMTypeOf(joined)) == MATRIX_SIZE) return joined;
    return lanes_half(s, joined, result_of(s, phi)->part_second);
}

static void keep_sum(struct simd *s, LLVMValueRef phi) {
    const struct value *v = value_of(s, phi);
    const struct matrix *product = result_of(s, phi);
    for (int c = 0; c < s->chunk_count; c++) {
        if (!is_in_part(s, phi, c)) continue;
        if (!product->part_whole) {
            LLVMBuildStore(s->unit->builder, last_row(s, phi, c), v->slots[c]);
        } else if (!product->part_second) {
            LLVMValueRef slot = joined_slot(s, phi, c);
            LLVMValueRef rows = LLVMBuildLoad2(s->unit->builder, LLVMGetAllocatedType(slot), slot, "");
            matrix_sum_store(s, product, c / MATRIX_CHUNKS, row_of_chunk(s, phi, c), rows);
        }
    }
}

static void take_sum(struct simd *s, LLVMValueRef phi) {
    const struct value *v = value_of(s, phi);
    LLVMValueRef result = phi_incoming(phi, LLVMGetInstructionParent(phi));
    for (int c = 0; c < s->chunk_count; c++)
        chunk_set(s, result, c,
                  LLVMBuildLoad2(s->unit->builder, simd_slot_type(v->slots[c]), v->slots[c], ""));
}

void matrix_loop_end(struct simd *s, int place) {
    if (s->matrix_block) {
        matrix_block_end(s);
        return;
    }
    /* Rows of two sums are stored together: with the phi that is their first product's. */
    FOR_EACH_INSTRUCTION(phi, s->blocks[place].original) {
        if (LLVMIsAPHINode(phi) && matrix_of(s, phi)) keep_sum(s, phi);
    }
    FOR_EACH_INSTRUCTION(phi, s->blocks[place].original) {
        if (LLVMIsAPHINode(phi) && matrix_of(s, phi) && matrix_loop_is_last(s)) take_sum(s, phi);
    }
}

/* ---- Operands. */

void matrix_loop_set_address(struct simd *s, LLVMValueRef load) {
    struct matrix *matrix = matrix_of(s, load);
    matrix->address = scalar_of(s, LLVMGetOperand(load, 0));
}
