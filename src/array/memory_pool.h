/* Memory of released large arrays, kept for new ones: the pages of a new output would otherwise be faulted in
 * and cleared each time. The kernel may take the pages back while they are here. Any thread; a call that
 * finds another one at work, or finds its lock held by a thread that a fork left behind, does without the
 * pool. */
#ifndef SMELT_ARRAY_MEMORY_POOL_H
#define SMELT_ARRAY_MEMORY_POOL_H

#include <stdbool.h>
#include <stddef.h>

/* A kept block of at least so many bytes, at most a quarter more; NULL: there is none. The contents are
 * undefined. The caller owns it. */
char *memory_pool_take(size_t bytes, size_t *capacity);

/* Takes over a block from aligned_alloc; false: the pool cannot, and the caller still owns it. Older blocks
 * are freed where the pool would exceed an eighth of the machine's memory, or MEMORY_POOL_BLOCKS. */
bool memory_pool_keep(char *start, size_t capacity);

/* Frees all blocks; true: there were some. */
bool memory_pool_empty(void);

#define MEMORY_POOL_BLOCKS 16

#endif
