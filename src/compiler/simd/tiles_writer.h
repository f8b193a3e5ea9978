/* What writes tiles (tiles_write.c) and their sums outside of the loop (tiles_carry.c). */
#ifndef SMELT_COMPILER_SIMD_TILES_WRITER_H
#define SMELT_COMPILER_SIMD_TILES_WRITER_H

#include "compiler/simd/tiles.h"

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
bool tile_are_neighbours(struct tile_writer *w, LLVMValueRef const *accesses, int64_t size);
/* … the elements, from outside of the loop, as a vector at the end of the block. Phis are carried as vectors;
 * their values follow in tile_carry_on, when the loops are there, for these and for the phis that the results
 * reach. */
LLVMValueRef tile_carry_in(struct tile_writer *w, LLVMValueRef const *elements, LLVMBasicBlockRef block);
void tile_carry_on(struct tile_writer *w);
/* … scalars for those who used the phis. */
void tile_carry_apart(struct tile_writer *w);
/* … when the old loop is gone: erases the phis, and joins stores of the results, which are `scalars` now. */
void tile_carry_end(struct tile_writer *w, LLVMValueRef const *scalars);

#endif
