/* Values while the gang's code is written: scalars, chunks and masks. Stack slots (slots.c) carry them
 * between blocks. */
#include "compiler/simd/matrix/matrix.h"

#include <string.h>

/* ---- Types and constants. */

/* Chunks of one lane are scalars: see try_in_thread in gang_size.c. */
LLVMTypeRef chunk_type(struct simd *s, LLVMTypeRef element) {
    if (s->chunk_lanes == 1) return element;
    return LLVMVectorType(element, (unsigned)s->chunk_lanes);
}

LLVMTypeRef simd_i1(struct simd *s) {
    return LLVMInt1TypeInContext(s->unit->context);
}

LLVMTypeRef mask_type(struct simd *s) {
    return chunk_type(s, simd_i1(s));
}

LLVMValueRef simd_i32(struct simd *s, int64_t value) {
    return LLVMConstInt(type_i32(s->unit), (unsigned long long)value, true);
}

LLVMValueRef mask_all(struct simd *s) {
    return LLVMConstAllOnes(mask_type(s));
}

LLVMValueRef lanes_constant(struct simd *s, LLVMTypeRef element, const int64_t *values, int count) {
    LLVMValueRef lanes[GANG_MAX_LANES];
    if (s->chunk_lanes == 1 && count == 1) return LLVMConstInt(element, (unsigned long long)values[0], true);
    for (int i = 0; i < count; i++) lanes[i] = LLVMConstInt(element, (unsigned long long)values[i], true);
    return LLVMConstVector(lanes, (unsigned)count);
}

LLVMValueRef lanes_splat(struct simd *s, LLVMValueRef scalar, int lanes) {
    LLVMBuilderRef b = s->unit->builder;
    if (s->chunk_lanes == 1 && lanes == 1) return scalar;
    LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(scalar), (unsigned)lanes);
    if (LLVMIsUndef(scalar) || LLVMIsPoison(scalar)) return LLVMGetUndef(type);
    if (LLVMIsAConstantInt(scalar) || LLVMIsAConstantFP(scalar) || LLVMIsAConstantPointerNull(scalar)) {
        LLVMValueRef copies[GANG_MAX_LANES];
        for (int i = 0; i < lanes; i++) copies[i] = scalar;
        return LLVMConstVector(copies, (unsigned)lanes);
    }
    LLVMValueRef first =
        LLVMBuildInsertElement(b, LLVMGetPoison(type), scalar, LLVMConstInt(type_i32(s->unit), 0, false), "");
    LLVMValueRef zeros = LLVMConstNull(LLVMVectorType(type_i32(s->unit), (unsigned)lanes));
    return LLVMBuildShuffleVector(b, first, LLVMGetPoison(type), zeros, "");
}

LLVMValueRef chunk_splat(struct simd *s, LLVMValueRef scalar) {
    return lanes_splat(s, scalar, s->chunk_lanes);
}

LLVMValueRef simd_intrinsic(struct simd *s, const char *name, LLVMTypeRef *types, unsigned type_count,
                            LLVMValueRef *arguments, unsigned count) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(s->unit->module, id, types, type_count);
    return LLVMBuildCall2(s->unit->builder, LLVMGlobalGetValueType(function), function, arguments, count, "");
}

int chunks_of_simdgroup(struct simd *s) {
    int chunks = SIMDGROUP_LANES / s->chunk_lanes;
    return chunks < s->chunk_count ? chunks : s->chunk_count;
}

int packed_count(const struct simd *s) {
    return s->lanes / SIMDGROUP_LANES;
}

LLVMTypeRef packed_type(struct simd *s, LLVMTypeRef element) {
    return LLVMVectorType(element, (unsigned)packed_count(s));
}

/* Threads side by side whose tiles are written elsewhere (parts.c) go on together: LLVM makes vectors of what
 * they do to neighbouring elements, as far as no other access is in between. */
bool simd_goes_together(const struct simd *s) {
    return s->chunk_lanes == 1 && s->lanes >= LANES_IN_PARTS;
}

/* ---- The table. */

static unsigned place_in_table(const struct simd *s, LLVMValueRef original) {
    uintptr_t bits = (uintptr_t)original >> 4;
    return (unsigned)((bits ^ bits >> 15) * UINT64_C(0x9E3779B97F4A7C15) >> 40) % s->table_size;
}

struct value *value_of(struct simd *s, LLVMValueRef original) {
    struct value **head = &s->table[place_in_table(s, original)];
    for (struct value *v = *head; v; v = v->next)
        if (v->original == original) return v;
    struct value *v = arena_alloc(&s->arena, sizeof *v);
    if (!v) return NULL;
    *v = (struct value){.original = original,
                        .shape = LLVMIsAInstruction(original) ? SHAPE_UNKNOWN : SHAPE_UNIFORM,
                        .piece = PIECE_UNKNOWN,
                        .block = -1,
                        .loaded = -1,
                        .next = *head};
    *head = v;
    return v;
}

int shape_of(struct simd *s, LLVMValueRef original) {
    return LLVMIsAInstruction(original) ? value_of(s, original)->shape : SHAPE_UNIFORM;
}

bool packed_is(struct simd *s, LLVMValueRef original) {
    if (!LLVMIsAInstruction(original)) return false;
    const struct value *v = value_of(s, original);
    return v->packed && v->shape == SHAPE_VARYING && v->piece < 0;
}

/* ---- Slots. */

LLVMBasicBlockRef simd_block(struct simd *s, const char *name) {
    LLVMBasicBlockRef block = LLVMAppendBasicBlockInContext(s->unit->context, s->gang, name);
    LLVMMoveBasicBlockAfter(block, LLVMGetInsertBlock(s->unit->builder));
    return block;
}

/* A value defined where nothing is skipped is available in all code after it. */
bool simd_is_skipped(struct simd *s, int place) {
    bool skipped = false;
    for (int i = 0; i < s->paths.region_words; i++) skipped |= s->paths.blocks[place].regions[i] != 0;
    return skipped;
}

bool value_is_here(struct simd *s, LLVMValueRef original) {
    if (!LLVMIsAInstruction(original)) return true;
    const struct value *v = value_of(s, original);
    return v->block < 0 || v->block == s->current || v->slot || v->slots || !simd_is_skipped(s, v->block);
}

static bool needs_slot(struct simd *s, const struct value *v) {
    const struct path_block *block = &s->paths.blocks[v->block];
    if (!simd_is_skipped(s, v->block)) return false;
    for (LLVMUseRef use = LLVMGetFirstUse(v->original); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMIsAPHINode(user) || LLVMGetInstructionParent(user) != block->block) return true;
    }
    return false;
}

void scalar_set(struct simd *s, LLVMValueRef original, LLVMValueRef scalar) {
    struct value *v = value_of(s, original);
    v->scalar = scalar;
    v->loaded = s->serial;
    if (!v->slot && needs_slot(s, v))
        v->slot = simd_round_slot(s, LLVMTypeOf(scalar), NULL, s->paths.blocks[v->block].loop);
    if (v->slot) LLVMBuildStore(s->unit->builder, scalar, v->slot);
}

void chunk_set(struct simd *s, LLVMValueRef original, int chunk, LLVMValueRef vector) {
    if (s->packing) {
        scalar_set(s, original, vector);
        return;
    }
    struct value *v = value_of(s, original);
    size_t bytes = (size_t)s->chunk_count * sizeof(LLVMValueRef);
    if (!v->chunks) {
        v->chunks = arena_alloc(&s->arena, bytes);
        if (needs_slot(s, v)) {
            v->slots = arena_alloc(&s->arena, bytes);
            for (int i = 0; i < s->chunk_count; i++)
                v->slots[i] = simd_round_slot(s, LLVMTypeOf(vector), NULL, s->paths.blocks[v->block].loop);
        }
    }
    v->chunks[chunk] = vector;
    v->loaded = s->serial;
    bool stored = v->matrix && v->matrix->sum; /* by the product */
    if (v->slots && !stored) LLVMBuildStore(s->unit->builder, vector, v->slots[chunk]);
    if (v->matrix && v->matrix->uses) s->matrix_forms->keep_row(s, original, chunk, vector);
}

/* The loads are in the head of the current block, so that all its code may use them. */
static void load_from_slots(struct simd *s, struct value *v) {
    if (v->loaded == s->serial || (!v->slot && !v->slots)) return;
    LLVMBuilderRef b = s->unit->builder;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
    LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(s->blocks[s->current].head));
    if (v->slot) v->scalar = LLVMBuildLoad2(b, LLVMGetAllocatedType(v->slot), v->slot, "");
    for (int i = 0; v->slots && i < s->chunk_count; i++)
        v->chunks[i] = LLVMBuildLoad2(b, simd_slot_type(v->slots[i]), v->slots[i], "");
    v->loaded = s->serial;
    LLVMPositionBuilderAtEnd(b, here);
}

/* ---- Reading. */

LLVMValueRef scalar_of(struct simd *s, LLVMValueRef original) {
    if (!LLVMIsAInstruction(original)) return original;
    struct value *v = value_of(s, original);
    load_from_slots(s, v);
    return v->scalar;
}

LLVMValueRef chunk_scalar(struct simd *s, LLVMValueRef original, int chunk) {
    struct value *v = value_of(s, original);
    load_from_slots(s, v);
    return v->chunks[chunk];
}

/* A scalar and the offsets of one chunk. */
static LLVMValueRef spread(struct simd *s, LLVMValueRef scalar, const int64_t *offsets, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    const int64_t *own = offsets + (size_t)chunk * (size_t)s->chunk_lanes;
    LLVMTypeRef type = LLVMTypeOf(scalar);
    bool same = true;
    for (int i = 0; i < s->chunk_lanes; i++) same &= own[i] == 0;
    if (same) return chunk_splat(s, scalar);
    if (LLVMGetTypeKind(type) == LLVMPointerTypeKind) {
        LLVMValueRef steps = lanes_constant(s, type_i64(s->unit), own, s->chunk_lanes);
        return LLVMBuildGEP2(b, LLVMInt8TypeInContext(s->unit->context), scalar, &steps, 1, "");
    }
    return LLVMBuildAdd(b, chunk_splat(s, scalar), lanes_constant(s, type, own, s->chunk_lanes), "");
}

LLVMValueRef chunk_of(struct simd *s, LLVMValueRef original, int chunk) {
    if (s->row_reader) return s->matrix_forms->operand(s, original, chunk);
    return matrix_of(s, original) ? s->matrix_forms->lanes(s, original, chunk)
                                  : chunk_kept(s, original, chunk);
}

LLVMValueRef packed_of(struct simd *s, LLVMValueRef original) {
    int shape = shape_of(s, original);
    LLVMValueRef own = scalar_of(s, original);
    if (shape == SHAPE_VARYING) return own;
    LLVMValueRef copies = lanes_splat(s, own, packed_count(s));
    if (shape <= SHAPE_UNIFORM) return copies;
    int64_t offsets[GANG_MAX_LANES];
    for (int g = 0; g < packed_count(s); g++) offsets[g] = shape_offsets(s, shape)[g * SIMDGROUP_LANES];
    return LLVMBuildAdd(s->unit->builder, copies,
                        lanes_constant(s, LLVMTypeOf(own), offsets, packed_count(s)), "");
}

/* Copies of its simdgroup's element for the lanes of a chunk. */
static LLVMValueRef packed_chunk(struct simd *s, LLVMValueRef original, int chunk) {
    LLVMValueRef packed = scalar_of(s, original);
    int64_t indexes[GANG_MAX_LANES];
    for (int l = 0; l < s->chunk_lanes; l++) indexes[l] = chunk * s->chunk_lanes / SIMDGROUP_LANES;
    return LLVMBuildShuffleVector(s->unit->builder, packed, LLVMGetPoison(LLVMTypeOf(packed)),
                                  lanes_constant(s, type_i32(s->unit), indexes, s->chunk_lanes), "");
}

LLVMValueRef chunk_kept(struct simd *s, LLVMValueRef original, int chunk) {
    if (s->packing) return packed_of(s, original);
    if (packed_is(s, original)) return packed_chunk(s, original, chunk);
    if (!LLVMIsAInstruction(original)) return chunk_splat(s, original);
    struct value *v = value_of(s, original);
    /* A stage of a sum that lies in memory (matrix_sums.c) is loaded where it is used: most blocks that it
     * passes through do not use it on all paths. */
    if (v->matrix && v->matrix->sum && v->loaded != s->serial)
        return LLVMBuildLoad2(s->unit->builder, simd_slot_type(v->slots[chunk]), v->slots[chunk], "");
    load_from_slots(s, v);
    if (v->shape == SHAPE_VARYING)
        return v->piece < 0 ? v->chunks[chunk]
                            : spread(s, v->chunks[chunk], shape_offsets(s, v->piece), chunk);
    if (v->shape <= SHAPE_UNIFORM) return chunk_splat(s, v->scalar);
    return spread(s, v->scalar, shape_offsets(s, v->shape), chunk);
}

/* ---- Masks. */

LLVMValueRef mask_chunk(struct simd *s, int chunk) {
    return s->blocks[s->current].mask[chunk];
}

LLVMValueRef mask_or_ones(struct simd *s, int chunk) {
    LLVMValueRef mask = mask_chunk(s, chunk);
    return mask ? mask : mask_all(s);
}

LLVMValueRef mask_bits(struct simd *s, LLVMValueRef mask) {
    LLVMTypeRef bits = LLVMIntTypeInContext(s->unit->context, (unsigned)s->chunk_lanes);
    return LLVMBuildBitCast(s->unit->builder, mask, bits, "");
}

LLVMValueRef mask_any(struct simd *s, LLVMValueRef const *masks, int count) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef all = NULL;
    for (int i = 0; i < count; i++) {
        if (!masks[i]) return LLVMConstInt(simd_i1(s), 1, false);
        all = all ? LLVMBuildOr(b, all, masks[i], "") : masks[i];
    }
    LLVMValueRef bits = mask_bits(s, all);
    return LLVMBuildICmp(b, LLVMIntNE, bits, LLVMConstNull(LLVMTypeOf(bits)), "any");
}

/* ---- Wide vectors. */

LLVMValueRef lanes_part(struct simd *s, LLVMValueRef vector, int first, int lanes) {
    int64_t indexes[GANG_MAX_LANES];
    for (int i = 0; i < lanes; i++) indexes[i] = first + i;
    return LLVMBuildShuffleVector(s->unit->builder, vector, LLVMGetPoison(LLVMTypeOf(vector)),
                                  lanes_constant(s, type_i32(s->unit), indexes, lanes), "");
}

LLVMValueRef chunks_join(struct simd *s, LLVMValueRef const *chunks, int count) {
    if (count == 1) return chunks[0];
    LLVMValueRef low = chunks_join(s, chunks, count / 2);
    LLVMValueRef high = chunks_join(s, chunks + count / 2, count - count / 2);
    int width = (int)LLVMGetVectorSize(LLVMTypeOf(low)), other = (int)LLVMGetVectorSize(LLVMTypeOf(high));
    if (other < width) { /* an odd number of chunks: both operands of a shuffle need the same type */
        int64_t indexes[GANG_MAX_LANES];
        for (int i = 0; i < width; i++) indexes[i] = i < other ? i : 0;
        high = LLVMBuildShuffleVector(s->unit->builder, high, LLVMGetPoison(LLVMTypeOf(high)),
                                      lanes_constant(s, type_i32(s->unit), indexes, width), "");
    } else if (other > width) {
        int64_t indexes[GANG_MAX_LANES];
        for (int i = 0; i < other; i++) indexes[i] = i < width ? i : 0;
        low = LLVMBuildShuffleVector(s->unit->builder, low, LLVMGetPoison(LLVMTypeOf(low)),
                                     lanes_constant(s, type_i32(s->unit), indexes, other), "");
    }
    int stride = (int)LLVMGetVectorSize(LLVMTypeOf(low));
    int64_t indexes[GANG_MAX_LANES];
    for (int i = 0; i < width; i++) indexes[i] = i;
    for (int i = 0; i < other; i++) indexes[width + i] = stride + i;
    return LLVMBuildShuffleVector(s->unit->builder, low, high,
                                  lanes_constant(s, type_i32(s->unit), indexes, width + other), "");
}

LLVMValueRef mask_as_i32(struct simd *s, LLVMValueRef mask) {
    if (!mask) return simd_i32(s, (int64_t)((1ull << s->chunk_lanes) - 1));
    return LLVMBuildZExtOrBitCast(s->unit->builder, mask_bits(s, mask), type_i32(s->unit), "");
}

LLVMValueRef simd_call_runtime(struct simd *s, const char *name, LLVMTypeRef result, LLVMValueRef *arguments,
                               unsigned count) {
    LLVMTypeRef types[8];
    for (unsigned i = 0; i < count; i++) types[i] = LLVMTypeOf(arguments[i]);
    LLVMTypeRef type = LLVMFunctionType(result, types, count, false);
    LLVMValueRef function = LLVMGetNamedFunction(s->unit->module, name);
    if (!function) function = LLVMAddFunction(s->unit->module, name, type);
    return LLVMBuildCall2(s->unit->builder, type, function, arguments, count, "");
}

LLVMValueRef simd_field(struct simd *s, LLVMValueRef base, size_t offset) {
    LLVMValueRef index = LLVMConstInt(type_i64(s->unit), offset, false);
    return LLVMBuildGEP2(s->unit->builder, LLVMInt8TypeInContext(s->unit->context), base, &index, 1, "");
}

LLVMValueRef lanes_in_memory(struct simd *s, LLVMValueRef const *masks) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef word = type_i32(s->unit);
    LLVMValueRef slot = simd_slot(s, LLVMArrayType2(word, GANG_MAX_LANES / 32));
    int words = (s->lanes + 31) / 32;
    for (int w = 0; w < words; w++) {
        LLVMValueRef all = simd_i32(s, 0);
        for (int c = 0; c < s->chunk_count; c++) {
            int first = c * s->chunk_lanes - 32 * w;
            if (first < 0 || first >= 32) continue;
            LLVMValueRef bits =
                LLVMBuildZExtOrBitCast(b, mask_bits(s, masks[c] ? masks[c] : mask_all(s)), word, "");
            all = LLVMBuildOr(b, all, LLVMBuildShl(b, bits, simd_i32(s, first), ""), "");
        }
        LLVMBuildStore(b, all, simd_field(s, slot, 4 * (size_t)w));
    }
    return slot;
}
