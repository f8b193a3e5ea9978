/* Products of bfloats by AVX512-BF16, where the math mode allows it (relaxed, fast).
 *
 * VDPBF16PS adds two products to each sum: those of the columns k and k + 1 of the left matrix, which are a
 * word of its row, with rows k and k + 1 of the right matrix, whose elements lie in pairs. It flushes
 * subnormal operands and results to 0 and rounds each of its steps to nearest. So such products keep the
 * operands that were loaded, their *words*, and not the floats that the prelude converts them to.
 *
 * Element by element, the sum of a product has the columns of the left matrix in order, by pairs. */
#include "compiler/simd/matrix/matrix_pairs.h"
#include "compiler/simd/lanes/lanes.h"

/* ---- Recognition. */

static bool is_word(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) == 16;
}

static LLVMValueRef operand_of(LLVMValueRef i, LLVMOpcode opcode) {
    bool is = LLVMIsAInstruction(i) && LLVMGetInstructionOpcode(i) == opcode;
    return is ? LLVMGetOperand(i, 0) : NULL;
}

/* The bits of the bfloat that the float was converted from (passes/bfloat.c); NULL: it has another source. */
static LLVMValueRef word_of(LLVMValueRef value) {
    LLVMValueRef shifted = operand_of(value, LLVMBitCast);
    LLVMValueRef wide = shifted ? operand_of(shifted, LLVMShl) : NULL;
    LLVMValueRef by = wide ? LLVMGetOperand(shifted, 1) : NULL;
    if (!by || !LLVMIsAConstantInt(by) || LLVMConstIntGetZExtValue(by) != 16) return NULL;
    LLVMValueRef word = operand_of(wide, LLVMZExt);
    return word && is_word(word) ? word : NULL;
}

static bool may_reassociate(LLVMValueRef call) {
    return LLVMCanValueUseFastMathFlags(call) && (LLVMGetFastMathFlags(call) & LLVMFastMathAllowReassoc) != 0;
}

static struct matrix *words_of(struct simd *s, LLVMValueRef first, LLVMValueRef second) {
    LLVMValueRef words[2] = {word_of(first), word_of(second)};
    return words[0] && words[1] ? matrix_of_halves(s, words[0], words[1]) : NULL;
}

void matrix_find_pairs(struct simd *s, struct matrix *product) {
    LLVMValueRef first = product->halves[0], second = product->halves[1];
    if (!s->multiplies_bfloats || simd_matrix_is_outlined(s) || !may_reassociate(first) ||
        !may_reassociate(second))
        return;
    struct matrix *left = words_of(s, LLVMGetOperand(first, 0), LLVMGetOperand(first, 1));
    struct matrix *right = words_of(s, LLVMGetOperand(first, 2), LLVMGetOperand(second, 2));
    if (!left || !right) return;
    product->words[0] = left;
    product->words[1] = right;
}

/* ---- Code. */

/* Rows k and k + 1 of the right matrices of one or two chains, of which each has eight elements, in pairs. */
LLVMValueRef simd_matrix_pair_rows(struct simd *s, LLVMValueRef const (*rows)[2], int chains) {
    int indexes[4 * MATRIX_SIZE], count = 0;
    LLVMValueRef joined[2];
    /* Matrices side by side in memory are one load. */
    for (int r = 0; r < 2; r++) joined[r] = chains == 2 ? lanes_join(s, rows[0][r], rows[1][r]) : rows[0][r];
    for (int column = 0; column < chains * MATRIX_SIZE; column++)
        for (int r = 0; r < 2; r++) indexes[count++] = r * chains * MATRIX_SIZE + column;
    return lanes_shuffle(s, lanes_join(s, joined[0], joined[1]), NULL, indexes, count);
}

static LLVMValueRef as_bfloats(struct simd *s, LLVMValueRef vector, unsigned count) {
    LLVMTypeRef type = LLVMVectorType(LLVMBFloatTypeInContext(s->unit->context), count);
    return LLVMBuildBitCast(s->unit->builder, vector, type, "");
}

LLVMValueRef simd_matrix_add_pairs(struct simd *s, LLVMValueRef word, LLVMValueRef pairs, LLVMValueRef sum) {
    unsigned lanes = LLVMGetVectorSize(LLVMTypeOf(sum));
    LLVMValueRef words = lanes_splat(s, word, (int)lanes);
    const char *name = lanes == 16 ? "llvm.x86.avx512bf16.dpbf16ps.512" : "llvm.x86.avx512bf16.dpbf16ps.256";
    LLVMValueRef arguments[] = {sum, as_bfloats(s, words, 2 * lanes), as_bfloats(s, pairs, 2 * lanes)};
    return simd_intrinsic(s, name, NULL, 0, arguments, 3);
}
