/* The GPU's code that copies a matrix of narrow elements in bfloat. */
#ifndef SMELT_DEVICE_CUDA_EXPAND_CODE_H
#define SMELT_DEVICE_CUDA_EXPAND_CODE_H

#include "base/text.h"

#include <stdint.h>

/* Elements that a thread converts at a time, a chunk; threads of a block; chunks of a block's row. */
#define EXPAND_CHUNK 8
#define EXPAND_THREADS 256
#define EXPAND_ROUNDS 4

/* The code's only parameter. Blocks (x, y) convert parts of the rows y, y + the grid's height, … */
struct expand_parameters {
    uint64_t codes, scales; /* of the first element */
    uint64_t copy;          /* of bfloats, at a multiple of 16 */
    uint64_t line_bytes;    /* from a row's codes to the next row's */
    uint64_t copy_bytes;    /* from a row of the copy to the next, a multiple of 16 */
    uint64_t scale_step;    /* from one row of scales to the next */
    uint32_t chunks, rows;  /* chunks of each row */
    uint32_t across, down;  /* a scale is for 2^across chunks of 2^down rows */
};

/* Types of elements by their place in a table: -1 if there is no code for one. */
#define EXPAND_KINDS 7
int cuda_expand_kind(int element);

/* Appends the PTX of a kind, for compute capability 9.0; its entry point is ENTRY_NAME. A product is rounded
 * once, to nearest even, as products of the tensor operations are that convert elements in the kernel. */
void cuda_expand_write_code(struct text *text, int kind);

#endif
