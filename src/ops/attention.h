/* A call of attention or of its derivative: its arrays, its kernels, and how their work is divided. */
#ifndef SMELT_OPS_ATTENTION_H
#define SMELT_OPS_ATTENTION_H

#include "ops/operation.h"

/* Shared with the kernels. */
struct attention_size {
    int rows, keys, depth, value_depth, heads, key_heads;
    float scale;
    int causal;
    int64_t mask_first, mask_strides[4];
    int parts, part_keys;
    int lines;
    int tiles, turns;
    struct matrices {
        int64_t first, row, between;
        int batch, head, count, unused;
    } places[3];
    struct {
        int64_t batch, head, row;
    } result;
};

enum mask_kind { MASK_NONE, MASK_BOOLS, MASK_FLOATS, MASK_SAME, MASK_SUMS };

/* The arrays of a call, all but the results. `own` holds what was copied or retained. */
enum array_name { Q, K, V, MASK, SINKS, LINES, COLUMNS, OUT, SUMS, G, ARRAY_COUNT };

struct attention {
    struct call call;
    smelt_apply_desc apply;
    smelt_array *arrays[ARRAY_COUNT]; /* NULL: there is none */
    smelt_array *own[ARRAY_COUNT];
    struct attention_size size;
    int batches;
    smelt_dtype dtype;
    enum mask_kind mask;
    bool rows_first; /* of the result, in memory */
};

/* ---- attention_arrays.c: the arrays, checked and placed where the kernels read them. */

/* Checks what `desc` and a->arrays name, and brings it to the call's device. Call attention_end in any
 * case. */
smelt_status attention_begin(const smelt_attention_desc *desc, struct attention *a);
void attention_end(struct attention *a);

/* The matrices of an array's heads, which lie at multiples of one distance. False: they do not. */
bool attention_find_matrices(const smelt_array *array, struct matrices *matrices);

/* For the kernels that read q, k and v as contiguous arrays. */
smelt_status attention_make_dense(struct attention *a);

/* Whether rows of q, k, v and the like are multiples of 8 elements that begin at multiples of 16 bytes, and
 * bias_columns, which are loaded in pairs, begin at such a multiple, too. */
bool attention_is_aligned(const struct attention *a);

/* ---- attention_kernel.c: the kernels, and their launches. */

enum attention_kernel {
    FORWARD, /* up to ON_HOST_FEW: forward kernels */
    ON_HOST,
    ON_HOST_FEW,
    DOTS,
    BY_Q,
    BY_KV,
    SPLIT,
    JOIN,
    BY_WARPGROUPS,
    VJP_NOTES,
    VJP_BY_WARPGROUPS,
    VJP_ROUND,
    KERNEL_COUNT
};

/* Whether the kernel finds q, k and v by a->size.places; to the others, they are contiguous. */
static inline bool attention_is_placed(enum attention_kernel kernel) {
    return kernel == BY_WARPGROUPS || kernel == ON_HOST || kernel == ON_HOST_FEW;
}

static inline bool attention_is_warpgroups(enum attention_kernel kernel) {
    return kernel >= BY_WARPGROUPS;
}

static inline int attention_depth(const struct attention *a) {
    return a->size.depth > a->size.value_depth ? a->size.depth : a->size.value_depth;
}

#define KERNEL_ARRAYS 9

/* Runs a kernel on arrays by index; the sizes are at 4, the mask or bias_lines at 10, the sinks at 11,
 * bias_columns at 12. */
smelt_status attention_run(struct attention *a, enum attention_kernel kernel,
                           smelt_array *const arrays[KERNEL_ARRAYS]);

/* ---- attention_tiles.c: how a kernel's work is divided. */

static inline int attention_round_up(int count, int step) {
    return (count + step - 1) / step * step;
}

/* Whether kernels of warpgroups can compute it, with enough rows to be faster. */
bool attention_is_by_warpgroups(const struct attention *a);

/* Tiles of BY_WARPGROUPS. */
int64_t attention_tiles(const struct attention *a);

/* Chooses whether the keys are split into parts, and if so stores the parts in a->size: as tuned; otherwise
 * on GPUs, for few rows, as many as give every multiprocessor work. */
bool attention_choose_parts(struct attention *a);

/* Up to this many rows of a head, ON_HOST_FEW is faster. (Zen 5, 8 heads of 64 elements, 512 keys, one
 * thread; µs of ON_HOST and of ON_HOST_FEW: 1 row 109 and 19, 4 rows 106 and 47.) */
#define HOST_FEW_ROWS 4

/* Of a tile of scores: what was tuned, else by rule. The registers of GPUs hold small ones; on CPUs, larger
 * ones pay. */
void attention_choose_tile(const struct attention *a, enum attention_kernel kernel, int *rows, int *keys);

/* The groups of a kernel, and their threads. */
void attention_choose_groups(struct attention *a, enum attention_kernel kernel, int rows, int keys,
                             smelt_dispatch_desc *dispatch);

#endif
