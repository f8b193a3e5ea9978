/* Accesses of one thread to neighbouring elements, which are done together. */
#ifndef SMELT_COMPILER_SIMD_NEIGHBOURS_H
#define SMELT_COMPILER_SIMD_NEIGHBOURS_H

#include "compiler/simd/simd.h"
#include "compiler/simd/analysis/spots.h"

#define MOST_NEIGHBOURS 16
#define MOST_ALIGN 64 /* bytes: those of a group of 512 bits */

struct neighbours {
    LLVMValueRef accesses[MOST_NEIGHBOURS]; /* loads, or stores, by address; NULL: a gap between loads */
    int count;                              /* a power of two, except where dense_only */
    unsigned align;                         /* of the first element, in each lane */
    LLVMValueRef place;                     /* the first load, the last store: where all are written */
    int64_t bytes;                          /* from its address to the first element */
    bool apart;                             /* the lanes' addresses are not close together */
    bool masked;                            /* done together only under a mask */
    bool copy_only;                         /* … or only as a copy */
    bool dense;                             /* the lanes' elements follow one another: dense.c, … */
    bool dense_only;                        /* … and otherwise they are not done together */
    struct neighbours *copies;              /* of loads, the stores that are their only use; of stores, the
                                               loads: lane_copies.c; or NULL */
    LLVMValueRef *loaded;                   /* each lane's vector, … */
    LLVMValueRef *columns;                  /* each load's vector, of threads side by side, … */
    int serial;                             /* the emission in which both are valid; -1: none */
};

struct access {
    LLVMValueRef instruction;
    struct spot place;
    bool used;
};

/* Of a load or a store. */
static inline bool access_is_load(LLVMValueRef i) {
    return LLVMIsALoadInst(i) != NULL;
}

static inline LLVMValueRef access_address(LLVMValueRef access) {
    return LLVMGetOperand(access, access_is_load(access) ? 0 : 1);
}

static inline LLVMTypeRef access_type(LLVMValueRef access) {
    return LLVMTypeOf(access_is_load(access) ? access : LLVMGetOperand(access, 0));
}

static inline int64_t access_size(struct simd *s, LLVMValueRef access) {
    return (int64_t)LLVMABISizeOfType(s->unit->layout, access_type(access));
}

/* How many lanes are transposed together: those of a chunk or, for threads side by side, all. */
static inline int neighbours_lanes(const struct simd *s) {
    return s->chunk_lanes == 1 ? s->lanes : s->chunk_lanes;
}

/* Whether neighbouring lanes that are transposed together are `step` bytes apart. */
bool neighbours_are_apart_by(struct simd *s, const int64_t *offsets, int64_t step);

/* neighbours_place.c — sets the place of a group, whose first element is at `bytes` of the members' spots.
 * Returns whether all can be done there. */
bool neighbours_find_place(struct simd *s, struct neighbours *group, struct access *const *members, int count,
                           int64_t bytes);
/* windows.c — of loads that differ by constants, in the order of their addresses, those without neighbours
 * that have gaps between them. */
void neighbours_find_gaps(struct simd *s, struct access **sorted, int count);
/* Of all accesses of a block, narrow loads without neighbours from objects of which the lanes load
 * neighbours, too. The lanes are as far apart there, so that nothing is tested. */
void neighbours_find_lone(struct simd *s, struct access *accesses, int count);

/* neighbours.c — finds them, before anything is written. */
void neighbours_find(struct simd *s);
/* neighbours_emit.c — returns false for other accesses. */
bool neighbours_emit(struct simd *s, LLVMValueRef access, int chunk);

/* lane_copies.c — a copy: loads whose only uses are stores to neighbouring elements in the same order.
 * Whether the loads, whose stores have not been grouped yet, may be a part of one; whether the stores
 * complete one, which is noted in both groups. */
bool neighbours_may_begin_copy(struct simd *s, const struct neighbours *loads);
bool neighbours_end_copy(struct simd *s, struct neighbours *stores);
/* Loads, or stores, a chunk of a copy, of which all lanes are on. */
void neighbours_emit_copy(struct simd *s, struct neighbours *group, int chunk);

/* dense.c — accesses to `count` elements for each lane of a chunk, all from `address` on. */
struct dense {
    LLVMValueRef address;
    LLVMTypeRef bits; /* an element's, as an integer */
    int size, count;
    unsigned align;
    bool integer;  /* the elements are integers */
    bool extended; /* … are halves, and only extended to floats */
};
bool dense_suits(const struct simd *s, int64_t size, int count);
bool dense_suits_stores(const struct simd *s, int64_t size, int count);
/* values: `count` vectors of bits, or of halves. */
void dense_load(struct simd *s, const struct dense *dense, LLVMValueRef *values);
/* values: `count` vectors of bits. */
void dense_store(struct simd *s, const struct dense *dense, LLVMValueRef const *values);
/* The floats from which dense_load truncated a chunk's halves; NULL: it did not. */
LLVMValueRef dense_floats(const struct simd *s, LLVMValueRef halves);

/* lines.c — accesses to more bytes per lane than these */
#define MOST_TOGETHER 16
/* … of 512-bit registers: each lane's vector of `count` elements of `size` bytes (4, or 2 and 32 bytes in
 * all) becomes the values by element, and back. */
void lanes_from_lines(struct simd *s, LLVMValueRef const *loaded, int count, int size, LLVMValueRef *values);
void lanes_to_lines(struct simd *s, LLVMValueRef const *values, int count, int size, LLVMValueRef *stored);

/* transpose.c — `count` vectors of `width` elements for each of `parts` parts of 128 bits, all of one type,
 * become vectors of `count` elements for each part: one after another in `out`, several in a vector where
 * they are small. Powers of two. Returns the number of vectors in `out`, at most MOST_TRANSPOSED. */
#define MOST_TRANSPOSED 64
int lanes_transpose(struct simd *s, LLVMValueRef const *vectors, int count, int width, int parts,
                    LLVMValueRef *out);
/* `count` vectors of `width` elements, a power of two, become vectors of the registers' size: first the first
 * elements of all, then the second ones, … Returns the number of vectors. */
int lanes_interleave(struct simd *s, LLVMValueRef const *vectors, int count, int width, LLVMValueRef *out);

#endif
