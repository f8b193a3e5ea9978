/* Loops in which threads add products to tiles of sums (tiles.c, tiles_write.c). */
#ifndef SMELT_COMPILER_SIMD_TILES_H
#define SMELT_COMPILER_SIMD_TILES_H

#include "compiler/simd/simd.h"

/* Sums that become a vector: each adds a product of one factor, which all share, and an element of a row. */
struct tile_vector {
    LLVMValueRef *sums, *results; /* the loop's phis, and what they have after a round */
    LLVMValueRef across;          /* the row's first element */
    int row, column;              /* by factor, by row's elements */
    LLVMValueRef written;         /* the vector after a round */
};

/* Indexes in one step of an element's address. */
#define TILE_INDEXES 3

struct tile {
    LLVMBasicBlockRef block; /* the loop */
    int width;               /* of its vectors */
    struct tile_vector *vectors;
    int count, rows, columns;
};

/* tiles.c — what a product is added to, and the product's factors; NULL: it is no such sum. */
LLVMValueRef tile_addend(LLVMValueRef value, LLVMValueRef factors[2]);
/* … whether the block is such a loop; the vectors have as many elements as all sums allow, at most
 * `width`. */
bool tile_find(struct simd *s, LLVMBasicBlockRef block, int width, struct tile *tile);
/* … of the original, whose sums become vectors along the threads' own rows in gangs of threads side by side.
 */
bool tile_suits(struct simd *s, LLVMBasicBlockRef block);
/* How many rows and columns of a tile's vectors are written at a time. Returns what they cost. */
int tile_choose(const struct simd *s, const struct tile *tile, int *rows, int *columns);
/* tiles_write.c — writes all tiles of the gang with vectors. */
smelt_status tiles_write(struct simd *s);

#endif
