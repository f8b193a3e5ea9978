/* Loads and stores whose lanes fall into rows: addresses are constants apart within a row, but not between
 * rows (base + row × n + column, with n known only at run time), as in tiles and matrices. Each row is a
 * vector of its own, at its first lane's address, and shuffles bring the elements to their lanes or from
 * them.
 *
 * Which lanes share a row follows from the address expression when the access is emitted: for each value,
 * which lanes of the chunk have the value of an earlier lane (their leader) plus a constant. */
#include "compiler/simd/lanes/lanes.h"

#include <string.h>

#define VIEW_DEPTH 16
#define MAX_STEPS 100 /* values examined per load: shared parts of expressions are walked repeatedly */
#define MAX_ASSUMED 8

/* Whose view is looked for: the lanes of a chunk, or the first lanes of all chunks. */
struct finder {
    struct simd *s;
    bool chunks;
    int first, step, lanes; /* lanes of the gang */
    /* Phis whose view is being computed: what is assumed of them within their loops. */
    LLVMValueRef assumed[MAX_ASSUMED];
    struct row_view views[MAX_ASSUMED];
    int assumed_count;
    int steps;
};

static unsigned width_of(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : 64;
}

static int64_t wrap(uint64_t value, unsigned width) {
    unsigned unused = width >= 64 ? 0 : 64 - width;
    return (int64_t)(value << unused) >> unused;
}

static void each_alone(const struct finder *f, struct row_view *view) {
    for (int i = 0; i < f->lanes; i++) {
        view->leader[i] = i;
        view->offset[i] = 0;
    }
}

/* One row, with the offsets of a shape. */
static void from_shape(const struct finder *f, int shape, struct row_view *view) {
    const int64_t *offsets = shape_offsets(f->s, shape) + f->first;
    for (int i = 0; i < f->lanes; i++) {
        view->leader[i] = 0;
        view->offset[i] = (int64_t)((uint64_t)offsets[i * f->step] - (uint64_t)offsets[0]);
    }
}

/* Lanes stay together if they are together in both; a p + b q is relative to the first of them. */
static void combine(const struct finder *f, const struct row_view *a, uint64_t p, const struct row_view *b,
                    uint64_t q, unsigned width, struct row_view *out) {
    struct row_view result = {.leader = {0}};
    for (int i = 0; i < f->lanes; i++) {
        int first = 0;
        while (a->leader[first] != a->leader[i] || b->leader[first] != b->leader[i]) first++;
        uint64_t x = (uint64_t)a->offset[i] - (uint64_t)a->offset[first];
        uint64_t y = (uint64_t)b->offset[i] - (uint64_t)b->offset[first];
        result.leader[i] = first;
        result.offset[i] = wrap(x * p + y * q, width);
    }
    *out = result;
}

/* Lanes stay together if both have them together at the same offset. */
static void intersect(const struct finder *f, const struct row_view *a, const struct row_view *b,
                      struct row_view *out) {
    struct row_view result = {.leader = {0}};
    for (int i = 0; i < f->lanes; i++) {
        int first = 0;
        while (a->leader[first] != a->leader[i] || b->leader[first] != b->leader[i] ||
               a->offset[i] - a->offset[first] != b->offset[i] - b->offset[first])
            first++;
        result.leader[i] = first;
        result.offset[i] = a->offset[i] - a->offset[first];
    }
    *out = result;
}

/* Lanes stay together if they have the same value. */
static void keep_equal(const struct finder *f, const struct row_view *a, struct row_view *out) {
    struct row_view none = {.leader = {0}};
    intersect(f, a, &none, out);
}

static bool is_same(const struct finder *f, const struct row_view *a, const struct row_view *b) {
    size_t lanes = (size_t)f->lanes;
    return memcmp(a->leader, b->leader, lanes * sizeof *a->leader) == 0 &&
           memcmp(a->offset, b->offset, lanes * sizeof *a->offset) == 0;
}

/* A 32-bit index may wrap between two lanes, unless the launch is small: see widen_index in transfer.c. */
static void keep_near(const struct finder *f, LLVMValueRef index, const struct row_view *a,
                      struct row_view *out) {
    bool near = f->s->code->small && width_of(index) == 32;
    for (int i = 0; i < f->lanes; i++) near &= a->offset[i] >= -SMALL_REACH && a->offset[i] <= SMALL_REACH;
    if (near)
        *out = *a;
    else
        keep_equal(f, a, out);
}

static bool constant_of(LLVMValueRef value, int64_t *out) {
    if (!LLVMIsAConstantInt(value) || LLVMGetIntTypeWidth(LLVMTypeOf(value)) > 64) return false;
    *out = LLVMConstIntGetSExtValue(value);
    return true;
}

static void find_view(struct finder *f, LLVMValueRef value, int depth, struct row_view *out);

static void view_of_address(struct finder *f, LLVMValueRef gep, int depth, struct row_view *out) {
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    find_view(f, LLVMGetOperand(gep, 0), depth, out);
    for (int o = 1; o < LLVMGetNumOperands(gep); o++) {
        LLVMValueRef index = LLVMGetOperand(gep, (unsigned)o);
        if (o > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            type = LLVMStructGetTypeAtIndex(type, (unsigned)LLVMConstIntGetZExtValue(index));
            continue;
        }
        if (o > 1) type = LLVMGetElementType(type);
        struct row_view view;
        find_view(f, index, depth, &view);
        if (width_of(index) < 64) keep_near(f, index, &view, &view);
        combine(f, out, 1, &view, LLVMABISizeOfType(f->s->unit->layout, type), 64, out);
    }
}

/* The view of the value from outside the loop is assumed within it; if the value from the loop contradicts
 * it, each lane is alone. */
static void view_of_phi(struct finder *f, LLVMValueRef phi, int depth, struct row_view *out) {
    for (int n = 0; n < f->assumed_count; n++) {
        if (f->assumed[n] != phi) continue;
        *out = f->views[n];
        return;
    }
    if (f->assumed_count == MAX_ASSUMED) {
        each_alone(f, out);
        return;
    }
    unsigned count = LLVMCountIncoming(phi);
    int place = simd_place(f->s, LLVMGetInstructionParent(phi));
    if (f->s->paths.blocks[place].join) { /* the lanes came by different paths */
        each_alone(f, out);
        return;
    }
    bool found = false;
    for (int round = 0; round < 2; round++) { /* from outside, then around the loop */
        for (unsigned n = 0; n < count; n++) {
            bool around = simd_place(f->s, LLVMGetIncomingBlock(phi, n)) >= place;
            if (around != (round == 1)) continue;
            struct row_view view;
            find_view(f, LLVMGetIncomingValue(phi, n), depth, &view);
            if (round == 0 && found) intersect(f, out, &view, out);
            if (round == 0 && !found) *out = view;
            if (round == 1 && !is_same(f, out, &view)) found = false;
            if (round == 0) found = true;
        }
        if (round == 0 && found) {
            f->assumed[f->assumed_count] = phi;
            f->views[f->assumed_count++] = *out;
        }
        if (!found) break;
        if (round == 1) f->assumed_count--;
    }
    if (!found) {
        if (f->assumed_count && f->assumed[f->assumed_count - 1] == phi) f->assumed_count--;
        each_alone(f, out);
    }
}

/* Arithmetic without a rule of its own: lanes with the same operands have the same result. */
static bool is_plain(LLVMValueRef i) {
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMMul:
    case LLVMShl:
    case LLVMLShr:
    case LLVMAShr:
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
    case LLVMICmp:
    case LLVMSelect:
        return true;
    default:
        return false;
    }
}

static void view_of_plain(struct finder *f, LLVMValueRef i, int depth, struct row_view *out) {
    memset(out, 0, sizeof *out);
    for (int o = 0; o < LLVMGetNumOperands(i); o++) {
        struct row_view view;
        find_view(f, LLVMGetOperand(i, (unsigned)o), depth, &view);
        intersect(f, out, &view, out);
    }
}

static void view_of_instruction(struct finder *f, LLVMValueRef i, int depth, struct row_view *out) {
    struct row_view a, b;
    int64_t constant = 0;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
    switch (opcode) {
    case LLVMGetElementPtr:
        view_of_address(f, i, depth, out);
        return;
    case LLVMPHI:
        view_of_phi(f, i, depth, out);
        return;
    case LLVMFreeze:
    case LLVMAddrSpaceCast:
        find_view(f, LLVMGetOperand(i, 0), depth, out);
        return;
    case LLVMTrunc:
        find_view(f, LLVMGetOperand(i, 0), depth, &a);
        combine(f, &a, 1, &a, 0, width_of(i), out);
        return;
    case LLVMZExt:
    case LLVMSExt:
        find_view(f, LLVMGetOperand(i, 0), depth, &a);
        if (shape_is_index(i))
            keep_near(f, LLVMGetOperand(i, 0), &a, out);
        else
            keep_equal(f, &a, out);
        return;
    default:
        break;
    }
    bool adds = opcode == LLVMAdd || (opcode == LLVMOr && LLVMGetIsDisjoint(i)),
         subtracts = opcode == LLVMSub;
    if (adds || subtracts) {
        find_view(f, LLVMGetOperand(i, 0), depth, &a);
        find_view(f, LLVMGetOperand(i, 1), depth, &b);
        combine(f, &a, 1, &b, adds ? 1 : UINT64_MAX, width_of(i), out);
    } else if (opcode == LLVMMul && constant_of(LLVMGetOperand(i, 1), &constant)) {
        find_view(f, LLVMGetOperand(i, 0), depth, &a);
        combine(f, &a, (uint64_t)constant, &a, 0, width_of(i), out);
    } else if (opcode == LLVMShl && constant_of(LLVMGetOperand(i, 1), &constant) && constant >= 0 &&
               constant < 63) {
        find_view(f, LLVMGetOperand(i, 0), depth, &a);
        combine(f, &a, UINT64_C(1) << constant, &a, 0, width_of(i), out);
    } else if (is_plain(i)) {
        view_of_plain(f, i, depth, out);
    } else {
        each_alone(f, out);
    }
}

static void find_view(struct finder *f, LLVMValueRef value, int depth, struct row_view *out) {
    int view = f->chunks ? shape_of(f->s, value) : piece_view(f->s, value);
    if (view >= 0)
        from_shape(f, view, out);
    else if (depth == 0 || ++f->steps > MAX_STEPS || !LLVMIsAInstruction(value) || private_is(f->s, value))
        each_alone(f, out);
    else
        view_of_instruction(f, value, depth - 1, out);
}

/* ---- The value of one lane, as the thread itself would compute it. */

static LLVMValueRef lane_value(struct simd *s, LLVMValueRef value, int chunk, int lane, int depth);

static bool is_cheap(LLVMValueRef i) {
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMGetElementPtr:
    case LLVMAdd:
    case LLVMSub:
    case LLVMTrunc:
    case LLVMZExt:
    case LLVMSExt:
        return true;
    default:
        return is_plain(i);
    }
}

static LLVMValueRef clone_for_lane(struct simd *s, LLVMValueRef i, int chunk, int lane, int depth) {
    LLVMBuilderRef b = s->unit->builder;
    /* Rows may rely on used indexes not being large: see widen_index in transfer.c. */
    if (LLVMIsAZExtInst(i) && s->code->small && width_of(LLVMGetOperand(i, 0)) == 32 && shape_is_index(i))
        return LLVMBuildSExt(b, lane_value(s, LLVMGetOperand(i, 0), chunk, lane, depth), LLVMTypeOf(i), "");
    LLVMValueRef operands[8];
    int count = LLVMGetNumOperands(i);
    for (int o = 0; o < count; o++)
        operands[o] = lane_value(s, LLVMGetOperand(i, (unsigned)o), chunk, lane, depth);
    LLVMValueRef copy = LLVMInstructionClone(i);
    for (int o = 0; o < count; o++) LLVMSetOperand(copy, (unsigned)o, operands[o]);
    copy_drop_metadata(copy);
    copy_drop_promises(copy);
    LLVMInsertIntoBuilder(b, copy);
    return copy;
}

static LLVMValueRef lane_value(struct simd *s, LLVMValueRef value, int chunk, int lane, int depth) {
    LLVMBuilderRef b = s->unit->builder;
    if (!LLVMIsAInstruction(value)) return value;
    int shape = shape_of(s, value), view = piece_view(s, value);
    if (shape == SHAPE_UNIFORM) return scalar_of(s, value);
    if (view >= 0) {
        LLVMValueRef first = piece_first_lane(s, value, chunk);
        const int64_t *offsets = shape_offsets(s, view) + chunk * s->chunk_lanes;
        int64_t offset = offsets[lane] - offsets[0];
        if (!offset) return first;
        bool address = LLVMGetTypeKind(LLVMTypeOf(first)) == LLVMPointerTypeKind;
        LLVMTypeRef type = address ? type_i64(s->unit) : LLVMTypeOf(first);
        LLVMValueRef step = LLVMConstInt(type, (unsigned long long)offset, true);
        if (!address) return LLVMBuildAdd(b, first, step, "");
        return LLVMBuildGEP2(b, LLVMInt8TypeInContext(s->unit->context), first, &step, 1, "");
    }
    if (depth > 0 && is_cheap(value) && LLVMGetNumOperands(value) <= 8)
        return clone_for_lane(s, value, chunk, lane, depth - 1);
    return LLVMBuildExtractElement(b, chunk_of(s, value, chunk), simd_i32(s, lane), "");
}

int rows_find(struct simd *s, LLVMValueRef value, int chunk, struct row_view *out) {
    struct finder finder = {.s = s, .first = chunk * s->chunk_lanes, .step = 1, .lanes = s->chunk_lanes};
    int leaders = 0;
    find_view(&finder, value, VIEW_DEPTH, out);
    for (int i = 0; i < s->chunk_lanes; i++) leaders += out->leader[i] == i;
    return leaders;
}

void rows_find_chunks(struct simd *s, LLVMValueRef value, struct row_view *out) {
    struct finder finder = {.s = s, .chunks = true, .step = s->chunk_lanes, .lanes = s->chunk_count};
    find_view(&finder, value, VIEW_DEPTH, out);
}

struct span rows_span(struct simd *s, int piece, const struct row_view *chunks, int leader) {
    struct span span = {0, 0};
    for (int c = leader; c < s->chunk_count; c++) {
        if (chunks->leader[c] != leader) continue;
        struct span own = shape_span(s, piece, c * s->chunk_lanes, s->chunk_lanes);
        if (chunks->offset[c] + own.least < span.least) span.least = chunks->offset[c] + own.least;
        if (chunks->offset[c] + own.most > span.most) span.most = chunks->offset[c] + own.most;
    }
    return span;
}

LLVMValueRef rows_lane(struct simd *s, LLVMValueRef value, int chunk, int lane) {
    return lane_value(s, value, chunk, lane, VIEW_DEPTH);
}

/* ---- Windows: neighbouring elements of a row, loaded by one vector. */

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
