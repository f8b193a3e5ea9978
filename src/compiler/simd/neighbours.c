/* Loads, and stores, of one thread to neighbouring elements: float4, a row of a tile, the bytes of a block.
 * Each by itself would be a gather, as the lanes' elements are apart. Together they are one vector for each
 * lane, and a transposition makes the lanes' vectors the chunks of the values.
 *
 * They are found in each block: addresses that differ by constants. All loads of a group are done where the
 * first is, all stores where the last is, so nothing in between may write to the same kind of memory, or read
 * it in the case of stores. No lane accesses more than it did.
 *
 * Requires: the analysis, matrices found (matrix_find.c). Establishes: value.neighbours. */
#include "compiler/simd/neighbours.h"
#include "compiler/simd/lanes.h"
#include "compiler/simd/matrix.h"

#include <llvm-c/DebugInfo.h>
#include <stdlib.h>
#include <string.h>

/* ---- Addresses: base + index × scale + bytes. */

struct place {
    LLVMValueRef base, index; /* index NULL: 0 */
    bool widened;             /* the index is of fewer bits, and unsigned */
    int64_t scale, bytes;
};

/* Takes constants off an index: x + 1, and x | 1 if x has no such bit. */
static LLVMValueRef strip_index(LLVMValueRef index, int64_t *constant) {
    for (;;) {
        LLVMOpcode opcode = LLVMIsAInstruction(index) ? LLVMGetInstructionOpcode(index) : LLVMRet;
        bool adds =
            (opcode == LLVMAdd && LLVMGetNUW(index)) || (opcode == LLVMOr && LLVMGetIsDisjoint(index));
        if (!adds || !LLVMIsAConstantInt(LLVMGetOperand(index, 1))) return index;
        *constant += (int64_t)LLVMConstIntGetZExtValue(LLVMGetOperand(index, 1));
        index = LLVMGetOperand(index, 0);
    }
}

/* One step of an address: its constants, and at most one index that is not. */
static bool add_step(struct simd *s, LLVMValueRef gep, struct place *place) {
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    struct place sum = *place;
    for (int o = 1; o < LLVMGetNumOperands(gep); o++) {
        LLVMValueRef index = LLVMGetOperand(gep, (unsigned)o);
        if (o > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            unsigned member = (unsigned)LLVMConstIntGetZExtValue(index);
            sum.bytes += (int64_t)LLVMOffsetOfElement(s->unit->layout, type, member);
            type = LLVMStructGetTypeAtIndex(type, member);
            continue;
        }
        if (o > 1) type = LLVMGetElementType(type);
        int64_t size = (int64_t)LLVMABISizeOfType(s->unit->layout, type), constant = 0;
        if (LLVMIsAConstantInt(index)) {
            sum.bytes += LLVMConstIntGetSExtValue(index) * size;
            continue;
        }
        if (sum.index) return false;
        index = strip_index(index, &constant);
        sum.widened = LLVMIsAZExtInst(index) != NULL;
        if (sum.widened) index = strip_index(LLVMGetOperand(index, 0), &constant);
        sum.index = index;
        sum.scale = size;
        sum.bytes += constant * size;
    }
    sum.base = LLVMGetOperand(gep, 0);
    *place = sum;
    return true;
}

static struct place place_of(struct simd *s, LLVMValueRef address) {
    struct place place = {.base = address};
    while (LLVMIsAGetElementPtrInst(place.base) && add_step(s, place.base, &place)) continue;
    return place;
}

static bool same_place(const struct place *a, const struct place *b) {
    return a->base == b->base && a->index == b->index && a->widened == b->widened && a->scale == b->scale;
}

bool neighbours_distance(struct simd *s, LLVMValueRef from, LLVMValueRef to, int64_t *bytes) {
    struct place a = place_of(s, from), b = place_of(s, to);
    *bytes = b.bytes - a.bytes;
    return same_place(&a, &b);
}

/* ---- Accesses. */

#define THREADGROUP_SPACE 3

struct access {
    LLVMValueRef instruction;
    struct place place;
    bool used;
};

static bool is_load(LLVMValueRef i) {
    return LLVMIsALoadInst(i) != NULL;
}

static LLVMValueRef address_of(LLVMValueRef access) {
    return LLVMGetOperand(access, is_load(access) ? 0 : 1);
}

static LLVMTypeRef type_of(LLVMValueRef access) {
    return LLVMTypeOf(is_load(access) ? access : LLVMGetOperand(access, 0));
}

static int64_t size_of(struct simd *s, LLVMValueRef access) {
    return (int64_t)LLVMABISizeOfType(s->unit->layout, type_of(access));
}

static unsigned space_of(LLVMValueRef access) {
    return LLVMGetPointerAddressSpace(LLVMTypeOf(address_of(access)));
}

static bool is_candidate(struct simd *s, LLVMValueRef i) {
    if (!LLVMIsALoadInst(i) && !LLVMIsAStoreInst(i)) return false;
    LLVMTypeKind kind = LLVMGetTypeKind(type_of(i));
    return (kind == LLVMIntegerTypeKind || kind == LLVMHalfTypeKind || kind == LLVMFloatTypeKind) &&
           size_of(s, i) <= 8 && LLVMGetOrdering(i) == LLVMAtomicOrderingNotAtomic && !LLVMGetVolatile(i) &&
           space_of(i) != 0 && shape_of(s, address_of(i)) != SHAPE_UNIFORM && !private_is(s, address_of(i)) &&
           !value_of(s, i)->matrix;
}

/* Device and constant memory may be the same; the thread's own arrays are found by their addresses. */
static bool may_touch(struct simd *s, LLVMValueRef access, unsigned space) {
    unsigned other = space_of(access);
    if (other == 0) return !private_is(s, address_of(access));
    return (other == THREADGROUP_SPACE) == (space == THREADGROUP_SPACE);
}

static bool is_harmless_call(LLVMValueRef call) {
    const char *name = called_name(call);
    return strncmp(name, "llvm.", 5) == 0 && strncmp(name, "llvm.mem", 8) != 0 &&
           strncmp(name, "llvm.masked", 11) != 0;
}

static bool has_member(const struct neighbours *group, LLVMValueRef i) {
    for (int n = 0; n < group->count; n++)
        if (group->accesses[n] == i) return true;
    return false;
}

#define LONGEST_WAY 2000

/* Nothing between the first and the last sees that they are done together. */
static bool can_move(struct simd *s, const struct neighbours *group, LLVMValueRef first, LLVMValueRef last) {
    bool loads = is_load(first);
    int steps = 0;
    for (LLVMValueRef i = first; i != last; i = LLVMGetNextInstruction(i)) {
        if (!i || ++steps > LONGEST_WAY) return false;
        if (has_member(group, i)) continue;
        if (LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i) || LLVMIsAFenceInst(i) ||
            (LLVMIsACallInst(i) && !is_harmless_call(i)))
            return false;
        if (!LLVMIsALoadInst(i) && !LLVMIsAStoreInst(i)) continue;
        if (LLVMGetOrdering(i) != LLVMAtomicOrderingNotAtomic) return false;
        if ((!loads || LLVMIsAStoreInst(i)) && may_touch(s, i, space_of(first))) return false;
    }
    return true;
}

/* ---- What pays. */

static bool offsets_are(struct simd *s, const int64_t *offsets, int64_t step) {
    for (int chunk = 0; chunk < s->chunk_count; chunk++)
        for (int i = 1; i < s->chunk_lanes; i++) {
            const int64_t *own = offsets + chunk * s->chunk_lanes;
            if (own[i] - own[i - 1] != step) return false;
        }
    return true;
}

/* The lanes' narrow elements are close enough for a few vectors and byte shuffles: the same for each access.
 */
static bool are_dense(struct simd *s, const int64_t *offsets, int64_t size) {
    for (int chunk = 0; chunk < s->chunk_count; chunk++) {
        const int64_t *own = offsets + (ptrdiff_t)chunk * s->chunk_lanes;
        int64_t low = own[0], high = own[0];
        for (int i = 1; i < s->chunk_lanes; i++) {
            if (own[i] < low) low = own[i];
            if (own[i] > high) high = own[i];
        }
        if ((high - low) / size >= s->chunk_lanes / 2 * s->chunk_lanes) return false;
    }
    return size < 4;
}

/* Neighbouring lanes, or all lanes, at one element, and lanes close together, are as well served one by one.
 */
static bool pays(struct simd *s, const struct neighbours *group) {
    LLVMValueRef address = address_of(group->place);
    int shape = piece_is(s, address) ? value_of(s, address)->piece : shape_of(s, address);
    int64_t size = size_of(s, group->place);
    if (group->count * size < 4) return false;
    if (shape < 0) return true;
    const int64_t *offsets = shape_offsets(s, shape);
    if (offsets_are(s, offsets, 0) || offsets_are(s, offsets, size)) return false;
    if (s->vector_bits == 512) return false;
    if (is_load(group->place) && group->count * size < 16 && are_dense(s, offsets, size)) return false;
    return !is_load(group->place) || group->count >= 4 || !offsets_are(s, offsets, 2 * size);
}

/* ---- Finding. */

static int by_bytes(const void *a, const void *b) {
    const struct access *x = *(struct access *const *)a, *y = *(struct access *const *)b;
    return x->place.bytes < y->place.bytes ? -1 : x->place.bytes > y->place.bytes;
}

static void add_group(struct simd *s, struct access **members, int count) {
    struct neighbours *group = arena_alloc(&s->arena, sizeof *group);
    if (!group) return;
    LLVMValueRef first = members[0]->instruction, last = first;
    *group = (struct neighbours){.count = count};
    for (int n = 0; n < count; n++) {
        LLVMValueRef i = members[n]->instruction;
        group->accesses[n] = i;
        if (value_of(s, i)->order < value_of(s, first)->order) first = i;
        if (value_of(s, i)->order > value_of(s, last)->order) last = i;
    }
    group->place = is_load(first) ? first : last;
    for (int n = 0; n < count; n++)
        if (group->accesses[n] == group->place)
            group->bytes = members[0]->place.bytes - members[n]->place.bytes;
    if (!can_move(s, group, first, last) || !pays(s, group)) return;
    for (int n = 0; n < count; n++) value_of(s, group->accesses[n])->neighbours = group;
}

/* Sorted accesses, of which each is the neighbour of the one before. */
static void split_row(struct simd *s, struct access **row, int count) {
    int64_t size = size_of(s, row[0]->instruction);
    for (int at = 0; at < count;) {
        int members = (int)(16 / size);
        while (members > count - at) members /= 2;
        if (members > 1) add_group(s, row + at, members);
        at += members;
    }
}

static void find_rows(struct simd *s, struct access **sorted, int count) {
    int64_t size = count ? size_of(s, sorted[0]->instruction) : 0;
    qsort(sorted, (size_t)count, sizeof(struct access *), by_bytes);
    for (int from = 0, to; from < count; from = to) {
        to = from + 1;
        while (to < count && sorted[to]->place.bytes == sorted[to - 1]->place.bytes + size) to++;
        if (to - from > 1) split_row(s, sorted + from, to - from);
    }
}

#define MOST_ACCESSES 1024 /* of a block: comparing them takes a time that grows with the square */

static void find_in_block(struct simd *s, LLVMBasicBlockRef block) {
    struct access *accesses = arena_alloc(&s->arena, MOST_ACCESSES * sizeof *accesses);
    struct access **same = arena_alloc(&s->arena, MOST_ACCESSES * sizeof(struct access *));
    int count = 0;
    if (!accesses || !same) return;
    FOR_EACH_INSTRUCTION(i, block) {
        if (count == MOST_ACCESSES) return;
        if (is_candidate(s, i))
            accesses[count++] = (struct access){.instruction = i, .place = place_of(s, address_of(i))};
    }
    for (int n = 0; n < count; n++) {
        int found = 0;
        for (int m = n; m < count; m++) {
            LLVMValueRef a = accesses[n].instruction, b = accesses[m].instruction;
            if (accesses[m].used || is_load(a) != is_load(b) || type_of(a) != type_of(b) ||
                space_of(a) != space_of(b) || !same_place(&accesses[n].place, &accesses[m].place))
                continue;
            accesses[m].used = true;
            same[found++] = &accesses[m];
        }
        if (found > 1) find_rows(s, same, found);
    }
}

void neighbours_find(struct simd *s) {
    int order = 0;
    if (s->chunk_lanes == 1 || s->unit->form != FORM_BEST) return;
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(i, block) value_of(s, i)->order = order++;
    FOR_EACH_BLOCK(block, s->entry) find_in_block(s, block);
}

/* ---- Emission. */

/* Bits of the elements, for which LLVM has all shuffles. */
static LLVMTypeRef bits_of(struct simd *s, LLVMTypeRef type) {
    if (LLVMGetTypeKind(type) == LLVMFloatTypeKind) return type;
    return LLVMIntTypeInContext(s->unit->context, (unsigned)LLVMSizeOfTypeInBits(s->unit->layout, type));
}

static LLVMValueRef address_at(struct simd *s, LLVMValueRef base, int64_t bytes) {
    LLVMValueRef index = LLVMConstInt(type_i64(s->unit), (unsigned long long)bytes, true);
    return LLVMBuildGEP2(s->unit->builder, LLVMInt8TypeInContext(s->unit->context), base, &index, 1, "");
}

/* The addresses of the first element in each lane of the chunk. */
static void lane_addresses(struct simd *s, const struct neighbours *group, int chunk, LLVMValueRef *lanes) {
    LLVMValueRef address = address_of(group->place);
    int shape = piece_is(s, address) ? value_of(s, address)->piece : shape_of(s, address);
    LLVMValueRef base = piece_is(s, address) ? piece_first_lane(s, address, chunk)
                        : shape >= 0         ? scalar_of(s, address)
                                             : chunk_of(s, address, chunk);
    for (int lane = 0; lane < s->chunk_lanes; lane++) {
        if (shape >= 0) {
            int64_t offset = shape_offsets(s, shape)[chunk * s->chunk_lanes + lane];
            lanes[lane] = address_at(s, base, offset + group->bytes);
        } else {
            lanes[lane] = LLVMBuildExtractElement(s->unit->builder, base, simd_i32(s, lane), "");
            if (group->bytes) lanes[lane] = address_at(s, lanes[lane], group->bytes);
        }
    }
}

static unsigned least_align(const struct neighbours *group) {
    unsigned least = LLVMGetAlignment(group->accesses[0]);
    return least ? least : 1;
}

/* Parts of 128 bits of a chunk; lanes i, i + lanes / parts, … are together. */
static int parts_of(struct simd *s, int64_t size) {
    int parts = (int)(s->chunk_lanes * size / 16);
    return parts ? parts : 1;
}

static void emit_loads(struct simd *s, struct neighbours *group, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = type_of(group->place), bits = bits_of(s, type);
    LLVMTypeRef own = LLVMVectorType(bits, (unsigned)group->count);
    int64_t size = size_of(s, group->place);
    int parts = parts_of(s, size), lanes = s->chunk_lanes / parts;
    LLVMValueRef addresses[GANG_MAX_LANES] = {NULL}, vectors[MOST_TRANSPOSED] = {NULL},
                 out[MOST_TRANSPOSED] = {NULL};
    if (!group->loaded) group->loaded = arena_alloc(&s->arena, (size_t)s->lanes * sizeof(LLVMValueRef));
    if (!group->loaded) return;
    LLVMValueRef *loaded = group->loaded + (ptrdiff_t)chunk * s->chunk_lanes;
    lane_addresses(s, group, chunk, addresses);
    for (int lane = 0; lane < s->chunk_lanes; lane++) {
        loaded[lane] = LLVMBuildLoad2(b, own, addresses[lane], "");
        LLVMSetAlignment(loaded[lane], least_align(group));
    }
    group->serial = s->serial;
    for (int i = 0; i < lanes; i++) {
        LLVMValueRef together[GANG_MAX_LANES];
        for (int part = 0; part < parts; part++) together[part] = loaded[part * lanes + i];
        vectors[i] = chunks_join(s, together, parts);
    }
    int in_vector = group->count / lanes_transpose(s, vectors, lanes, group->count, parts, out);
    for (int n = 0; n < group->count; n++) {
        LLVMValueRef value = out[n / in_vector];
        if (in_vector > 1) value = lanes_part(s, value, n % in_vector * lanes, lanes);
        chunk_set(s, group->accesses[n], chunk, LLVMBuildBitCast(b, value, chunk_type(s, type), ""));
    }
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
    lane_addresses(s, group, chunk, addresses);
    for (int lane = 0; lane < s->chunk_lanes; lane++) {
        LLVMValueRef vector = from->loaded[chunk * s->chunk_lanes + lane];
        LLVMSetAlignment(LLVMBuildStore(s->unit->builder, vector, addresses[lane]), least_align(group));
    }
}

static void emit_stores(struct simd *s, const struct neighbours *group, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef bits = bits_of(s, type_of(group->place));
    int64_t size = size_of(s, group->place);
    int parts = parts_of(s, size), lanes = s->chunk_lanes / parts;
    LLVMValueRef addresses[GANG_MAX_LANES] = {NULL}, vectors[MOST_TRANSPOSED] = {NULL},
                 out[MOST_TRANSPOSED] = {NULL};
    lane_addresses(s, group, chunk, addresses);
    for (int n = 0; n < group->count; n++) {
        LLVMValueRef value = chunk_of(s, LLVMGetOperand(group->accesses[n], 0), chunk);
        vectors[n] = LLVMBuildBitCast(b, value, chunk_type(s, bits), "");
    }
    int count = lanes_transpose(s, vectors, group->count, lanes, parts, out), in_vector = lanes / count;
    for (int lane = 0; lane < s->chunk_lanes; lane++) {
        int part = lane / lanes, i = lane % lanes;
        LLVMValueRef vector = out[i / in_vector];
        int first = (part * in_vector + i % in_vector) * group->count;
        vector = lanes_part(s, vector, first, group->count);
        LLVMSetAlignment(LLVMBuildStore(b, vector, addresses[lane]), least_align(group));
    }
}

bool neighbours_emit(struct simd *s, LLVMValueRef access, int chunk) {
    struct neighbours *group = value_of(s, access)->neighbours;
    if (!group || mask_chunk(s, chunk)) return false;
    if (access != group->place) return true;
    if (chunk == 0)
        simd_remark(s, access, "%s: a vector for each lane, transposed", is_load(access) ? "load" : "store");
    const struct neighbours *from = is_load(access) ? NULL : copied_by(s, group);
    if (is_load(access))
        emit_loads(s, group, chunk);
    else if (from)
        emit_copies(s, group, from, chunk);
    else
        emit_stores(s, group, chunk);
    return true;
}
