/* Integers that a kernel reads from its arguments, and code for given values of them. */
#ifndef SMELT_ABI_VALUES_H
#define SMELT_ABI_VALUES_H

#include <stdint.h>

#define VALUES_MAX 32

/* Where the kernel reads one: at a constant offset in a buffer that it does not write. Elements of arrays of
 * unknown length may lie behind the buffer's end. Code for given values has no constants for these, so that
 * reading them is the same error as in code for all values. */
#define VALUE_LACKS 2
struct value_place {
    uint32_t buffer;   /* its index */
    uint32_t offset;   /* bytes */
    uint32_t bytes;    /* 1, 2, 4 or 8 */
    uint32_t may_lack; /* of a known value: VALUE_LACKS if it does; `value` is 0 */
};

/* The values that a code is compiled for, in the order of the image's places. Hashed and compared as bytes:
 * always zero-initialised. */
struct known_value {
    struct value_place place;
    uint64_t value; /* zero-extended */
};
struct known_values {
    uint32_t count; /* 0: the code serves all values */
    uint32_t zero;
    struct known_value values[VALUES_MAX];
};

#endif
