/* Addresses as sums of what is linear in a loop's counter, of values that stay the same in the loop, and of
 * bounded ones: those with a known range, like the counter of an inner loop or i % 8. At the ends of the
 * ranges, their values can be computed before the loop. */
#ifndef SMELT_COMPILER_BOUNDS_LINEAR_H
#define SMELT_COMPILER_BOUNDS_LINEAR_H

#include "compiler/bounds/bounds.h"

enum { MOST_BOUNDED = 6 };

/* The later, the less is known. FIXED: the same in all rounds; BOUNDED: so but for bounded values. */
enum dependence { FIXED, BOUNDED, LINEAR, OTHER };

struct bounded {
    LLVMValueRef value;
    int64_t low, high;
};

struct linear {
    struct bounds *b;
    int loop, block; /* the block of the access */
    int nodes, tries;
    LLVMValueRef phi; /* the one that it depends on; NULL: none yet */
    bool unsure;      /* a factor of 64 bits, unknown before the run */
    struct bounded bounded[MOST_BOUNDED];
    int bounded_count;
};

/* b, loop and block are set. */
enum dependence bounds_linear_look(struct linear *l, LLVMValueRef address);

/* After bounds_linear_look: the address without its constants and bounded values, whose sums are from `low`
 * to `high`. */
LLVMValueRef bounds_linear_base(const struct linear *l, LLVMValueRef address, int64_t *low, int64_t *high);

/* Whether `inner` and `outer` bound the same values among those that `value` is computed from, each in
 * `inner` by a range within its range in `outer`. */
bool bounds_linear_is_within(const struct linear *inner, const struct linear *outer, LLVMValueRef value);

/* A round in which the counter is `at`; values of it are computed in the preheader, at the builder's place.
 */
struct round {
    struct linear *linear;
    LLVMValueRef at;
    struct copied {
        LLVMValueRef value, copy;
        bool high;
        struct copied *next;
    } *copies;
};

/* … with the bounded values at the ends that give the least sum, or the greatest. */
LLVMValueRef bounds_linear_value(struct round *r, LLVMValueRef value, bool high);

/* The value among the bounded ones, or NULL. */
const struct bounded *bounds_linear_bounded(const struct linear *l, LLVMValueRef value);

/* How many bits are left by an `and` that only removes high bits: those below its mask are 0 anyway, as in
 * (x << 6) / 2 of unsigned numbers. 0: another value. */
unsigned bounds_linear_kept_bits(LLVMValueRef value);

static inline bool bounds_is_negative(LLVMValueRef value) {
    return LLVMIsAConstantInt(value) && LLVMConstIntGetSExtValue(value) < 0;
}

/* detours.c — i1, joined to *bad: a narrow value that the address is computed from wraps around between the
 * ends. False: it cannot be told. down: the counter decreases. */
bool bounds_linear_detours(struct round *first, struct round *last, bool down, LLVMValueRef value,
                           LLVMValueRef *bad);

#endif
