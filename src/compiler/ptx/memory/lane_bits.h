/* What each bit of an address of threadgroup memory is across the lanes of a simdgroup: a constant, one bit
 * of the lane's number, or a value that may depend on some of these bits. */
#ifndef SMELT_COMPILER_PTX_LANE_BITS_H
#define SMELT_COMPILER_PTX_LANE_BITS_H

#include "compiler/ptx/warp/divergence.h"

#define LANE_BITS 5

enum lane_bit_kind { BIT_ZERO, BIT_ONE, BIT_OF_LANE, BIT_OTHER };
struct lane_bit {
    uint8_t kind;
    uint8_t
        lanes; /* mask of bits of the lane's number. OF_LANE: the one it equals; OTHER: those it depends on */
    uint8_t place;       /* OTHER: it is bit `place` of … */
    LLVMValueRef source; /* … this value; NULL: not known */
};
struct lane_number {
    struct lane_bit bits[64];
};

/* An address: `root`, which is the same in all lanes, plus a number of bytes. */
struct lane_address {
    LLVMValueRef root;
    unsigned zeros; /* how many of the lowest bits of `root` are 0 */
    struct lane_number offset;
};

/* The address `pointer` in the block at `place`, which all lanes of a simdgroup run together. False: it has
 * no such root. Requires: lanes in the order of threads (lanes.h). */
bool ptx_lane_address(const struct divergence *d, LLVMValueRef pointer, int place, struct lane_address *out);

/* The words of 4 bytes that lanes access, numbered from the address's root on. */
struct lane_words {
    uint64_t of[32];
};

/* The word at the address in each lane; false: the banks are not known. */
bool ptx_lane_words(const struct lane_address *address, struct lane_words *out);
/* The passes of the memory that an access takes. Each lane accesses `each` words (1, 2 or 4), of which
 * `words` has the first. */
unsigned ptx_lane_passes(const struct lane_words *words, unsigned each);

/* The most words of 4 bytes that one bank serves if each lane accesses the word at its address; 0: not known.
 * Lanes whose number has bit `k` set use `high`, the others `low`. */
unsigned ptx_lane_bank_words(const struct lane_address *low, const struct lane_address *high, unsigned k);

/* Whether `b` - `a` is known to be one constant in all lanes, which *distance becomes. */
bool ptx_lane_distance(const struct lane_address *a, const struct lane_address *b, int64_t *distance);
/* Whether two addresses of one lane are known to differ. */
bool ptx_lane_addresses_differ(const struct lane_address *a, const struct lane_address *b);

#endif
