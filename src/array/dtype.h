/* Element types: names, and conversion of one element. */
#ifndef SMELT_ARRAY_DTYPE_H
#define SMELT_ARRAY_DTYPE_H

#include "base/error.h"

#include <string.h>

/* The type's name in kernel source ("float16_t"). */
const char *dtype_source_name(smelt_dtype dtype);

bool dtype_is_float(smelt_dtype dtype);   /* float16, bfloat16, float32, float64 */
bool dtype_is_integer(smelt_dtype dtype); /* the eight integers, not bool */
bool dtype_is_signed(smelt_dtype dtype);  /* of integers */
bool dtype_is_inexact(smelt_dtype dtype); /* floats and complex64 */

/* A value between two dtypes: integers keep 64 bits, the rest is complex double. */
struct element {
    enum { ELEMENT_SIGNED, ELEMENT_UNSIGNED, ELEMENT_REAL } kind;
    int64_t integer; /* ELEMENT_SIGNED, and ELEMENT_UNSIGNED by its bits */
    double real, imaginary;
};

struct element element_load(smelt_dtype dtype, const void *address);

/* Rounds to nearest even, saturates floats to integers (NaN to 0), wraps integers. */
void element_store(smelt_dtype dtype, void *address, struct element value);

static inline struct element element_of_real(double value) {
    return (struct element){.kind = ELEMENT_REAL, .real = value};
}

double element_as_real(struct element value);

/* IEEE binary16 and bfloat16, rounded to nearest even straight from double: no double rounding. The bits are
 * handled as integers: `fraction_bits` is 10 or 7, `exponent_bits` 5 or 8. NaN keeps its sign and becomes the
 * canonical quiet one. */
static inline uint16_t small_float_from_double(double value, int exponent_bits, int fraction_bits) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 63 << 15);
    uint64_t magnitude = bits & ~(UINT64_C(1) << 63);
    const uint64_t infinity = ((UINT64_C(1) << exponent_bits) - 1) << fraction_bits;
    const int shift = 52 - fraction_bits, bias = (1 << (exponent_bits - 1)) - 1;
    if (magnitude > UINT64_C(0x7ff) << 52)
        return (uint16_t)(sign | infinity | UINT64_C(1) << (fraction_bits - 1));
    if (magnitude < (uint64_t)(1023 + 1 - bias) << 52) {
        /* Below the normal numbers: added to a power of two whose last place is the smallest subnormal, the
         * value is rounded to a multiple of that by the addition itself. */
        uint64_t anchor = (uint64_t)(1023 + 1 - bias - fraction_bits + 52) << 52, sum;
        double small, large;
        memcpy(&small, &magnitude, sizeof small);
        memcpy(&large, &anchor, sizeof large);
        large += small;
        memcpy(&sum, &large, sizeof sum);
        return (uint16_t)(sign | (sum - anchor));
    }
    magnitude += (UINT64_C(1) << (shift - 1)) - 1 + (magnitude >> shift & 1);
    magnitude = (magnitude >> shift) - ((uint64_t)(1023 - bias) << fraction_bits);
    return (uint16_t)(sign | (magnitude > infinity ? infinity : magnitude));
}

/* Exact. */
static inline double small_float_to_double(uint16_t small, int exponent_bits, int fraction_bits) {
    uint64_t magnitude = small & 0x7fff, sign = (uint64_t)(small >> 15) << 63;
    const uint64_t infinity = ((UINT64_C(1) << exponent_bits) - 1) << fraction_bits;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    uint64_t scale_bits = (uint64_t)(1023 + 1023 - bias) << 52, bits = magnitude << (52 - fraction_bits);
    double scale, value;
    memcpy(&scale, &scale_bits, sizeof scale);
    memcpy(&value, &bits, sizeof value);
    value *= scale; /* moves the exponent to double's bias; subnormals become normal by themselves */
    if (magnitude > infinity)
        bits = UINT64_C(0x7ff8) << 48;
    else if (magnitude == infinity)
        bits = UINT64_C(0x7ff) << 52;
    else
        memcpy(&bits, &value, sizeof bits);
    bits |= sign;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint16_t float16_from_double(double value) {
    return small_float_from_double(value, 5, 10);
}
static inline double float16_to_double(uint16_t bits) {
    return small_float_to_double(bits, 5, 10);
}
static inline uint16_t bfloat16_from_double(double value) {
    return small_float_from_double(value, 8, 7);
}
static inline double bfloat16_to_double(uint16_t bits) {
    return small_float_to_double(bits, 8, 7);
}

#endif
