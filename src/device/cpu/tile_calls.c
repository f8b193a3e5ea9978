/* Products of tiles that generated code calls. */
#include "device/cpu/arch/matrix.h"
#include "device/cpu/checked.h"
#include "device/cpu/tile.h"
#include "device/cpu/worker.h"

#include <stdlib.h>

#define ALL_HELD_BYTES ((size_t)TILE_SIMDGROUP_BYTES * (MAX_THREADS_PER_GROUP / 32))

/* False: out of memory, which the worker reports. */
static bool allocate(struct worker *worker, void **memory, size_t bytes) {
    if (!*memory) *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!*memory) worker->lacking_bytes = bytes;
    return *memory != NULL;
}

static bool multiply(struct worker *worker, const uint64_t *words, const void *caller) {
    if (!allocate(worker, &worker->tile_memory, tile_memory_bytes())) return false;
    worker->caller = caller;
    arch_matrix_close(&worker->matrices_open);
    bool complete = tile_multiply(words, worker->tile_memory, worker->group.stop);
    worker->caller = NULL;
    return complete;
}

void smelt_runtime_tile(struct thread_context *context, uint32_t count, const uint64_t *words) {
    if (count != TILE_WORDS || !checked_tile(worker_in_kernel(), words, __builtin_return_address(0))) return;
    if (!multiply(worker_in_kernel(), words, __builtin_return_address(0))) smelt_runtime_stop(context);
}

void smelt_runtime_gang_tile(struct gang_context *context, const uint32_t *lanes, uint32_t count,
                             const uint64_t *varies, const uint64_t *shared, const uint64_t *by_lane) {
    struct worker *worker = worker_in_kernel();
    uint64_t words[TILE_WORDS];
    if (count != TILE_WORDS) return;
    for (uint32_t lane = 0; lane < context->count; lane++) {
        if (!(lanes[lane / 32] >> lane % 32 & 1)) continue;
        worker_lane_words(worker, lane, count, varies, shared, by_lane, words);
        if (!multiply(worker, words, __builtin_return_address(0))) smelt_runtime_gang_stop(context);
    }
}

void smelt_runtime_gang_matrices(const uint64_t *block) {
    struct worker *worker = worker_in_kernel();
    worker->caller = __builtin_return_address(0);
    arch_matrix_block(block, &worker->matrices_open);
    worker->caller = NULL;
}

void *smelt_runtime_tile_memory(struct thread_context *context) {
    struct worker *worker = worker_in_kernel();
    if (!allocate(worker, &worker->held_tiles, ALL_HELD_BYTES)) smelt_runtime_stop(context);
    if (worker->held_tiles) checked_tile_memory(worker, worker->held_tiles, ALL_HELD_BYTES);
    return worker->held_tiles;
}

void *smelt_runtime_gang_tile_memory(struct gang_context *context) {
    struct worker *worker = worker_in_kernel();
    if (!allocate(worker, &worker->held_tiles, ALL_HELD_BYTES)) smelt_runtime_gang_stop(context);
    return worker->held_tiles;
}
