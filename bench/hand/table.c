/* The set of hand-written functions for the CPU that this file is compiled for. */
#include "bench/hand/handwritten.h"
#include "bench/hand/vector.h"

const struct handwritten BY_HAND_TABLE = {.exp = BY_HAND(exp),
                                          .softmax_tree = BY_HAND(softmax_tree),
                                          .softmax_simd = BY_HAND(softmax_simd),
                                          .matmul_tiled = BY_HAND(matmul_tiled),
                                          .matmul_register = BY_HAND(matmul_register),
                                          .matmul_register_lanes = BY_HAND(matmul_register_lanes),
                                          .triangular_inverse = BY_HAND(triangular_inverse),
                                          .triangular_inverse_fours = BY_HAND(triangular_inverse_fours),
                                          .grid_sample = BY_HAND(grid_sample),
                                          .gelu_chain = BY_HAND(gelu_chain),
                                          .multiply_adds = BY_HAND(multiply_adds)};
