/* The product of 8×8 matrices in the lanes of a simdgroup, where they are not kept in rows (matrix.h).
 *
 * A lane holds two neighbouring elements of a row, in an even and an odd column (prelude:
 * metal_simdgroup_matrix). One call computes one of them for every lane. The accumulator stays in place; for
 * each column k of A, in order, a chunk of column k of A, broadcast along the rows, is multiplied with a
 * chunk of row k of B, broadcast down the columns, in a fused multiply-add. Products that share a matrix have
 * the same broadcasts, and the clean-up after this pass merges them, so that a tile of matrices is mostly
 * multiply-adds. */
#include "compiler/simd/matrix/matrix.h"
#include "compiler/simd/lanes/lanes.h"

#include <string.h>

/* One operand's chunks of one simdgroup. Elements of inactive lanes are 0. */
static void load_operand(struct simd *s, LLVMValueRef operand, int first, LLVMValueRef *chunks) {
    for (int k = 0; k < chunks_of_simdgroup(s); k++) {
        LLVMValueRef chunk = chunk_of(s, operand, first + k), mask = mask_chunk(s, first + k);
        if (mask)
            chunk = LLVMBuildSelect(s->unit->builder, mask, chunk, LLVMConstNull(LLVMTypeOf(chunk)), "");
        chunks[k] = chunk;
    }
}

static LLVMValueRef multiply_add(struct simd *s, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
    LLVMTypeRef type = LLVMTypeOf(a);
    return simd_intrinsic(s, "llvm.fma", &type, 1, (LLVMValueRef[]){a, b, c}, 3);
}

/* ---- The two halves of a product are made together: they share A's columns. */

static LLVMValueRef neighbour(LLVMValueRef call, bool next) {
    LLVMValueRef i = call;
    do i = next ? LLVMGetNextInstruction(i) : LLVMGetPreviousInstruction(i);
    while (i && strncmp(called_name(i), "llvm.dbg.", 9) == 0);
    return i;
}

/* Both halves have the same A, and their operands are available before the first. */
static bool are_halves(LLVMValueRef first, LLVMValueRef second) {
    return first && second && strcmp(called_name(first), called_name(second)) == 0 &&
           LLVMGetCalledValue(first) == LLVMGetCalledValue(second) &&
           LLVMGetOperand(first, 0) == LLVMGetOperand(second, 0) &&
           LLVMGetOperand(first, 1) == LLVMGetOperand(second, 1) && LLVMGetOperand(second, 2) != first &&
           LLVMGetOperand(second, 3) != first;
}

static bool is_second_half(LLVMValueRef call) {
    LLVMValueRef before = neighbour(call, false);
    return are_halves(before, call) && !is_second_half(before);
}

LLVMValueRef matrix_second_half(LLVMValueRef call) {
    LLVMValueRef second = neighbour(call, true);
    return !is_second_half(call) && are_halves(call, second) ? second : NULL;
}

/* The products of one simdgroup: for each column of A and row of B, in order, all chunks of both halves. */
struct product {
    LLVMValueRef even[SIMDGROUP_LANES], odd[SIMDGROUP_LANES], right[2][SIMDGROUP_LANES],
        sums[2][SIMDGROUP_LANES];
    int halves;
};

static void add_products(struct simd *s, struct product *p, int k) {
    int count = chunks_of_simdgroup(s);
    for (int chunk = 0; chunk < count; chunk++) {
        int column[SIMDGROUP_LANES], row[SIMDGROUP_LANES];
        for (int i = 0; i < s->chunk_lanes; i++) {
            int lane = chunk * s->chunk_lanes + i;
            column[i] = matrix_lane(matrix_row(lane), k / 2);
            row[i] = matrix_lane(k, matrix_pair(lane));
        }
        LLVMValueRef left = lanes_gather(s, k % 2 ? p->odd : p->even, count, column);
        for (int h = 0; h < p->halves; h++) {
            LLVMValueRef right = lanes_gather(s, p->right[h], count, row);
            p->sums[h][chunk] = multiply_add(s, left, right, p->sums[h][chunk]);
        }
    }
}

/* ---- In quick code, a function computes them (matrix_outlined.c). Its parameters: the even and the odd
 * columns of the left matrix, the right matrix and the sums, which are its results. */

static unsigned put_vectors(LLVMValueRef const *from, int count, LLVMValueRef *to, unsigned at) {
    for (int n = 0; n < count; n++) to[at++] = from[n];
    return at;
}

static unsigned list_operands(const struct product *p, int count, LLVMValueRef *list) {
    unsigned at = put_vectors(p->odd, count, list, put_vectors(p->even, count, list, 0));
    for (int h = 0; h < p->halves; h++) at = put_vectors(p->right[h], count, list, at);
    for (int h = 0; h < p->halves; h++) at = put_vectors(p->sums[h], count, list, at);
    return at;
}

static void write_function(struct simd *s, int halves, LLVMValueRef const *parameters,
                           LLVMValueRef *results) {
    int count = chunks_of_simdgroup(s);
    struct product p = {.halves = halves};
    (void)put_vectors(parameters, count, p.even, 0);
    (void)put_vectors(parameters + count, count, p.odd, 0);
    for (int h = 0; h < halves; h++) {
        (void)put_vectors(parameters + (ptrdiff_t)count * (2 + h), count, p.right[h], 0);
        (void)put_vectors(parameters + (ptrdiff_t)count * (2 + halves + h), count, p.sums[h], 0);
    }
    for (int k = 0; k < MATRIX_SIZE; k++) add_products(s, &p, k);
    for (int h = 0; h < halves; h++) (void)put_vectors(p.sums[h], count, results, (unsigned)(h * count));
}

static void write_half(struct simd *s, LLVMValueRef const *parameters, LLVMValueRef *results) {
    write_function(s, 1, parameters, results);
}

static void write_both(struct simd *s, LLVMValueRef const *parameters, LLVMValueRef *results) {
    write_function(s, 2, parameters, results);
}

static void call_product(struct simd *s, struct product *p) {
    const int count = chunks_of_simdgroup(s);
    const bool both = p->halves == 2;
    LLVMValueRef operands[MATRIX_MOST_VECTORS], results[MATRIX_MOST_VECTORS];
    unsigned operand_count = list_operands(p, count, operands);
    simd_matrix_call(s, both ? "product_of_matrices" : "half_product_of_matrices",
                     both ? write_both : write_half, operands, operand_count, results,
                     (unsigned)(p->halves * count));
    for (int h = 0; h < p->halves; h++)
        (void)put_vectors(results + (ptrdiff_t)h * count, count, p->sums[h], 0);
}

/* A label in the code, at which LLVM's scheduler starts anew. Over hundreds of independent multiply-adds, it
 * does not count registers well: it would process all sums of a tile in turn, and load and store each of them
 * every time. */
void matrix_end_schedule(struct simd *s) {
    LLVMContextRef context = s->unit->context;
    LLVMMetadataRef text = LLVMMDStringInContext2(context, "product", 7);
    LLVMValueRef note = LLVMMetadataAsValue(context, LLVMMDNodeInContext2(context, &text, 1));
    simd_intrinsic(s, "llvm.codeview.annotation", NULL, 0, &note, 1);
}

void emit_matrix_product(struct simd *s, LLVMValueRef call) {
    if (is_second_half(call)) return; /* emitted with the first */
    LLVMValueRef calls[2] = {call, neighbour(call, true)};
    const int halves = are_halves(calls[0], calls[1]) ? 2 : 1, count = chunks_of_simdgroup(s);
    struct product p = {.halves = halves};
    for (int first = 0; first < s->chunk_count; first += count) {
        load_operand(s, LLVMGetOperand(call, 0), first, p.even);
        load_operand(s, LLVMGetOperand(call, 1), first, p.odd);
        for (int h = 0; h < halves; h++) {
            load_operand(s, LLVMGetOperand(calls[h], 2), first, p.right[h]);
            for (int chunk = 0; chunk < count; chunk++)
                p.sums[h][chunk] = chunk_of(s, LLVMGetOperand(calls[h], 3), first + chunk);
        }
        if (simd_matrix_is_outlined(s)) {
            call_product(s, &p);
        } else {
            for (int k = 0; k < MATRIX_SIZE; k++) add_products(s, &p, k);
            matrix_end_schedule(s);
        }
        for (int h = 0; h < halves; h++)
            for (int chunk = 0; chunk < count; chunk++)
                chunk_set(s, calls[h], first + chunk, p.sums[h][chunk]);
    }
}
