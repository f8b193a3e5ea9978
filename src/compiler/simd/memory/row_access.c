/* Loads and stores whose lanes fall into rows (rows.c). The elements of a row that are near each other are a
 * window: a vector of its own, at its first lane's address. Shuffles bring the elements to their lanes or
 * from them. */
#include "compiler/simd/lanes/lanes.h"
#include "compiler/simd/memory/access.h"

struct window {
    int leader, lanes;           /* elements: a power of two */
    int64_t low;                 /* bytes from the leader's address */
    int element[GANG_MAX_LANES]; /* of each lane of the chunk; -1: it is in another window */
};

static int round_up(int elements) {
    int lanes = 1;
    while (lanes < elements) lanes *= 2;
    return lanes;
}

/* From the lowest element that is in no window yet. Elements are multiples of their size apart. */
static bool take_window(struct simd *s, const struct row_view *view, int64_t size, bool *taken,
                        struct window *w) {
    int first = 0, span = 0;
    while (taken[first]) first++;
    w->leader = view->leader[first];
    w->low = view->offset[first];
    for (int i = first; i < s->chunk_lanes; i++)
        if (!taken[i] && view->leader[i] == w->leader && view->offset[i] < w->low) w->low = view->offset[i];
    for (int i = 0; i < s->chunk_lanes; i++) {
        w->element[i] = -1;
        if (taken[i] || view->leader[i] != w->leader) continue;
        uint64_t distance = (uint64_t)view->offset[i] - (uint64_t)w->low;
        if (distance % (uint64_t)size) return false;
        if (distance / (uint64_t)size >= (uint64_t)s->chunk_lanes) continue;
        w->element[i] = (int)(distance / (uint64_t)size);
        if (w->element[i] >= span) span = w->element[i] + 1;
        taken[i] = true;
    }
    w->lanes = round_up(span);
    return true;
}

static LLVMValueRef window_mask(struct simd *s, const struct window *w, LLVMValueRef mask) {
    int64_t lane_of[GANG_MAX_LANES];
    for (int e = 0; e < w->lanes; e++) lane_of[e] = s->chunk_lanes; /* from the zeros */
    for (int i = 0; i < s->chunk_lanes; i++)
        if (w->element[i] >= 0) lane_of[w->element[i]] = i;
    LLVMValueRef which = lanes_constant(s, type_i32(s->unit), lane_of, w->lanes);
    return LLVMBuildShuffleVector(s->unit->builder, mask ? mask : mask_all(s), LLVMConstNull(mask_type(s)),
                                  which, "");
}

static bool repeats(const struct simd *s, const struct window *w) {
    for (int i = 0; i < s->chunk_lanes; i++)
        for (int j = 0; j < i; j++)
            if (w->element[i] >= 0 && w->element[i] == w->element[j]) return true;
    return false;
}

/* Whether the window uses all its elements. */
static bool is_dense(const struct simd *s, const struct window *w) {
    int wanted = 0;
    for (int e = 0; e < w->lanes; e++) {
        bool found = false;
        for (int i = 0; i < s->chunk_lanes; i++) found |= w->element[i] == e;
        wanted += found;
    }
    return wanted == w->lanes;
}

static LLVMValueRef load_window(struct simd *s, LLVMValueRef load, LLVMValueRef base, const struct window *w,
                                LLVMValueRef mask) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(load), (unsigned)w->lanes);
    int align = (int)LLVMGetAlignment(load);
    LLVMValueRef step = LLVMConstInt(type_i64(s->unit), (unsigned long long)w->low, true);
    if (w->low) base = LLVMBuildGEP2(b, LLVMInt8TypeInContext(s->unit->context), base, &step, 1, "");
    if (!mask && is_dense(s, w)) {
        LLVMValueRef whole = LLVMBuildLoad2(b, type, base, "");
        LLVMSetAlignment(whole, (unsigned)align);
        return whole;
    }
    LLVMTypeRef types[2] = {type, LLVMTypeOf(base)};
    LLVMValueRef arguments[4] = {base, simd_i32(s, align), window_mask(s, w, mask), LLVMConstNull(type)};
    return simd_intrinsic(s, "llvm.masked.load", types, 2, arguments, 4);
}

static LLVMValueRef widened(struct simd *s, LLVMValueRef vector, int from, int to) {
    int indexes[GANG_MAX_LANES];
    if (from == to) return vector;
    for (int i = 0; i < to; i++) indexes[i] = i < from ? i : -1;
    return lanes_shuffle(s, vector, NULL, indexes, to);
}

/* Lanes of the chunk from two windows (the second may be NULL): a chunk, with arbitrary values in other
 * lanes. */
static LLVMValueRef place_windows(struct simd *s, const struct window *a, LLVMValueRef x,
                                  const struct window *b, LLVMValueRef y) {
    int indexes[GANG_MAX_LANES];
    int lanes = b && b->lanes > a->lanes ? b->lanes : a->lanes;
    x = widened(s, x, a->lanes, lanes);
    if (b) y = widened(s, y, b->lanes, lanes);
    for (int i = 0; i < s->chunk_lanes; i++) {
        indexes[i] = a->element[i];
        if (b && b->element[i] >= 0) indexes[i] = lanes + b->element[i];
    }
    return lanes_shuffle(s, x, y, indexes, s->chunk_lanes);
}

/* The windows of a chunk's lanes; 0: too many, or not of this kind. */
static int find_windows(struct simd *s, LLVMValueRef address, LLVMTypeRef element, int chunk, bool masked,
                        struct window *windows) {
    struct row_view view;
    bool taken[GANG_MAX_LANES] = {false};
    int count = 0, lanes = s->chunk_lanes;
    if ((lanes < 16 && s->registers <= 16) || lanes < 8 || !access_has_masked(s, element)) return 0;
    (void)rows_find(s, address, chunk, &view);
    for (;;) {
        bool all = true;
        for (int i = 0; i < lanes; i++) all &= taken[i];
        if (all) return count;
        if (count == lanes / 4 ||
            !take_window(s, &view, (int64_t)LLVMABISizeOfType(s->unit->layout, element), taken,
                         &windows[count]) ||
            (masked && (repeats(s, &windows[count]) || windows[count].lanes == 1)))
            return 0;
        count++;
    }
}

bool rows_load(struct simd *s, LLVMValueRef load, int chunk, LLVMValueRef *out) {
    LLVMValueRef address = LLVMGetOperand(load, 0), mask = mask_chunk(s, chunk), result = NULL;
    struct window windows[GANG_MAX_LANES / 4];
    int lanes = s->chunk_lanes;
    int count = find_windows(s, address, LLVMTypeOf(load), chunk, mask != NULL, windows);
    if (!count) return false;
    for (int n = 0; n < count; n += 2) {
        LLVMValueRef vectors[2] = {NULL, NULL};
        for (int k = 0; k < 2 && n + k < count; k++) {
            const struct window *w = &windows[n + k];
            LLVMValueRef base = rows_lane(s, address, chunk, w->leader);
            vectors[k] = load_window(s, load, base, w, mask);
        }
        bool two = vectors[1] != NULL;
        LLVMValueRef placed =
            place_windows(s, &windows[n], vectors[0], two ? &windows[n + 1] : NULL, vectors[1]);
        int indexes[GANG_MAX_LANES];
        for (int i = 0; i < lanes; i++) {
            bool here = windows[n].element[i] >= 0 || (two && windows[n + 1].element[i] >= 0);
            indexes[i] = here ? lanes + i : i;
        }
        result = result ? lanes_shuffle(s, result, placed, indexes, lanes) : placed;
    }
    *out = result;
    return true;
}

/* Lanes that are neighbours have elements in rising order, so that windows which overlap are stored in the
 * lanes' order. */
static bool is_run(const struct simd *s, const struct window *w) {
    int last = -1;
    for (int i = 0; i < s->chunk_lanes; i++) {
        if (w->element[i] < 0) continue;
        if (last >= 0 && (last != i - 1 || w->element[i] <= w->element[last])) return false;
        last = i;
    }
    return true;
}

static void store_window(struct simd *s, LLVMValueRef store, LLVMValueRef vector, LLVMValueRef base,
                         const struct window *w, LLVMValueRef mask) {
    LLVMBuilderRef b = s->unit->builder;
    int lane_of[GANG_MAX_LANES], align = (int)LLVMGetAlignment(store);
    for (int e = 0; e < w->lanes; e++) lane_of[e] = -1;
    for (int i = 0; i < s->chunk_lanes; i++)
        if (w->element[i] >= 0) lane_of[w->element[i]] = i;
    LLVMValueRef step = LLVMConstInt(type_i64(s->unit), (unsigned long long)w->low, true);
    if (w->low) base = LLVMBuildGEP2(b, LLVMInt8TypeInContext(s->unit->context), base, &step, 1, "");
    vector = lanes_shuffle(s, vector, NULL, lane_of, w->lanes);
    if (!mask && is_dense(s, w)) {
        LLVMSetAlignment(LLVMBuildStore(b, vector, base), (unsigned)align);
        return;
    }
    LLVMTypeRef types[2] = {LLVMTypeOf(vector), LLVMTypeOf(base)};
    LLVMValueRef arguments[4] = {vector, base, simd_i32(s, align), window_mask(s, w, mask)};
    simd_intrinsic(s, "llvm.masked.store", types, 2, arguments, 4);
}

bool rows_store(struct simd *s, LLVMValueRef store, int chunk) {
    LLVMValueRef value = LLVMGetOperand(store, 0), address = LLVMGetOperand(store, 1),
                 mask = mask_chunk(s, chunk);
    struct window windows[GANG_MAX_LANES / 4];
    int count = find_windows(s, address, LLVMTypeOf(value), chunk, mask != NULL, windows);
    for (int n = 0; n < count; n++)
        if (!is_run(s, &windows[n])) return false;
    for (int n = 0; n < count; n++) {
        LLVMValueRef base = rows_lane(s, address, chunk, windows[n].leader);
        store_window(s, store, chunk_of(s, value, chunk), base, &windows[n], mask);
    }
    return count > 0;
}
