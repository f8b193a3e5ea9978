/* The processor's part of products of simdgroup matrices (abi/matrix_block.h). */
#ifndef SMELT_DEVICE_CPU_ARCH_MATRIX_H
#define SMELT_DEVICE_CPU_ARCH_MATRIX_H

#include <stdint.h>

/* Multiplies a block. *open: what the calling thread's matrix unit is set up for; 0: nothing. */
void arch_matrix_block(const uint64_t *block, int *open);
/* Gives the unit back. */
void arch_matrix_close(int *open);

#endif
