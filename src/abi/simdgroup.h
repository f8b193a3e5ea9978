/* Simdgroup operations of all engines: kinds, reductions and scans. Independent of LLVM. */
#ifndef SMELT_ABI_SIMDGROUP_H
#define SMELT_ABI_SIMDGROUP_H

#define SIMDGROUP_LANES 32

enum simd_kind { SIMD_SHUFFLE, SIMD_BALLOT, SIMD_REDUCE, SIMD_SCAN, SIMD_MATRIX, SIMD_BARRIER };

/* SIMD_MATRIX: a lane passes its two elements of the left matrix's row, its element of the right matrix, and
 * what is added. Its result is Σ left right over eight terms: the left factor is the element term % 2 of one
 * lane, the right one is another's. */
#define SIMD_MATRIX_LEFT_LANE(lane, term) (((lane) & 0x16) | ((term) & 4) << 1 | ((term) >> 1 & 1))
#define SIMD_MATRIX_RIGHT_LANE(lane, term) (((lane) & 9) | ((term) & 4) << 2 | ((term) & 3) << 1)

/* Operations, as __SMELT_SUM … in the prelude. */
enum simd_operation {
    SIMD_SUM,
    SIMD_PRODUCT,
    SIMD_MIN_SIGNED,
    SIMD_MAX_SIGNED,
    SIMD_MIN_UNSIGNED,
    SIMD_MAX_UNSIGNED,
    SIMD_MIN_FLOAT,
    SIMD_MAX_FLOAT,
    SIMD_AND,
    SIMD_OR,
    SIMD_XOR,
    SIMD_EXCLUSIVE = 16 /* added to the operation of a scan */
};

#endif
