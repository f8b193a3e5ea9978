#include "ops/accumulate.h"
#include "array/dtype.h"
#include "kernels/kernel_text.h"
#include "ops/program.h"

#include <math.h>

/* Folds: X(operation, identity, combination in Metal; the same in C). */
/* clang-format off */
#define FOLDS(X)                                                                                             \
    X(SUM, "A(0)", "A(a + b)", 0, a + b)                                                                     \
    X(PROD, "A(1)", "A(a * b)", 1, a *b)                                                                     \
    X(MAX, "least<A>()", "a > b || a != a ? a : b", -INFINITY, a > b || isnan(a) ? a : b)                    \
    X(MIN, "greatest<A>()", "a < b || a != a ? a : b", INFINITY, a < b || isnan(a) ? a : b)                  \
    X(ALL, "A(1)", "A(a && b)", 1, a != 0 && b != 0)                                                         \
    X(ANY, "A(0)", "A(a || b)", 0, a != 0 || b != 0)
/* clang-format on */

/* The fold that a cumulative operation shows the steps of; other operations themselves. */
static smelt_operation fold_of(smelt_operation operation) {
    switch (operation) {
    case SMELT_OPERATION_CUMSUM:
        return SMELT_OPERATION_SUM;
    case SMELT_OPERATION_CUMPROD:
        return SMELT_OPERATION_PROD;
    case SMELT_OPERATION_CUMMAX:
        return SMELT_OPERATION_MAX;
    case SMELT_OPERATION_CUMMIN:
        return SMELT_OPERATION_MIN;
    default:
        return operation;
    }
}

static bool is_logical(smelt_operation operation) {
    return operation == SMELT_OPERATION_ALL || operation == SMELT_OPERATION_ANY;
}

static bool is_extreme(smelt_operation operation) {
    return fold_of(operation) == SMELT_OPERATION_MAX || fold_of(operation) == SMELT_OPERATION_MIN;
}

void accumulate_dtypes(smelt_operation operation, smelt_dtype dtype, smelt_dtype *sum, smelt_dtype *result) {
    bool small = dtype == SMELT_BOOL || (dtype_is_integer(dtype) && smelt_dtype_bytes(dtype) <= 4);
    *result = dtype;
    if (is_logical(operation))
        *result = SMELT_BOOL;
    else if (small && !is_extreme(operation))
        *result = dtype == SMELT_BOOL || dtype_is_signed(dtype) ? SMELT_INT32 : SMELT_UINT32;
    *sum = program_compute_dtype(*result);
}

smelt_status accumulate_check(const struct call *call, int64_t count) {
    smelt_dtype dtype = call->inputs[0]->dtype;
    if (dtype == SMELT_COMPLEX64 && call->desc->operation != SMELT_OPERATION_SUM &&
        call->desc->operation != SMELT_OPERATION_PROD)
        return fail(SMELT_ERROR_UNSUPPORTED, "%s is not defined for complex64", call->name);
    if (!count && is_extreme(call->desc->operation))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "%s: no elements along the axes of shape %s, and the operation has no identity",
                    call->name, shape_print(&call->inputs[0]->shape).text);
    return SMELT_OK;
}

void accumulate_write(struct text *text, smelt_operation operation, smelt_dtype sum, smelt_dtype result) {
    const char *start = "", *combine = "";
    switch (fold_of(operation)) {
#define CASE(fold, identity, combination, host_identity, host) \
    case SMELT_OPERATION_##fold:                               \
        start = identity;                                      \
        combine = combination;                                 \
        break;
        FOLDS(CASE)
#undef CASE
    default:
        break;
    }
    program_typedef(text, "A", sum);
    program_typedef(text, "R", result);
    text_add(text, kernel_text_accumulate);
    if (sum == SMELT_COMPLEX64)
        text_add(text, "inline complex64 shuffled(complex64 a, ushort n) {\n"
                       "  return complex64(simd_shuffle_down(a.re, n), simd_shuffle_down(a.im, n));\n"
                       "}\n");
    text_addf(text, "inline A start() { return %s; }\n", start);
    text_addf(text, "inline A combine(A a, A b) { return %s; }\n", combine);
    text_addf(text, "template <typename T> inline A element(T x) { return %s; }\n",
              is_logical(operation) ? "A(x != T(0))" : "A(x)");
}

double accumulate_start(smelt_operation operation) {
    switch (fold_of(operation)) {
#define CASE(fold, identity, combination, host_identity, host) \
    case SMELT_OPERATION_##fold:                               \
        return host_identity;
        FOLDS(CASE) /* NOLINT(bugprone-branch-clone): rows of the table may agree */
#undef CASE
    default:
        return 0;
    }
}

double accumulate_combine(smelt_operation operation, double a, double b) {
    switch (fold_of(operation)) {
#define CASE(fold, identity, combination, host_identity, host) \
    case SMELT_OPERATION_##fold:                               \
        return host;
        FOLDS(CASE)
#undef CASE
    default:
        return 0;
    }
}
