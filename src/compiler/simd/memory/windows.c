/* Narrow loads of one thread with gaps between them, from addresses that only the run can tell: every other
 * byte, three neighbours, the lone scale of a block. Each by itself would be tested for lanes side by side
 * and gathered. They are groups of neighbours.c, some of whose elements nobody needs.
 *
 * Requires: neighbours without gaps are found. */
#include "compiler/simd/memory/neighbours.h"

static int64_t size_of(struct simd *s, const struct access *load) {
    return (int64_t)LLVMABISizeOfType(s->unit->layout, LLVMTypeOf(load->instruction));
}

/* Adds `count` narrow loads among the `width` elements from `bytes` of their spots on. */
static void add_window(struct simd *s, struct access **members, int count, int width, int64_t bytes) {
    struct neighbours *group = arena_alloc(&s->arena, sizeof *group);
    int64_t size = size_of(s, members[0]);
    if (!group) return;
    *group = (struct neighbours){.count = width, .align = (unsigned)size, .apart = true};
    for (int n = 0; n < count; n++) {
        group->accesses[(members[n]->place.bytes - bytes) / size] = members[n]->instruction;
        if (LLVMGetAlignment(members[n]->instruction) < size) group->align = 1;
    }
    if (!neighbours_find_place(s, group, members, count, bytes)) return;
    for (int n = 0; n < count; n++) value_of(s, members[n]->instruction)->neighbours = group;
}

/* The number of the loads from the first on that are among the `width` elements from `bytes` on. */
static int count_in_window(struct access *const *loads, int count, int64_t bytes, int64_t size, int width) {
    int n = 0;
    while (n < count && loads[n]->place.bytes + size <= bytes + width * size) n++;
    return n;
}

/* Sorted narrow loads at varying addresses, with few elements between one and the next. A window that takes
 * at least half of its elements replaces as many tests and gathers. It lies between the first load and the
 * last, so that nothing is loaded that may not exist. */
static void find_in_row(struct simd *s, struct access **loads, int count) {
    int64_t size = size_of(s, loads[0]), begin = loads[0]->place.bytes,
            end = loads[count - 1]->place.bytes + size;
    for (int at = 0; at < count;) {
        int width = (int)(16 / size), members = 0;
        int64_t from = 0;
        for (; width > 1; width /= 2) {
            from = loads[at]->place.bytes;
            if (from + width * size > end) from = end - width * size;
            members = from < begin ? 0 : count_in_window(loads + at, count - at, from, size, width);
            if (members > 1 && 2 * members >= width) break;
        }
        if (width > 1) add_window(s, loads + at, members, width, from);
        at += width > 1 ? members : 1;
    }
}

static bool is_apart(struct simd *s, const struct access *access) {
    LLVMValueRef load = access->instruction, address = LLVMGetOperand(load, 0);
    return size_of(s, access) < 4 && !value_of(s, load)->neighbours && s->chunk_lanes > 1 &&
           shape_of(s, address) == SHAPE_VARYING && !piece_is(s, address);
}

void neighbours_find_gaps(struct simd *s, struct access **sorted, int count) {
    int64_t size = size_of(s, sorted[0]);
    int left = 0;
    for (int n = 0; n < count; n++)
        if (is_apart(s, sorted[n])) sorted[left++] = sorted[n];
    for (int from = 0, to; from < left; from = to) {
        for (to = from + 1; to < left; to++) {
            int64_t step = sorted[to]->place.bytes - sorted[to - 1]->place.bytes;
            if (step == 0 || step % size || step > 4 * size) break;
        }
        if (to - from > 1) find_in_row(s, sorted + from, to - from);
    }
}

/* With 256 bits, a gather of bytes inserts one after the other, as a window would. The branches of its tests
 * keep LLVM's scheduler from mixing chunks, which would move hundreds of values to the stack. */
static bool is_fast_alone(struct simd *s, const struct access *lone) {
    return s->vector_bits == 256 && size_of(s, lone) == 1;
}

void neighbours_find_lone(struct simd *s, struct access *accesses, int count) {
    for (int n = 0; n < count; n++) {
        struct access *lone = &accesses[n];
        if (!LLVMIsALoadInst(lone->instruction) || !is_apart(s, lone) || is_fast_alone(s, lone)) continue;
        for (int m = 0; m < count; m++) {
            const struct neighbours *group = value_of(s, accesses[m].instruction)->neighbours;
            if (!group || group->count == 1 || !LLVMIsALoadInst(group->place) || group->copy_only ||
                !spot_is_same(&lone->place, &accesses[m].place))
                continue;
            add_window(s, &lone, 1, 1, lone->place.bytes);
            break;
        }
    }
}
