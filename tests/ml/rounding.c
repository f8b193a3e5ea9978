/* The kernels whose float results a GPU may round differently from a CPU, and the reason. All others must
 * have the same bits on both. Each must also meet its float64 reference, within the bound of its test. */
#include "ml.h"

#include <fnmatch.h>

/* A GPU combines the lanes of a scan in steps of doubling distance, a CPU one by one. */
#define SCAN "the order of a float scan"
/* Tensor cores multiply half and bfloat matrices, also by float ones; they truncate far below the largest
 * term. */
#define CORES "the sums of tensor cores"
/* A CPU sums the products of a tile term by term, a GPU in the order of its matrices. */
#define TILES "the order of a tile's sums"
/* A GPU has its own fast forms of functions. */
#define FAST "fast functions"

static const struct {
    const char *file, *entry; /* the entry; * matches anything */
    const char *why;
} apart[] = {
    {"scan.metal", "scan_rows_*_sum_float32", SCAN},
    {"scan.metal", "scan_rows_*_prod_float16", SCAN},
    {"scan.metal", "strided_scan_sum_float32", SCAN},
    {"attention.metal", "attend_one_*", FAST},
    {"reductions.metal", "logsumexp_*", FAST},
    {"softmax.metal", "softmax_row_*", FAST},
    {"attention.metal", "flash_attention_f16_*", CORES},
    {"conv.metal", "implicit_gemm_conv_2d_bfloat16", CORES},
    {"quantised.metal", "block4_matmul", CORES},
    {"quantised.metal", "super6_matmul", CORES},
    {"gemm.metal", "gemm_*_float16", CORES},
    {"gemm.metal", "gemm_*_bfloat16", CORES},
    {"tensor.metal", "[nt][nt]*", TILES},
    {"tensor.metal", "odd", TILES},
    {"tensor.metal", "types *", TILES},
    {"tensor.metal", "scaled", TILES},
    {"tensor.metal", "large *", CORES},
    {"tensor.metal", "relaxed *", CORES},
    {"tensor.metal", "scaled large*", CORES},
    {"tensor.metal", "row", CORES},
    {"tensor.metal", "wide", CORES},
    {"tensor.metal", "registers *", TILES},
    {"tensor.metal", "rows *", TILES},
    {"tensor_alike.metal", "*", TILES},
    {"tensor_single.metal", "spaces", CORES},
    {"tensor_single.metal", "lanes", CORES},
    {"tensor.metal", "convolve 3 3", CORES},
    {"../../kernels/tensor/matmul2d_int4.metal", "*", TILES},
    {"../../kernels/tensor/flash_attention.metal", "*", TILES},
};

const char *rounded_apart(const char *file, const char *entry) {
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        if (strcmp(apart[i].file, file) == 0 && fnmatch(apart[i].entry, entry, 0) == 0) return apart[i].why;
    return NULL;
}
