/* Accesses of one chunk: whole vectors, gathers and scatters, under masks, lane by lane. The builder is in
 * the code of block s->current. */
#ifndef SMELT_COMPILER_SIMD_MEMORY_ACCESS_H
#define SMELT_COMPILER_SIMD_MEMORY_ACCESS_H

#include "compiler/simd/simd.h"

/* access.c — accesses of one chunk; mask NULL: all lanes; align in bytes. */
/* One element, if a lane of the chunk is on; else zero. */
LLVMValueRef access_load_one(struct simd *s, LLVMTypeRef element, LLVMValueRef address, LLVMValueRef mask,
                             int align);
LLVMValueRef access_load(struct simd *s, LLVMTypeRef element, LLVMValueRef address, LLVMValueRef mask,
                         int align);
void access_store(struct simd *s, LLVMValueRef vector, LLVMValueRef address, LLVMValueRef mask, int align);
LLVMValueRef access_gather(struct simd *s, LLVMTypeRef element, LLVMValueRef addresses, LLVMValueRef mask,
                           int align);
void access_scatter(struct simd *s, LLVMValueRef vector, LLVMValueRef addresses, LLVMValueRef mask,
                    int align);
/* The code of an access up to access_end_if_on runs only if a lane of the chunk is on, in gangs of several
 * simdgroups: a gather or a scatter takes as long for no lane as for all, and whole chunks of such gangs are
 * often off, as where 256 threads share 64 rows. Addresses are computed inside, so that the code generator
 * finds their parts. access_end_if_on returns the value, or 0 if no lane is on. */
struct if_on {
    LLVMBasicBlockRef before, after; /* NULL: there is no branch */
};
struct if_on access_begin_if_on(struct simd *s, LLVMValueRef mask);
LLVMValueRef access_end_if_on(struct simd *s, const struct if_on *on, LLVMValueRef value);
/* The alignment of an address at this distance from one aligned to `align`. */
static inline int access_align_at(int align, int64_t bytes) {
    while (bytes % align) align /= 2;
    return align;
}
/* The addresses of a chunk's lanes as a base that they share and a vector of signed indexes of 32 bits. */
struct elements {
    LLVMValueRef base, indexes;
    int64_t scale; /* 1, 2, 4 or 8 bytes */
    bool positive; /* no index is negative */
};
/* The address, or addresses, of an index or of a vector of them. */
LLVMValueRef access_address_of(struct simd *s, const struct elements *e, LLVMValueRef index);
/* As access_gather. */
LLVMValueRef access_gather_elements(struct simd *s, LLVMTypeRef element, const struct elements *e,
                                    LLVMValueRef mask, int align);
/* unknown.c — accesses of one chunk whose addresses are known only at run time. */
LLVMValueRef access_load_unknown(struct simd *s, LLVMValueRef load, int chunk);
void access_store_unknown(struct simd *s, LLVMValueRef store, int chunk);
/* The last lane that is on wins, as if the threads ran one after another. */
void access_store_one(struct simd *s, LLVMValueRef vector, LLVMValueRef address, LLVMValueRef mask,
                      int align);
/* One of two forms of an access under a mask. After access_split the caller writes the form for all lanes,
 * after access_split_some that for the lanes that are on, and after access_split_end what follows both.
 * access_split_value: a value that the forms give. */
struct split {
    LLVMBasicBlockRef some, after, ends[2];
};
struct split access_split(struct simd *s, LLVMValueRef mask);
void access_split_some(struct simd *s, struct split *split);
void access_split_end(struct simd *s, struct split *split);
LLVMValueRef access_split_value(struct simd *s, const struct split *split, LLVMValueRef all,
                                LLVMValueRef some);
/* Accesses under a mask are calls rather than branches. */
bool access_is_short(struct simd *s);
/* Code that runs for a loop's last rounds only: short is better than fast. */
bool access_is_rare(struct simd *s);
/* The target has masked vectors of such elements. */
bool access_has_masked(struct simd *s, LLVMTypeRef element);
/* Lane by lane; mask NULL: all are on. The place: a vector of addresses, or the address of lane 0, whose
 * neighbours follow. */
LLVMValueRef access_load_lanes(struct simd *s, LLVMTypeRef element, LLVMValueRef from, LLVMValueRef mask,
                               int align);
void access_store_lanes(struct simd *s, LLVMValueRef vector, LLVMValueRef to, LLVMValueRef mask, int align);

#endif
