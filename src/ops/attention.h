/* The arrays of a call of attention or of its derivative, checked and placed where the kernels read them. */
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

/* Checks what `desc` and a->arrays name, and brings it to the call's device. Call attention_end in any
 * case. */
smelt_status attention_begin(const smelt_attention_desc *desc, struct attention *a);
void attention_end(struct attention *a);

/* The matrices of an array's heads, which lie at multiples of one distance. False: they do not. */
bool attention_find_matrices(const smelt_array *array, struct matrices *matrices);

/* For the kernels that read q, k and v as contiguous arrays. */
smelt_status attention_make_dense(struct attention *a);

#endif
