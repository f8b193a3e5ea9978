/* Simdgroup operations: what device/cpu/simdgroup.c does to 32 threads, as vector code over the chunks of
 * each simdgroup of the gang. The active lanes are those of the block's mask.
 *
 * A gang of fewer than 32 lanes has a part of a simdgroup: operations that provably stay within it are
 * supported, others are refused. */
#include "compiler/simd/lanes/lanes.h"
#include "compiler/simd/lanes/packed.h"
#include "compiler/combine.h"

#include <string.h>

static bool is_idempotent(uint64_t operation) {
    return operation != SIMD_SUM && operation != SIMD_PRODUCT && operation != SIMD_XOR;
}

/* ---- Sources of shuffles. */

#define OWN_VALUE (-1)

/* For each lane of the gang, the lane that its value comes from, or OWN_VALUE. A small gang may be any part
 * of its simdgroup: the result must be the same for all parts. */
static bool known_sources(struct simd *s, LLVMValueRef index, int *sources) {
    int parts = s->lanes < SIMDGROUP_LANES ? SIMDGROUP_LANES / s->lanes : 1;
    for (int part = 0; part < parts; part++) {
        for (int lane = 0; lane < s->lanes; lane++) {
            int first = parts > 1 ? part * s->lanes : lane & ~(SIMDGROUP_LANES - 1);
            int here = parts > 1 ? first + lane : lane - first;
            uint64_t from;
            if (!known_in_lane(s, index, here, &from)) return false;
            int source = OWN_VALUE;
            if (from < SIMDGROUP_LANES) source = parts > 1 ? (int)from - first : (int)from + first;
            if (from < SIMDGROUP_LANES && (source < 0 || source >= s->lanes)) return false;
            if (part > 0 && source != sources[lane]) return false;
            sources[lane] = source;
        }
    }
    return true;
}

/* ---- Shapes. */

/* Whether the value is 0 in every lane. */
static bool is_zero(struct simd *s, LLVMValueRef value) {
    for (int lane = 0; lane < SIMDGROUP_LANES; lane++) {
        uint64_t known;
        if (!known_in_lane(s, value, lane, &known) || known) return false;
    }
    return true;
}

/* Whether it is the first active lane, as simd_broadcast_first computes it in this block. */
static bool is_first_active(struct simd *s, LLVMValueRef index, LLVMBasicBlockRef block) {
    if (!LLVMIsAInstruction(index)) return false;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(index);
    if (opcode == LLVMOr || opcode == LLVMAdd) {
        if (is_zero(s, LLVMGetOperand(index, 1))) return is_first_active(s, LLVMGetOperand(index, 0), block);
        if (is_zero(s, LLVMGetOperand(index, 0))) return is_first_active(s, LLVMGetOperand(index, 1), block);
        return false;
    }
    if (strncmp(called_name(index), "llvm.cttz.", 10) != 0) return false;
    LLVMValueRef ballot = LLVMGetOperand(index, 0);
    uint64_t all;
    return LLVMIsAInstruction(ballot) && intrinsic_of(ballot) == INTRINSIC_SIMD_BALLOT &&
           LLVMGetInstructionParent(ballot) == block &&
           is_constant_integer(LLVMGetOperand(ballot, 0), &all) && all;
}

static bool all_lanes_run(struct simd *s, LLVMBasicBlockRef original) {
    if (s->code->masked) return false;
    const struct path_block *block = &s->paths.blocks[simd_place(s, original)];
    for (int loop = block->loop; loop >= 0; loop = s->paths.loops[loop].parent)
        if (s->paths.loops[loop].divergent) return false;
    for (int i = 0; i < s->paths.region_words; i++)
        if (block->regions[i]) return false;
    return true;
}

static int shuffle_shape(struct simd *s, LLVMValueRef call) {
    LLVMValueRef index = LLVMGetOperand(call, 1);
    int value = shape_of(s, LLVMGetOperand(call, 0)), by = shape_of(s, index);
    if (value == SHAPE_UNKNOWN || by == SHAPE_UNKNOWN) return SHAPE_UNKNOWN;
    if (value == SHAPE_UNIFORM) return SHAPE_UNIFORM;
    if (s->lanes != SIMDGROUP_LANES || by != SHAPE_UNIFORM) return SHAPE_VARYING;
    /* If the source lane is off, every lane gets its own value. */
    LLVMBasicBlockRef block = LLVMGetInstructionParent(call);
    uint64_t lane;
    bool exists = known_in_lane(s, index, 0, &lane) && lane < SIMDGROUP_LANES;
    bool active = is_first_active(s, index, block) || (exists && all_lanes_run(s, block));
    return active ? SHAPE_UNIFORM : SHAPE_VARYING;
}

static int reduce_shape(struct simd *s, LLVMValueRef call) {
    uint64_t operation, width;
    int value = shape_of(s, LLVMGetOperand(call, 2));
    if (value == SHAPE_UNKNOWN || !simdgroup_arguments(call, &operation, &width)) return value;
    if (value == SHAPE_UNIFORM && is_idempotent(operation)) return SHAPE_UNIFORM;
    return (int)width == s->lanes ? SHAPE_UNIFORM : SHAPE_VARYING;
}

int simdgroup_shape(struct simd *s, LLVMValueRef call, enum intrinsic intrinsic) {
    enum simd_kind kind;
    if (!simdgroup_kind(intrinsic, &kind)) return SHAPE_VARYING;
    switch (kind) {
    case SIMD_SHUFFLE:
        return shuffle_shape(s, call);
    case SIMD_BALLOT:
        return s->lanes <= SIMDGROUP_LANES ? SHAPE_UNIFORM : SHAPE_VARYING;
    case SIMD_REDUCE:
        return reduce_shape(s, call);
    case SIMD_SCAN:
    case SIMD_MATRIX:
        return SHAPE_VARYING;
    case SIMD_BARRIER:
        break;
    }
    return SHAPE_UNIFORM;
}

/* ---- Emission: common parts. */

static void set_everywhere(struct simd *s, LLVMValueRef call, LLVMValueRef scalar, int first, int count) {
    for (int i = first; i < first + count; i++) chunk_set(s, call, i, chunk_splat(s, scalar));
}

/* The code is discarded, but is emitted until vectorise.c checks s->refused. */
static void refuse_call(struct simd *s, LLVMValueRef call, const char *why) {
    simd_refuse(s, call, "%s", why);
    LLVMValueRef nothing = LLVMGetUndef(LLVMTypeOf(call));
    if (shape_of(s, call) == SHAPE_UNIFORM)
        scalar_set(s, call, nothing);
    else
        set_everywhere(s, call, nothing, 0, s->chunk_count);
}

/* The active lanes of one simdgroup, one bit per lane. */
static LLVMValueRef simdgroup_bits(struct simd *s, LLVMValueRef const *masks) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef all = simd_i32(s, 0);
    for (int k = 0; k < chunks_of_simdgroup(s); k++) {
        LLVMValueRef bits = mask_bits(s, masks[k] ? masks[k] : mask_all(s));
        bits = LLVMBuildZExtOrBitCast(b, bits, type_i32(s->unit), "");
        all = LLVMBuildOr(b, all, LLVMBuildShl(b, bits, simd_i32(s, (int64_t)k * s->chunk_lanes), ""), "");
    }
    return all;
}

static bool masked(LLVMValueRef const *masks, int count) {
    for (int k = 0; k < count; k++)
        if (masks[k]) return true;
    return false;
}

/* ---- Ballots, reductions, scans. */

static void emit_ballot(struct simd *s, LLVMValueRef call) {
    LLVMBuilderRef b = s->unit->builder;
    if (s->lanes < SIMDGROUP_LANES) {
        refuse_call(s, call, "a ballot in a gang that is part of a simdgroup");
        return;
    }
    for (int first = 0; first < s->chunk_count; first += chunks_of_simdgroup(s)) {
        LLVMValueRef votes[SIMDGROUP_LANES];
        for (int k = 0; k < chunks_of_simdgroup(s); k++) {
            LLVMValueRef mask = mask_chunk(s, first + k);
            votes[k] = chunk_of(s, LLVMGetOperand(call, 0), first + k);
            if (mask) votes[k] = LLVMBuildSelect(b, mask, votes[k], LLVMConstNull(mask_type(s)), "");
        }
        LLVMValueRef bits = simdgroup_bits(s, votes);
        if (shape_of(s, call) == SHAPE_UNIFORM)
            scalar_set(s, call, bits);
        else
            set_everywhere(s, call, bits, first, chunks_of_simdgroup(s));
    }
}

static void load_active(struct simd *s, LLVMValueRef value, enum simd_operation operation,
                        LLVMValueRef *chunks, LLVMValueRef *masks) {
    for (int k = 0; k < s->chunk_count; k++) {
        masks[k] = mask_chunk(s, k);
        chunks[k] = lanes_keep_active(s, operation, chunk_of(s, value, k), masks[k]);
    }
}

static void emit_reduce(struct simd *s, LLVMValueRef call, enum simd_operation operation, int width) {
    LLVMValueRef value = LLVMGetOperand(call, 2), chunks[GANG_MAX_LANES], masks[GANG_MAX_LANES];
    bool uniform = shape_of(s, call) == SHAPE_UNIFORM;
    if (uniform && is_idempotent(operation) && shape_of(s, value) == SHAPE_UNIFORM) {
        scalar_set(s, call, scalar_of(s, value));
        return;
    }
    load_active(s, value, operation, chunks, masks);
    if (uniform) {
        LLVMValueRef reduced = lanes_reduce(s, operation, chunks, s->chunk_count);
        ahead_mark(s->unit, reduced);
        scalar_set(s, call, reduced);
        return;
    }
    if (packed_is(s, call)) {
        packed_set_reduction(s, call, operation, chunks);
        return;
    }
    int count = width / s->chunk_lanes;
    for (int k = 0; k < s->chunk_count; k += count ? count : 1) {
        if (count) {
            LLVMValueRef reduced = lanes_reduce(s, operation, chunks + k, count);
            ahead_mark(s->unit, reduced);
            set_everywhere(s, call, reduced, k, count);
        } else {
            chunk_set(s, call, k, lanes_reduce_groups(s, operation, chunks[k], width));
        }
    }
}

static void emit_scan(struct simd *s, LLVMValueRef call, uint64_t code, int width) {
    LLVMValueRef chunks[GANG_MAX_LANES], masks[GANG_MAX_LANES];
    struct scan scan = {.operation = (enum simd_operation)(code & ~(uint64_t)SIMD_EXCLUSIVE),
                        .exclusive = (code & SIMD_EXCLUSIVE) != 0,
                        .width = width,
                        .masks = masks};
    load_active(s, LLVMGetOperand(call, 2), scan.operation, chunks, masks);
    lanes_scan(s, &scan, chunks, s->chunk_count);
    for (int k = 0; k < s->chunk_count; k++) chunk_set(s, call, k, chunks[k]);
}

static void emit_collective(struct simd *s, LLVMValueRef call, enum simd_kind kind) {
    uint64_t operation, width;
    if (!simdgroup_arguments(call, &operation, &width))
        refuse_call(s, call, "an unknown simdgroup operation");
    else if ((int)width > s->lanes)
        refuse_call(s, call, "a simdgroup operation in a gang that is part of a simdgroup");
    else if (kind == SIMD_REDUCE)
        emit_reduce(s, call, (enum simd_operation)operation, (int)width);
    else
        emit_scan(s, call, operation, (int)width);
}

/* ---- Shuffles. The values of a simdgroup are joined, or read lane by lane if the target has no permute. */

/* One simdgroup at a time. */
struct shuffle {
    LLVMValueRef call;
    int first, count; /* chunks */
    LLVMValueRef values[SIMDGROUP_LANES], masks[SIMDGROUP_LANES];
};

static void start_shuffle(struct simd *s, struct shuffle *shuffle, LLVMValueRef call, int first) {
    *shuffle = (struct shuffle){.call = call, .first = first, .count = chunks_of_simdgroup(s)};
    for (int k = 0; k < shuffle->count; k++) {
        shuffle->values[k] = chunk_of(s, LLVMGetOperand(call, 0), first + k);
        shuffle->masks[k] = mask_chunk(s, first + k);
    }
}

/* Uses `result` where the source is active, and the lane's own value elsewhere. */
static void finish_chunk(struct simd *s, const struct shuffle *shuffle, int k, LLVMValueRef active,
                         LLVMValueRef result) {
    if (active) result = LLVMBuildSelect(s->unit->builder, active, result, shuffle->values[k], "");
    chunk_set(s, shuffle->call, shuffle->first + k, result);
}

static void shuffle_known(struct simd *s, struct shuffle *shuffle, const int *sources) {
    int lanes = s->chunk_lanes, indexes[GANG_MAX_LANES];
    for (int k = 0; k < shuffle->count; k++) {
        for (int i = 0; i < lanes; i++) {
            int source = sources[(shuffle->first + k) * lanes + i];
            indexes[i] = source == OWN_VALUE ? k * lanes + i : source - shuffle->first * lanes;
        }
        LLVMValueRef active = NULL;
        if (masked(shuffle->masks, shuffle->count)) {
            LLVMValueRef masks[SIMDGROUP_LANES];
            for (int j = 0; j < shuffle->count; j++)
                masks[j] = shuffle->masks[j] ? shuffle->masks[j] : mask_all(s);
            active = lanes_gather(s, masks, shuffle->count, indexes);
        }
        finish_chunk(s, shuffle, k, active, lanes_gather(s, shuffle->values, shuffle->count, indexes));
    }
}

/* One source lane for all; each of several simdgroups has its own. */
static void shuffle_uniform(struct simd *s, struct shuffle *shuffle) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef index = scalar_of(s, LLVMGetOperand(shuffle->call, 1));
    LLVMValueRef lane = LLVMBuildAnd(b, index, simd_i32(s, SIMDGROUP_LANES - 1), "");
    LLVMValueRef joined = chunks_join(s, shuffle->values, shuffle->count);
    LLVMValueRef value = LLVMBuildExtractElement(b, joined, lane, "");
    if (shape_of(s, shuffle->call) == SHAPE_UNIFORM) {
        scalar_set(s, shuffle->call, value);
        return;
    }
    LLVMValueRef bits = LLVMBuildLShr(b, simdgroup_bits(s, shuffle->masks), lane, "");
    LLVMValueRef exists = LLVMBuildICmp(b, LLVMIntULT, index, simd_i32(s, SIMDGROUP_LANES), "");
    LLVMValueRef active = LLVMBuildAnd(b, exists, LLVMBuildTrunc(b, bits, simd_i1(s), ""), "");
    for (int k = 0; k < shuffle->count; k++) finish_chunk(s, shuffle, k, active, chunk_splat(s, value));
}

/* 32-bit lanes from two chunks of 16: one instruction. */
static LLVMValueRef permute_two(struct simd *s, LLVMValueRef const *chunks, LLVMValueRef indexes) {
    LLVMValueRef arguments[3] = {chunks[0], indexes, chunks[1]};
    return simd_intrinsic(s, "llvm.x86.avx512.vpermi2var.d.512", NULL, 0, arguments, 3);
}

/* 32-bit lanes from four chunks of 8: each is permuted, and the upper bits of the index select one. */
static LLVMValueRef permute_four(struct simd *s, LLVMValueRef const *chunks, LLVMValueRef indexes) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef parts[4], zero = LLVMConstNull(LLVMTypeOf(indexes));
    for (int k = 0; k < 4; k++) {
        LLVMValueRef arguments[2] = {chunks[k], indexes};
        parts[k] = simd_intrinsic(s, "llvm.x86.avx2.permd", NULL, 0, arguments, 2);
    }
    LLVMValueRef odd = LLVMBuildAnd(b, indexes, chunk_splat(s, simd_i32(s, 8)), "");
    LLVMValueRef high = LLVMBuildAnd(b, indexes, chunk_splat(s, simd_i32(s, 16)), "");
    odd = LLVMBuildICmp(b, LLVMIntNE, odd, zero, "");
    high = LLVMBuildICmp(b, LLVMIntNE, high, zero, "");
    return LLVMBuildSelect(b, high, LLVMBuildSelect(b, odd, parts[3], parts[2], ""),
                           LLVMBuildSelect(b, odd, parts[1], parts[0], ""), "");
}

typedef LLVMValueRef permute(struct simd *s, LLVMValueRef const *chunks, LLVMValueRef indexes);

static permute *target_permute(const struct simd *s) {
    if (s->chunk_lanes == 16 && s->vector_bits >= 512) return permute_two;
    if (s->chunk_lanes == 8 && s->vector_bits >= 256) return permute_four;
    return NULL;
}

/* 64-bit values as two halves. */
static LLVMValueRef permute_values(struct simd *s, permute *permute, const struct shuffle *shuffle,
                                   LLVMValueRef indexes) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = LLVMTypeOf(shuffle->values[0]), words = chunk_type(s, type_i32(s->unit));
    if (type == words) return permute(s, shuffle->values, indexes);
    LLVMValueRef low[SIMDGROUP_LANES], high[SIMDGROUP_LANES];
    LLVMValueRef half = chunk_splat(s, LLVMConstInt(type_i64(s->unit), 32, false));
    for (int k = 0; k < shuffle->count; k++) {
        low[k] = LLVMBuildTrunc(b, shuffle->values[k], words, "");
        high[k] = LLVMBuildTrunc(b, LLVMBuildLShr(b, shuffle->values[k], half, ""), words, "");
    }
    LLVMValueRef lower = LLVMBuildZExt(b, permute(s, low, indexes), type, "");
    LLVMValueRef upper = LLVMBuildZExt(b, permute(s, high, indexes), type, "");
    return LLVMBuildOr(b, lower, LLVMBuildShl(b, upper, half, ""), "");
}

/* Through memory: `slot` holds the values of the simdgroup; indexes are below 32. */
static LLVMValueRef load_values(struct simd *s, LLVMValueRef slot, LLVMTypeRef element,
                                LLVMValueRef indexes) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef result = LLVMGetPoison(chunk_type(s, element));
    for (int i = 0; i < s->chunk_lanes; i++) {
        LLVMValueRef index = LLVMBuildExtractElement(b, indexes, simd_i32(s, i), "");
        LLVMValueRef address = LLVMBuildInBoundsGEP2(b, element, slot, &index, 1, "");
        LLVMValueRef value = LLVMBuildLoad2(b, element, address, "");
        result = LLVMBuildInsertElement(b, result, value, simd_i32(s, i), "");
    }
    return result;
}

/* Whether the bit of each lane's index is set in a word. */
static LLVMValueRef test_bits(struct simd *s, LLVMValueRef word, LLVMValueRef indexes) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef shifted = LLVMBuildLShr(b, chunk_splat(s, word), indexes, "");
    return LLVMBuildTrunc(b, shifted, mask_type(s), "");
}

static LLVMValueRef store_values(struct simd *s, const struct shuffle *shuffle) {
    LLVMValueRef joined = chunks_join(s, shuffle->values, shuffle->count);
    LLVMValueRef slot = simd_slot(s, LLVMTypeOf(joined));
    LLVMBuildStore(s->unit->builder, joined, slot);
    return slot;
}

static void shuffle_varying(struct simd *s, struct shuffle *shuffle) {
    LLVMBuilderRef b = s->unit->builder;
    permute *permute = target_permute(s);
    LLVMTypeRef element = LLVMTypeOf(shuffle->call);
    bool some_off = masked(shuffle->masks, shuffle->count);
    LLVMValueRef slot = permute ? NULL : store_values(s, shuffle);
    LLVMValueRef bits = some_off ? simdgroup_bits(s, shuffle->masks) : NULL;
    for (int k = 0; k < shuffle->count; k++) {
        /* Indexes of inactive lanes are arbitrary: memory must not be read there. */
        LLVMValueRef index = chunk_of(s, LLVMGetOperand(shuffle->call, 1), shuffle->first + k);
        index = LLVMBuildFreeze(b, index, "");
        LLVMValueRef limit = chunk_splat(s, simd_i32(s, SIMDGROUP_LANES));
        LLVMValueRef inside = LLVMBuildAnd(b, index, chunk_splat(s, simd_i32(s, SIMDGROUP_LANES - 1)), "");
        LLVMValueRef active = LLVMBuildICmp(b, LLVMIntULT, index, limit, "");
        if (some_off) active = LLVMBuildAnd(b, active, test_bits(s, bits, inside), "");
        LLVMValueRef result =
            permute ? permute_values(s, permute, shuffle, inside) : load_values(s, slot, element, inside);
        finish_chunk(s, shuffle, k, active, result);
    }
}

static void emit_shuffle(struct simd *s, LLVMValueRef call) {
    LLVMValueRef value = LLVMGetOperand(call, 0), index = LLVMGetOperand(call, 1);
    int sources[GANG_MAX_LANES];
    bool uniform = shape_of(s, call) == SHAPE_UNIFORM;
    if (uniform && shape_of(s, value) == SHAPE_UNIFORM) {
        scalar_set(s, call, scalar_of(s, value));
        return;
    }
    bool known = !uniform && known_sources(s, index, sources);
    if (!known && s->lanes < SIMDGROUP_LANES) {
        refuse_call(s, call, "a shuffle in a gang that is part of a simdgroup");
        return;
    }
    for (int first = 0; first < s->chunk_count; first += chunks_of_simdgroup(s)) {
        struct shuffle shuffle;
        start_shuffle(s, &shuffle, call, first);
        if (known)
            shuffle_known(s, &shuffle, sources);
        else if (shape_of(s, index) == SHAPE_UNIFORM)
            shuffle_uniform(s, &shuffle);
        else
            shuffle_varying(s, &shuffle);
    }
}

bool emit_simdgroup(struct simd *s, LLVMValueRef call, enum intrinsic intrinsic) {
    enum simd_kind kind;
    if (!simdgroup_kind(intrinsic, &kind)) return false;
    switch (kind) {
    case SIMD_SHUFFLE:
        emit_shuffle(s, call);
        break;
    case SIMD_BALLOT:
        emit_ballot(s, call);
        break;
    case SIMD_REDUCE:
    case SIMD_SCAN:
        emit_collective(s, call, kind);
        break;
    case SIMD_MATRIX:
        if (s->lanes < SIMDGROUP_LANES)
            refuse_call(s, call, "a matrix product in a gang that is part of a simdgroup");
        else
            emit_matrix_product(s, call);
        break;
    case SIMD_BARRIER:
        break;
    }
    return true;
}
