/* Copies of one thread's neighbouring elements, as from device memory to a tile: loads whose only uses are
 * stores to neighbouring elements in the same order. Nothing else uses the elements, so they are not
 * transposed, and lanes that are side by side both where they load and where they store share vectors.
 * Addresses are scalars if the lanes fall into few rows (rows.c).
 *
 * Requires: both groups of neighbours are in one block, so that they have the same mask. */
#include "compiler/simd/memory/neighbours.h"
#include "compiler/simd/analysis/spots.h"

/* ---- Finding. */

/* The plain store of the same block that is the only use of the load; or NULL. */
static LLVMValueRef store_of(LLVMValueRef load) {
    LLVMUseRef use = LLVMGetFirstUse(load);
    if (!use || LLVMGetNextUse(use)) return NULL;
    LLVMValueRef store = LLVMGetUser(use);
    bool plain = LLVMIsAStoreInst(store) && LLVMGetOperand(store, 0) == load && !LLVMGetVolatile(store) &&
                 LLVMGetOrdering(store) == LLVMAtomicOrderingNotAtomic &&
                 LLVMGetInstructionParent(store) == LLVMGetInstructionParent(load);
    return plain ? store : NULL;
}

bool neighbours_may_begin_copy(struct simd *s, const struct neighbours *loads) {
    LLVMValueRef first = store_of(loads->accesses[0]);
    int64_t size = access_size(s, loads->accesses[0]), distance;
    if (!first || s->chunk_lanes == 1 || loads->count * size < 4) return false;
    for (int n = 1; n < loads->count; n++) {
        LLVMValueRef store = store_of(loads->accesses[n]);
        if (!store || !spot_distance(s, access_address(first), access_address(store), &distance) ||
            distance != n * size)
            return false;
    }
    return true;
}

bool neighbours_end_copy(struct simd *s, struct neighbours *stores) {
    struct neighbours *loads = NULL;
    for (int n = 0; n < stores->count; n++) {
        LLVMValueRef value = LLVMGetOperand(stores->accesses[n], 0);
        if (!LLVMIsALoadInst(value)) return false;
        if (n == 0) loads = value_of(s, value)->neighbours;
        if (!loads || loads->count != stores->count || loads->accesses[n] != value) return false;
    }
    if (!loads || !neighbours_may_begin_copy(s, loads)) return false;
    loads->copies = stores;
    stores->copies = loads;
    return true;
}

/* ---- Emission. */

/* How many lanes share a vector: a power of two, up to `most`. From each of its multiples on, so many lanes
 * are side by side. */
static int lanes_side_by_side(struct simd *s, const struct row_view *view, int64_t bytes, int most) {
    int lanes = 1;
    for (; 2 * lanes <= most && 2 * lanes <= s->chunk_lanes; lanes *= 2)
        for (int i = 0; i < s->chunk_lanes; i += 2 * lanes)
            for (int k = i; k < i + 2 * lanes; k++)
                if (view->leader[k] != view->leader[i] ||
                    view->offset[k] != view->offset[i] + (k - i) * bytes)
                    return lanes;
    return lanes;
}

static LLVMValueRef address_at(struct simd *s, LLVMValueRef base, int64_t bytes) {
    LLVMValueRef index = LLVMConstInt(type_i64(s->unit), (unsigned long long)bytes, true);
    if (!bytes) return base;
    return LLVMBuildGEP2(s->unit->builder, LLVMInt8TypeInContext(s->unit->context), base, &index, 1, "");
}

/* The address of the first element of every `step`th lane. */
static void find_addresses(struct simd *s, const struct neighbours *group, const struct row_view *view,
                           int leaders, int chunk, int step, LLVMValueRef *out) {
    LLVMValueRef address = access_address(group->place), base[GANG_MAX_LANES] = {NULL};
    bool apart = 2 * leaders > s->chunk_lanes; /* more scalars would take longer than a vector of them */
    for (int lane = 0; lane < s->chunk_lanes; lane += step) {
        int leader = view->leader[lane];
        if (apart) {
            out[lane] =
                LLVMBuildExtractElement(s->unit->builder, chunk_of(s, address, chunk), simd_i32(s, lane), "");
            out[lane] = address_at(s, out[lane], group->bytes);
            continue;
        }
        if (!base[leader]) base[leader] = rows_lane(s, address, chunk, leader);
        out[lane] = address_at(s, base[leader], view->offset[lane] + group->bytes);
    }
}

void neighbours_emit_copy(struct simd *s, struct neighbours *group, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    bool load = LLVMIsALoadInst(group->place) != NULL;
    struct neighbours *loads = load ? group : group->copies;
    int64_t bytes = group->count * access_size(s, group->accesses[0]);
    struct row_view own, other;
    int leaders = rows_find(s, access_address(group->place), chunk, &own);
    (void)rows_find(s, access_address(group->copies->place), chunk, &other);
    int step = lanes_side_by_side(s, &own, bytes, s->vector_bits / 8 / (int)bytes);
    step = lanes_side_by_side(s, &other, bytes, step);
    if (!loads->loaded) loads->loaded = arena_alloc(&s->arena, (size_t)s->lanes * sizeof(LLVMValueRef));
    if (!loads->loaded) return;
    LLVMValueRef addresses[GANG_MAX_LANES], *values = loads->loaded + (ptrdiff_t)chunk * s->chunk_lanes;
    find_addresses(s, group, &own, leaders, chunk, step, addresses);
    LLVMTypeRef type = LLVMVectorType(LLVMInt32TypeInContext(s->unit->context), (unsigned)(step * bytes / 4));
    for (int lane = 0; lane < s->chunk_lanes; lane += step) {
        if (load) values[lane] = LLVMBuildLoad2(b, type, addresses[lane], "");
        LLVMValueRef access = load ? values[lane] : LLVMBuildStore(b, values[lane], addresses[lane]);
        LLVMSetAlignment(access, group->align);
    }
}
