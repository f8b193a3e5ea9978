/* Values as the command line writes them: numbers, dtypes, shapes. Every function answers a bad value with a
 * sentence on standard error and returns false. */
#ifndef SMELT_CLI_VALUES_H
#define SMELT_CLI_VALUES_H

#include "smelt/smelt.h"

/* Prints "smelt: …" to standard error; returns false, for `return complain(…)`. */
bool complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "4x16", "scalar" or "" (ndim 0). `what` names the option in messages. */
bool parse_shape(const char *what, const char *text, size_t length, smelt_shape *shape);

/* "X", "X,Y" or "X,Y,Z", each at least 1; missing ones are 1. */
bool parse_triple(const char *what, const char *text, int64_t triple[3]);

/* A whole number in [low, high]. */
bool parse_integer(const char *what, const char *text, int64_t low, int64_t high, int64_t *value);

/* A finite number >= 0; any number, nan, inf and -inf too where `special`. */
bool parse_real(const char *what, const char *text, bool special, double *value);

/* The dtype of a name of its own (float16) or of Metal's (half). False, without a complaint, for others. */
bool find_dtype(const char *name, smelt_dtype *dtype);

bool parse_dtype(const char *what, const char *text, size_t length, smelt_dtype *dtype);

/* A template value: a dtype name, an integer, true or false. */
bool parse_template(const char *what, const char *text, smelt_template *value);

/* Bytes: "uint32:1,64" → two little-endian words of *dtype. A value that does not fit its dtype is an error.
 * *bytes is heap memory. */
bool parse_bytes(const char *what, const char *text, smelt_dtype *dtype, void **bytes, size_t *size);

/* A function constant's value: true, 3, 2.5, DTYPE:VALUE, or DTYPE:VALUE,VALUE… for a vector. */
bool parse_constant(const char *what, const char *text, smelt_constant *constant);

#endif
