/* Shared by the prelude's tests: running a body over bit patterns, numbers of a dtype as double, errors in
 * ULP. */
#ifndef SMELT_TESTS_PRELUDE_SUPPORT_H
#define SMELT_TESTS_PRELUDE_SUPPORT_H

#include <smelt/smelt.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Number of failed checks so far; at most a few per function are reported on stderr. */
extern int failures;
void failed(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Text under construction. */
struct body {
    char *text;
    size_t length, capacity;
};
void body_add(struct body *body, const char *format, ...) __attribute__((format(printf, 2, 3)));
void body_free(struct body *body);

/* Runs a body on the device under test (device.h) with inputs x, y, z (NULL: left out) of `count` elements
 * and `threads` threads. Returns the output `out` of `outputs` elements in host memory, zero where nothing is
 * written; NULL, after reporting a failure, if it does not run. */
struct run {
    const char *header, *body;
    smelt_dtype dtype;
    const void *x, *y, *z;
    int64_t count, threads, outputs;
    smelt_math_mode math;
};
smelt_array *run_body(const struct run *run);

/* The compiler's message for a body that must not compile; reports a failure if it does. Valid until the next
 * call. */
const char *compile_error(const char *body);

/* Element i of an array of a floating dtype, and the number that a bit pattern represents. */
double number(smelt_dtype dtype, const void *data, int64_t i);
const char *type_name(smelt_dtype dtype);
size_t type_size(smelt_dtype dtype);

/* |got - expected| in units in the last place of `expected` in the dtype. Infinity if exactly one is NaN. A
 * result rounded to infinity beyond the largest number is correct. */
double ulp_error(smelt_dtype dtype, double got, double expected);
double ulp_of(smelt_dtype dtype, double value);
double largest(smelt_dtype dtype);

/* xorshift: the same numbers on every machine; and a restart from the first one. */
uint64_t random_bits(void);
void random_restart(void);
double random_between(double low, double high);
/* `value` stored as the dtype, rounded. */
void store(smelt_dtype dtype, void *data, int64_t i, double value);

#endif
