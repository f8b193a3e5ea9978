/* Products of tiles, for generated code. */
#ifndef SMELT_DEVICE_CPU_TILE_H
#define SMELT_DEVICE_CPU_TILE_H

#include "device/cpu/arch/tile.h"

/* The size of the memory in which a worker packs operands and keeps sums. */
size_t tile_memory_bytes(void);

/* The product that the words describe (abi/tile.h), with memory of tile_memory_bytes() at a multiple of 64.
 * False: *stop is not 0, and the result is not complete. */
bool tile_multiply(const uint64_t *words, void *memory, const uint32_t *stop);

#endif
