#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arena_block {
    struct arena_block *next;
    size_t used, capacity;
    _Alignas(16) char data[];
};

void *arena_alloc(struct arena *arena, size_t bytes) {
    size_t rounded = (bytes + 15) / 16 * 16;
    struct arena_block *block = arena->blocks;
    if (!block || block->capacity - block->used < rounded) {
        size_t capacity = rounded > 16384 ? rounded : 16384;
        block = malloc(sizeof *block + capacity);
        if (!block) {
            arena->failed = true;
            return NULL;
        }
        *block = (struct arena_block){.next = arena->blocks, .capacity = capacity};
        arena->blocks = block;
    }
    void *result = block->data + block->used;
    block->used += rounded;
    memset(result, 0, rounded);
    return result;
}

/* Full at 0, 16, 32, 64, … */
void *arena_one_more(struct arena *arena, void *items, size_t count, size_t item_bytes) {
    bool full = count == 0 || (count >= 16 && (count & (count - 1)) == 0);
    if (!full) return items;
    void *larger = arena_alloc(arena, (count ? 2 * count : 16) * item_bytes);
    if (larger && count) memcpy(larger, items, count * item_bytes);
    return larger;
}

char *arena_copy(struct arena *arena, const char *bytes, size_t count) {
    char *copy = arena_alloc(arena, count + 1);
    if (copy && count) memcpy(copy, bytes, count);
    return copy;
}

char *arena_printf(struct arena *arena, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *result = length < 0 ? NULL : arena_alloc(arena, (size_t)length + 1);
    if (result) vsnprintf(result, (size_t)length + 1, format, again);
    va_end(again);
    return result;
}

void arena_free(struct arena *arena) {
    for (struct arena_block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    arena->blocks = NULL;
}
