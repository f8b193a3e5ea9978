/* Generates a random kernel from a seed. */
#ifndef SMELT_FUZZ_GENERATE_H
#define SMELT_FUZZ_GENERATE_H

#include "kernel_case.h"

/* Features of kernels; --without leaves one out, --statistics counts them. A kernel uses a random subset. */
#define FEATURE_TABLE(X)                                                                           \
    X(INTEGER, integer, "arithmetic on 32-bit integers")                                           \
    X(DIVISION, division, "integer division and remainder, by zero and by -1")                     \
    X(SHIFT, shift, "shifts by more than the width")                                               \
    X(BITS, bits, "popcount, clz, rotate and their kin")                                           \
    X(NARROW, narrow, "8-bit and 16-bit integers")                                                 \
    X(WIDE, wide, "64-bit integers")                                                               \
    X(REAL, real, "float arithmetic")                                                              \
    X(SPECIAL, special, "NaN, infinities, subnormals, -0")                                         \
    X(MATH, math, "exp, sin, pow …")                                                               \
    X(HALF_REAL, half, "half and bfloat")                                                          \
    X(CONVERSION, conversion, "between integers and floats, saturating")                           \
    X(VECTOR, vector, "float2 … uchar4, swizzles, components by index")                            \
    X(TERNARY, ternary, "c ? a : b, select")                                                       \
    X(SHORT_CIRCUIT, short_circuit, "&& and ||")                                                   \
    X(IF, if, "if and else, different by thread")                                                  \
    X(IF_UNIFORM, if_uniform, "if and else, the same in all threads")                              \
    X(SWITCH, switch, "switch, cases that fall through")                                           \
    X(FOR, for, "for loops of the same trips in all threads")                                      \
    X(FOR_VARYING, for_varying, "for loops whose trips differ by thread")                          \
    X(WHILE, while, "while loops")                                                                 \
    X(DO, do, "do loops")                                                                          \
    X(BREAK, break, "break, also out of switch")                                                   \
    X(CONTINUE, continue, "continue")                                                              \
    X(RETURN, return, "early return")                                                              \
    X(HELPER, helper, "functions with loops and returns of their own")                             \
    X(PRIVATE, private, "private arrays, dynamic index")                                           \
    X(STRUCTURE, structure, "private structs and arrays of them")                                  \
    X(LOAD_CONTIGUOUS, load_contiguous, "neighbours read neighbours")                              \
    X(LOAD_STRIDED, load_strided, "strides 2, 3, 4")                                               \
    X(LOAD_REVERSED, load_reversed, "backwards")                                                   \
    X(LOAD_UNIFORM, load_uniform, "all from one address")                                          \
    X(LOAD_CLAMPED, load_clamped, "index clamped at edges")                                        \
    X(LOAD_MODULO, load_modulo, "index modulo, shifted, masked, with xor")                         \
    X(LOAD_GATHER, load_gather, "any index")                                                       \
    X(LOAD_VECTOR, load_vector, "float4 from memory, pointers with offsets and chosen pointers")   \
    X(LOAD_EDGE, load_edge, "guarded at the arrays' edges, near zero and near wrap-around")        \
    X(LOAD_SELECTED, load_selected, "loaded first, thrown away by a select")                       \
    X(LOAD_FOLDED, load_folded, "the same, and arithmetic with what was selected")                 \
    X(STORE, store, "own elements of an output, in several layouts")                               \
    X(STORE_VECTOR, store_vector, "vectors to memory")                                             \
    X(LOAD_OWN, load_own, "own elements of an output read back")                                   \
    X(BARRIER, barrier, "threadgroup memory written, barrier, read by others")                     \
    X(BARRIER_LOOP, barrier_loop, "barriers in loops")                                             \
    X(TREE, tree, "tree reductions and scans in threadgroup memory")                               \
    X(THREADGROUP_ATOMIC, threadgroup_atomic, "atomics in threadgroup memory")                     \
    X(ATOMIC, atomic, "atomics in device memory, order of no matter")                              \
    X(ATOMIC_OWN, atomic_own, "atomics on a thread's own cell, results used")                      \
    X(SIMD_REDUCE, simd_reduce, "simd_sum, min, max, product, and, or, xor")                       \
    X(SIMD_FLOAT, simd_float, "float sums and products")                                           \
    X(SIMD_SCAN, simd_scan, "prefix sums and products")                                            \
    X(SIMD_SHUFFLE, simd_shuffle, "shuffles and broadcasts")                                       \
    X(SIMD_MATRIX, simd_matrix, "products of 8×8 matrices")                                        \
    X(SIMD_VOTE, simd_vote, "ballot, all, any, is_first")                                          \
    X(QUAD, quad, "the same of quads")                                                             \
    X(SIMD_DIVERGENT, simd_divergent, "simdgroup operations where lanes may be missing")           \
    X(SIMD_BARRIER, simd_barrier, "simdgroup_barrier")                                             \
    X(TWO_DIMENSIONS, two_dimensions, "2-D grids")                                                 \
    X(THREE_DIMENSIONS, three_dimensions, "3-D grids")                                             \
    X(SIMD_FLOAT_SCAN, simd_float_scan, "float prefix sums and products, where simd_float is")     \
    X(FAST, fast, "fast:: forms of functions, where math is")                                      \
    X(LEAVE_BARRIER, leave_barrier, "returns past barriers, with simdgroup operations on the way") \
    X(LARGE, large, "10 to 39 statements, three launches; without it: 3 to 8, one launch of few threads")

enum feature {
#define FEATURE(upper, lower, meaning) FEATURE_##upper,
    FEATURE_TABLE(FEATURE)
#undef FEATURE
        FEATURE_COUNT
};

extern const char *const feature_names[FEATURE_COUNT], *const feature_meanings[FEATURE_COUNT];

/* The kernel of `seed`; free it with case_free. Features with `without[f]` do not occur; counts[f] receives
 * the number of occurrences of feature f. */
struct kernel_case generate(uint64_t seed, const bool without[FEATURE_COUNT], unsigned counts[FEATURE_COUNT]);

#endif
