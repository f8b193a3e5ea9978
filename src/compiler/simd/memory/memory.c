/* Loads and stores of a chunk. By the shape of their address:
 *   uniform            one scalar access
 *   neighbours         one vector access
 *   a small pattern    (strides, repeats) a few vectors that cover it, and a shuffle; stores need masks for
 *                      the gaps, which only 512 bits have at a vector's speed
 *   a few rows         a vector each, and shuffles: row_access.c
 *   other offsets      all lanes on: one element after another; else gather or scatter from lane 0's address
 *   a small table      (loads) of the kernel's own: permuted vectors of it: table.c
 *   varying            tested at run time: unknown.c
 * Nothing outside the first and the last element that active lanes ask for is ever touched. */
#include "compiler/simd/memory/access.h"
#include "compiler/simd/memory/gang_access.h"
#include "compiler/simd/memory/neighbours.h"
#include "compiler/simd/memory/pattern.h"

#include <string.h>

static int64_t bytes_of(struct simd *s, LLVMTypeRef type) {
    return (int64_t)LLVMABISizeOfType(s->unit->layout, type);
}

/* ---- Loads and stores. */

static void explain(struct simd *s, LLVMValueRef access, int chunk, const char *what) {
    if (chunk != 0) return;
    LLVMValueRef address = LLVMGetOperand(access, LLVMIsALoadInst(access) ? 0 : 1);
    if (shape_of(s, address) == SHAPE_VARYING)
        simd_remark(s, access, "%s; %s", what, report_varying(s, address));
    else
        simd_remark(s, access, "%s", what);
}

/* A chunk of one lane, which is on: an access as in the thread's own code. */
static LLVMValueRef lane_address(struct simd *s, LLVMValueRef address, int chunk) {
    int shape = shape_of(s, address);
    if (shape < 0) return chunk_of(s, address, chunk);
    return pattern_byte_address(s, scalar_of(s, address), shape_offsets(s, shape)[chunk]);
}

static void emit_lane_access(struct simd *s, LLVMValueRef i, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    bool load = LLVMIsALoadInst(i) != NULL;
    LLVMValueRef address = lane_address(s, LLVMGetOperand(i, load ? 0 : 1), chunk);
    LLVMValueRef access = load ? LLVMBuildLoad2(b, LLVMTypeOf(i), address, "")
                               : LLVMBuildStore(b, chunk_of(s, LLVMGetOperand(i, 0), chunk), address);
    LLVMSetAlignment(access, LLVMGetAlignment(i));
    if (load) chunk_set(s, i, chunk, access);
}

/* A scalar address and the chunk's constant offsets from it; false if they are known only at run time. */
static bool known_address(struct simd *s, LLVMValueRef address, int chunk, LLVMValueRef *base,
                          const int64_t **offsets) {
    int shape = shape_of(s, address);
    if (piece_is(s, address)) {
        *base = piece_first_lane(s, address, chunk);
        shape = value_of(s, address)->piece;
    } else if (shape >= 0) {
        *base = scalar_of(s, address);
    } else {
        return false;
    }
    *offsets = shape_offsets(s, shape) + chunk * s->chunk_lanes;
    return true;
}

/* ---- Elements that have no masked vectors. Vectors that cover a pattern always have gaps: in place of a
 * call for each of them, one test whether all lanes are on, and one call for the others. */

static LLVMValueRef load_all_on(struct simd *s, LLVMTypeRef element, LLVMValueRef base,
                                const int64_t *offsets, const struct pattern *p, int align) {
    return p->small && !p->spread ? pattern_load(s, element, base, p, NULL)
                                  : spread_load(s, element, base, offsets, align);
}

static LLVMValueRef load_split(struct simd *s, LLVMTypeRef element, LLVMValueRef base, const int64_t *offsets,
                               const struct pattern *p, LLVMValueRef mask, int align) {
    if (access_is_short(s))
        return access_gather(s, element, pattern_addresses(s, base, offsets), mask, align);
    struct split split = access_split(s, mask);
    LLVMValueRef all = load_all_on(s, element, base, offsets, p, align);
    access_split_some(s, &split);
    LLVMValueRef some = access_gather(s, element, pattern_addresses(s, base, offsets), mask, align);
    access_split_end(s, &split);
    return access_split_value(s, &split, all, some);
}

static void store_split(struct simd *s, LLVMValueRef vector, LLVMValueRef base, const int64_t *offsets,
                        LLVMValueRef mask, int align) {
    if (access_is_short(s)) {
        access_scatter(s, vector, pattern_addresses(s, base, offsets), mask, align);
        return;
    }
    struct split split = access_split(s, mask);
    spread_store(s, vector, base, offsets, align);
    access_split_some(s, &split);
    access_scatter(s, vector, pattern_addresses(s, base, offsets), mask, align);
    access_split_end(s, &split);
}

/* ---- Quick code, for other patterns than those of one or two vectors: a gather or scatter of the CPU, or a
 * call for the gang. */

static LLVMValueRef load_brief(struct simd *s, LLVMValueRef load, int chunk, LLVMValueRef base,
                               const int64_t *offsets) {
    LLVMTypeRef element = LLVMTypeOf(load);
    if (gang_access_is_call(s, element)) return gang_access_load(s, load, chunk);
    return access_gather(s, element, pattern_addresses(s, base, offsets), mask_chunk(s, chunk),
                         (int)LLVMGetAlignment(load));
}

static void store_brief(struct simd *s, LLVMValueRef store, int chunk, LLVMValueRef base,
                        const int64_t *offsets) {
    LLVMValueRef value = LLVMGetOperand(store, 0);
    if (gang_access_is_call(s, LLVMTypeOf(value)))
        gang_access_store(s, store);
    else
        access_scatter(s, chunk_of(s, value, chunk), pattern_addresses(s, base, offsets),
                       mask_chunk(s, chunk), (int)LLVMGetAlignment(store));
}

static void emit_load(struct simd *s, LLVMValueRef load, int chunk) {
    LLVMValueRef address = LLVMGetOperand(load, 0), mask = mask_chunk(s, chunk), result;
    LLVMTypeRef element = LLVMTypeOf(load);
    int align = (int)LLVMGetAlignment(load);
    LLVMValueRef base;
    const int64_t *offsets;
    if (!known_address(s, address, chunk, &base, &offsets)) {
        if (access_look_up(s, load, chunk, &result)) {
            explain(s, load, chunk, "load: from a small table, whose vectors are permuted");
            chunk_set(s, load, chunk, result);
            return;
        }
        if (rows_load(s, load, chunk, &result)) {
            explain(s, load, chunk, "load: a vector for each of a few rows, combined by shuffles");
            chunk_set(s, load, chunk, result);
            return;
        }
        explain(s, load, chunk, "gather, unless the addresses are consecutive or equal at run time");
        chunk_set(s, load, chunk, access_load_unknown(s, load, chunk));
        return;
    }
    struct pattern p = pattern_find(s, offsets, bytes_of(s, element), align);
    if (p.same) {
        result =
            chunk_splat(s, access_load_one(s, element, pattern_byte_address(s, base, p.low), mask, align));
    } else if (p.neighbours) {
        result = access_load(s, element, pattern_byte_address(s, base, p.low), mask, p.align);
    } else if (s->brief && !pattern_is_covered(s, &p, mask)) {
        result = load_brief(s, load, chunk, base, offsets);
    } else if (pattern_lacks_masked(s, element, mask)) {
        explain(s, load, chunk, "load: constant offsets; one lane at a time unless all are on");
        result = load_split(s, element, base, offsets, &p, mask, align);
    } else if (pattern_is_covered(s, &p, mask)) {
        explain(s, load, chunk, "load: a pattern of constant offsets, taken from a few vectors by shuffles");
        result = pattern_load(s, element, base, &p, mask);
    } else if (rows_load(s, load, chunk, &result)) {
        explain(s, load, chunk, "load: a vector for each of a few rows, combined by shuffles");
    } else if (!mask) {
        explain(s, load, chunk,
                "load: constant offsets that are far apart, each row of neighbours by itself");
        result = spread_load(s, element, base, offsets, align);
    } else {
        explain(s, load, chunk,
                "gather: the lanes' addresses are constant steps apart that are too far for vectors");
        result = access_gather(s, element, pattern_addresses(s, base, offsets), mask, align);
    }
    chunk_set(s, load, chunk, result);
}

static void emit_store(struct simd *s, LLVMValueRef store, int chunk) {
    LLVMValueRef value = LLVMGetOperand(store, 0), address = LLVMGetOperand(store, 1);
    LLVMValueRef mask = mask_chunk(s, chunk), vector = chunk_of(s, value, chunk);
    int align = (int)LLVMGetAlignment(store);
    LLVMValueRef base;
    const int64_t *offsets;
    if (!known_address(s, address, chunk, &base, &offsets)) {
        if (rows_store(s, store, chunk)) {
            explain(s, store, chunk, "store: a vector for each of a few rows");
            return;
        }
        explain(s, store, chunk, "scatter, unless the addresses are consecutive at run time");
        access_store_unknown(s, store, chunk);
        return;
    }
    struct pattern p = pattern_find(s, offsets, bytes_of(s, LLVMTypeOf(value)), align);
    if (p.same) {
        explain(s, store, chunk, "store: all lanes write to one address; the last lane's value remains");
        access_store_one(s, vector, pattern_byte_address(s, base, p.low), mask, align);
    } else if (p.neighbours) {
        access_store(s, vector, pattern_byte_address(s, base, p.low), mask, p.align);
    } else if (s->brief) {
        store_brief(s, store, chunk, base, offsets);
    } else if (pattern_lacks_masked(s, LLVMTypeOf(value), mask)) {
        explain(s, store, chunk, "store: constant offsets; one lane at a time unless all are on");
        store_split(s, vector, base, offsets, mask, align);
    } else if (p.small && !p.spread && !p.repeats && (mask || s->vector_bits == 512)) {
        explain(s, store, chunk, "store: a pattern of constant offsets, put into a few vectors by shuffles");
        pattern_store(s, vector, base, &p, mask);
    } else if (!mask) {
        explain(s, store, chunk, "store: constant offsets with gaps, each row of neighbours by itself");
        spread_store(s, vector, base, offsets, align);
    } else {
        explain(s, store, chunk,
                "scatter: the lanes' addresses are constant steps apart that are too far for vectors");
        access_scatter(s, vector, pattern_addresses(s, base, offsets), mask, align);
    }
}

/* A uniform base stays a scalar: gathers then have a base and offsets. */
static void emit_address(struct simd *s, LLVMValueRef gep, int chunk) {
    LLVMValueRef operands[32];
    unsigned count = (unsigned)LLVMGetNumOperands(gep);
    if (count > 32) {
        simd_refuse(s, gep, "an address has more than 31 indices");
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        LLVMValueRef operand = LLVMGetOperand(gep, i);
        operands[i] =
            shape_of(s, operand) == SHAPE_UNIFORM ? scalar_of(s, operand) : chunk_of(s, operand, chunk);
    }
    chunk_set(s, gep, chunk,
              LLVMBuildGEP2(s->unit->builder, LLVMGetGEPSourceElementType(gep), operands[0], operands + 1,
                            count - 1, ""));
}

bool emit_memory(struct simd *s, LLVMValueRef i, int chunk) {
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMGetElementPtr:
        emit_address(s, i, chunk);
        return true;
    case LLVMLoad:
    case LLVMStore:
        if (neighbours_emit(s, i, chunk)) return true;
        if (s->chunk_lanes == 1)
            emit_lane_access(s, i, chunk);
        else if (LLVMIsALoadInst(i))
            emit_load(s, i, chunk);
        else
            emit_store(s, i, chunk);
        return true;
    default:
        return false;
    }
}
