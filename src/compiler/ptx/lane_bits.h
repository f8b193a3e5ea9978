/* Of each bit of a number: is it always the same, is it a bit of the lane's number, or on which of those does
 * it depend? For addresses of threadgroup memory. */
#ifndef SMELT_COMPILER_PTX_LANE_BITS_H
#define SMELT_COMPILER_PTX_LANE_BITS_H

#include "compiler/ptx/divergence.h"

#define LANE_BITS 5

enum lane_bit_kind { BIT_ZERO, BIT_ONE, BIT_OF_LANE, BIT_OTHER };
struct lane_bit {
    uint8_t kind;
    uint8_t lanes; /* mask of the lane's bits: OF_LANE: the one that it is; OTHER: those it may depend on */
    uint8_t place; /* OTHER: it is this bit of … */
    LLVMValueRef source; /* … this value; NULL: of none that is known */
};
struct lane_number {
    struct lane_bit bits[64];
};

/* An address: `root`, which is the same in all lanes, and a number of bytes. */
struct lane_address {
    LLVMValueRef root;
    unsigned zeros; /* lowest bits of `root` that are 0 */
    struct lane_number offset;
};

/* Of a pointer at a block that all lanes of a simdgroup run together. False: it has no such root. Requires:
 * threads in the order of lanes. */
bool ptx_lane_address(const struct divergence *d, LLVMValueRef pointer, int place, struct lane_address *out);

/* Words of 4 bytes per bank, of the fullest bank, if each lane accesses the word at its address; 0: not
 * known. Lanes with a 1 in bit `k` use `other`. */
unsigned ptx_lane_bank_words(const struct lane_address *address, const struct lane_address *other,
                             unsigned k);

/* `b` - `a`, if it is the same number for all lanes. */
bool ptx_lane_distance(const struct lane_address *a, const struct lane_address *b, int64_t *distance);
/* Whether two addresses of one lane are never the same. */
bool ptx_lane_addresses_differ(const struct lane_address *a, const struct lane_address *b);

#endif
