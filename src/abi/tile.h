/* Products of tiles on CPUs: the words of __smelt_tile_product, which the prelude writes (mpp_tile.h) and the
 * runtime reads (device/cpu/tile.c).
 *
 * A product is m × n sums of k terms: result[i][j] = Σ left[i][t] right[t][j]. Operands are *lines* of terms:
 * rows of the left matrix, columns of the right one. Elements that an operand lacks count as 0. Strides are
 * in elements. */
#ifndef SMELT_ABI_TILE_H
#define SMELT_ABI_TILE_H

#include <stdint.h>

/* Element types, as mpp_types.h counts its kinds. */
enum tile_kind {
    TILE_FLOAT = 1,
    TILE_HALF,
    TILE_BFLOAT,
    TILE_INT8,
    TILE_UINT8,
    TILE_INT4,
    TILE_UINT4,
    TILE_INT2,
    TILE_UINT2,
    TILE_FP4,
    TILE_E4M3,
    TILE_E5M2,
    TILE_INT32
};

/* Bits of an element. */
static inline uint32_t tile_kind_bits(uint64_t kind) {
    switch (kind) {
    case TILE_FLOAT:
    case TILE_INT32:
        return 32;
    case TILE_HALF:
    case TILE_BFLOAT:
        return 16;
    case TILE_INT4:
    case TILE_UINT4:
    case TILE_FP4:
        return 4;
    case TILE_INT2:
    case TILE_UINT2:
        return 2;
    default:
        return 8;
    }
}

/* Words of an operand. */
enum tile_operand_word {
    TILE_DATA,             /* address of the first element */
    TILE_LINE_STRIDE,      /* from line to line */
    TILE_TERM_STRIDE,      /* from term to term */
    TILE_FIRST,            /* formats narrower than a byte: number of the first element behind TILE_DATA */
    TILE_LINES,            /* lines that exist */
    TILE_HELD,             /* not 0: the operand is held in slots, see below */
    TILE_SCALES,           /* address of ue8m0 scales, or 0 */
    TILE_SCALE_LINE,       /* stride of scales from block to block of lines */
    TILE_SCALE_TERM,       /* … of terms */
    TILE_SCALE_LINE_BLOCK, /* lines of a block */
    TILE_SCALE_TERM_BLOCK, /* terms of a block */
    TILE_OPERAND_WORDS
};

/* All words. Rows of the result may be dealt to simdgroups: row i is that in line
 * i / TILE_DEALT_ROWS * TILE_DEALT_STEP + i % TILE_DEALT_ROWS of the left operand. 0: they are not. */
enum tile_word {
    TILE_FORM, /* kinds of left, right and result, 8 bits each, and TILE_ADDS … */
    TILE_ROWS,
    TILE_COLUMNS,
    TILE_TERMS,
    TILE_DEALT_ROWS,
    TILE_DEALT_STEP,
    TILE_RESULT,
    TILE_RESULT_ROW, /* strides */
    TILE_RESULT_COLUMN,
    TILE_RESULT_HELD,
    TILE_LEFT,
    TILE_RIGHT = TILE_LEFT + TILE_OPERAND_WORDS,
    TILE_WORDS = TILE_RIGHT + TILE_OPERAND_WORDS
};

#define TILE_ADDS (1u << 24)    /* to what the result holds */
#define TILE_RELAXED (1u << 25) /* the math mode: sums of bfloat products may be reassociated */
#define TILE_NEGATES (1u << 26) /* -Σ left right; of products whose sums are floats */

/* A tile in slots lies at its address as fragments of `tall` × 16 (mpp_layout.h), one row of fragments after
 * the other, each with its slots one after the other, each with 32 lanes of 4 bytes: floats, or ints in
 * products of whole numbers. The word is rows of fragments, fragments per row in bits 16 to 31, and `tall` in
 * bits 32 to 39. Strides are those of the tile as one dense matrix with rows of 16 × fragments per row. */
#define TILE_HELD_DOWN(word) ((int)((word) & 0xffff))
#define TILE_HELD_ACROSS(word) ((int)((word) >> 16 & 0xffff))
#define TILE_HELD_TALL(word) ((int)((word) >> 32 & 0xff))

/* The number of the word, from the tile's address on, that holds an element of a tile in slots. */
static inline uint64_t tile_held_at(uint64_t word, uint64_t row, uint64_t column) {
    uint64_t tall = (uint64_t)TILE_HELD_TALL(word), in_fragment = tall / 2;
    uint64_t fragment = row / tall * (uint64_t)TILE_HELD_ACROSS(word) + column / 16;
    row %= tall, column %= 16;
    uint64_t slot = fragment * in_fragment + ((row & 8) >> 1 | (column & 3));
    return slot * 32 + ((row & 4) << 2 | (row & 3) << 1 | (column & 8) | (column >> 2 & 1));
}

/* Most elements of a tile in slots that takes part in a product, and the bytes that __smelt_tile_memory has
 * for each simdgroup of a threadgroup: three such tiles, and an offset between cache sets. */
#define TILE_MOST_HELD 16384
#define TILE_SIMDGROUP_BYTES (3 * 4 * TILE_MOST_HELD + 2112)

#endif
