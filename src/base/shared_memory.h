/* Memory that this process shares with a child. */
#ifndef SMELT_BASE_SHARED_MEMORY_H
#define SMELT_BASE_SHARED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

struct shared_memory {
    void *bytes;
    size_t size;
    int fd; /* for the child, which maps it, too; above those of standard streams */
};

/* Filled with zeros. False: the system has none left; then `memory` holds nothing. */
bool shared_memory_create(size_t size, struct shared_memory *memory);
void shared_memory_free(struct shared_memory *memory);

#endif
