/* What the machine's memory can do: copies on all threads of the team. Any CPU. */
#ifndef SMELT_BENCH_CPU_MEMORY_H
#define SMELT_BENCH_CPU_MEMORY_H

#include <stdint.h>

/* Copies with plain vector stores: every line that is written is read first. count a multiple of 64. */
void machine_copy(const float *from, float *to, int64_t count);

/* Copies with stores that bypass the caches. `to` must be aligned to 64 bytes. */
void machine_copy_bypassing(const float *from, float *to, int64_t count);

#endif
