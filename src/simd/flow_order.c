/* The order blocks are laid out in: reverse post-order with each loop in one piece, and the layout of the new
 * function, which has an item for each block and one for the end of each loop.
 *
 * Requires: reducible control flow, loops with preheaders and one latch. */
#include "simd/simd.h"

#include <string.h>

/* Innermost first: does `loop` lie in `outer`? -1 is the function. */
static bool loop_within(const struct flow *flow, int loop, int outer) {
    while (loop >= 0 && loop != outer) loop = flow->loops[loop].parent;
    return loop == outer;
}

int place_of_block(struct simd *s, LLVMBasicBlockRef original) {
    return value_of(s, LLVMBasicBlockAsValue(original))->block;
}

bool is_within(const struct simd *s, int place, int loop) {
    return loop < 0 || (place >= s->loops[loop].header && place <= s->loops[loop].last);
}

struct layout {
    struct simd *s;
    bool *placed; /* by flow index */
};

static void add_item(struct simd *s, int block, int loop) {
    s->items[s->item_count] = (struct item){.block = block, .loop = loop};
    if (block >= 0)
        s->blocks[block].item = s->item_count;
    else
        s->loops[loop].item = s->item_count;
    s->item_count++;
}

/* Places the blocks of `loop` (-1: all), from the flow index `first` on. */
static void place(struct layout *l, int first, int loop) {
    struct simd *s = l->s;
    const struct flow *flow = &s->flow;
    for (int i = first; i < flow->block_count; i++) {
        int own = flow->blocks[i].loop;
        if (l->placed[i] || !loop_within(flow, own, loop)) continue;
        if (own != loop) { /* the header of an inner loop: headers come first */
            int inner = own;
            while (flow->loops[inner].parent != loop) inner = flow->loops[inner].parent;
            s->loops[inner].header = s->block_count;
            place(l, i, inner);
            s->loops[inner].last = s->block_count - 1;
            add_item(s, -1, inner);
            continue;
        }
        l->placed[i] = true;
        struct block *block = &s->blocks[s->block_count];
        *block = (struct block){.original = flow->blocks[i].block, .flow = i, .loop = own};
        add_item(s, s->block_count++, -1);
    }
}

smelt_status simd_order(struct simd *s) {
    TRY(flow_find(s->unit, s->entry, &s->arena, &s->flow));
    int count = s->flow.block_count, loops = s->flow.loop_count;
    if (s->flow.irreducible) {
        refuse(s, NULL, "its control flow jumps into the middle of a loop");
        return SMELT_OK;
    }
    struct layout layout = {s, arena_alloc(&s->arena, (size_t)count)};
    s->blocks = arena_alloc(&s->arena, (size_t)count * sizeof *s->blocks);
    s->loops = arena_alloc(&s->arena, (size_t)(loops + 1) * sizeof *s->loops);
    s->items = arena_alloc(&s->arena, (size_t)(count + loops) * sizeof *s->items);
    int *place_of = arena_alloc(&s->arena, (size_t)count * sizeof *place_of);
    if (s->arena.failed)
        return unit_fail(s->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %d blocks", count);
    s->block_count = s->item_count = 0;
    s->loop_count = loops;
    for (int i = 0; i < loops; i++) s->loops[i] = (struct loop){.parent = s->flow.loops[i].parent};
    place(&layout, 0, -1);
    for (int i = 0; i < s->block_count; i++) place_of[s->blocks[i].flow] = i;
    for (int i = 0; i < s->block_count; i++)
        s->blocks[i].dominator = place_of[s->flow.blocks[s->blocks[i].flow].dominator];
    size_t words = (size_t)(s->item_count + 63) / 64;
    for (int i = 0; i < s->item_count; i++) s->items[i].pending = arena_alloc(&s->arena, words * 8);
    /* One region for each branch and each loop. */
    s->region_words = (s->block_count + s->loop_count + 63) / 64;
    for (int i = 0; i < s->block_count; i++)
        s->blocks[i].regions = arena_alloc(&s->arena, (size_t)s->region_words * 8);
    if (s->arena.failed)
        return unit_fail(s->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %d blocks", count);
    return SMELT_OK;
}
