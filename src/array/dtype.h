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

/* A value on its way from one dtype to another: integers keep 64 bits, the rest is complex double. */
struct element {
    enum { ELEMENT_SIGNED, ELEMENT_UNSIGNED, ELEMENT_REAL } kind;
    int64_t integer;   /* ELEMENT_SIGNED, and ELEMENT_UNSIGNED by its bits */
    double real, imaginary;
};

struct element element_load(smelt_dtype dtype, const void *address);

/* Rounds to nearest even, saturates floats to integers (NaN to 0), wraps integers. */
void element_store(smelt_dtype dtype, void *address, struct element value);

static inline struct element element_of_real(double value) {
    return (struct element){.kind = ELEMENT_REAL, .real = value};
}

double element_as_real(struct element value);

/* IEEE binary16 and bfloat16, round to nearest even, straight from double: no double rounding. */
uint16_t float16_from_double(double value);
double float16_to_double(uint16_t bits);
uint16_t bfloat16_from_double(double value);
double bfloat16_to_double(uint16_t bits);

#endif
