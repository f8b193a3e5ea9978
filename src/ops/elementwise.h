/* The elementwise operations: one table, from which kernels and plain loops are generated. */
#ifndef SMELT_OPS_ELEMENTWISE_H
#define SMELT_OPS_ELEMENTWISE_H

#include "smelt/ops.h"

/* The dtypes that an operation is defined on, and the conversion of others. */
enum domain {
    DOMAIN_FLOATS = 1, /* integers and bool become float32 */
    DOMAIN_NUMBERS,
    DOMAIN_INTEGERS /* and bool; floats are refused */
};

/* Its result: of the dtype computed in, or bool, or the real dtype of complex64. */
enum outcome { OUTCOME_SAME, OUTCOME_BOOL, OUTCOME_REAL };

/* Upper-case name, domain, outcome, then Metal expressions of x (and y) in the dtype computed in, C: for
 * floats, for integers ("" where there is no difference), for complex64 ("" where it is refused); then C's,
 * in double. */
/* clang-format off */
#define UNARY_TABLE(X)                                                                                       \
    X(NEGATIVE, NUMBERS, SAME, "-x", "C(-x)", "-x", -x)                                                      \
    X(ABS, NUMBERS, REAL, "fabs(x)", "x < C(0) ? C(-x) : x", "modulus(x)", fabs(x))                          \
    X(SIGN, NUMBERS, SAME, "x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x", "C(int(x > C(0)) - int(x < C(0)))", "", \
      x > 0 ? 1 : x < 0 ? -1 : x)                                                                            \
    X(EXP, FLOATS, SAME, "exp(x)", "", "", exp(x))                                                           \
    X(EXPM1, FLOATS, SAME, "expm1_of(x)", "", "", expm1(x))                                                  \
    X(LOG, FLOATS, SAME, "log(x)", "", "", log(x))                                                           \
    X(LOG2, FLOATS, SAME, "log2(x)", "", "", log2(x))                                                        \
    X(LOG10, FLOATS, SAME, "log10(x)", "", "", log10(x))                                                     \
    X(LOG1P, FLOATS, SAME, "log1p_of(x)", "", "", log1p(x))                                                  \
    X(SQRT, FLOATS, SAME, "sqrt(x)", "", "", sqrt(x))                                                        \
    X(RSQRT, FLOATS, SAME, "rsqrt(x)", "", "", 1 / sqrt(x))                                                  \
    X(SQUARE, NUMBERS, SAME, "x * x", "C(x * x)", "x * x", x * x)                                            \
    X(RECIPROCAL, FLOATS, SAME, "1.0f / x", "", "complex64(1.0f, 0.0f) / x", 1 / x)                          \
    X(SIN, FLOATS, SAME, "sin(x)", "", "", sin(x))                                                           \
    X(COS, FLOATS, SAME, "cos(x)", "", "", cos(x))                                                           \
    X(TAN, FLOATS, SAME, "tan(x)", "", "", tan(x))                                                           \
    X(ARCSIN, FLOATS, SAME, "asin(x)", "", "", asin(x))                                                      \
    X(ARCCOS, FLOATS, SAME, "acos(x)", "", "", acos(x))                                                      \
    X(ARCTAN, FLOATS, SAME, "atan(x)", "", "", atan(x))                                                      \
    X(SINH, FLOATS, SAME, "sinh(x)", "", "", sinh(x))                                                        \
    X(COSH, FLOATS, SAME, "cosh(x)", "", "", cosh(x))                                                        \
    X(TANH, FLOATS, SAME, "tanh(x)", "", "", tanh(x))                                                        \
    X(ARCSINH, FLOATS, SAME, "asinh(x)", "", "", asinh(x))                                                   \
    X(ARCCOSH, FLOATS, SAME, "acosh(x)", "", "", acosh(x))                                                   \
    X(ARCTANH, FLOATS, SAME, "atanh(x)", "", "", atanh(x))                                                   \
    X(SIGMOID, FLOATS, SAME, "sigmoid_of(x)", "", "", x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)))     \
    X(ERF, FLOATS, SAME, "erf_of(x)", "", "", erf(x))                                                        \
    X(FLOOR, NUMBERS, SAME, "floor(x)", "x", "", floor(x))                                                   \
    X(CEIL, NUMBERS, SAME, "ceil(x)", "x", "", ceil(x))                                                      \
    X(ROUND, NUMBERS, SAME, "rint(x)", "x", "", rint(x))                                                     \
    X(LOGICAL_NOT, NUMBERS, BOOL, "x == 0.0f", "x == C(0)", "x == complex64(0)", x == 0)                     \
    X(BITWISE_INVERT, INTEGERS, SAME, "", "invert_of(x)", "", 0)                                                \
    X(ISNAN, NUMBERS, BOOL, "x != x", "false", "x != x", isnan(x))                                           \
    X(ISINF, NUMBERS, BOOL, "fabs(x) == INFINITY", "false",                                                  \
      "fabs(x.re) == INFINITY || fabs(x.im) == INFINITY", isinf(x))                                          \
    X(ISFINITE, NUMBERS, BOOL, "fabs(x) < INFINITY", "true",                                                 \
      "fabs(x.re) < INFINITY && fabs(x.im) < INFINITY", isfinite(x))                                         \
    X(REAL, NUMBERS, REAL, "x", "x", "x.re", x)                                                              \
    X(IMAG, NUMBERS, REAL, "0.0f", "C(0)", "x.im", 0 * x)                                                    \
    X(CONJUGATE, NUMBERS, SAME, "x", "x", "complex64(x.re, -x.im)", x)                                       \
    X(ERFINV, FLOATS, SAME, "erfinv_of(x)", "", "", host_erfinv(x))

#define BINARY_TABLE(X)                                                                                      \
    X(ADD, NUMBERS, SAME, "x + y", "C(x + y)", "x + y", x + y)                                               \
    X(SUBTRACT, NUMBERS, SAME, "x - y", "C(x - y)", "x - y", x - y)                                          \
    X(MULTIPLY, NUMBERS, SAME, "x * y", "C(x * y)", "x * y", x *y)                                           \
    X(DIVIDE, FLOATS, SAME, "x / y", "", "x / y", x / y)                                                     \
    X(FLOOR_DIVIDE, NUMBERS, SAME, "floor_divide_of(x, y)", "integer_floor_divide<C>(x, y)", "",             \
      host_floor_divide(x, y))                                                                               \
    X(REMAINDER, NUMBERS, SAME, "remainder_of(x, y)", "integer_remainder<C>(x, y)", "", host_remainder(x, y)) \
    X(POWER, NUMBERS, SAME, "pow(x, y)", "integer_power<C>(x, y)", "", pow(x, y))                            \
    X(MAXIMUM, NUMBERS, SAME, "x > y || x != x ? x : y", "x > y ? x : y", "", x > y || isnan(x) ? x : y)     \
    X(MINIMUM, NUMBERS, SAME, "x < y || x != x ? x : y", "x < y ? x : y", "", x < y || isnan(x) ? x : y)     \
    X(ARCTAN2, FLOATS, SAME, "atan2(x, y)", "", "", atan2(x, y))                                             \
    X(LOGADDEXP, FLOATS, SAME, "logaddexp_of(x, y)", "", "", host_logaddexp(x, y))                           \
    X(EQUAL, NUMBERS, BOOL, "x == y", "", "x == y", x == y)                                                  \
    X(NOT_EQUAL, NUMBERS, BOOL, "x != y", "", "x != y", x != y)                                              \
    X(LESS, NUMBERS, BOOL, "x < y", "", "", x < y)                                                           \
    X(LESS_EQUAL, NUMBERS, BOOL, "x <= y", "", "", x <= y)                                                   \
    X(GREATER, NUMBERS, BOOL, "x > y", "", "", x > y)                                                        \
    X(GREATER_EQUAL, NUMBERS, BOOL, "x >= y", "", "", x >= y)                                                \
    X(LOGICAL_AND, NUMBERS, BOOL, "x != C(0) && y != C(0)", "", "x != C(0) && y != C(0)", x != 0 && y != 0)  \
    X(LOGICAL_OR, NUMBERS, BOOL, "x != C(0) || y != C(0)", "", "x != C(0) || y != C(0)", x != 0 || y != 0)   \
    X(BITWISE_AND, INTEGERS, SAME, "", "C(x & y)", "", 0)                                                    \
    X(BITWISE_OR, INTEGERS, SAME, "", "C(x | y)", "", 0)                                                     \
    X(BITWISE_XOR, INTEGERS, SAME, "", "C(x ^ y)", "", 0)                                                    \
    X(LEFT_SHIFT, INTEGERS, SAME, "", "C(x << (y & C(sizeof(C) * 8 - 1)))", "", 0)                           \
    X(RIGHT_SHIFT, INTEGERS, SAME, "", "C(x >> (y & C(sizeof(C) * 8 - 1)))", "", 0)
/* clang-format on */

struct elementwise {
    enum domain domain;
    enum outcome outcome;
    const char *real, *integer, *complex;
};

/* Of operations of kind UNARY (but astype, identity, stop_gradient) and BINARY. */
const struct elementwise *elementwise_find(smelt_operation operation);

/* The dtype it computes in (before halfs become float32) and its result's, for a common dtype of its inputs.
 */
smelt_status elementwise_dtypes(smelt_operation operation, smelt_dtype common, smelt_dtype *computed,
                                smelt_dtype *result);

#endif
