/* The results of integer instructions with known operands. */
#ifndef SMELT_COMPILER_FOLD_H
#define SMELT_COMPILER_FOLD_H

#include <llvm-c/Core.h>

#include <stdbool.h>
#include <stdint.h>

/* The lowest bits of a number, as many as the integer type has (all, if it has 64 or more). */
uint64_t fold_cut(LLVMTypeRef type, uint64_t bits);

/* The value of a binary operation or comparison of two integers of at most 64 bits, without bits beyond their
 * type's; false: undefined for these operands, or another instruction. */
bool fold_integers(LLVMValueRef instruction, uint64_t a, uint64_t b, uint64_t *out);

/* An addition, product, bit operation or shift of integers, or a conversion between integer types: no memory,
 * no trap. */
bool fold_is_arithmetic(LLVMValueRef instruction);

#endif
