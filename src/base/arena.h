/* Memory that lives as long as one compile or one launch and is freed at once. */
#ifndef SMELT_BASE_ARENA_H
#define SMELT_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena_block;

/* Zero-initialise to start. A failed allocation is remembered in `failed` and returns NULL. */
struct arena {
    struct arena_block *blocks;
    bool failed;
};

/* Zeroed, aligned to 16 bytes. */
void *arena_alloc(struct arena *arena, size_t bytes);
/* Room for one more in a list of `count` items that begins as NULL and is kept in `arena`: the list, moved if
 * it was full, or NULL. Only the function that adds to it calls this, one item at a time. */
void *arena_one_more(struct arena *arena, void *items, size_t count, size_t item_bytes);
char *arena_copy(struct arena *arena, const char *bytes, size_t count);
char *arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
void arena_free(struct arena *arena);

#endif
