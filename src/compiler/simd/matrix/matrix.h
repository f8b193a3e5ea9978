/* Matrices of 8×8 elements in a row for each register.
 *
 * A lane of a simdgroup has two neighbouring elements of a matrix (matrix.c), so a matrix is two values of
 * the thread: its *halves*, the even and the odd columns. In lanes' order, a chunk of eight lanes has
 * elements of four rows, and a product needs a shuffle for each operand of each multiply-add. With rows in
 * registers it needs none: a row of the right matrix, times an element of the left one for all columns.
 *
 * Where it pays and nothing speaks against it, the chunks of both halves are therefore the rows: those of the
 * first half rows 0 to 3, those of the second rows 4 to 7. This holds for 256 bits, where a chunk is a row.
 * With registers of 512 bits, chunks are as long, and products keep rows of two sums in one register.
 * matrix_find.c decides which values are kept so; matrix_rows.c and matrix_products.c write their code, and
 * convert at the borders. */
#ifndef SMELT_COMPILER_SIMD_MATRIX_H
#define SMELT_COMPILER_SIMD_MATRIX_H

#include "compiler/simd/simd.h"

#define MATRIX_SIZE 8
#define MATRIX_CHUNKS 4 /* of a half, in one simdgroup */

/* The position of elements: lane bits 4, 2 and 1 are the row, bits 3 and 0 the pair of columns. */
static inline int matrix_row(int lane) {
    return (lane >> 2 & 4) | (lane >> 1 & 3);
}
static inline int matrix_pair(int lane) {
    return (lane >> 2 & 2) | (lane & 1);
}
static inline int matrix_lane(int row, int pair) {
    return (row & 4) << 2 | (row & 3) << 1 | (pair & 2) << 2 | (pair & 1);
}

enum matrix_kind {
    MATRIX_PRODUCT,
    MATRIX_LOAD,
    MATRIX_STORE,
    MATRIX_PHI,
    MATRIX_ARITHMETIC /* the same operation on each element */
};

struct matrix {
    enum matrix_kind kind;
    LLVMValueRef halves[2];  /* instructions of one block, in any order */
    LLVMValueRef place;      /* the first load, the last store: where both are written … */
    int64_t bytes;           /* … from whose address to the first half's */
    struct matrix *next;     /* of s->matrices */
    struct matrix *words[2]; /* a product of bfloats by pairs: the left and the right one; or NULL */
    bool mixed;              /* arithmetic: has an operand in lanes' order */
    struct matrix_sum *sum;  /* of which it is a stage (matrix_sums.h); or NULL */
    int uses;                /* as an operand of products … */
    bool far;                /* … of which one is in another block */
    int left;                /* … that are not written yet */
    bool transposed;         /* load, store: the columns are rows in memory */
    const int64_t *offsets;  /* load, store: of all lanes' first elements, from lane 0's */
    /* Emission. */
    struct matrix_rows *rows; /* of operands of products: in memory */
    struct matrix *pending;   /* a product that waits: the one after it … */
    bool waits;
    int converted; /* arithmetic: the emission that wrote it with its only operand; 0: none */
    bool direct;   /* a load, or converted from one: products read the kernel's memory (matrix_loop.c) … */
    LLVMValueRef address;                      /* … relative to this address of lane 0's */
    int part, part_group, part_row, part_rows; /* a product: the rows that the last part wrote … */
    LLVMValueRef part_slots[MATRIX_SIZE];      /* … and where they are side by side with another product's, */
    bool part_second;                          /* before its rows or behind them; or NULL */
    bool part_whole;                           /* … and in memory, too (matrix_sums.h) */
    bool chained;                              /* … and during writing: part of a chain */
};

/* The matrix of which the value is a half; NULL: it is in lanes' order. */
static inline struct matrix *matrix_of(struct simd *s, LLVMValueRef value) {
    return LLVMIsAInstruction(value) ? value_of(s, value)->matrix : NULL;
}

/* Both are halves of one matrix, in order; else NULL. */
static inline struct matrix *matrix_of_halves(struct simd *s, LLVMValueRef first, LLVMValueRef second) {
    struct matrix *matrix = matrix_of(s, first);
    return matrix && matrix->halves[0] == first && matrix->halves[1] == second ? matrix : NULL;
}

/* The halves of a product's left or right operand, as it is multiplied. */
static inline void matrix_operand(const struct matrix *product, bool right, LLVMValueRef *halves) {
    LLVMValueRef a = product->halves[0], b = right ? product->halves[1] : a;
    const struct matrix *words = product->words[right];
    halves[0] = words ? words->halves[0] : LLVMGetOperand(a, right ? 2 : 0);
    halves[1] = words ? words->halves[1] : LLVMGetOperand(b, right ? 2 : 1);
}

/* Whether both products have the same left matrix. */
static inline bool matrix_has_left_of(const struct matrix *a, const struct matrix *b) {
    LLVMValueRef own[2], other[2];
    matrix_operand(a, false, own);
    matrix_operand(b, false, other);
    return own[0] == other[0] && own[1] == other[1] && !a->words[0] == !b->words[0];
}

/* Of arithmetic: whether its first operand is the only one that an instruction computes. */
static inline bool matrix_is_conversion(LLVMValueRef i) {
    for (int n = 1; n < LLVMGetNumOperands(i); n++)
        if (LLVMIsAInstruction(LLVMGetOperand(i, (unsigned)n))) return false;
    return true;
}

/* Whether the product is added to the matrix. */
static inline bool matrix_adds_to(const struct matrix *product, const struct matrix *sum) {
    return LLVMGetOperand(product->halves[0], 3) == sum->halves[0] &&
           LLVMGetOperand(product->halves[1], 3) == sum->halves[1];
}

/* Of a load: bytes from lane 0's address to an element of a simdgroup's matrix. */
static inline int64_t matrix_element(const struct matrix *load, int group, int row, int column) {
    const int64_t *offsets = load->offsets + (ptrdiff_t)group * SIMDGROUP_LANES;
    int64_t pair = offsets[matrix_lane(0, 1)] - offsets[matrix_lane(0, 0)];
    return load->bytes + offsets[matrix_lane(row, column / 2)] + column % 2 * (pair / 2);
}

/* matrix_find.c — whether rows are worth chunks of 256 bits where registers are wider: there are products of
 * floats from threadgroup memory, whose sums then stay in registers (matrix_loop.c). */
bool simd_matrix_pays(LLVMValueRef entry);
/* … decides, when all shapes are known. */
void matrix_find(struct simd *s);

/* matrix.c — the second half of the product of which the call is the first half; or NULL. */
LLVMValueRef matrix_second_half(LLVMValueRef call);
/* A label in the code, at which LLVM's scheduler starts anew. */
void matrix_end_schedule(struct simd *s);

/* matrix_outlined.c — whether products are calls of functions. */
bool simd_matrix_is_outlined(const struct simd *s);
/* … the most parameters and results of such a function together: those of both halves of a product, in
 * vectors of four lanes. */
#define MATRIX_MOST_VECTORS 64
/* … writes its body: the results of the parameters. */
typedef void matrix_body(struct simd *s, LLVMValueRef const *parameters, LLVMValueRef *results);
/* … calls the function of this name, which is written before its first call. The results have the type of the
 * last argument. */
void simd_matrix_call(struct simd *s, const char *name, matrix_body *write, LLVMValueRef *arguments,
                      unsigned count, LLVMValueRef *results, unsigned result_count);

/* matrix_operands.c — how the halves' chunks are had. */
extern const struct matrix_forms matrix_forms;
/* matrix_rows.c — a chunk of a phi's half, when control comes from the block. */
LLVMValueRef matrix_incoming(struct simd *s, LLVMValueRef phi, LLVMBasicBlockRef from, int chunk);
/* Loads, stores, arithmetic with operands in lanes' order: all chunks, each where it stands. */
void matrix_emit(struct simd *s, LLVMValueRef instruction);
/* matrix_products.c — products wait, so that several can be written together. */
void matrix_emit_later(struct simd *s, LLVMValueRef product);
/* The instruction needs the result of a product that waits, or replaces what such a product needs. */
bool matrix_is_awaited(struct simd *s, LLVMValueRef instruction);
void matrix_emit_pending(struct simd *s);

/* As s->matrix_part: the block is not written in parts. */
#define NO_PART 0

/* matrix_loop.c — whether the block is a loop to be written for some rows of the sums after others, the
 * first of which then begins. `before`: the block that leads to it. */
bool matrix_loop_begin(struct simd *s, int place, int *before);
/* … goes on to the next part, or returns false: it was the last. */
bool matrix_loop_next(struct simd *s);
bool matrix_loop_is_last(const struct simd *s);
/* … asked for each tile of sums, in order: whether it belongs to the part. */
bool matrix_loop_takes_tile(struct simd *s);
/* … the part has written these rows of the product. */
void matrix_loop_set_rows(struct simd *s, struct matrix *product, int group, int row, int rows,
                          LLVMValueRef const *slots, bool second, bool whole);
/* … a slot for a row of a sum, or of two side by side (`second`), in which the loop carries them: those that
 * the products add to. Its first contents are written where control enters the loop. */
LLVMValueRef matrix_loop_join(struct simd *s, const struct matrix *first, const struct matrix *second,
                              int group, int row);
/* … whether a chunk of the phi's half gets a value along the edge. */
bool matrix_loop_arrives(struct simd *s, LLVMValueRef phi, LLVMBasicBlockRef from, int chunk);
/* … where the part's rounds end: stores its sums. After the last part, the sums of all are the products'
 * results. */
void matrix_loop_end(struct simd *s, int place);
/* … of a load that products read directly. */
void matrix_loop_set_address(struct simd *s, LLVMValueRef load);
#endif
