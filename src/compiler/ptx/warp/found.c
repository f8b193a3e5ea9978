/* Results of the analysis of divergence so far: bits in which values differ, places of blocks, and the lanes
 * that reach them. */
#include "compiler/ptx/warp/divergence.h"

#include <stdlib.h>
#include <string.h>

bool divergence_whole_warps(const struct code_shape *shape) {
    uint32_t threads = shape->size[0] * shape->size[1] * shape->size[2];
    return threads && threads % 32 == 0 && !shape->masked;
}

/* ---- The set of values that differ. */

struct differing {
    LLVMValueRef value;
    uint64_t bits;
};

static struct differing *slot_of(struct differing *table, size_t capacity, LLVMValueRef value) {
    size_t at = (size_t)((uintptr_t)value >> 4) * 0x9e3779b97f4a7c15u >> 20 & (capacity - 1);
    while (table[at].value && table[at].value != value) at = (at + 1) & (capacity - 1);
    return &table[at];
}

uint64_t divergence_bits(const struct divergence *d, LLVMValueRef value) {
    if (!d->value_capacity) return 0;
    return slot_of(d->values, d->value_capacity, value)->bits;
}

static void grow(struct divergence *d) {
    size_t capacity = d->value_capacity ? 2 * d->value_capacity : 256;
    struct differing *table = arena_alloc(&d->arena, capacity * sizeof *table);
    if (!table) return;
    for (size_t i = 0; i < d->value_capacity; i++)
        if (d->values[i].value) *slot_of(table, capacity, d->values[i].value) = d->values[i];
    d->values = table;
    d->value_capacity = capacity;
}

bool divergence_add_bits(struct divergence *d, LLVMValueRef value, uint64_t bits) {
    if ((divergence_bits(d, value) & bits) == bits) return false;
    if (2 * d->value_count >= d->value_capacity) grow(d);
    if (d->arena.failed) return false;
    struct differing *slot = slot_of(d->values, d->value_capacity, value);
    d->value_count += slot->value == NULL;
    slot->value = value;
    slot->bits |= bits;
    return true;
}

/* ---- Places. */

struct place_of_block {
    LLVMBasicBlockRef block;
    int place;
};

static int compare_blocks(const void *a, const void *b) {
    const struct place_of_block *p = a, *q = b;
    return p->block < q->block ? -1 : p->block > q->block;
}

int divergence_place(const struct divergence *d, LLVMBasicBlockRef block) {
    struct place_of_block key = {block, 0};
    const struct place_of_block *found =
        bsearch(&key, d->by_block, (size_t)d->graph.block_count, sizeof key, compare_blocks);
    return found ? found->place : -1;
}

void divergence_index_blocks(struct divergence *d) {
    d->by_block = arena_alloc(&d->arena, (size_t)d->graph.block_count * sizeof *d->by_block);
    if (!d->by_block) return;
    for (int i = 0; i < d->graph.block_count; i++)
        d->by_block[i] = (struct place_of_block){d->graph.blocks[i].block, i};
    qsort(d->by_block, (size_t)d->graph.block_count, sizeof *d->by_block, compare_blocks);
}

bool divergence_is_end(LLVMBasicBlockRef block) {
    FOR_EACH_INSTRUCTION(instruction, block) {
        LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
        if (opcode == LLVMRet || opcode == LLVMUnreachable) return true;
        if (intrinsic_of(instruction) != INTRINSIC_THREAD_RETURN) return false;
    }
    return false;
}

/* ---- Queries. */

bool divergence_reached_by_all(const struct divergence *d, int place) {
    const struct path_block *block = &d->graph.blocks[place];
    for (int w = 0; w < d->graph.region_words; w++)
        if (block->regions[w]) return false;
    for (int loop = block->loop; loop >= 0; loop = d->graph.loops[loop].parent) {
        if (d->graph.loops[loop].divergent) return false;
        const uint64_t *around = d->graph.blocks[d->graph.loops[loop].header].regions;
        for (int w = 0; w < d->graph.region_words; w++)
            if (around[w]) return false;
    }
    return true;
}

bool divergence_reached_together(const struct divergence *d, int place) {
    return divergence_reached_by_all(d, place) && !d->graph.blocks[place].trails;
}

bool divergence_all_run(const struct divergence *d, LLVMBasicBlockRef block) {
    int place = divergence_place(d, block);
    return place >= 0 && !d->irreducible && divergence_whole_warps(&d->unit->request->shape) &&
           divergence_reached_by_all(d, place) && !d->graph.blocks[place].short_of;
}

int divergence_place_above(const struct divergence *d, int place) {
    int level = d->graph.blocks[place].loop, above = d->graph.blocks[place].dominator;
    if (level >= 0 && d->graph.loops[level].header == place) level = d->graph.loops[level].parent;
    while (d->graph.blocks[above].loop != level) above = d->graph.blocks[above].dominator;
    return above;
}

bool divergence_reached_from(const struct divergence *d, int above, int below) {
    return memcmp(d->graph.blocks[above].regions, d->graph.blocks[below].regions,
                  (size_t)d->graph.region_words * sizeof *d->graph.blocks[above].regions) == 0;
}
