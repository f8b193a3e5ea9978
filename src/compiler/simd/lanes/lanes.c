/* Reductions and scans over the lanes of chunks: shuffles and vector operations, in the order in which
 * device/cpu/simdgroup.c combines lanes, so that floating-point results have the same bits. */
#include "compiler/simd/lanes/lanes.h"
#include "compiler/combine.h"

#include <math.h>

LLVMValueRef lanes_shuffle(struct simd *s, LLVMValueRef a, LLVMValueRef b, const int *indexes, int count) {
    LLVMTypeRef i32 = type_i32(s->unit);
    LLVMValueRef lanes[GANG_MAX_LANES];
    for (int i = 0; i < count; i++)
        lanes[i] = indexes[i] < 0 ? LLVMGetPoison(i32) : LLVMConstInt(i32, (unsigned)indexes[i], false);
    return LLVMBuildShuffleVector(s->unit->builder, a, b ? b : LLVMGetPoison(LLVMTypeOf(a)),
                                  LLVMConstVector(lanes, (unsigned)count), "");
}

static LLVMValueRef take_in_order(struct simd *s, LLVMValueRef a, LLVMValueRef b, int first, int count) {
    int indexes[GANG_MAX_LANES];
    for (int i = 0; i < count; i++) indexes[i] = first + i;
    return lanes_shuffle(s, a, b, indexes, count);
}

LLVMValueRef lanes_join(struct simd *s, LLVMValueRef first, LLVMValueRef second) {
    return take_in_order(s, first, second, 0, 2 * (int)LLVMGetVectorSize(LLVMTypeOf(first)));
}

LLVMValueRef lanes_half(struct simd *s, LLVMValueRef vector, bool second) {
    int count = (int)LLVMGetVectorSize(LLVMTypeOf(vector)) / 2;
    return take_in_order(s, vector, NULL, second ? count : 0, count);
}

LLVMValueRef lanes_gather(struct simd *s, LLVMValueRef const *chunks, int count, const int *indexes) {
    int lowest = indexes[0] / s->chunk_lanes, highest = lowest, moved[GANG_MAX_LANES];
    for (int i = 1; i < s->chunk_lanes; i++) {
        int chunk = indexes[i] / s->chunk_lanes;
        if (chunk < lowest) lowest = chunk;
        if (chunk > highest) highest = chunk;
    }
    int joined = 1;
    while (lowest % joined + highest - lowest >= joined) joined *= 2;
    lowest -= lowest % joined;
    if (lowest + joined > count) lowest = 0, joined = count;
    for (int i = 0; i < s->chunk_lanes; i++) moved[i] = indexes[i] - lowest * s->chunk_lanes;
    if (joined == 2) return lanes_shuffle(s, chunks[lowest], chunks[lowest + 1], moved, s->chunk_lanes);
    return lanes_shuffle(s, chunks_join(s, chunks + lowest, joined), NULL, moved, s->chunk_lanes);
}

/* ---- One operation. */

static LLVMTypeRef element_of(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetElementType(type) : type;
}

static bool is_floating(LLVMTypeRef element) {
    return LLVMGetTypeKind(element) != LLVMIntegerTypeKind;
}

LLVMValueRef lanes_combine(struct simd *s, enum simd_operation operation, LLVMValueRef a, LLVMValueRef b) {
    return simdgroup_combine(s->unit->builder, operation, a, b);
}

/* Combining it with any value, on either side, gives that value. */
static LLVMValueRef neutral(enum simd_operation operation, LLVMTypeRef element) {
    switch (operation) {
    case SIMD_SUM:
        return is_floating(element) ? LLVMConstReal(element, -0.0) : LLVMConstNull(element);
    case SIMD_PRODUCT:
        return is_floating(element) ? LLVMConstReal(element, 1) : LLVMConstInt(element, 1, false);
    case SIMD_MIN_FLOAT:
    case SIMD_MAX_FLOAT:
        return LLVMConstReal(element, NAN);
    case SIMD_MIN_SIGNED:
    case SIMD_MAX_SIGNED: {
        unsigned long long lowest = 1ull << (LLVMGetIntTypeWidth(element) - 1);
        return LLVMConstInt(element, operation == SIMD_MIN_SIGNED ? lowest - 1 : lowest, false);
    }
    case SIMD_MIN_UNSIGNED:
    case SIMD_AND:
        return LLVMConstAllOnes(element);
    default:
        return LLVMConstNull(element);
    }
}

/* The first lane's result of an exclusive scan. */
static LLVMValueRef identity(enum simd_operation operation, LLVMTypeRef element) {
    if (operation == SIMD_MIN_FLOAT) return LLVMConstReal(element, INFINITY);
    if (operation == SIMD_MAX_FLOAT) return LLVMConstReal(element, -INFINITY);
    if (operation == SIMD_SUM) return LLVMConstNull(element);
    return neutral(operation, element);
}

LLVMValueRef lanes_keep_active(struct simd *s, enum simd_operation operation, LLVMValueRef vector,
                               LLVMValueRef mask) {
    if (!mask) return vector;
    LLVMValueRef nothing = chunk_splat(s, neutral(operation, element_of(vector)));
    return LLVMBuildSelect(s->unit->builder, mask, vector, nothing, "");
}

/* ---- Reductions. */

/* The position of the tree's nodes: lane i of a vector has the node of leaves leaf[i] … leaf[i] + span - 1,
 * counted from the first lane of the chunks from which the vector was computed; -1: none. */
struct tree {
    int leaf[GANG_MAX_LANES];
    int span, extent; /* extent: leaves of one vector */
};

/* The lane of the right neighbour of the node in lane i, if that node is a left one; otherwise -1. */
static int partner_of(const struct simd *s, const struct tree *tree, int i) {
    int leaf = tree->leaf[i];
    if (leaf < 0 || leaf % (2 * tree->span) != 0) return -1;
    for (int j = 0; j < s->chunk_lanes; j++)
        if (tree->leaf[j] == leaf + tree->span) return j;
    return -1;
}

/* Combines neighbours: each pair of vectors becomes one. The results of both alternate within blocks of four
 * lanes, so that the first two steps need no shuffle across 128 bits. */
static void merge_pairs(struct simd *s, enum simd_operation operation, LLVMValueRef *vectors, int count,
                        struct tree *tree) {
    int lanes = s->chunk_lanes, half = lanes < 4 ? lanes / 2 : 2, pairs = 0;
    int left[GANG_MAX_LANES] = {0}, right[GANG_MAX_LANES] = {0}, leaf[GANG_MAX_LANES] = {0};
    for (int i = 0; i < lanes && lanes > 1; i++) {
        int partner = partner_of(s, tree, i);
        if (partner < 0) continue;
        int place = pairs / half * 2 * half + pairs % half;
        for (int second = 0; second < 2; second++) {
            left[place + second * half] = i + second * lanes;
            right[place + second * half] = partner + second * lanes;
            leaf[place + second * half] = tree->leaf[i] + second * tree->extent;
        }
        pairs++;
    }
    for (int i = 0; i < count; i += 2) {
        LLVMValueRef a = vectors[i], b = vectors[i + 1];
        vectors[i / 2] = lanes == 1 ? lanes_combine(s, operation, a, b)
                                    : lanes_combine(s, operation, lanes_shuffle(s, a, b, left, lanes),
                                                    lanes_shuffle(s, a, b, right, lanes));
    }
    for (int i = 0; i < lanes && lanes > 1; i++) tree->leaf[i] = leaf[i];
    tree->span *= 2;
    tree->extent *= 2;
}

/* Combines neighbouring nodes of one vector, wherever they are, in the lane of the first. */
static LLVMValueRef fold(struct simd *s, enum simd_operation operation, LLVMValueRef vector,
                         struct tree *tree) {
    int lanes = s->chunk_lanes, partner[GANG_MAX_LANES];
    for (int i = 0; i < lanes; i++) partner[i] = partner_of(s, tree, i);
    for (int i = 0; i < lanes; i++)
        if (partner[i] < 0) tree->leaf[i] = -1;
    tree->span *= 2;
    return lanes_combine(s, operation, vector, lanes_shuffle(s, vector, NULL, partner, lanes));
}

LLVMValueRef lanes_reduce(struct simd *s, enum simd_operation operation, LLVMValueRef const *chunks,
                          int count) {
    int part = 1;
    while (2 * part <= count) part *= 2;
    if (part < count)
        return lanes_combine(s, operation, lanes_reduce(s, operation, chunks, part),
                             lanes_reduce(s, operation, chunks + part, count - part));
    LLVMValueRef vectors[GANG_MAX_LANES] = {chunks[0]};
    struct tree tree = {.span = 1, .extent = s->chunk_lanes};
    for (int i = 0; i < count; i++) vectors[i] = chunks[i];
    for (int i = 0; i < s->chunk_lanes; i++) tree.leaf[i] = i;
    for (; count > 1; count /= 2) merge_pairs(s, operation, vectors, count, &tree);
    while (tree.span < tree.extent) vectors[0] = fold(s, operation, vectors[0], &tree);
    return LLVMBuildExtractElement(s->unit->builder, vectors[0], simd_i32(s, 0), "");
}

/* The lane that has the node of leaves `leaf` … leaf + span - 1. */
static int lane_of_node(const struct simd *s, const struct tree *tree, int leaf) {
    int lane = 0;
    while (lane < s->chunk_lanes - 1 && tree->leaf[lane] != leaf) lane++;
    return lane;
}

LLVMValueRef lanes_reduce_each(struct simd *s, enum simd_operation operation, LLVMValueRef const *chunks,
                               int count, int groups) {
    LLVMValueRef vectors[GANG_MAX_LANES];
    struct tree tree = {.span = 1, .extent = s->chunk_lanes};
    int lanes = s->chunk_lanes * count, left = count * groups, indexes[GANG_MAX_LANES];
    for (int i = 0; i < left; i++) vectors[i] = chunks[i];
    for (int i = 0; i < s->chunk_lanes; i++) tree.leaf[i] = i;
    for (; left > 1 && tree.span < lanes; left /= 2) merge_pairs(s, operation, vectors, left, &tree);
    while (tree.span < lanes) vectors[0] = fold(s, operation, vectors[0], &tree);
    int of_vector = groups / left;
    for (int g = 0; g < groups; g++)
        indexes[g] = lane_of_node(s, &tree, g % of_vector * lanes) + g / of_vector * s->chunk_lanes;
    return lanes_shuffle(s, chunks_join(s, vectors, left), NULL, indexes, groups);
}

LLVMValueRef lanes_reduce_groups(struct simd *s, enum simd_operation operation, LLVMValueRef vector,
                                 int width) {
    int left[GANG_MAX_LANES], right[GANG_MAX_LANES];
    for (int distance = 1; distance < width; distance *= 2) {
        for (int i = 0; i < s->chunk_lanes; i++) {
            left[i] = i & ~distance;
            right[i] = i | distance;
        }
        vector = lanes_combine(s, operation, lanes_shuffle(s, vector, NULL, left, s->chunk_lanes),
                               lanes_shuffle(s, vector, NULL, right, s->chunk_lanes));
    }
    return vector;
}

/* ---- Scans. */

static LLVMValueRef lane_splat(struct simd *s, LLVMValueRef vector, int lane) {
    int indexes[GANG_MAX_LANES];
    for (int i = 0; i < s->chunk_lanes; i++) indexes[i] = lane;
    return lanes_shuffle(s, vector, NULL, indexes, s->chunk_lanes);
}

/* Shifts lanes up by one, with `below` in the first lane of each group of `group` lanes. */
static LLVMValueRef shift_up(struct simd *s, LLVMValueRef vector, LLVMValueRef below, int distance,
                             int group) {
    int indexes[GANG_MAX_LANES], lanes = s->chunk_lanes;
    for (int i = 0; i < lanes; i++) indexes[i] = i % group >= distance ? i - distance : lanes + i;
    return lanes_shuffle(s, vector, below, indexes, lanes);
}

/* Operations that may be regrouped, in steps of doubling distance. */
static void scan_integers(struct simd *s, const struct scan *scan, LLVMValueRef *chunks, int count) {
    int lanes = s->chunk_lanes, group = scan->width < lanes ? scan->width : lanes;
    LLVMValueRef nothing = chunk_splat(s, neutral(scan->operation, element_of(chunks[0]))), carry = nothing;
    for (int k = 0; k < count; k++) {
        LLVMValueRef x = chunks[k];
        bool starts = k * lanes % scan->width == 0;
        for (int distance = 1; distance < group; distance *= 2)
            x = lanes_combine(s, scan->operation, shift_up(s, x, nothing, distance, group), x);
        if (starts) carry = nothing;
        if (!starts) x = lanes_combine(s, scan->operation, carry, x);
        chunks[k] = scan->exclusive ? shift_up(s, x, carry, 1, group) : x;
        if (scan->width > lanes) carry = lane_splat(s, x, lanes - 1);
    }
}

static LLVMValueRef lanes_from(struct simd *s, int first, int group) {
    int64_t on[GANG_MAX_LANES];
    for (int i = 0; i < s->chunk_lanes; i++) on[i] = i % group >= first;
    return lanes_constant(s, simd_i1(s), on, s->chunk_lanes);
}

/* Lane by lane: each value is splatted over the lanes that include it. */
static void scan_in_order(struct simd *s, const struct scan *scan, LLVMValueRef *chunks, int count) {
    LLVMBuilderRef b = s->unit->builder;
    int lanes = s->chunk_lanes, group = scan->width < lanes ? scan->width : lanes, from[GANG_MAX_LANES];
    LLVMValueRef nothing = chunk_splat(s, neutral(scan->operation, element_of(chunks[0]))), carry = nothing;
    for (int k = 0; k < count; k++) {
        LLVMValueRef x = chunks[k];
        if (k * lanes % scan->width == 0) carry = nothing;
        LLVMValueRef total = carry;
        for (int lane = 0; lane < group; lane++) {
            for (int i = 0; i < lanes; i++) from[i] = i - i % group + lane;
            LLVMValueRef value = lanes_shuffle(s, x, NULL, from, lanes);
            LLVMValueRef next = lanes_combine(s, scan->operation, total, value);
            LLVMValueRef on = lanes_from(s, lane + scan->exclusive, group);
            total = LLVMBuildSelect(b, on, next, total, "");
        }
        chunks[k] = total;
        LLVMValueRef all = scan->exclusive ? lanes_combine(s, scan->operation, total, x) : total;
        if (scan->width > lanes) carry = lane_splat(s, all, lanes - 1);
    }
}

/* i1 vectors: whether there is an active lane before this one in its group. */
static void find_followers(struct simd *s, const struct scan *scan, LLVMValueRef *followers, int count) {
    LLVMBuilderRef b = s->unit->builder;
    struct scan before = {.operation = SIMD_OR, .exclusive = true, .width = scan->width};
    LLVMTypeRef type = chunk_type(s, type_i32(s->unit));
    for (int k = 0; k < count; k++) {
        LLVMValueRef mask = scan->masks[k] ? scan->masks[k] : mask_all(s);
        followers[k] = LLVMBuildZExt(b, mask, type, "");
    }
    scan_integers(s, &before, followers, count);
    for (int k = 0; k < count; k++)
        followers[k] = LLVMBuildICmp(b, LLVMIntNE, followers[k], LLVMConstNull(type), "");
}

void lanes_scan(struct simd *s, const struct scan *scan, LLVMValueRef *chunks, int count) {
    LLVMTypeRef element = element_of(chunks[0]);
    if (!is_floating(element)) {
        scan_integers(s, scan, chunks, count);
        return;
    }
    scan_in_order(s, scan, chunks, count);
    LLVMValueRef first = identity(scan->operation, element), followers[GANG_MAX_LANES];
    if (!scan->exclusive || first == neutral(scan->operation, element)) return;
    find_followers(s, scan, followers, count);
    for (int k = 0; k < count; k++)
        chunks[k] = LLVMBuildSelect(s->unit->builder, followers[k], chunks[k], chunk_splat(s, first), "");
}
