#include "array/memory_pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The oldest block first. */
static struct {
    pthread_mutex_t lock;
    struct block {
        char *start;
        size_t capacity;
    } blocks[MEMORY_POOL_BLOCKS];
    int count;
    size_t bytes, most; /* most: 0 before the first use */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct block remove_block(int index) {
    struct block block = pool.blocks[index];
    pool.count--;
    memmove(&pool.blocks[index], &pool.blocks[index + 1], (size_t)(pool.count - index) * sizeof block);
    pool.bytes -= block.capacity;
    return block;
}

char *memory_pool_take(size_t bytes, size_t *capacity) {
    struct block taken = {0};
    int best = -1;
    if (pthread_mutex_trylock(&pool.lock) != 0) return NULL;
    for (int i = 0; i < pool.count; i++) {
        size_t has = pool.blocks[i].capacity;
        if (has < bytes || has - bytes > bytes / 4) continue;
        if (best < 0 || has <= pool.blocks[best].capacity) best = i;
    }
    if (best >= 0) taken = remove_block(best);
    pthread_mutex_unlock(&pool.lock);
    *capacity = taken.capacity;
    return taken.start;
}

static size_t most_bytes(void) {
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (size_t)pages / 8 * (size_t)size : 1;
}

bool memory_pool_keep(char *start, size_t capacity) {
    if (pthread_mutex_trylock(&pool.lock) != 0) return false;
    if (!pool.most) pool.most = most_bytes();
    bool keeps = capacity <= pool.most;
    if (keeps) {
        while (pool.count == MEMORY_POOL_BLOCKS || (pool.count && pool.bytes + capacity > pool.most))
            free(remove_block(0).start);
        (void)madvise(start, capacity, MADV_FREE);
        pool.blocks[pool.count++] = (struct block){start, capacity};
        pool.bytes += capacity;
    }
    pthread_mutex_unlock(&pool.lock);
    return keeps;
}

bool memory_pool_empty(void) {
    if (pthread_mutex_trylock(&pool.lock) != 0) return false;
    bool some = pool.count > 0;
    while (pool.count) free(remove_block(0).start);
    pthread_mutex_unlock(&pool.lock);
    return some;
}
