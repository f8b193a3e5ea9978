/* The state of writing a tile's loops (tiles_write.c) and its sums outside of them (tiles_carry.c). */
#ifndef SMELT_COMPILER_SIMD_TILES_WRITER_H
#define SMELT_COMPILER_SIMD_TILES_WRITER_H

#include "compiler/simd/matrix/tiles.h"

struct tile_writer {
    struct simd *s;
    const struct tile *tile;
    LLVMBasicBlockRef loop; /* being written */
    struct copy *copies;
    unsigned size; /* of the table, a power of two */
    struct vector *vectors;
    struct carried *carried, *todo;
    struct dead *dead;
};

/* tiles_carry.c — vectors of the tile's width, from as many scalars. */
LLVMTypeRef tile_vector_type(struct tile_writer *w, LLVMValueRef element);
LLVMValueRef tile_number(struct tile_writer *w, int value);
bool tile_are_equal(struct tile_writer *w, LLVMValueRef const *elements);
LLVMValueRef tile_gather(struct tile_writer *w, LLVMValueRef const *elements);
/* … accesses to elements of `size` bytes that follow each other. */
int64_t tile_size_of(struct tile_writer *w, LLVMValueRef value);
bool tile_are_neighbours(struct tile_writer *w, LLVMValueRef const *accesses, int count, int64_t size);
/* … elements from outside the loop, as a vector at the end of the block. Phis become phis of vectors,
 * which get their values in tile_carry_on, after the loops are written. That also carries the phis that
 * use the results. */
LLVMValueRef tile_carry_in(struct tile_writer *w, LLVMValueRef const *elements, LLVMBasicBlockRef block);
void tile_carry_on(struct tile_writer *w);
/* … replaces uses of the carried phis with elements of the vectors. */
void tile_carry_apart(struct tile_writer *w);
/* … after the old loop is erased: erases the phis, and joins stores of the results, now `scalars`. */
void tile_carry_end(struct tile_writer *w, LLVMValueRef const *scalars);

#endif
