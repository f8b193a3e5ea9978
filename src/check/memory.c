/* The memory that a checked kernel may use: arguments, joined where they touch, the threadgroup's, the
 * threads' stacks. */
#include "check/state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void *memories_map(size_t bytes) {
    void *start = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

void memories_unmap(void *start, size_t bytes) {
    if (start) munmap(start, bytes ? bytes : 1);
}

/* ---- Regions. */

static size_t region_bytes(const struct region *region) {
    return (size_t)(region->end - region->start);
}

static size_t cell_bytes(const struct region *region) {
    return (region_bytes(region) / 4 + 2) * sizeof(struct cell);
}

static size_t origin_bytes(const struct region *region) {
    return (region_bytes(region) / 4 + 2) * sizeof(uint32_t);
}

static smelt_status region_open(struct region *region) {
    region->shadow = memories_map(region_bytes(region) + 8);
    region->origins = memories_map(origin_bytes(region));
    region->cells = memories_map(cell_bytes(region));
    if (region->shadow && region->origins && region->cells) return SMELT_OK;
    return fail_out_of_memory(cell_bytes(region));
}

struct cell *memories_cells(const struct region *region) {
    return memories_map(cell_bytes(region));
}

static void region_close(struct region *region) {
    memories_unmap(region->shadow, region_bytes(region) + 8);
    memories_unmap(region->origins, origin_bytes(region));
    memories_unmap(region->cells, cell_bytes(region));
    for (int i = 0; i < 3; i++) memories_unmap(region->planes[i], cell_bytes(region));
}

static int by_address(const void *a, const void *b) {
    const struct region *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* Regions begin and end at multiples of four bytes, so that arguments never share a cell of two. */
static struct region region_of(const struct check_argument *argument) {
    uintptr_t start = (uintptr_t)argument->start, end = start + argument->bytes;
    return (struct region){.start = (char *)(start & ~(uintptr_t)3),
                           .end = (char *)((end + 3) & ~(uintptr_t)3)};
}

smelt_status memories_open(struct check *check) {
    struct region *regions = check->regions;
    int count = 0, joined = 0;
    for (int i = 0; i < check->launch.argument_count; i++)
        if (check->arguments[i].bytes) regions[count++] = region_of(&check->arguments[i]);
    qsort(regions, (size_t)count, sizeof *regions, by_address);
    for (int i = 0; i < count; i++) {
        struct region *before = joined ? &regions[joined - 1] : NULL;
        if (before && regions[i].start <= before->end)
            before->end = regions[i].end > before->end ? regions[i].end : before->end;
        else
            regions[joined++] = regions[i];
    }
    for (int i = 0; i < joined; i++) {
        check->region_count = i + 1;
        TRY(region_open(&regions[i]));
    }
    for (int i = check->launch.argument_count - 1; i >= 0; i--) {
        const struct check_argument *argument = &check->arguments[i];
        if (!argument->bytes || argument->index < 0 || argument->index >= MOST_BOUND) continue;
        check->bound[argument->index] = (struct bound){argument, memories_region(check, argument->start)};
    }
    return SMELT_OK;
}

bool memories_open_stack(struct stack *stack, char *start, size_t bytes) {
    *stack = (struct stack){.start = start,
                            .end = start ? start + bytes : NULL,
                            .shadow = memories_map(bytes + 8),
                            .origins = memories_map(bytes + 8)};
    return start && stack->shadow && stack->origins;
}

void memories_close_stack(struct stack *stack) {
    size_t bytes = (size_t)(stack->end - stack->start);
    memories_unmap(stack->shadow, bytes + 8);
    memories_unmap(stack->origins, bytes + 8);
}

void memories_close(struct check *check) {
    for (int i = 0; i < check->region_count; i++) region_close(&check->regions[i]);
    region_close(&check->threadgroup);
    for (int i = 0; i < CHECK_MOST_THREADS; i++) memories_close_stack(&check->stacks[i]);
}

static bool is_in(const struct region *region, const char *address) {
    return address >= region->start && address < region->end;
}

struct region *memories_region(struct check *check, const char *address) {
    if (check->last && is_in(check->last, address)) return check->last;
    if (is_in(&check->threadgroup, address)) return check->last = &check->threadgroup;
    int first = 0, last = check->region_count;
    while (first < last) {
        int middle = (first + last) / 2;
        if (check->regions[middle].end <= address)
            first = middle + 1;
        else
            last = middle;
    }
    if (first == check->region_count || !is_in(&check->regions[first], address)) return NULL;
    return check->last = &check->regions[first];
}

const struct check_argument *memories_argument(const struct check *check, const char *address) {
    for (int i = 0; i < check->launch.argument_count; i++) {
        const struct check_argument *argument = &check->arguments[i];
        if (address >= argument->start && address < argument->start + argument->bytes) return argument;
    }
    return NULL;
}

const struct check_argument *memories_indexed(const struct check *check, int32_t index) {
    for (int i = 0; i < check->launch.argument_count; i++)
        if (check->arguments[i].index == index) return &check->arguments[i];
    return NULL;
}

smelt_status memories_begin_group(struct check *check) {
    struct region *region = &check->threadgroup;
    size_t bytes = check->group.memory_bytes;
    if (!region->cells || region->start != check->group.memory || region_bytes(region) != bytes) {
        region_close(region);
        *region = (struct region){.start = check->group.memory, .end = check->group.memory + bytes};
        TRY(region_open(region));
    } else {
        memset(region->cells, 0, cell_bytes(region));
        for (int i = 0; i < 3; i++)
            if (region->planes[i]) memset(region->planes[i], 0, cell_bytes(region));
        region->has_parts = false;
    }
    check->last = NULL;
    check->slot = NULL;
    uint32_t origin = undefined_origin(check, ORIGIN_THREADGROUP, NULL);
    undefined_mark(region->shadow, region->origins, 0, bytes, origin);
    return SMELT_OK;
}

smelt_status memories_enter_stack(struct check *check, int fiber, char *start, size_t bytes) {
    struct stack *stack = &check->stacks[fiber];
    check->stack = stack;
    if (stack->start == start && stack->end == start + bytes) return SMELT_OK;
    memories_close_stack(stack);
    return memories_open_stack(stack, start, bytes) ? SMELT_OK : fail_out_of_memory(2 * bytes);
}
