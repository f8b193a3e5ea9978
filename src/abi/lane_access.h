/* Loads and stores lane by lane, for generated code on CPUs that have no instruction for them: functions that
 * use only general registers and preserve all of them, so that a call saves no vectors. */
#ifndef SMELT_ABI_LANE_ACCESS_H
#define SMELT_ABI_LANE_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

/* X(bytes): the sizes of an element. */
#define LANE_ACCESS_SIZES(X) X(1) X(2) X(4) X(8)

#define KEEPS_REGISTERS __attribute__((no_caller_saved_registers, target("general-regs-only")))

/* Each copies, for each lane whose bit in `lanes` is set, first to last, an element of `bytes` bytes, at any
 * alignment:
 *   load_lanes, store_lanes   between values[lane] and the memory at addresses[lane]
 *   load_row, store_row       between values[lane] and row[lane] */
#define LANE_ACCESS_FUNCTIONS(bytes)                                                              \
    KEEPS_REGISTERS void smelt_runtime_load_lanes_##bytes(char *const *addresses, char *values,   \
                                                          uint32_t lanes);                        \
    KEEPS_REGISTERS void smelt_runtime_store_lanes_##bytes(char *const *addresses, char *values,  \
                                                           uint32_t lanes);                       \
    KEEPS_REGISTERS void smelt_runtime_load_row_##bytes(char *row, char *values, uint32_t lanes); \
    KEEPS_REGISTERS void smelt_runtime_store_row_##bytes(char *row, char *values, uint32_t lanes);

LANE_ACCESS_SIZES(LANE_ACCESS_FUNCTIONS)

/* A test of the lanes' addresses: the `count` addresses from `start` on are allowed. It is passed in memory,
 * because calls are rare: arguments would take registers from the code that continues. */
struct lane_test {
    uint64_t start, count;
    const int64_t *offsets;
    const uint32_t *lanes; /* 32 per word: the bits of those that are active */
    uint16_t lane_count;
    uint16_t ascending; /* not 0: no offset, also of indexes, is less than that of the lane before */
    uint32_t unused;    /* 0: these three are one constant that code stores without a register */
    uint64_t address;   /* in: what the offsets are added to; out: the first address that is outside */
};

/* Whether the address of an active lane is outside. */
KEEPS_REGISTERS bool smelt_runtime_finds_outside(struct lane_test *test);

/* The same for up to 32 addresses in memory: the first active lane whose address is outside, or NO_LANE. */
#define NO_LANE 32
KEEPS_REGISTERS uint32_t smelt_runtime_lane_outside(const uint64_t *addresses, uint32_t lanes, uint64_t start,
                                                    uint64_t count);

#define MOST_WRAPPED 2

/* The same test of addresses that were computed with unsigned indexes taken as signed: where an index is
 * negative, `missing` bytes are added to its lane's address first. */
struct wrapped_test {
    struct lane_test test;
    uint64_t count;
    struct wrapped_index {
        int64_t first; /* lane 0's index; the others' are `offsets` from it */
        const int64_t *offsets;
        uint64_t missing;
    } indexes[MOST_WRAPPED];
};
KEEPS_REGISTERS bool smelt_runtime_finds_wrapped(struct wrapped_test *test);

#endif
