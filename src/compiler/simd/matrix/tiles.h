/* Loops in which threads add products to tiles of sums (tiles.c, tiles_write.c). */
#ifndef SMELT_COMPILER_SIMD_TILES_H
#define SMELT_COMPILER_SIMD_TILES_H

#include "compiler/simd/simd.h"

/* Sums that become a vector: to each is added the product of a factor that all share and an element of a
 * row. */
struct tile_vector {
    LLVMValueRef *sums, *results; /* the loop's phis, and their values after a round */
    LLVMValueRef across;          /* the row's first element */
    int row, column;              /* numbered by factor and by first element */
    LLVMValueRef written;         /* the vector after a round */
};

/* Variable indexes in an element's address (spot_of). */
#define TILE_INDEXES 3

struct tile {
    LLVMBasicBlockRef block; /* the loop */
    int width;               /* of its vectors */
    struct tile_vector *vectors;
    int count, rows, columns;
};

/* tiles.c — what a product is added to, and the product's factors; NULL: not such a sum. */
LLVMValueRef tile_addend(LLVMValueRef value, LLVMValueRef factors[2]);
/* … whether the block is such a loop. The vectors have as many elements as all sums allow, at most `width`, a
 * power of two. */
bool tile_find(struct simd *s, LLVMBasicBlockRef block, int width, struct tile *tile);
/* … whether a block of the thread's code is such a loop, to be written with vectors along the threads'
 * rows. */
bool tile_suits(struct simd *s, LLVMBasicBlockRef block);
/* … chooses how many rows and columns of a tile's vectors each loop computes. Returns the cost of all
 * loops. */
int tile_choose(const struct simd *s, const struct tile *tile, int *rows, int *columns);
/* tiles_write.c — writes all tiles of the gang with vectors. */
smelt_status tiles_write(struct simd *s);

#endif
