/* sums.c — addresses as sums of values, each some times, and a number. */
#ifndef SMELT_COMPILER_PTX_SUMS_H
#define SMELT_COMPILER_PTX_SUMS_H

#include "compiler/ptx/ptx.h"

#define SUM_MOST_LEAVES 12

struct address_sum {
    LLVMValueRef leaves[SUM_MOST_LEAVES];
    uint64_t times[SUM_MOST_LEAVES];
    int count;
    int64_t number;
    bool fails; /* too many leaves */
};

/* Adds a value, so many times, to a sum. Sums that wrap are taken as plain ones, so the result is an
 * estimate.
 */
void ptx_add_to_sum(struct unit *unit, struct address_sum *sum, LLVMValueRef value, uint64_t times,
                    int depth);
/* Whether two sums differ by a number only. */
bool ptx_differ_by_number(const struct address_sum *a, const struct address_sum *b);

#endif
