/* Loops whose rounds multiply each of two to four left matrices of bfloats by each of two to four right ones,
 * where the CPU has AMX. The code of a round only notes where its operands lie; after four rounds, and after
 * the last one, the runtime multiplies them (abi/matrix_block.h): tiles of AMX have 32 columns, and loading
 * and storing their sums takes as long as two to three rounds.
 *
 * Requires: sums in tiles of memory (matrix_sums.c), operands that can be read where the kernel has them. */
#include "compiler/simd/matrix/matrix_block.h"
#include "abi/matrix_block.h"
#include "compiler/simd/matrix/matrix_sums.h"

#include <stddef.h>

struct matrix_block {
    const struct matrix *operands[2][BLOCK_MATRICES]; /* left and right ones */
    int counts[2];
    const struct matrix *products[BLOCK_MATRICES][BLOCK_MATRICES];
    LLVMValueRef words; /* slot: for each simdgroup BLOCK_WORDS */
};

static int number_of(struct matrix_block *block, int side, const struct matrix *operand) {
    int n = 0;
    while (n < block->counts[side] && block->operands[side][n] != operand) n++;
    if (n == BLOCK_MATRICES) return -1;
    block->operands[side][n] = operand;
    if (n == block->counts[side]) block->counts[side]++;
    return n;
}

static bool add_product(struct matrix_block *block, const struct matrix *product) {
    if (!product->words[0] || !product->sum) return false;
    int i = number_of(block, 0, product->words[0]), j = number_of(block, 1, product->words[1]);
    if (i < 0 || j < 0 || block->products[i][j]) return false;
    block->products[i][j] = product;
    return true;
}

static int64_t row_bytes(const struct matrix *operand) {
    return operand->offsets[matrix_lane(1, 0)] - operand->offsets[matrix_lane(0, 0)];
}

/* Whether each sum is where the runtime looks for it. */
static bool is_laid_out(const struct matrix_block *block) {
    for (int i = 0; i < block->counts[0]; i++)
        for (int j = 0; j < block->counts[1]; j++) {
            const struct matrix *product = block->products[i][j], *first = block->products[i / 2 * 2][0];
            if (!product || product->sum->tile != first->sum->tile || product->sum->column != j ||
                product->sum->row != i % 2 * MATRIX_SIZE)
                return false;
        }
    for (int side = 0; side < 2; side++)
        for (int n = 0; n < block->counts[side]; n++)
            if (row_bytes(block->operands[side][n]) != row_bytes(block->operands[side][0])) return false;
    return block->counts[0] > 1 && block->counts[1] > 1;
}

static LLVMTypeRef words_type(struct simd *s) {
    return LLVMArrayType2(type_i64(s->unit), (uint64_t)packed_count(s) * BLOCK_WORDS);
}

struct matrix_block *matrix_block_of(struct simd *s, LLVMBasicBlockRef at) {
    if (!s->multiplies_blocks) return NULL;
    struct matrix_block *block = arena_alloc(&s->arena, sizeof *block);
    if (!block) return NULL;
    *block = (struct matrix_block){.counts = {0}};
    FOR_EACH_INSTRUCTION(i, at) {
        const struct matrix *product = matrix_of(s, i);
        if (product && product->kind == MATRIX_PRODUCT && product->halves[0] == i &&
            !add_product(block, product))
            return NULL;
    }
    if (!is_laid_out(block)) return NULL;
    block->words = simd_slot(s, words_type(s));
    return block;
}

static LLVMValueRef word_at(struct simd *s, int group, int word) {
    return simd_field(s, s->matrix_block->words, 8 * (size_t)(group * BLOCK_WORDS + word));
}

static LLVMValueRef constant(struct simd *s, int64_t value) {
    return LLVMConstInt(type_i64(s->unit), (unsigned long long)value, true);
}

static void set_word(struct simd *s, int group, int word, LLVMValueRef value) {
    if (LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMPointerTypeKind)
        value = LLVMBuildPtrToInt(s->unit->builder, value, type_i64(s->unit), "");
    LLVMBuildStore(s->unit->builder, value, word_at(s, group, word));
}

static void begin(struct simd *s) {
    const struct matrix_block *block = s->matrix_block;
    LLVMBuilderRef b = s->unit->builder;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
    LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(s->matrix_entry));
    for (int group = 0; group < packed_count(s); group++) {
        set_word(s, group, BLOCK_ROUNDS, constant(s, 0));
        set_word(s, group, BLOCK_LEFTS, constant(s, block->counts[0]));
        set_word(s, group, BLOCK_RIGHTS, constant(s, block->counts[1]));
        set_word(s, group, BLOCK_LEFT_ROW, constant(s, row_bytes(block->operands[0][0])));
        set_word(s, group, BLOCK_RIGHT_ROW, constant(s, row_bytes(block->operands[1][0])));
        for (int i = 0; i < block->counts[0]; i += 2)
            set_word(s, group, BLOCK_SUMS + i / 2, matrix_sum_address(block->products[i][0], group, 0));
    }
    LLVMPositionBuilderAtEnd(b, here);
}

static void multiply(struct simd *s) {
    LLVMTypeRef nothing = LLVMVoidTypeInContext(s->unit->context);
    for (int group = 0; group < packed_count(s); group++) {
        LLVMValueRef words = word_at(s, group, 0);
        (void)simd_call_runtime(s, "smelt_runtime_gang_matrices", nothing, &words, 1);
        set_word(s, group, BLOCK_ROUNDS, constant(s, 0));
    }
}

/* The address of the operand's first element. */
static LLVMValueRef address_of(struct simd *s, const struct matrix *operand, int group) {
    LLVMValueRef offset = constant(s, matrix_element(operand, group, 0, 0));
    return LLVMBuildGEP2(s->unit->builder, LLVMInt8TypeInContext(s->unit->context), operand->address, &offset,
                         1, "");
}

static void note_operands(struct simd *s, int group, LLVMValueRef round) {
    const struct matrix_block *block = s->matrix_block;
    LLVMBuilderRef b = s->unit->builder;
    for (int side = 0; side < 2; side++)
        for (int n = 0; n < block->counts[side]; n++) {
            LLVMValueRef first = word_at(s, group, BLOCK_OPERANDS + side * BLOCK_MATRICES + n);
            LLVMValueRef index = LLVMBuildMul(b, round, constant(s, 2 * BLOCK_MATRICES), "");
            LLVMValueRef place = LLVMBuildGEP2(b, type_i64(s->unit), first, &index, 1, "");
            LLVMValueRef address = address_of(s, block->operands[side][n], group);
            LLVMBuildStore(b, LLVMBuildPtrToInt(b, address, type_i64(s->unit), ""), place);
        }
}

void matrix_block_note_round(struct simd *s) {
    LLVMBuilderRef b = s->unit->builder;
    begin(s);
    s->matrix_tiles = s->matrix_part; /* it is the only part */
    LLVMValueRef round = LLVMBuildLoad2(b, type_i64(s->unit), word_at(s, 0, BLOCK_ROUNDS), "");
    for (int group = 0; group < packed_count(s); group++) note_operands(s, group, round);
    LLVMValueRef next = LLVMBuildAdd(b, round, constant(s, 1), "");
    for (int group = 0; group < packed_count(s); group++) set_word(s, group, BLOCK_ROUNDS, next);
    LLVMValueRef full = LLVMBuildICmp(b, LLVMIntEQ, next, constant(s, BLOCK_MOST_ROUNDS), "");
    LLVMBasicBlockRef all = simd_block(s, "multiply"), more = simd_block(s, "noted");
    LLVMMoveBasicBlockAfter(more, all);
    LLVMBuildCondBr(b, full, all, more);
    LLVMPositionBuilderAtEnd(b, all);
    multiply(s);
    LLVMBuildBr(b, more);
    LLVMPositionBuilderAtEnd(b, more);
}

void matrix_block_end(struct simd *s) {
    multiply(s);
}
