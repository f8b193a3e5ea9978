/* Loads, and stores, of one thread to neighbouring elements: float4, a row of a tile, the bytes of a block.
 * Each by itself would be a gather, as the lanes' elements are apart. Together they are one vector for each
 * lane, and a transposition makes the lanes' vectors the chunks of the values.
 *
 * They are found in each block: addresses that differ by constants. All loads of a group are done where the
 * first is, all stores where the last is. So no load of a group may pass a write to its element, and no store
 * any access to its element. Narrow loads may have gaps between them, as in every other byte; the elements
 * there are of the same array. Beyond that, no lane accesses more than it did: lanes that are off load from a
 * constant.
 *
 * Requires: the analysis, matrices found (matrix_find.c). Establishes: value.neighbours. */
#include "compiler/simd/memory/neighbours.h"
#include "compiler/simd/lanes/lanes.h"
#include "compiler/simd/matrix/tiles.h"

#include <stdlib.h>

/* ---- Accesses. */

static unsigned space_of(LLVMValueRef access) {
    return LLVMGetPointerAddressSpace(LLVMTypeOf(access_address(access)));
}

static bool is_candidate(struct simd *s, LLVMValueRef i) {
    if (!LLVMIsALoadInst(i) && !LLVMIsAStoreInst(i)) return false;
    LLVMTypeKind kind = LLVMGetTypeKind(access_type(i));
    return (kind == LLVMIntegerTypeKind || kind == LLVMHalfTypeKind || kind == LLVMFloatTypeKind) &&
           access_size(s, i) <= 8 && LLVMGetOrdering(i) == LLVMAtomicOrderingNotAtomic &&
           !LLVMGetVolatile(i) && space_of(i) != 0 && shape_of(s, access_address(i)) != SHAPE_UNIFORM &&
           !private_is(s, access_address(i)) && !value_of(s, i)->matrix;
}

/* ---- What pays. */

bool neighbours_are_apart_by(struct simd *s, const int64_t *offsets, int64_t step) {
    for (int i = 1; i < s->lanes; i++)
        if (i % neighbours_lanes(s) && offsets[i] - offsets[i - 1] != step) return false;
    return true;
}

static bool are_close(struct simd *s, const int64_t *offsets, int64_t size) {
    int lanes = neighbours_lanes(s), vectors = size < 4 && lanes > 8 ? 4 : lanes / 2;
    for (int first = 0; first < s->lanes; first += lanes) {
        const int64_t *own = offsets + first;
        int64_t low = own[0], high = own[0];
        for (int i = 1; i < lanes; i++) {
            if (own[i] < low) low = own[i];
            if (own[i] > high) high = own[i];
        }
        if ((high - low) / size >= vectors * lanes) return false;
    }
    return true;
}

/* With 512 bits, row_access.c loads a vector for each of so few rows: fewer loads per element than one for
 * each lane, if there are fewer than four elements to a lane. */
static bool are_few_rows(struct simd *s, const int64_t *offsets, int64_t size) {
    int lanes = neighbours_lanes(s);
    for (int first = 0; first < s->lanes; first += lanes) {
        bool taken[GANG_MAX_LANES] = {false};
        for (int rows = 0, left = lanes; left; rows++) {
            int64_t low = INT64_MAX;
            if (rows == lanes / 4) return false;
            for (int i = 0; i < lanes; i++)
                if (!taken[i] && offsets[first + i] < low) low = offsets[first + i];
            for (int i = 0; i < lanes; i++) {
                if (taken[i] || offsets[first + i] - low >= lanes * size) continue;
                taken[i] = true;
                left--;
            }
        }
    }
    return true;
}

/* The offsets of the lanes' addresses, or NULL. */
static const int64_t *lane_offsets(struct simd *s, LLVMValueRef address) {
    int shape = piece_is(s, address) ? value_of(s, address)->piece : shape_of(s, address);
    return shape < 0 ? NULL : shape_offsets(s, shape);
}

#define FEW_ROWS 2

/* Whether the lanes of a chunk load one element, or two: those of two rows of threads, which share the
 * address of their row. They are spread to the lanes one by one, without the addresses of all lanes. */
static bool are_shared(struct simd *s, LLVMValueRef address) {
    struct row_view view;
    if (s->chunk_lanes == 1 || rows_find(s, address, 0, &view) > FEW_ROWS) return false;
    for (int i = 0; i < s->chunk_lanes; i++)
        if (view.offset[i] != 0) return false;
    return true;
}

/* Accesses of neighbouring lanes, or of all lanes to one element, are as fast one by one. So are those of
 * lanes close together, except under a mask. */
static bool pays(struct simd *s, struct neighbours *group) {
    const int64_t *offsets = lane_offsets(s, access_address(group->place));
    int64_t size = access_size(s, group->place);
    bool load = access_is_load(group->place), narrow = group->count * size < 4;
    if (narrow && (load || !offsets)) return false;
    group->apart = !offsets;
    if (!offsets) {
        group->masked = load && are_shared(s, access_address(group->place));
        return true;
    }
    if (neighbours_are_apart_by(s, offsets, 0) || neighbours_are_apart_by(s, offsets, size)) return false;
    bool close = are_close(s, offsets, size);
    group->apart = !close;
    bool suits = load ? dense_suits(s, size, group->count) : dense_suits_stores(s, size, group->count);
    group->dense = suits && neighbours_are_apart_by(s, offsets, group->count * size);
    if (narrow) return group->dense_only = group->dense;
    if (s->vector_bits == 512 &&
        ((size >= 4 && close) || (group->count < 4 && are_few_rows(s, offsets, size))))
        return group->dense_only = group->dense;
    if (load && group->count * size < 16 && size < 4 && close) group->masked = true;
    if (!load || group->count >= 4 || !neighbours_are_apart_by(s, offsets, 2 * size)) return true;
    return group->dense_only = group->dense;
}

/* ---- Finding. */

static int by_bytes(const void *a, const void *b) {
    const struct access *x = *(struct access *const *)a, *y = *(struct access *const *)b;
    return x->place.bytes < y->place.bytes ? -1 : x->place.bytes > y->place.bytes;
}

static bool is_power_of_two(int count) {
    return (count & (count - 1)) == 0;
}

/* Accesses to all elements between those of neighbouring lanes, in a number that other groups do not have. If
 * it is not a power of two, the shuffles of stores grow with its square. */
static bool is_dense_row(struct simd *s, struct access *const *row, int count) {
    LLVMValueRef first = row[0]->instruction;
    int64_t size = access_size(s, first);
    int most = is_power_of_two(count) ? MOST_NEIGHBOURS : MOST_NEIGHBOURS / 2;
    bool load = access_is_load(first);
    if (count > most || (is_power_of_two(count) && count * size <= 16) ||
        !(load ? dense_suits(s, size, count) : dense_suits_stores(s, size, count)))
        return false;
    const int64_t *offsets = lane_offsets(s, access_address(first));
    return offsets && neighbours_are_apart_by(s, offsets, count * size);
}

static void add_group(struct simd *s, struct access **members, int count) {
    struct neighbours *group = arena_alloc(&s->arena, sizeof *group);
    if (!group) return;
    LLVMValueRef first = members[0]->instruction;
    unsigned align = LLVMGetAlignment(first);
    if (align > MOST_ALIGN) align = MOST_ALIGN;
    *group = (struct neighbours){.count = count, .align = align ? align : 1};
    for (int n = 0; n < count; n++) group->accesses[n] = members[n]->instruction;
    if (!neighbours_find_place(s, group, members, count, members[0]->place.bytes)) return;
    if (is_dense_row(s, members, count)) {
        group->dense = group->dense_only = true;
    } else {
        bool copies =
            access_is_load(first) ? neighbours_may_begin_copy(s, group) : neighbours_end_copy(s, group);
        group->copy_only = !pays(s, group);
        if (group->copy_only && !copies) return;
    }
    for (int n = 0; n < count; n++) value_of(s, group->accesses[n])->neighbours = group;
}

/* Whether the row's accesses take more than 16 bytes of each lane at once (lines.c): the lanes are apart, and
 * what is loaded is not only copied. */
static bool are_lines(struct simd *s, struct access *const *row, int count) {
    LLVMValueRef first = row[0]->instruction;
    int64_t size = access_size(s, first);
    bool wide = s->vector_bits == 512 && s->chunk_lanes == 16 && (size == 4 || size == 2) &&
                count * size >= 2 * MOST_TOGETHER;
    bool narrow = s->vector_bits == 256 && s->chunk_lanes == 8 && size == 4 && count >= MOST_NEIGHBOURS;
    if ((!wide && !narrow) || LLVMIsALoadInst(LLVMGetOperand(first, 0))) return false;
    LLVMUseRef use = access_is_load(first) ? LLVMGetFirstUse(first) : NULL;
    if (use && !LLVMGetNextUse(use) && LLVMIsAStoreInst(LLVMGetUser(use))) return false;
    const int64_t *offsets = lane_offsets(s, access_address(first));
    if (narrow && offsets && llabs(offsets[1] - offsets[0]) < 4 * MOST_ALIGN) return false;
    return !offsets || !are_close(s, offsets, size);
}

/* Sorted accesses, of which each is the neighbour of the one before. */
static void split_row(struct simd *s, struct access **row, int count) {
    int64_t size = access_size(s, row[0]->instruction);
    if (is_dense_row(s, row, count)) {
        add_group(s, row, count);
        return;
    }
    bool lines = are_lines(s, row, count);
    for (int at = 0; at < count;) {
        int members = lines ? MOST_NEIGHBOURS : (int)(MOST_TOGETHER / size);
        while (members > count - at) members /= 2;
        if (members > 1) add_group(s, row + at, members);
        at += members;
    }
}

static void find_rows(struct simd *s, struct access **sorted, int count) {
    int64_t size = count ? access_size(s, sorted[0]->instruction) : 0;
    qsort(sorted, (size_t)count, sizeof(struct access *), by_bytes);
    for (int from = 0, to; from < count; from = to) {
        to = from + 1;
        while (to < count && sorted[to]->place.bytes == sorted[to - 1]->place.bytes + size) to++;
        if (to - from > 1) split_row(s, sorted + from, to - from);
    }
}

#define MOST_ACCESSES 1024 /* of a block: comparing them takes a time that grows with the square */

/* `same` has room for all accesses. */
static void find_groups(struct simd *s, struct access *accesses, int count, bool loads,
                        struct access **same) {
    for (int n = 0; n < count; n++) {
        int found = 0;
        LLVMValueRef a = accesses[n].instruction;
        for (int m = n; m < count && access_is_load(a) == loads; m++) {
            LLVMValueRef b = accesses[m].instruction;
            if (accesses[m].used || access_is_load(b) != loads || access_type(a) != access_type(b) ||
                space_of(a) != space_of(b) || !spot_is_same(&accesses[n].place, &accesses[m].place))
                continue;
            accesses[m].used = true;
            same[found++] = &accesses[m];
        }
        if (found > 1) find_rows(s, same, found);
        if (found > 1 && loads) neighbours_find_gaps(s, same, found);
    }
}

static void find_in_block(struct simd *s, LLVMBasicBlockRef block) {
    struct access *accesses = arena_alloc(&s->arena, MOST_ACCESSES * sizeof *accesses);
    struct access **same = arena_alloc(&s->arena, MOST_ACCESSES * sizeof(struct access *));
    int count = 0;
    if (!accesses || !same) return;
    FOR_EACH_INSTRUCTION(i, block) {
        if (count == MOST_ACCESSES) return;
        if (is_candidate(s, i))
            accesses[count++] = (struct access){.instruction = i, .place = spot_of(s, access_address(i), 1)};
    }
    find_groups(s, accesses, count, true, same);
    neighbours_find_lone(s, accesses, count);
    find_groups(s, accesses, count, false, same);
}

void neighbours_find(struct simd *s) {
    int order = 0;
    if ((s->chunk_lanes == 1 && !simd_goes_together(s)) || s->unit->form != FORM_BEST) return;
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(i, block) value_of(s, i)->order = order++;
    FOR_EACH_BLOCK(block, s->entry) {
        if (s->chunk_lanes > 1 || !tile_suits(s, block)) find_in_block(s, block);
    }
}
