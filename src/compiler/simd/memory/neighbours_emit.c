/* Code for groups of neighbouring accesses (neighbours.c): loads of each lane's vector and their
 * transposition to the chunks of the values, and for stores the other way round. A group is emitted where its
 * place is, chunk by chunk. Lanes that are off load from a constant, and store nothing.
 *
 * Requires: value.neighbours. */
#include "compiler/simd/memory/access.h"
#include "compiler/simd/memory/neighbours.h"
#include "compiler/simd/memory/pattern.h"
#include "compiler/simd/lanes/lanes.h"

/* Bits of the elements, for which LLVM has all shuffles. */
static LLVMTypeRef bits_of(struct simd *s, LLVMTypeRef type) {
    if (LLVMGetTypeKind(type) == LLVMFloatTypeKind) return type;
    return LLVMIntTypeInContext(s->unit->context, (unsigned)LLVMSizeOfTypeInBits(s->unit->layout, type));
}

static LLVMValueRef address_at(struct simd *s, LLVMValueRef base, int64_t bytes) {
    LLVMValueRef index = LLVMConstInt(type_i64(s->unit), (unsigned long long)bytes, true);
    return LLVMBuildGEP2(s->unit->builder, LLVMInt8TypeInContext(s->unit->context), base, &index, 1, "");
}

/* An address for lanes that are off: `group->bytes` after it are the bytes of a constant, aligned as those of
 * any group. */
static LLVMValueRef nothing(struct simd *s, const struct neighbours *group, LLVMTypeRef pointer) {
    static const char name[] = "lanes.off"; /* no name of a source has a dot */
    LLVMTypeRef i8 = LLVMInt8TypeInContext(s->unit->context);
    LLVMValueRef global = LLVMGetNamedGlobal(s->unit->module, name);
    if (!global) {
        LLVMTypeRef type = LLVMArrayType2(i8, MOST_ALIGN);
        global = LLVMAddGlobal(s->unit->module, type, name);
        LLVMSetInitializer(global, LLVMConstNull(type));
        LLVMSetGlobalConstant(global, true);
        LLVMSetLinkage(global, LLVMPrivateLinkage);
        LLVMSetAlignment(global, MOST_ALIGN);
    }
    LLVMValueRef back = LLVMConstInt(type_i64(s->unit), (uint64_t)-group->bytes, false);
    return LLVMConstAddrSpaceCast(LLVMConstGEP2(i8, global, &back, 1), pointer);
}

/* An address for each lane and a scalar that is added to all; NULL: nothing is. */
struct lane_base {
    LLVMValueRef address, bytes;
};

static bool is_uniform_here(struct simd *s, LLVMValueRef index) {
    return shape_of(s, index) == SHAPE_UNIFORM && value_is_here(s, index);
}

/* The address to which all lanes add the same; NULL: they do not, or it has no vector here. */
static LLVMValueRef before_step(struct simd *s, LLVMValueRef address) {
    if (!LLVMIsAGetElementPtrInst(address) || LLVMGetNumOperands(address) != 2) return NULL;
    LLVMValueRef from = LLVMGetOperand(address, 0);
    bool varies = shape_of(s, from) == SHAPE_VARYING && !piece_is(s, from) && value_is_here(s, from);
    return varies && is_uniform_here(s, LLVMGetOperand(address, 1)) ? from : NULL;
}

/* Takes an address of several such steps apart: no vectors of sums are needed then, and where only the steps
 * change in a loop, the lanes' addresses stay. */
static struct lane_base lane_base_of(struct simd *s, LLVMValueRef address) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef i64 = type_i64(s->unit);
    struct lane_base base = {.address = address};
    LLVMValueRef from = before_step(s, address);
    if (!from || !before_step(s, from)) return base;
    for (; from; from = before_step(s, from)) {
        LLVMValueRef index = LLVMBuildSExt(b, scalar_of(s, LLVMGetOperand(base.address, 1)), i64, "");
        uint64_t size = LLVMABISizeOfType(s->unit->layout, LLVMGetGEPSourceElementType(base.address));
        LLVMValueRef bytes = LLVMBuildMul(b, index, LLVMConstInt(i64, size, false), "");
        base = (struct lane_base){from, base.bytes ? LLVMBuildAdd(b, base.bytes, bytes, "") : bytes};
    }
    return base;
}

/* Whether the lanes' addresses are in a vector, rather than offsets from a scalar. */
static bool has_own_addresses(struct simd *s, LLVMValueRef address) {
    return s->chunk_lanes > 1 && !piece_is(s, address) && shape_of(s, address) < 0;
}

/* The addresses of the first element in each lane of the chunk. With a mask, lanes that are off get the
 * address of a constant. */
static void lane_addresses(struct simd *s, const struct neighbours *group, int chunk, LLVMValueRef mask,
                           LLVMValueRef *lanes) {
    LLVMValueRef address = access_address(group->place);
    LLVMBuilderRef b = s->unit->builder;
    if (s->chunk_lanes == 1) {
        for (int lane = 0; lane < s->lanes; lane++)
            lanes[lane] = address_at(s, chunk_of(s, address, lane), group->bytes);
        return;
    }
    int shape = mask                   ? SHAPE_VARYING
                : piece_is(s, address) ? value_of(s, address)->piece
                                       : shape_of(s, address);
    struct lane_base own = {.address = address};
    if (shape < 0 && !mask) own = lane_base_of(s, address);
    LLVMValueRef base = shape < 0              ? chunk_of(s, own.address, chunk)
                        : piece_is(s, address) ? piece_first_lane(s, address, chunk)
                                               : scalar_of(s, address);
    if (mask) {
        LLVMTypeRef pointer = LLVMGetElementType(LLVMTypeOf(base));
        base = LLVMBuildSelect(s->unit->builder, mask, base, chunk_splat(s, nothing(s, group, pointer)), "");
    }
    for (int lane = 0; lane < s->chunk_lanes; lane++) {
        if (shape >= 0) {
            int64_t offset = shape_offsets(s, shape)[chunk * s->chunk_lanes + lane];
            lanes[lane] = address_at(s, base, offset + group->bytes);
        } else {
            LLVMValueRef first = LLVMBuildExtractElement(b, base, simd_i32(s, lane), "");
            if (own.bytes)
                first = LLVMBuildGEP2(b, LLVMInt8TypeInContext(s->unit->context), first, &own.bytes, 1, "");
            lanes[lane] = first;
            if (group->bytes) lanes[lane] = address_at(s, lanes[lane], group->bytes);
        }
    }
}

/* Parts of 128 bits of a chunk; lanes i, i + lanes / parts, … are together. */
static int parts_of(struct simd *s, int64_t size) {
    int parts = (int)(neighbours_lanes(s) * size / 16);
    return parts ? parts : 1;
}

/* Sets the value of a load to a vector of the lanes' elements. */
static void set_lanes(struct simd *s, struct neighbours *group, int n, int chunk, LLVMValueRef vector) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = LLVMVectorType(access_type(group->place), (unsigned)neighbours_lanes(s));
    vector = LLVMBuildBitCast(b, vector, type, "");
    if (s->chunk_lanes > 1) {
        chunk_set(s, group->accesses[n], chunk, vector);
        return;
    }
    group->columns[n] = vector;
    for (int lane = 0; lane < s->lanes; lane++)
        chunk_set(s, group->accesses[n], lane, LLVMBuildExtractElement(b, vector, simd_i32(s, lane), ""));
}

/* The lanes' values to be stored, as bits. */
static LLVMValueRef get_lanes(struct simd *s, LLVMValueRef value, int chunk, LLVMTypeRef bits) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(value), (unsigned)neighbours_lanes(s));
    LLVMValueRef vector = LLVMGetPoison(type);
    if (s->chunk_lanes > 1) vector = chunk_of(s, value, chunk);
    for (int lane = 0; s->chunk_lanes == 1 && lane < s->lanes; lane++)
        vector = LLVMBuildInsertElement(b, vector, chunk_of(s, value, lane), simd_i32(s, lane), "");
    return LLVMBuildBitCast(b, vector, LLVMVectorType(bits, (unsigned)neighbours_lanes(s)), "");
}

/* Sets the values of all loads, and each lane's vector in `loaded`. */
static void load_chunk(struct simd *s, const struct neighbours *group, int chunk, LLVMValueRef mask,
                       LLVMValueRef *loaded, LLVMValueRef *values) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = access_type(group->place), bits = bits_of(s, type);
    LLVMTypeRef own = LLVMVectorType(bits, (unsigned)group->count);
    int64_t size = access_size(s, group->place);
    int all = neighbours_lanes(s), parts = parts_of(s, size), lanes = all / parts;
    LLVMValueRef addresses[GANG_MAX_LANES] = {NULL}, vectors[MOST_TRANSPOSED] = {NULL},
                 out[MOST_TRANSPOSED] = {NULL};
    lane_addresses(s, group, chunk, mask, addresses);
    for (int lane = 0; lane < all; lane++) {
        loaded[lane] = LLVMBuildLoad2(b, own, addresses[lane], "");
        LLVMSetAlignment(loaded[lane], group->align);
    }
    if (group->count * size > MOST_TOGETHER) {
        lanes_from_lines(s, loaded, group->count, (int)size, values);
        return;
    }
    for (int i = 0; i < lanes; i++) {
        LLVMValueRef together[GANG_MAX_LANES];
        for (int part = 0; part < parts; part++) together[part] = loaded[part * lanes + i];
        vectors[i] = chunks_join(s, together, parts);
    }
    int in_vector = group->count / lanes_transpose(s, vectors, lanes, group->count, parts, out);
    for (int n = 0; n < group->count; n++) {
        values[n] = out[n / in_vector];
        if (in_vector > 1) values[n] = lanes_part(s, values[n], n % in_vector * lanes, lanes);
    }
}

/* Loads under a mask from addresses that are offsets from a scalar: with a branch to code without the mask if
 * all lanes are on. */
static void load_split(struct simd *s, const struct neighbours *group, int chunk, LLVMValueRef *values) {
    LLVMValueRef mask = mask_chunk(s, chunk), loaded[GANG_MAX_LANES], all[MOST_NEIGHBOURS],
                 some[MOST_NEIGHBOURS];
    struct split split = access_split(s, mask);
    load_chunk(s, group, chunk, NULL, loaded, all);
    access_split_some(s, &split);
    load_chunk(s, group, chunk, mask, loaded, some);
    access_split_end(s, &split);
    for (int n = 0; n < group->count; n++) values[n] = access_split_value(s, &split, all[n], some[n]);
}

static bool is_extended(LLVMValueRef load) {
    if (LLVMGetTypeKind(LLVMTypeOf(load)) != LLVMHalfTypeKind) return false;
    for (LLVMUseRef use = LLVMGetFirstUse(load); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (!LLVMIsAFPExtInst(user) || LLVMGetTypeKind(LLVMTypeOf(user)) != LLVMFloatTypeKind ||
            LLVMGetInstructionParent(user) != LLVMGetInstructionParent(load))
            return false;
    }
    return true;
}

/* Loads `values`, or stores the group's, where all lanes of the chunk are on. */
static void access_dense(struct simd *s, const struct neighbours *group, int chunk, LLVMValueRef address,
                         bool extended, LLVMValueRef *values) {
    LLVMTypeRef type = access_type(group->place);
    struct dense dense = {.address = address,
                          .bits = bits_of(s, type),
                          .size = (int)access_size(s, group->place),
                          .count = group->count,
                          .align = group->align,
                          .integer = LLVMGetTypeKind(type) == LLVMIntegerTypeKind,
                          .extended = extended};
    if (access_is_load(group->place)) {
        dense_load(s, &dense, values);
        return;
    }
    for (int n = 0; n < group->count; n++)
        values[n] = get_lanes(s, LLVMGetOperand(group->accesses[n], 0), chunk, dense.bits);
    dense_store(s, &dense, values);
}

static void emit_dense(struct simd *s, struct neighbours *group, int chunk) {
    LLVMValueRef values[MOST_NEIGHBOURS], lanes[GANG_MAX_LANES];
    bool load = access_is_load(group->place), extended = load;
    for (int n = 0; n < group->count && load; n++) extended &= is_extended(group->accesses[n]);
    lane_addresses(s, group, chunk, NULL, lanes);
    access_dense(s, group, chunk, lanes[0], extended, values);
    for (int n = 0; n < group->count && load; n++) set_lanes(s, group, n, chunk, values[n]);
}

/* Under a mask: whole vectors if all lanes are on, otherwise one access after another. */
static void emit_masked_dense(struct simd *s, struct neighbours *group, int chunk) {
    LLVMValueRef all[MOST_NEIGHBOURS], some[MOST_NEIGHBOURS] = {NULL}, lanes[GANG_MAX_LANES];
    LLVMValueRef mask = mask_chunk(s, chunk);
    LLVMTypeRef type = access_type(group->place);
    int64_t size = access_size(s, group->place), offsets[GANG_MAX_LANES];
    bool load = access_is_load(group->place);
    lane_addresses(s, group, chunk, NULL, lanes);
    struct split split = access_split(s, mask);
    access_dense(s, group, chunk, lanes[0], false, all);
    for (int n = 0; n < group->count && load; n++)
        all[n] = LLVMBuildBitCast(s->unit->builder, all[n], chunk_type(s, type), "");
    access_split_some(s, &split);
    for (int n = 0; n < group->count; n++) {
        LLVMValueRef access = group->accesses[n];
        for (int i = 0; i < s->chunk_lanes; i++) offsets[i] = (i * group->count + n) * size;
        int align = access_align_at((int)group->align, n * size);
        if (load)
            some[n] = pattern_load_some(s, type, lanes[0], offsets, mask, align);
        else
            pattern_store_some(s, chunk_of(s, LLVMGetOperand(access, 0), chunk), lanes[0], offsets, mask,
                               align);
    }
    access_split_end(s, &split);
    for (int n = 0; n < group->count && load; n++)
        set_lanes(s, group, n, chunk, access_split_value(s, &split, all[n], some[n]));
}

static void emit_loads(struct simd *s, struct neighbours *group, int chunk) {
    LLVMValueRef values[MOST_NEIGHBOURS], mask = mask_chunk(s, chunk);
    bool split = mask && !has_own_addresses(s, access_address(group->place)) && !access_is_short(s);
    if (!group->loaded) group->loaded = arena_alloc(&s->arena, (size_t)s->lanes * sizeof(LLVMValueRef));
    if (!group->columns) group->columns = arena_alloc(&s->arena, MOST_NEIGHBOURS * sizeof(LLVMValueRef));
    if (!group->loaded || !group->columns) return;
    if (chunk == s->first_chunk) group->serial = s->serial;
    if (split) {
        group->serial = -1;
        load_split(s, group, chunk, values);
    } else {
        load_chunk(s, group, chunk, mask, group->loaded + (ptrdiff_t)chunk * s->chunk_lanes, values);
    }
    for (int n = 0; n < group->count; n++)
        if (group->accesses[n]) set_lanes(s, group, n, chunk, values[n]);
}

/* What the stores copy: the loads' vectors of this code; or NULL. */
static const struct neighbours *copied_by(struct simd *s, const struct neighbours *stores) {
    const struct neighbours *loads = NULL;
    for (int n = 0; n < stores->count; n++) {
        LLVMValueRef value = LLVMGetOperand(stores->accesses[n], 0);
        if (!LLVMIsALoadInst(value)) return NULL;
        if (n == 0) loads = value_of(s, value)->neighbours;
        if (!loads || loads->count != stores->count || loads->accesses[n] != value) return NULL;
    }
    return loads && loads->loaded && loads->serial == s->serial ? loads : NULL;
}

static void emit_copies(struct simd *s, const struct neighbours *group, const struct neighbours *from,
                        int chunk) {
    LLVMValueRef addresses[GANG_MAX_LANES] = {NULL};
    lane_addresses(s, group, chunk, NULL, addresses);
    for (int lane = 0; lane < neighbours_lanes(s); lane++) {
        LLVMValueRef vector = from->loaded[chunk * s->chunk_lanes + lane];
        LLVMSetAlignment(LLVMBuildStore(s->unit->builder, vector, addresses[lane]), group->align);
    }
}

static void emit_stores(struct simd *s, const struct neighbours *group, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef bits = bits_of(s, access_type(group->place));
    int64_t size = access_size(s, group->place);
    int all = neighbours_lanes(s), parts = parts_of(s, size), lanes = all / parts;
    LLVMValueRef addresses[GANG_MAX_LANES] = {NULL}, vectors[MOST_TRANSPOSED] = {NULL},
                 out[MOST_TRANSPOSED] = {NULL};
    lane_addresses(s, group, chunk, NULL, addresses);
    for (int n = 0; n < group->count; n++)
        vectors[n] = get_lanes(s, LLVMGetOperand(group->accesses[n], 0), chunk, bits);
    if (group->count * size > MOST_TOGETHER) {
        lanes_to_lines(s, vectors, group->count, (int)size, out);
        for (int lane = 0; lane < all; lane++)
            LLVMSetAlignment(LLVMBuildStore(b, out[lane], addresses[lane]), group->align);
        return;
    }
    int count = lanes_transpose(s, vectors, group->count, lanes, parts, out), in_vector = lanes / count;
    for (int lane = 0; lane < all; lane++) {
        int part = lane / lanes, i = lane % lanes;
        LLVMValueRef vector = out[i / in_vector];
        int first = (part * in_vector + i % in_vector) * group->count;
        vector = lanes_part(s, vector, first, group->count);
        LLVMSetAlignment(LLVMBuildStore(b, vector, addresses[lane]), group->align);
    }
}

static void emit_scatters(struct simd *s, const struct neighbours *group, int chunk) {
    for (int n = 0; n < group->count; n++) {
        LLVMValueRef store = group->accesses[n];
        access_scatter(s, chunk_of(s, LLVMGetOperand(store, 0), chunk),
                       chunk_of(s, LLVMGetOperand(store, 1), chunk), mask_chunk(s, chunk),
                       (int)LLVMGetAlignment(store));
    }
}

/* Under a mask: together if all lanes are on, otherwise one scatter per store. */
static void emit_masked_stores(struct simd *s, const struct neighbours *group, int chunk) {
    struct split split = access_split(s, mask_chunk(s, chunk));
    emit_stores(s, group, chunk);
    access_split_some(s, &split);
    emit_scatters(s, group, chunk);
    access_split_end(s, &split);
}

/* Whether the code may have two forms of an access under a mask. */
static bool dense_suits_masked(struct simd *s) {
    return s->chunk_lanes > 1 && !access_is_short(s);
}

static bool is_copy(struct simd *s, const struct neighbours *group, bool masked) {
    return group->copies && !masked && s->chunk_lanes > 1;
}

static void emit_group(struct simd *s, struct neighbours *group, int chunk) {
    bool load = access_is_load(group->place);
    if (is_copy(s, group, mask_chunk(s, chunk) != NULL)) {
        if (chunk == 0)
            simd_remark(s, group->place, "%s: a copy, with vectors for lanes side by side",
                        load ? "load" : "store");
        neighbours_emit_copy(s, group, chunk);
        return;
    }
    const struct neighbours *from = load ? NULL : copied_by(s, group);
    bool masked = mask_chunk(s, chunk) != NULL;
    if (group->dense && !from && (!masked || dense_suits_masked(s))) {
        group->serial = -1;
        if (chunk == 0)
            simd_remark(s, group->place, "%s: whole vectors for lanes side by side%s, %s",
                        load ? "load" : "store", masked ? " where all are on" : "",
                        load ? "split into elements" : "put together from elements");
        if (masked)
            emit_masked_dense(s, group, chunk);
        else
            emit_dense(s, group, chunk);
        return;
    }
    if (chunk == 0)
        simd_remark(s, group->place, "%s: a vector for each lane, transposed", load ? "load" : "store");
    if (load)
        emit_loads(s, group, chunk);
    else if (mask_chunk(s, chunk))
        emit_masked_stores(s, group, chunk);
    else if (from)
        emit_copies(s, group, from, chunk);
    else
        emit_stores(s, group, chunk);
}

/* Threads side by side may store to neighbouring elements what they have loaded together, as in a tile that
 * is transposed on its way. Returns the vector of these values; NULL: another access. Without it, LLVM would
 * copy the elements one by one. */
static LLVMValueRef column_of(struct simd *s, LLVMValueRef access) {
    LLVMValueRef value = LLVMGetOperand(access, 0);
    if (access_is_load(access) || !LLVMIsALoadInst(value)) return NULL;
    const struct neighbours *group = value_of(s, value)->neighbours;
    int shape = shape_of(s, access_address(access));
    if (!group || !group->columns || group->serial != s->serial || shape < 0 ||
        !neighbours_are_apart_by(s, shape_offsets(s, shape), access_size(s, access)) ||
        LLVMGetOrdering(access) != LLVMAtomicOrderingNotAtomic || LLVMGetVolatile(access))
        return NULL;
    for (int n = 0; n < group->count; n++)
        if (group->accesses[n] == value) return group->columns[n];
    return NULL;
}

/* For threads side by side, emits the access of all lanes at once: loads with the first lane, stores with the
 * last. False: another access, or only some of the lanes are emitted (parts.c). */
static bool emit_side_by_side(struct simd *s, LLVMValueRef access, int chunk) {
    struct neighbours *group = value_of(s, access)->neighbours;
    if (s->first_chunk != 0 || s->end_chunk != s->chunk_count) return false;
    LLVMValueRef column = group ? NULL : column_of(s, access);
    if (!group && !column) return false;
    if (chunk != (access_is_load(access) ? 0 : s->end_chunk - 1)) return true;
    if (column) {
        LLVMValueRef address = chunk_of(s, access_address(access), 0);
        LLVMSetAlignment(LLVMBuildStore(s->unit->builder, column, address), LLVMGetAlignment(access));
    } else if (access == group->place) {
        emit_group(s, group, 0);
    }
    return true;
}

/* Whether the group's accesses are done together in this block. */
static bool group_suits(struct simd *s, const struct neighbours *group, bool masked) {
    if (is_copy(s, group, masked)) return true;
    if (group->copy_only) return false;
    if (!masked) return group->dense || !group->masked;
    if (group->dense && dense_suits_masked(s)) return true;
    return !group->dense_only && s->chunk_lanes > 1 && (group->apart || !access_is_short(s));
}

bool neighbours_emit(struct simd *s, LLVMValueRef access, int chunk) {
    struct neighbours *group = value_of(s, access)->neighbours;
    bool masked = mask_chunk(s, chunk) != NULL;
    if (group ? !group_suits(s, group, masked) : masked) return false;
    if (s->chunk_lanes == 1) return simd_goes_together(s) && emit_side_by_side(s, access, chunk);
    if (group && access == group->place) emit_group(s, group, chunk);
    return group != NULL;
}
