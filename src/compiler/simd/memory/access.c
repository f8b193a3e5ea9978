/* The accesses of one chunk: one element, neighbours, any addresses. Where the target lacks an instruction
 * LLVM would make a branch for each lane, which is slow to compile and no faster. Functions of the runtime do
 * these accesses lane by lane (abi/lane_access.h); gathers of narrow elements take the words around them.
 *
 *                      512 bits           256 bits           128 bits
 *   masked vectors     all have one       below 32 bits      all
 *   gathers            below 32: words    below 32 bits      all
 *   scatters           below 32 bits      all                all                                      */
#include "compiler/simd/memory/access.h"

#include <stdio.h>

bool access_is_rare(struct simd *s) {
    for (int loop = s->paths.blocks[s->current].loop; loop >= 0; loop = s->paths.loops[loop].parent)
        if (s->loops[loop].last_rounds) return true;
    return false;
}

bool access_is_short(struct simd *s) {
    return s->many_accesses || access_is_rare(s);
}

static bool is_wide(struct simd *s, LLVMTypeRef element) {
    return LLVMABISizeOfType(s->unit->layout, element) >= 4;
}

bool access_has_masked(struct simd *s, LLVMTypeRef element) {
    return s->vector_bits == 512 || (s->vector_bits == 256 && is_wide(s, element));
}

static bool has_gather(struct simd *s, LLVMTypeRef element) {
    return s->vector_bits >= 256 && is_wide(s, element);
}

static bool has_scatter(struct simd *s, LLVMTypeRef element) {
    return s->vector_bits == 512 && is_wide(s, element);
}

/* A slot shared by all accesses in the function: it is in use only from the instruction before a call to the
 * one after it. */
static LLVMValueRef shared_slot(struct simd *s, LLVMTypeRef type) {
    for (int i = 0; i < s->shared_slot_count; i++)
        if (LLVMGetAllocatedType(s->shared_slots[i]) == type) return s->shared_slots[i];
    LLVMValueRef slot = simd_slot(s, type);
    if (s->shared_slot_count < SHARED_SLOTS) s->shared_slots[s->shared_slot_count++] = slot;
    return slot;
}

/* Calls the runtime's function for elements of this size, which preserves all registers (abi/lane_access.h).
 * `from`: the addresses, or the address of a row. */
static void access_lanes(struct simd *s, const char *access, LLVMTypeRef element, LLVMValueRef from,
                         LLVMValueRef values, LLVMValueRef mask) {
    char name[40];
    snprintf(name, sizeof name, "smelt_runtime_%s_%d", access,
             (int)LLVMABISizeOfType(s->unit->layout, element));
    LLVMValueRef arguments[3] = {from, values, mask_as_i32(s, mask)};
    LLVMValueRef call = simd_call_runtime(s, name, LLVMVoidTypeInContext(s->unit->context), arguments, 3);
    LLVMSetInstructionCallConv(call, LLVMPreserveAllCallConv);
    LLVMSetFunctionCallConv(LLVMGetCalledValue(call), LLVMPreserveAllCallConv);
}

static LLVMValueRef keep_addresses(struct simd *s, LLVMValueRef addresses) {
    LLVMTypeRef any = LLVMPointerTypeInContext(s->unit->context, 0);
    LLVMTypeRef vector = chunk_type(s, any);
    if (LLVMTypeOf(addresses) != vector)
        addresses = LLVMBuildAddrSpaceCast(s->unit->builder, addresses, vector, "");
    /* A slot of its own: the values may be addresses, too. */
    if (!s->address_slot) s->address_slot = simd_slot(s, vector);
    LLVMBuildStore(s->unit->builder, addresses, s->address_slot);
    return s->address_slot;
}

static LLVMValueRef any_address(struct simd *s, LLVMValueRef address) {
    LLVMTypeRef any = LLVMPointerTypeInContext(s->unit->context, 0);
    return LLVMTypeOf(address) == any ? address : LLVMBuildAddrSpaceCast(s->unit->builder, address, any, "");
}

static bool is_row(LLVMValueRef place) {
    return LLVMGetTypeKind(LLVMTypeOf(place)) == LLVMPointerTypeKind;
}

/* All lanes are on: one access after another, without branches. */
static LLVMValueRef load_each(struct simd *s, LLVMTypeRef element, LLVMValueRef const *addresses, int align) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef result = LLVMGetPoison(chunk_type(s, element));
    for (int lane = 0; lane < s->chunk_lanes; lane++) {
        LLVMValueRef load = LLVMBuildLoad2(b, element, addresses[lane], "");
        LLVMSetAlignment(load, (unsigned)align);
        result = LLVMBuildInsertElement(b, result, load, simd_i32(s, lane), "");
    }
    return result;
}

static void elements_of(struct simd *s, LLVMValueRef vector, LLVMValueRef *scalars) {
    for (int lane = 0; lane < s->chunk_lanes; lane++)
        scalars[lane] = LLVMBuildExtractElement(s->unit->builder, vector, simd_i32(s, lane), "");
}

static void store_each(struct simd *s, LLVMValueRef vector, LLVMValueRef addresses, int align) {
    LLVMBuilderRef b = s->unit->builder;
    for (int lane = 0; lane < s->chunk_lanes; lane++) {
        LLVMValueRef at = simd_i32(s, lane);
        LLVMValueRef store = LLVMBuildStore(b, LLVMBuildExtractElement(b, vector, at, ""),
                                            LLVMBuildExtractElement(b, addresses, at, ""));
        LLVMSetAlignment(store, (unsigned)align);
    }
}

LLVMValueRef access_load_lanes(struct simd *s, LLVMTypeRef element, LLVMValueRef from, LLVMValueRef mask,
                               int align) {
    if (!mask && !is_row(from) && !access_is_short(s)) {
        LLVMValueRef addresses[GANG_MAX_LANES];
        elements_of(s, from, addresses);
        return load_each(s, element, addresses, align);
    }
    LLVMValueRef place = is_row(from) ? any_address(s, from) : keep_addresses(s, from);
    LLVMValueRef values = shared_slot(s, chunk_type(s, element));
    access_lanes(s, is_row(from) ? "load_row" : "load_lanes", element, place, values, mask);
    return LLVMBuildLoad2(s->unit->builder, chunk_type(s, element), values, "");
}

void access_store_lanes(struct simd *s, LLVMValueRef vector, LLVMValueRef to, LLVMValueRef mask, int align) {
    if (!mask && !is_row(to) && !access_is_short(s)) {
        store_each(s, vector, to, align);
        return;
    }
    LLVMValueRef place = is_row(to) ? any_address(s, to) : keep_addresses(s, to);
    LLVMValueRef values = shared_slot(s, LLVMTypeOf(vector));
    LLVMBuildStore(s->unit->builder, vector, values);
    access_lanes(s, is_row(to) ? "store_row" : "store_lanes", LLVMGetElementType(LLVMTypeOf(vector)), place,
                 values, mask);
}

/* With 256 bits, a call for the chunk is a seventh of the code of two gathers and their shifts. */
static bool gathers_words(struct simd *s, LLVMTypeRef element) {
    return s->vector_bits == 512 && LLVMABISizeOfType(s->unit->layout, element) < 4;
}

/* The aligned word around a narrow element is in the same page. If an element of two bytes extends beyond it,
 * the word that ends with the element begins in it. */
static LLVMValueRef offset_in_word(struct simd *s, LLVMTypeRef element, LLVMValueRef numbers, int align) {
    LLVMTypeRef type = chunk_type(s, type_i64(s->unit));
    LLVMValueRef three = chunk_splat(s, LLVMConstInt(type_i64(s->unit), 3, false));
    LLVMValueRef offset = LLVMBuildAnd(s->unit->builder, numbers, three, "");
    uint64_t size = LLVMABISizeOfType(s->unit->layout, element);
    if ((uint64_t)align >= size) return offset;
    LLVMValueRef arguments[2] = {offset, chunk_splat(s, LLVMConstInt(type_i64(s->unit), 4 - size, false))};
    return simd_intrinsic(s, "llvm.umin", &type, 1, arguments, 2);
}

static LLVMValueRef gather_words(struct simd *s, LLVMTypeRef element, LLVMValueRef addresses,
                                 LLVMValueRef mask, int align) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef i64 = type_i64(s->unit), word = type_i32(s->unit),
                bits = LLVMIntTypeInContext(s->unit->context,
                                            (unsigned)(8 * LLVMABISizeOfType(s->unit->layout, element)));
    LLVMValueRef numbers = LLVMBuildPtrToInt(b, addresses, chunk_type(s, i64), "");
    LLVMValueRef offset = offset_in_word(s, element, numbers, align);
    LLVMValueRef starts = LLVMBuildSub(b, numbers, offset, "");
    int word_align = (uint64_t)align >= LLVMABISizeOfType(s->unit->layout, element) ? 4 : 1;
    LLVMValueRef from = LLVMBuildIntToPtr(b, starts, LLVMTypeOf(addresses), "");
    LLVMValueRef words = access_gather(s, word, from, mask, word_align);
    LLVMValueRef bytes = LLVMBuildTrunc(b, offset, chunk_type(s, word), "");
    LLVMValueRef shift = LLVMBuildShl(b, bytes, chunk_splat(s, simd_i32(s, 3)), "");
    LLVMValueRef found = LLVMBuildTrunc(b, LLVMBuildLShr(b, words, shift, ""), chunk_type(s, bits), "");
    return LLVMBuildBitCast(b, found, chunk_type(s, element), "");
}

/* ---- Neighbours under a mask. */

/* i1: all lanes are on. */
static LLVMValueRef are_all_on(struct simd *s, LLVMValueRef mask) {
    LLVMValueRef bits = mask_bits(s, mask);
    return LLVMBuildICmp(s->unit->builder, LLVMIntEQ, bits, LLVMConstAllOnes(LLVMTypeOf(bits)), "all_on");
}

struct split access_split(struct simd *s, LLVMValueRef mask) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMBasicBlockRef all = simd_block(s, "all_on");
    struct split split = {.some = simd_block(s, "some_on"), .after = simd_block(s, "accessed")};
    LLVMBuildCondBr(b, are_all_on(s, mask), all, split.some);
    LLVMPositionBuilderAtEnd(b, all);
    return split;
}

void access_split_some(struct simd *s, struct split *split) {
    split->ends[0] = LLVMGetInsertBlock(s->unit->builder);
    LLVMBuildBr(s->unit->builder, split->after);
    LLVMPositionBuilderAtEnd(s->unit->builder, split->some);
}

void access_split_end(struct simd *s, struct split *split) {
    split->ends[1] = LLVMGetInsertBlock(s->unit->builder);
    LLVMBuildBr(s->unit->builder, split->after);
    LLVMPositionBuilderAtEnd(s->unit->builder, split->after);
}

LLVMValueRef access_split_value(struct simd *s, const struct split *split, LLVMValueRef all,
                                LLVMValueRef some) {
    LLVMValueRef values[2] = {all, some}, phi = LLVMBuildPhi(s->unit->builder, LLVMTypeOf(all), "");
    LLVMBasicBlockRef ends[2] = {split->ends[0], split->ends[1]};
    LLVMAddIncoming(phi, values, ends, 2);
    return phi;
}

static LLVMValueRef load_split(struct simd *s, LLVMTypeRef element, LLVMValueRef address, LLVMValueRef mask,
                               int align) {
    if (access_is_short(s)) return access_load_lanes(s, element, address, mask, align);
    struct split split = access_split(s, mask);
    LLVMValueRef all = access_load(s, element, address, NULL, align);
    access_split_some(s, &split);
    LLVMValueRef some = access_load_lanes(s, element, address, mask, align);
    access_split_end(s, &split);
    return access_split_value(s, &split, all, some);
}

static void store_split(struct simd *s, LLVMValueRef vector, LLVMValueRef address, LLVMValueRef mask,
                        int align) {
    if (access_is_short(s)) {
        access_store_lanes(s, vector, address, mask, align);
        return;
    }
    struct split split = access_split(s, mask);
    access_store(s, vector, address, NULL, align);
    access_split_some(s, &split);
    access_store_lanes(s, vector, address, mask, align);
    access_split_end(s, &split);
}

/* ---- The plain accesses. */

static LLVMValueRef load_plain(struct simd *s, LLVMTypeRef type, LLVMValueRef address, int align) {
    LLVMValueRef load = LLVMBuildLoad2(s->unit->builder, type, address, "");
    LLVMSetAlignment(load, (unsigned)align);
    return load;
}

static void store_plain(struct simd *s, LLVMValueRef vector, LLVMValueRef address, int align) {
    LLVMSetAlignment(LLVMBuildStore(s->unit->builder, vector, address), (unsigned)align);
}

/* How many lanes are on if they are the first, a power of two, and known; otherwise 0. */
static int first_lanes(const struct simd *s, LLVMValueRef mask) {
    int count = 0;
    if (!LLVMIsAConstantDataVector(mask) && !LLVMIsAConstantVector(mask)) return 0;
    for (int l = 0; l < s->chunk_lanes; l++) {
        LLVMValueRef on = LLVMGetAggregateElement(mask, (unsigned)l);
        if (!LLVMIsAConstantInt(on)) return 0;
        bool is_on = LLVMConstIntGetZExtValue(on) != 0;
        if (is_on && count < l) return 0;
        count += is_on;
    }
    return (count & (count - 1)) == 0 ? count : 0;
}

/* Off lanes are 0. */
static LLVMValueRef load_first(struct simd *s, LLVMTypeRef element, LLVMValueRef address, int count,
                               int align) {
    int64_t indexes[GANG_MAX_LANES];
    LLVMTypeRef type = LLVMVectorType(element, (unsigned)count);
    LLVMValueRef first = load_plain(s, type, address, align);
    for (int l = 0; l < s->chunk_lanes; l++) indexes[l] = l < count ? l : count;
    return LLVMBuildShuffleVector(s->unit->builder, first, LLVMConstNull(type),
                                  lanes_constant(s, type_i32(s->unit), indexes, s->chunk_lanes), "");
}

/* i1 is never in memory: the front end does not generate it. */
LLVMValueRef access_load(struct simd *s, LLVMTypeRef element, LLVMValueRef address, LLVMValueRef mask,
                         int align) {
    LLVMTypeRef type = chunk_type(s, element);
    if (!mask) return load_plain(s, type, address, align);
    if (LLVMIsNull(mask)) return LLVMConstNull(type);
    int count = first_lanes(s, mask);
    if (count) return load_first(s, element, address, count, align);
    if (!LLVMIsConstant(mask) && !access_has_masked(s, element))
        return load_split(s, element, address, mask, align);
    LLVMTypeRef types[2] = {type, LLVMTypeOf(address)};
    LLVMValueRef arguments[4] = {address, simd_i32(s, align), mask, LLVMConstNull(type)};
    return simd_intrinsic(s, "llvm.masked.load", types, 2, arguments, 4);
}

void access_store(struct simd *s, LLVMValueRef vector, LLVMValueRef address, LLVMValueRef mask, int align) {
    if (!mask) {
        store_plain(s, vector, address, align);
        return;
    }
    if (LLVMIsNull(mask)) return;
    int count = first_lanes(s, mask);
    if (count) {
        store_plain(s, lanes_part(s, vector, 0, count), address, align);
        return;
    }
    if (!LLVMIsConstant(mask) && !access_has_masked(s, LLVMGetElementType(LLVMTypeOf(vector)))) {
        store_split(s, vector, address, mask, align);
        return;
    }
    LLVMTypeRef types[2] = {LLVMTypeOf(vector), LLVMTypeOf(address)};
    LLVMValueRef arguments[4] = {vector, address, simd_i32(s, align), mask};
    simd_intrinsic(s, "llvm.masked.store", types, 2, arguments, 4);
}

/* AVX2's gathers are asked for by name: for CPUs where they are not fast, LLVM would branch for each lane
 * that may be off. */
static bool gathers_by_name(struct simd *s, LLVMTypeRef element, LLVMValueRef mask) {
    uint64_t size = LLVMABISizeOfType(s->unit->layout, element);
    return s->vector_bits == 256 && (size == 4 || size == 8) &&
           (mask || access_is_short(s) || s->many_unknown);
}

/* Four lanes of a chunk. `on`: all bits of lanes that are on. */
static LLVMValueRef gather_four(struct simd *s, LLVMTypeRef bits, LLVMValueRef numbers, LLVMValueRef on,
                                int first) {
    LLVMTypeRef type = LLVMVectorType(bits, 4);
    LLVMValueRef arguments[5] = {LLVMConstNull(type), LLVMConstNull(type_pointer(s->unit)),
                                 lanes_part(s, numbers, first, 4), lanes_part(s, on, first, 4),
                                 LLVMConstInt(LLVMInt8TypeInContext(s->unit->context), 1, false)};
    bool wide = LLVMGetIntTypeWidth(bits) == 64;
    return simd_intrinsic(s, wide ? "llvm.x86.avx2.gather.q.q.256" : "llvm.x86.avx2.gather.q.d.256", NULL, 0,
                          arguments, 5);
}

static LLVMValueRef gather_by_name(struct simd *s, LLVMTypeRef element, LLVMValueRef addresses,
                                   LLVMValueRef mask) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef bits =
        LLVMIntTypeInContext(s->unit->context, (unsigned)(8 * LLVMABISizeOfType(s->unit->layout, element)));
    LLVMValueRef parts[2], numbers = LLVMBuildPtrToInt(b, addresses, chunk_type(s, type_i64(s->unit)), "");
    numbers = LLVMBuildFreeze(b, numbers, ""); /* addresses of lanes that are off may be poison */
    LLVMValueRef on = LLVMBuildSExt(b, mask ? mask : mask_all(s), chunk_type(s, bits), "");
    for (int half = 0; half < 2; half++) parts[half] = gather_four(s, bits, numbers, on, 4 * half);
    LLVMValueRef whole = chunks_join(s, parts, 2);
    if (LLVMGetTypeKind(element) == LLVMPointerTypeKind)
        return LLVMBuildIntToPtr(b, whole, chunk_type(s, element), "");
    return LLVMBuildBitCast(b, whole, chunk_type(s, element), "");
}

LLVMValueRef access_gather(struct simd *s, LLVMTypeRef element, LLVMValueRef addresses, LLVMValueRef mask,
                           int align) {
    if (gathers_words(s, element)) return gather_words(s, element, addresses, mask, align);
    if (gathers_by_name(s, element, mask)) return gather_by_name(s, element, addresses, mask);
    if (!has_gather(s, element)) return access_load_lanes(s, element, addresses, mask, align);
    LLVMTypeRef type = chunk_type(s, element);
    LLVMTypeRef types[2] = {type, LLVMTypeOf(addresses)};
    LLVMValueRef arguments[4] = {addresses, simd_i32(s, align), mask ? mask : mask_all(s),
                                 LLVMConstNull(type)};
    return simd_intrinsic(s, "llvm.masked.gather", types, 2, arguments, 4);
}

LLVMValueRef access_address_of(struct simd *s, const struct elements *e, LLVMValueRef index) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef wide = type_i64(s->unit);
    LLVMTypeRef step = LLVMIntTypeInContext(s->unit->context, (unsigned)(8 * e->scale));
    if (LLVMGetTypeKind(LLVMTypeOf(index)) == LLVMVectorTypeKind) wide = chunk_type(s, wide);
    index = LLVMBuildCast(b, e->positive ? LLVMZExt : LLVMSExt, index, wide, "");
    return LLVMBuildGEP2(b, step, e->base, &index, 1, "");
}

/* With AVX2: one instruction for a chunk, where addresses take two. */
static LLVMValueRef gather_indexes_by_name(struct simd *s, LLVMTypeRef element, const struct elements *e,
                                           LLVMValueRef mask) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = LLVMTypeOf(e->indexes), pointer = type_pointer(s->unit);
    LLVMValueRef base = e->base;
    if (LLVMTypeOf(base) != pointer) base = LLVMBuildAddrSpaceCast(b, base, pointer, "");
    LLVMValueRef on = LLVMBuildSExt(b, mask ? mask : mask_all(s), type, "");
    LLVMValueRef scale = LLVMConstInt(LLVMInt8TypeInContext(s->unit->context), (unsigned)e->scale, false);
    LLVMValueRef arguments[5] = {LLVMConstNull(type), base, e->indexes, on, scale};
    LLVMValueRef found = simd_intrinsic(s, "llvm.x86.avx2.gather.d.d.256", NULL, 0, arguments, 5);
    return LLVMBuildBitCast(b, found, chunk_type(s, element), "");
}

LLVMValueRef access_gather_elements(struct simd *s, LLVMTypeRef element, const struct elements *e,
                                    LLVMValueRef mask, int align) {
    if (LLVMABISizeOfType(s->unit->layout, element) == 4 && gathers_by_name(s, element, mask))
        return gather_indexes_by_name(s, element, e, mask);
    if (mask || access_is_short(s) || s->vector_bits == 512 || has_gather(s, element))
        return access_gather(s, element, access_address_of(s, e, e->indexes), mask, align);
    LLVMValueRef addresses[GANG_MAX_LANES];
    elements_of(s, e->indexes, addresses);
    for (int lane = 0; lane < s->chunk_lanes; lane++)
        addresses[lane] = access_address_of(s, e, addresses[lane]);
    return load_each(s, element, addresses, align);
}

void access_scatter(struct simd *s, LLVMValueRef vector, LLVMValueRef addresses, LLVMValueRef mask,
                    int align) {
    if (!has_scatter(s, LLVMGetElementType(LLVMTypeOf(vector)))) {
        access_store_lanes(s, vector, addresses, mask, align);
        return;
    }
    LLVMTypeRef types[2] = {LLVMTypeOf(vector), LLVMTypeOf(addresses)};
    LLVMValueRef arguments[4] = {vector, addresses, simd_i32(s, align), mask ? mask : mask_all(s)};
    simd_intrinsic(s, "llvm.masked.scatter", types, 2, arguments, 4);
}

/* ---- Chunks without a lane that is on. */

/* The code up to end_if_any runs only if a lane of the mask is on; without a mask, always. */
static struct if_on begin_if_any(struct simd *s, LLVMValueRef mask) {
    LLVMBuilderRef b = s->unit->builder;
    if (!mask) return (struct if_on){NULL, NULL};
    LLVMBasicBlockRef inside = simd_block(s, "some");
    struct if_on on = {LLVMGetInsertBlock(b), simd_block(s, "rest")};
    LLVMBuildCondBr(b, mask_any(s, &mask, 1), inside, on.after);
    LLVMPositionBuilderAtEnd(b, inside);
    return on;
}

/* Returns the value, or 0 if no lane is on; NULL if there is no value. */
static LLVMValueRef end_if_any(struct simd *s, const struct if_on *on, LLVMValueRef value) {
    LLVMBuilderRef b = s->unit->builder;
    if (!on->before) return value;
    LLVMBasicBlockRef ends[2] = {LLVMGetInsertBlock(b), on->before};
    LLVMBuildBr(b, on->after);
    LLVMPositionBuilderAtEnd(b, on->after);
    if (!value) return NULL;
    LLVMValueRef values[2] = {value, LLVMConstNull(LLVMTypeOf(value))};
    LLVMValueRef phi = LLVMBuildPhi(b, LLVMTypeOf(value), "");
    LLVMAddIncoming(phi, values, ends, 2);
    return phi;
}

struct if_on access_begin_if_on(struct simd *s, LLVMValueRef mask) {
    bool looks = mask && !LLVMIsConstant(mask) && s->lanes > SIMDGROUP_LANES && !s->many_accesses;
    return begin_if_any(s, looks ? mask : NULL);
}

LLVMValueRef access_end_if_on(struct simd *s, const struct if_on *on, LLVMValueRef value) {
    return end_if_any(s, on, value);
}

/* ---- One element for all lanes of a chunk. */

LLVMValueRef access_load_one(struct simd *s, LLVMTypeRef element, LLVMValueRef address, LLVMValueRef mask,
                             int align) {
    LLVMBuilderRef b = s->unit->builder;
    struct if_on on = begin_if_any(s, mask);
    LLVMValueRef load = LLVMBuildLoad2(b, element, address, "");
    LLVMSetAlignment(load, (unsigned)align);
    return end_if_any(s, &on, load);
}

/* The last active lane wins, as if the threads ran one after another. */
void access_store_one(struct simd *s, LLVMValueRef vector, LLVMValueRef address, LLVMValueRef mask,
                      int align) {
    LLVMBuilderRef b = s->unit->builder;
    struct if_on on = begin_if_any(s, mask);
    LLVMValueRef last = simd_i32(s, s->chunk_lanes - 1);
    if (mask) {
        LLVMTypeRef wide = type_i32(s->unit);
        LLVMValueRef bits = LLVMBuildZExtOrBitCast(b, mask_bits(s, mask), wide, "");
        LLVMValueRef arguments[2] = {bits, LLVMConstInt(simd_i1(s), 1, false)};
        last = LLVMBuildSub(b, simd_i32(s, 31), simd_intrinsic(s, "llvm.ctlz", &wide, 1, arguments, 2), "");
    }
    LLVMValueRef store = LLVMBuildStore(b, LLVMBuildExtractElement(b, vector, last, ""), address);
    LLVMSetAlignment(store, (unsigned)align);
    (void)end_if_any(s, &on, NULL);
}
