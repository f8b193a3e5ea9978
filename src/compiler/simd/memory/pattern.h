/* A chunk's accesses at constant offsets from a scalar address, in bytes. */
#ifndef SMELT_COMPILER_SIMD_PATTERN_H
#define SMELT_COMPILER_SIMD_PATTERN_H

#include "compiler/simd/simd.h"

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

/* size: of an element; align: of the thread's access. */
struct pattern pattern_find(struct simd *s, const int64_t *offsets, int64_t size, int align);
/* Whether it is loaded as the vectors that cover it. */
bool pattern_is_covered(const struct simd *s, const struct pattern *p, LLVMValueRef mask);
/* Whether such elements have no masked vectors, and the mask is not a constant. */
bool pattern_lacks_masked(struct simd *s, LLVMTypeRef element, LLVMValueRef mask);
LLVMValueRef pattern_byte_address(struct simd *s, LLVMValueRef base, int64_t bytes);
/* Lane 0's address plus constants. */
LLVMValueRef pattern_addresses(struct simd *s, LLVMValueRef base, const int64_t *offsets);
/* Of a covered pattern; mask: NULL if all lanes are on. */
LLVMValueRef pattern_load(struct simd *s, LLVMTypeRef element, LLVMValueRef base, const struct pattern *p,
                          LLVMValueRef mask);
void pattern_store(struct simd *s, LLVMValueRef vector, LLVMValueRef base, const struct pattern *p,
                   LLVMValueRef mask);
/* Of any offsets, under a mask of which some lanes are on. */
LLVMValueRef pattern_load_some(struct simd *s, LLVMTypeRef element, LLVMValueRef base, const int64_t *offsets,
                               LLVMValueRef mask, int align);
void pattern_store_some(struct simd *s, LLVMValueRef vector, LLVMValueRef base, const int64_t *offsets,
                        LLVMValueRef mask, int align);

#endif
