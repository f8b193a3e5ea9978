#include "compare.h"

#include "../prelude/support.h"
#include "reference.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double bar_of(const struct function *function, smelt_dtype dtype) {
    if (dtype == SMELT_FLOAT32 || function->bar == 0) return function->bar;
    return function->bar < 1 ? 0.51 : 1; /* two roundings: to float, then to the type */
}

static void report(const struct rules *rules, const struct arguments *arguments, int64_t i, double got,
                   double expected, double error, struct worst *worst) {
    char text[128];
    int length = 0;
    for (int k = 0; k < rules->function->arguments; k++)
        length +=
            snprintf(text + length, sizeof text - (size_t)length, k ? ", %a" : "%a", arguments->wide[k][i]);
    if (!worst->over)
        failed("%s of %s (%s): (%s) gives %a, expected %a: %g ULP, the bar is %g", rules->function->name,
               type_name(rules->dtype), rules->label, text, got, expected, error,
               bar_of(rules->function, rules->dtype));
    worst->over = true;
}

/* The error of one result in ULP, or -1 if the rules promise nothing. */
static double judge(const struct rules *rules, const struct arguments *arguments,
                    const double *expected_values, const void *results, int64_t i, struct worst *worst) {
    const struct function *function = rules->function;
    double expected = expected_values[i], got = number(rules->dtype, results, i);
    double x = arguments->wide[0][i], y = function->arguments > 1 ? arguments->wide[1][i] : 0;
    double z = function->arguments > 2 ? arguments->wide[2][i] : 0;
    bool finite = isfinite(x) && isfinite(y) && isfinite(z) && fabs(expected) < largest(rules->dtype) / 2;
    if (rules->math == SMELT_MATH_FAST && !finite) return -1;
    bool signed_zero = rules->math == SMELT_MATH_SAFE && !function->any_zero;
    double error = ulp_error(rules->dtype, got, expected);
    bool wrong = error > bar_of(function, rules->dtype) ||
                 (signed_zero && expected == 0 && got == 0 && signbit(expected) != signbit(got));
    if (rules->fast && function->allow) {
        /* Beyond the largest number, both count as the next number that there would be. */
        double most = rules->dtype == SMELT_FLOAT16 ? 65536 : 0x1p128;
        double g = fmax(-most, fmin(most, got)), e = fmax(-most, fmin(most, expected));
        double allowed = function->allow(x, y, e);
        if (allowed == INFINITY) return -1;
        bool nan = isnan(got) || isnan(expected),
             finite_arguments = isfinite(x) && isfinite(y) && isfinite(z);
        bool within = fabs(g - e) <= allowed || (rules->dtype != SMELT_FLOAT32 && error <= 1);
        wrong = nan || !finite_arguments ? error > 0 : !within;
        if (!wrong && (fabs(expected) < 0x1p-120 || fabs(expected) >= most / 2)) return -1;
    }
    if (wrong) report(rules, arguments, i, got, expected, error, worst);
    return error;
}

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define EVERY_WIDTH \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), optimize("O3")))
#else
#define EVERY_WIDTH
#endif

#define BLOCK 1024
union number {
    double value;
    int64_t bits;
};

/* The input of quiet() as arrays, so that both of its loops become vector code. */
struct block {
    union number expected[BLOCK], difference[BLOCK], rounded[BLOCK], got[BLOCK];
};

/* Whether a block of floats needs no closer examination: no error exceeds `most` ULP, and results that are
 * not finite or are zero are as expected. Nearly all of 2^32 results take this path. As integers, positive
 * numbers compare as numbers do, NaN is the largest, and adding 2^52 k multiplies by 2^k; the sign of a
 * difference tells which number is larger. */
EVERY_WIDTH static bool quiet(const struct rules *rules, const double *restrict expected,
                              const float *restrict got, int64_t count, double most,
                              struct block *restrict block) {
    const int64_t zero_sign = rules->function->any_zero || rules->math != SMELT_MATH_SAFE ? 0 : -1;
    for (int64_t i = 0; i < count; i++) {
        block->expected[i].value = expected[i];
        block->got[i].value = got[i];
        block->difference[i].value = got[i] - expected[i];
        block->rounded[i].value = (float)expected[i];
    }
    const int64_t magnitude = INT64_MAX, infinity = 0x7ff0000000000000;
    const int64_t smallest = (int64_t)(1023 - 126) << 52, overflow = (int64_t)(1023 + 127) << 52;
    union number bound = {most < 0x1p-60 ? 0x1p-60 : most};
    bound.bits -= (int64_t)(1023 + 23) << 52;
    int64_t quiet = -1;
    for (int64_t i = 0; i < count; i++) {
        int64_t e = block->expected[i].bits, g = block->got[i].bits, size = e & magnitude;
        int64_t difference = block->difference[i].bits & magnitude, power = e & infinity;
        power = power < smallest ? smallest : power;
        int64_t within = ~(bound.bits + power - difference) & (size - overflow);
        int64_t same =
            ((g ^ block->rounded[i].bits) - 1) & ~(g ^ block->rounded[i].bits) & (overflow - 1 - size);
        int64_t nans = (infinity - (g & magnitude)) & (infinity - size);
        int64_t zeros = (size - 1) & (g ^ e) & zero_sign;
        quiet &= (within | same | nans) & ~zeros;
    }
    return quiet < 0;
}

void compare_results(const struct rules *rules, const struct arguments *arguments, const double *expected,
                     const void *got, int64_t from, int64_t count, struct worst *worst) {
    const struct function *function = rules->function;
    double bar = rules->fast && function->allow ? function->least : bar_of(function, rules->dtype);
    struct block block;
    for (int64_t start = from; start < from + count; start += BLOCK) {
        int64_t end = start + BLOCK < from + count ? start + BLOCK : from + count;
        double most = worst->error < bar ? worst->error : bar;
        bool closer = rules->dtype != SMELT_FLOAT32 ||
                      !quiet(rules, expected + start, (const float *)got + start, end - start, most, &block);
        worst->compared += end - start;
        for (int64_t i = start; closer && i < end; i++) {
            double error = judge(rules, arguments, expected, got, i, worst),
                   value = number(rules->dtype, got, i);
            if (rules->dtype != SMELT_FLOAT32 && error > 0)
                worst->misrounded += value != rounded_to(rules->dtype, expected[i]);
            if (!(error > worst->error) || error == INFINITY) continue;
            worst->error = error, worst->got = value, worst->expected = expected[i];
            for (int k = 0; k < function->arguments; k++) worst->argument[k] = arguments->wide[k][i];
        }
    }
}

void worst_join(struct worst *into, const struct worst *other) {
    struct worst sum = other->error > into->error ? *other : *into;
    sum.compared = into->compared + other->compared;
    sum.misrounded = into->misrounded + other->misrounded;
    sum.over = into->over || other->over;
    *into = sum;
}

int64_t first_difference(const struct rules *rules, const struct arguments *arguments, const void *a,
                         const void *b, int64_t count) {
    size_t size = type_size(rules->dtype);
    for (int64_t start = 0; start < count; start += BLOCK) {
        int64_t end = start + BLOCK < count ? start + BLOCK : count;
        if (!memcmp((const char *)a + (size_t)start * size, (const char *)b + (size_t)start * size,
                    (size_t)(end - start) * size))
            continue;
        for (int64_t i = start; i < end; i++) {
            double p = number(rules->dtype, a, i), q = number(rules->dtype, b, i);
            bool outside = isnan(p) || isinf(p);
            for (int k = 0; k < rules->function->arguments; k++) outside |= !isfinite(arguments->wide[k][i]);
            if ((isnan(p) && isnan(q)) || (rules->math == SMELT_MATH_FAST && outside)) continue;
            if (p == q && (signbit(p) == signbit(q) || (p == 0 && rules->math != SMELT_MATH_SAFE))) continue;
            return i;
        }
    }
    return -1;
}
