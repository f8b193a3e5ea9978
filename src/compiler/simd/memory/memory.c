/* Loads and stores of a chunk. By the shape of their address:
 *   uniform            one scalar access
 *   neighbours         one vector access
 *   a small pattern    (strides, repeats) a few vectors that cover it, and a shuffle; stores need masks for
 *                      the gaps, which only 512 bits have at a vector's speed
 *   a few rows         a vector each, and shuffles: rows.c
 *   other offsets      all lanes on: one element after another; else gather or scatter from lane 0's address
 *   a small table      (loads) of the kernel's own: permuted vectors of it: table.c
 *   varying            tested at run time: unknown.c
 * Nothing outside the first and the last element that active lanes ask for is ever touched. */
#include "compiler/simd/memory/gang_access.h"
#include "compiler/simd/memory/neighbours.h"

#include <string.h>

#define MAX_WINDOW 8 /* vectors that cover a pattern; beyond this a gather is as fast */

static LLVMTypeRef i8(struct simd *s) {
    return LLVMInt8TypeInContext(s->unit->context);
}

static LLVMValueRef byte_address(struct simd *s, LLVMValueRef base, int64_t bytes) {
    if (!bytes) return base;
    LLVMValueRef index = LLVMConstInt(type_i64(s->unit), (unsigned long long)bytes, true);
    return LLVMBuildGEP2(s->unit->builder, i8(s), base, &index, 1, "");
}

static int64_t bytes_of(struct simd *s, LLVMTypeRef type) {
    return (int64_t)LLVMABISizeOfType(s->unit->layout, type);
}

/* ---- Patterns of constant offsets. */

struct pattern {
    int64_t low;     /* offset of the first element, bytes */
    int align;       /* of the first element, as far as the thread's access tells */
    int window;      /* elements from the first to the last */
    int *element;    /* of each lane, counted from the first */
    bool neighbours; /* lane i has element i */
    bool same;       /* all lanes have one element */
    bool repeats;    /* lanes share elements */
    bool small;      /* a few vectors cover it, … */
    bool spread;     /* … but most of them have one lane only */
};

static struct pattern find_pattern(struct simd *s, const int64_t *offsets, int64_t size, int align) {
    struct pattern p = {.low = offsets[0], .align = align, .neighbours = true, .same = true};
    int64_t high = offsets[0];
    bool whole = true;
    p.element = arena_alloc(&s->arena, (size_t)s->chunk_lanes * sizeof *p.element);
    for (int i = 0; i < s->chunk_lanes; i++) {
        if (offsets[i] < p.low) p.low = offsets[i];
        if (offsets[i] > high) high = offsets[i];
        p.neighbours &= offsets[i] == offsets[0] + i * size;
        p.same &= offsets[i] == offsets[0];
    }
    for (int i = 0; i < s->chunk_lanes; i++) p.align = access_align_at(p.align, offsets[i] - p.low);
    p.small =
        p.element && (uint64_t)(high - p.low) / (uint64_t)size < (uint64_t)(MAX_WINDOW * s->chunk_lanes);
    for (int i = 0; p.small && i < s->chunk_lanes; i++) {
        whole &= (offsets[i] - p.low) % size == 0;
        p.element[i] = (int)((offsets[i] - p.low) / size);
        if (p.element[i] + 1 > p.window) p.window = p.element[i] + 1;
        for (int j = 0; j < i; j++) p.repeats |= p.element[j] == p.element[i];
    }
    p.small &= whole;
    p.spread = 2 * p.window > s->chunk_lanes * s->chunk_lanes;
    return p;
}

static LLVMValueRef shuffle_to(struct simd *s, LLVMValueRef vector, LLVMValueRef other,
                               const int64_t *indexes, int count) {
    return LLVMBuildShuffleVector(s->unit->builder, vector, other,
                                  lanes_constant(s, type_i32(s->unit), indexes, count), "");
}

/* The mask of the lanes whose elements are in one vector of the window, or its constant part. */
static LLVMValueRef window_mask(struct simd *s, const struct pattern *p, int start, LLVMValueRef mask) {
    int64_t lane_of[GANG_MAX_LANES];
    for (int i = 0; i < s->chunk_lanes; i++) lane_of[i] = s->chunk_lanes; /* from the zeros */
    for (int i = 0; i < s->chunk_lanes; i++) {
        int at = p->element[i] - start;
        if (at >= 0 && at < s->chunk_lanes) lane_of[at] = i;
    }
    return shuffle_to(s, mask ? mask : mask_all(s), LLVMConstNull(mask_type(s)), lane_of, s->chunk_lanes);
}

/* The last vector overlaps the one before rather than extend beyond the window. */
static int window_start(const struct simd *s, const struct pattern *p, int number) {
    int start = number * s->chunk_lanes, last = p->window - s->chunk_lanes;
    return start <= last || last < 0 ? start : last;
}

static LLVMValueRef load_pattern(struct simd *s, LLVMTypeRef element, LLVMValueRef base,
                                 const struct pattern *p, LLVMValueRef mask) {
    int count = (p->window + s->chunk_lanes - 1) / s->chunk_lanes;
    int64_t size = bytes_of(s, element);
    LLVMValueRef pieces[MAX_WINDOW], result = NULL;
    for (int n = 0; n < count; n++) {
        int start = window_start(s, p, n);
        LLVMValueRef wanted = mask || p->window < s->chunk_lanes ? window_mask(s, p, start, mask) : NULL;
        pieces[n] = access_load(s, element, byte_address(s, base, p->low + start * size), wanted,
                                access_align_at(p->align, start * size));
    }
    /* Each piece provides the lanes in it. */
    for (int n = 0; n < count; n++) {
        int64_t indexes[GANG_MAX_LANES];
        int start = window_start(s, p, n), wide = s->chunk_lanes;
        for (int i = 0; i < wide; i++) {
            int at = p->element[i] - start;
            indexes[i] = at >= 0 && at < wide ? at : result ? wide + i : 0;
        }
        result =
            shuffle_to(s, pieces[n], result ? result : LLVMGetPoison(LLVMTypeOf(pieces[n])), indexes, wide);
    }
    return result;
}

static void store_pattern(struct simd *s, LLVMValueRef vector, LLVMValueRef base, const struct pattern *p,
                          LLVMValueRef mask) {
    int64_t size = bytes_of(s, LLVMGetElementType(LLVMTypeOf(vector)));
    int count = (p->window + s->chunk_lanes - 1) / s->chunk_lanes;
    for (int n = 0; n < count; n++) {
        int64_t indexes[GANG_MAX_LANES];
        int start = n * s->chunk_lanes;
        for (int i = 0; i < s->chunk_lanes; i++) indexes[i] = 0;
        for (int i = 0; i < s->chunk_lanes; i++) {
            int at = p->element[i] - start;
            if (at >= 0 && at < s->chunk_lanes) indexes[at] = i;
        }
        LLVMValueRef piece =
            shuffle_to(s, vector, LLVMGetPoison(LLVMTypeOf(vector)), indexes, s->chunk_lanes);
        access_store(s, piece, byte_address(s, base, p->low + start * size), window_mask(s, p, start, mask),
                     access_align_at(p->align, start * size));
    }
}

/* ---- Loads and stores. */

/* Lane 0's address plus constants. */
static LLVMValueRef spread_addresses(struct simd *s, LLVMValueRef base, const int64_t *offsets) {
    LLVMValueRef steps = lanes_constant(s, type_i64(s->unit), offsets, s->chunk_lanes);
    return LLVMBuildGEP2(s->unit->builder, i8(s), base, &steps, 1, "");
}

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
    return byte_address(s, scalar_of(s, address), shape_offsets(s, shape)[chunk]);
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

static bool lacks_masked(struct simd *s, LLVMTypeRef element, LLVMValueRef mask) {
    return mask && !LLVMIsConstant(mask) && !access_has_masked(s, element);
}

static LLVMValueRef load_all_on(struct simd *s, LLVMTypeRef element, LLVMValueRef base,
                                const int64_t *offsets, const struct pattern *p, int align) {
    return p->small && !p->spread ? load_pattern(s, element, base, p, NULL)
                                  : spread_load(s, element, base, offsets, align);
}

static LLVMValueRef load_split(struct simd *s, LLVMTypeRef element, LLVMValueRef base, const int64_t *offsets,
                               const struct pattern *p, LLVMValueRef mask, int align) {
    if (access_is_short(s)) return access_gather(s, element, spread_addresses(s, base, offsets), mask, align);
    struct split split = access_split(s, mask);
    LLVMValueRef all = load_all_on(s, element, base, offsets, p, align);
    access_split_some(s, &split);
    LLVMValueRef some = access_gather(s, element, spread_addresses(s, base, offsets), mask, align);
    access_split_end(s, &split);
    return access_split_value(s, &split, all, some);
}

static void store_split(struct simd *s, LLVMValueRef vector, LLVMValueRef base, const int64_t *offsets,
                        LLVMValueRef mask, int align) {
    if (access_is_short(s)) {
        access_scatter(s, vector, spread_addresses(s, base, offsets), mask, align);
        return;
    }
    struct split split = access_split(s, mask);
    spread_store(s, vector, base, offsets, align);
    access_split_some(s, &split);
    access_scatter(s, vector, spread_addresses(s, base, offsets), mask, align);
    access_split_end(s, &split);
}

/* ---- Quick code, for other patterns than those of one or two vectors: a gather or scatter of the CPU, or a
 * call for the gang. */

#define MOST_BRIEF_WINDOW 2 /* vectors */

/* Whether a pattern is loaded as the vectors that cover it. */
static bool is_covered(const struct simd *s, const struct pattern *p, LLVMValueRef mask) {
    if (s->brief && p->window > MOST_BRIEF_WINDOW * s->chunk_lanes) return false;
    return p->small && !p->spread && !(mask && p->repeats);
}

static LLVMValueRef load_brief(struct simd *s, LLVMValueRef load, int chunk, LLVMValueRef base,
                               const int64_t *offsets) {
    LLVMTypeRef element = LLVMTypeOf(load);
    if (gang_access_is_call(s, element)) return gang_access_load(s, load, chunk);
    return access_gather(s, element, spread_addresses(s, base, offsets), mask_chunk(s, chunk),
                         (int)LLVMGetAlignment(load));
}

static void store_brief(struct simd *s, LLVMValueRef store, int chunk, LLVMValueRef base,
                        const int64_t *offsets) {
    LLVMValueRef value = LLVMGetOperand(store, 0);
    if (gang_access_is_call(s, LLVMTypeOf(value)))
        gang_access_store(s, store);
    else
        access_scatter(s, chunk_of(s, value, chunk), spread_addresses(s, base, offsets), mask_chunk(s, chunk),
                       (int)LLVMGetAlignment(store));
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
    struct pattern p = find_pattern(s, offsets, bytes_of(s, element), align);
    if (p.same) {
        result = chunk_splat(s, access_load_one(s, element, byte_address(s, base, p.low), mask, align));
    } else if (p.neighbours) {
        result = access_load(s, element, byte_address(s, base, p.low), mask, p.align);
    } else if (s->brief && !is_covered(s, &p, mask)) {
        result = load_brief(s, load, chunk, base, offsets);
    } else if (lacks_masked(s, element, mask)) {
        explain(s, load, chunk, "load: constant offsets; one lane at a time unless all are on");
        result = load_split(s, element, base, offsets, &p, mask, align);
    } else if (is_covered(s, &p, mask)) {
        explain(s, load, chunk, "load: a pattern of constant offsets, taken from a few vectors by shuffles");
        result = load_pattern(s, element, base, &p, mask);
    } else if (rows_load(s, load, chunk, &result)) {
        explain(s, load, chunk, "load: a vector for each of a few rows, combined by shuffles");
    } else if (!mask) {
        explain(s, load, chunk,
                "load: constant offsets that are far apart, each row of neighbours by itself");
        result = spread_load(s, element, base, offsets, align);
    } else {
        explain(s, load, chunk,
                "gather: the lanes' addresses are constant steps apart that are too far for vectors");
        result = access_gather(s, element, spread_addresses(s, base, offsets), mask, align);
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
    struct pattern p = find_pattern(s, offsets, bytes_of(s, LLVMTypeOf(value)), align);
    if (p.same) {
        explain(s, store, chunk, "store: all lanes write to one address; the last lane's value remains");
        access_store_one(s, vector, byte_address(s, base, p.low), mask, align);
    } else if (p.neighbours) {
        access_store(s, vector, byte_address(s, base, p.low), mask, p.align);
    } else if (s->brief) {
        store_brief(s, store, chunk, base, offsets);
    } else if (lacks_masked(s, LLVMTypeOf(value), mask)) {
        explain(s, store, chunk, "store: constant offsets; one lane at a time unless all are on");
        store_split(s, vector, base, offsets, mask, align);
    } else if (p.small && !p.spread && !p.repeats && (mask || s->vector_bits == 512)) {
        explain(s, store, chunk, "store: a pattern of constant offsets, put into a few vectors by shuffles");
        store_pattern(s, vector, base, &p, mask);
    } else if (!mask) {
        explain(s, store, chunk, "store: constant offsets with gaps, each row of neighbours by itself");
        spread_store(s, vector, base, offsets, align);
    } else {
        explain(s, store, chunk,
                "scatter: the lanes' addresses are constant steps apart that are too far for vectors");
        access_scatter(s, vector, spread_addresses(s, base, offsets), mask, align);
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
