/* The accuracy of the math and common functions: each in every form and type against the host's double
 * library, special values exactly, vectors against scalars. Prints the table of docs/accuracy.md. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- References, in double. */
static smelt_dtype dtype; /* the type at work, for the few references that depend on it */

static double to_type(double value) {
    uint32_t place = 0;
    store(dtype, &place, 0, value);
    return number(dtype, &place, 0);
}
static double sine_of_turns(double x, bool cosine) {
    if (!isfinite(x)) return NAN;
    double n = rint(2 * x), t = x - n / 2;
    int quadrant = (int)fmod(n, 4) + (cosine ? 1 : 0);
    double s = sin(M_PI * t), c = cos(M_PI * t);
    switch (quadrant & 3) {
    case 0:
        return t == 0 ? copysign(0, cosine ? 1 : x) : s;
    case 1:
        return c;
    case 2:
        return t == 0 ? copysign(0, cosine ? 1 : x) : -s;
    default:
        return -c;
    }
}
static double ref_sinpi(double x) {
    return sine_of_turns(x, false);
}
static double ref_cospi(double x) {
    return sine_of_turns(x, true);
}
static double ref_tanpi(double x) {
    return sine_of_turns(x, false) / sine_of_turns(x, true);
}
static double ref_fract(double x) {
    double f = x - floor(x), most = dtype == SMELT_FLOAT32   ? 1 - 0x1p-24
                                    : dtype == SMELT_FLOAT16 ? 1 - 0x1p-11
                                                             : 1 - 0x1p-8;
    return f > most ? most : f;
}
static double ref_rsqrt(double x) {
    return 1 / sqrt(x);
}
static double ref_sign(double x) {
    return isnan(x) ? 0 : x == 0 ? x : copysign(1, x);
}
static double ref_saturate(double x) {
    return isnan(x) ? 0 : x < 0 ? 0 : x > 1 ? 1 : x;
}
static double ref_modf(double x) {
    return isinf(x) ? copysign(0, x) : copysign(x - trunc(x), x);
}
static double ref_frexp(double x) {
    int e;
    return frexp(x, &e);
}
static double ref_exponent(double x) {
    int e = 0;
    if (isfinite(x)) (void)frexp(x, &e);
    return e;
}
static double ref_ilogb(double x) {
    return x == 0 ? -2147483648.0 : isfinite(x) ? ilogb(x) : 2147483647.0;
}

static double ref_divide(double x, double y) {
    return x / y;
}
static double ref_step(double edge, double x) {
    return x < edge ? 0 : 1;
}
static double ref_nextafter(double x, double y) {
    if (isnan(x) || isnan(y)) return NAN;
    if (x == y) return y;
    if (dtype == SMELT_FLOAT32) return nextafterf((float)x, (float)y);
    /* One step of the type: half a step below a power of two. */
    bool outward = (x < y) == (x > 0) || x == 0;
    double toward = x < y ? 1 : -1;
    if (isinf(x)) return copysign(largest(dtype), x);
    double step = ulp_of(dtype, x);
    if (!outward && ulp_of(dtype, x - copysign(step / 2, x)) < step) step /= 2;
    double next = x + toward * step;
    return fabs(next) > largest(dtype) ? copysign(INFINITY, next) : next == 0 ? copysign(0, x) : next;
}
static double ref_ldexp(double x, double y) {
    return ldexp(x, isnan(y) ? 0 : (int)fmax(-2000, fmin(2000, y)));
}
static double ref_powr(double x, double y) {
    return x < 0 ? NAN : pow(x, y);
}

static double ref_fma(double x, double y, double z) {
    return dtype == SMELT_FLOAT32 ? fmaf((float)x, (float)y, (float)z) : fma(x, y, z);
}
static double ref_clamp(double x, double low, double high) {
    return fmin(fmax(x, low), high);
}
static double ref_mix(double x, double y, double a) {
    return to_type(fmaf((float)y - (float)x, (float)a, (float)x));
}
static double ref_smoothstep(double e0, double e1, double x) {
    float t = ((float)x - (float)e0) / ((float)e1 - (float)e0);
    t = fminf(fmaxf(t, 0), 1);
    return to_type(t * t * fmaf(-2, t, 3));
}
static double ref_fmax3(double x, double y, double z) {
    return fmax(fmax(x, y), z);
}
static double ref_fmin3(double x, double y, double z) {
    return fmin(fmin(x, y), z);
}
static double ref_median3(double x, double y, double z) {
    return fmax(fmin(x, y), fmin(fmax(x, y), z));
}

/* ---- What a fast form may be off by, absolutely, as Metal's specification says. */
static double ulps(double count, double expected) {
    return count * fmax(ulp_of(SMELT_FLOAT32, expected), 0x1p-149);
}
static double allow_exp(double x, double y, double expected) {
    (void)y;
    return ulps(3 + floor(fabs(2 * x)), expected) + (fabs(expected) < 0x1p-125 ? 0x1p-125 : 0);
}
static double allow_log(double x, double y, double expected) {
    (void)y;
    return x >= 0.5 && x <= 2 ? 0x1p-21 : x < 0x1p-126 ? INFINITY : ulps(3, expected);
}
static double allow_log2(double x, double y, double expected) {
    (void)y;
    return x >= 0.5 && x <= 2 ? 0x1p-22 : x < 0x1p-126 ? INFINITY : ulps(3, expected);
}
static double allow_sin(double x, double y, double expected) {
    (void)y, (void)expected;
    return fabs(x) <= M_PI ? 0x1p-13 : fabs(x) <= 1000 ? 0x1p-11 : INFINITY;
}
static double allow_tan(double x, double y, double expected) { /* sin(x) * (1 / cos(x)) */
    (void)y;
    return fabs(x) <= M_PI ? 0x1p-13 * (1 + expected * expected) : INFINITY;
}
static double allow_pow(double x, double y, double expected) { /* exp2(y * log2(x)) */
    if (fabs(x) < 0x1p-126) return INFINITY;
    return ulps(4 + 8 * fabs(y * log2(fabs(x))), expected) + (fabs(expected) < 0x1p-125 ? 0x1p-125 : 0);
}
static double allow_fmod(double x, double y, double expected) { /* x - y * trunc(x / y) */
    (void)expected;
    return isfinite(x) && fabs(x / y) < 0x1p22 && fabs(y) > 0x1p-126 ? 2 * fabs(y) : INFINITY;
}

/* ---- The functions. '@' stands for the form: metal::, metal::precise::, metal::fast::. */
struct function {
    const char *name, *text;
    double (*one)(double);
    double (*two)(double, double);
    double (*three)(double, double, double);
    double bar; /* worst ULP of precise float; 0: exact, and the 16-bit forms are the rounded reference */
    double (*allow)(double x, double y, double expected); /* of the fast form; NULL: as the precise */
    bool any_zero;                                        /* either zero is right */
    const char *vector; /* the text on vectors, where it differs; "" : none */
};
#define ONE(name, reference, worst_ulp, ...) \
    { #name, "@" #name "(x)", .one = (reference), .bar = (worst_ulp), __VA_ARGS__ }
#define TWO(name, reference, worst_ulp, ...) \
    { #name, "@" #name "(x, y)", .two = (reference), .bar = (worst_ulp), __VA_ARGS__ }
#define THREE(name, reference, worst_ulp, ...) \
    { #name, "@" #name "(x, y, z)", .three = (reference), .bar = (worst_ulp), __VA_ARGS__ }

static const struct function unary[] = {
    ONE(acos, acos, 4),
    ONE(acosh, acosh, 4),
    ONE(asin, asin, 4),
    ONE(asinh, asinh, 4),
    ONE(atan, atan, 4),
    ONE(atanh, atanh, 4),
    ONE(cos, cos, 2, .allow = allow_sin),
    ONE(cosh, cosh, 4),
    ONE(cospi, ref_cospi, 4),
    ONE(exp, exp, 2, .allow = allow_exp),
    ONE(exp2, exp2, 2, .allow = allow_exp),
    ONE(exp10, exp10, 2, .allow = allow_exp),
    ONE(log, log, 2, .allow = allow_log),
    ONE(log2, log2, 2, .allow = allow_log2),
    ONE(log10, log10, 2, .allow = allow_log),
    ONE(rsqrt, ref_rsqrt, 2),
    ONE(sin, sin, 2, .allow = allow_sin),
    ONE(sinh, sinh, 4),
    ONE(sinpi, ref_sinpi, 4),
    ONE(sqrt, sqrt, 0.5),
    ONE(tan, tan, 4, .allow = allow_tan),
    ONE(tanh, tanh, 4),
    ONE(tanpi, ref_tanpi, 4, .any_zero = true),
    {"sincos, sine", "@sincos(x, second)", .one = sin, .bar = 2, .allow = allow_sin},
    {"sincos, cosine", "(@sincos(x, second), second)", .one = cos, .bar = 2, .allow = allow_sin},
    ONE(abs, fabs, 0),
    ONE(fabs, fabs, 0),
    ONE(ceil, ceil, 0),
    ONE(floor, floor, 0),
    ONE(fract, ref_fract, 0.5),
    ONE(rint, rint, 0),
    ONE(round, round, 0),
    ONE(trunc, trunc, 0),
    ONE(saturate, ref_saturate, 0, .any_zero = true),
    ONE(sign, ref_sign, 0),
    {"modf, fraction", "@modf(x, second)", .one = ref_modf},
    {"modf, whole", "(@modf(x, second), second)", .one = trunc},
    {"frexp, fraction", "@frexp(x, exponent)", .one = ref_frexp},
    {"frexp, exponent", "(T)(@frexp(x, exponent), exponent)", .one = ref_exponent,
     .vector = "V((@frexp(x, exponent), exponent))"},
    {"ilogb", "(T)@ilogb(x)", .one = ref_ilogb, .bar = 0.5, .vector = "V(@ilogb(x))"},
};
static const struct function binary[] = {
    TWO(atan2, atan2, 4),
    TWO(pow, pow, 4, .allow = allow_pow),
    TWO(powr, ref_powr, 4, .allow = allow_pow),
    TWO(divide, ref_divide, 0.5),
    TWO(copysign, copysign, 0),
    TWO(fdim, fdim, 0.5),
    TWO(fmod, fmod, 0, .allow = allow_fmod),
    TWO(nextafter, ref_nextafter, 0),
    TWO(step, ref_step, 0),
    TWO(fmax, fmax, 0, .any_zero = true),
    TWO(fmin, fmin, 0, .any_zero = true),
    TWO(max, fmax, 0, .any_zero = true),
    TWO(min, fmin, 0, .any_zero = true),
    {"ldexp", "@ldexp(x, (int)y)", .two = ref_ldexp, .bar = 0.5, .vector = "@ldexp(x, int_of(y))"},
};
static const struct function ternary[] = {
    THREE(fma, ref_fma, 0.5),
    THREE(clamp, ref_clamp, 0, .any_zero = true),
    THREE(mix, ref_mix, 0),
    THREE(smoothstep, ref_smoothstep, 0),
    THREE(fmax3, ref_fmax3, 0, .any_zero = true),
    THREE(fmin3, ref_fmin3, 0, .any_zero = true),
    THREE(fmedian3, ref_median3, 0, .any_zero = true),
    THREE(max3, ref_fmax3, 0, .any_zero = true),
    THREE(min3, ref_fmin3, 0, .any_zero = true),
    THREE(median3, ref_median3, 0, .any_zero = true),
};
#define COUNT(table) (int)(sizeof(table) / sizeof(table)[0])

struct table {
    const struct function *functions;
    int count, inputs;
    double worst[4][64]; /* float precise, float fast, half, bfloat */
};
static struct table tables[3] = {
    {unary, COUNT(unary), 1, {{0}}}, {binary, COUNT(binary), 2, {{0}}}, {ternary, COUNT(ternary), 3, {{0}}}};

/* ---- Bodies. */
static void add_call(struct body *body, const char *text, const char *form) {
    for (; *text; text++) {
        if (*text == '@')
            body_add(body, "%s", form);
        else
            body_add(body, "%c", *text);
    }
}
static void make_body(struct body *body, const struct table *table, const char *form, int64_t count) {
    body_add(body, "uint i = thread_position_in_grid.x; T second; int exponent; T x = x_values[i];\n");
    if (table->inputs > 1) body_add(body, "T y = y_values[i];\n");
    if (table->inputs > 2) body_add(body, "T z = z_values[i];\n");
    for (int f = 0; f < table->count; f++) {
        body_add(body, "out[%lldul + i] = ", (long long)(f * count));
        add_call(body, table->functions[f].text, form);
        body_add(body, ";\n");
    }
}
static void make_vector_body(struct body *body, const struct table *table, const char *form, int64_t count,
                             int width) {
    body_add(body,
             "uint i = thread_position_in_grid.x * %d; typedef vec<T, %d> V; V second, x; vec<int, %d> "
             "exponent;\n",
             width, width, width);
    body_add(body, "for (int c = 0; c < %d; c++) x[c] = x_values[i + c];\n", width);
    if (table->inputs > 1)
        body_add(body, "V y; for (int c = 0; c < %d; c++) y[c] = y_values[i + c];\n", width);
    if (table->inputs > 2)
        body_add(body, "V z; for (int c = 0; c < %d; c++) z[c] = z_values[i + c];\n", width);
    for (int f = 0; f < table->count; f++) {
        const char *text = table->functions[f].vector ? table->functions[f].vector : table->functions[f].text;
        body_add(body, "{ V r = ");
        add_call(body, text, form);
        body_add(body, "; for (int c = 0; c < %d; c++) out[%lldul + i + c] = r[c]; }\n", width,
                 (long long)(f * count));
    }
}
static const char header[] = "template <class T, int N> vec<int, N> int_of(vec<T, N> v) { vec<int, N> r; for "
                             "(int c = 0; c < N; c++) r[c] = (int)v[c]; "
                             "return r; }\n";

static smelt_array *run_table(const struct table *table, const char *form, const void *const *inputs,
                              int64_t count, smelt_math_mode math) {
    struct body body = {0};
    make_body(&body, table, form, count);
    smelt_array *out = run_body(&(struct run){.header = header,
                                              .body = body.text,
                                              .dtype = dtype,
                                              .x = inputs[0],
                                              .y = table->inputs > 1 ? inputs[1] : NULL,
                                              .z = table->inputs > 2 ? inputs[2] : NULL,
                                              .count = count,
                                              .outputs = table->count * count,
                                              .math = math});
    body_free(&body);
    return out;
}

/* ---- Comparison with the reference. */
static void check_table(struct table *table, const char *form, const void *const *inputs, int64_t count,
                        smelt_array *out, bool fast) {
    int column = dtype == SMELT_FLOAT16 ? 2 : dtype == SMELT_BFLOAT16 ? 3 : fast ? 1 : 0;
    for (int f = 0; out && f < table->count; f++) {
        const struct function *function = &table->functions[f];
        bool allowance = fast && function->allow;
        double bar = dtype == SMELT_FLOAT32 ? function->bar
                     : function->bar == 0   ? 0
                     : function->bar < 1    ? 0.51
                                            : 1;
        int reported = 0;
        for (int64_t i = 0; i < count; i++) {
            double x = number(dtype, inputs[0], i), y = table->inputs > 1 ? number(dtype, inputs[1], i) : 0;
            double z = table->inputs > 2 ? number(dtype, inputs[2], i) : 0;
            double got = number(dtype, smelt_array_data(out), f * count + i);
            double expected = function->one   ? function->one(x)
                              : function->two ? function->two(x, y)
                                              : function->three(x, y, z);
            double error = ulp_error(dtype, got, expected);
            bool zero = expected == 0 && got == 0 && !function->any_zero && signbit(expected) != signbit(got);
            bool wrong = error > bar || zero;
            if (allowance) {
                double allowed = function->allow(x, y, expected);
                if (allowed == INFINITY) continue;
                bool finite = isfinite(expected) && fabs(expected) < 0x1p127 && isfinite(x) && isfinite(y);
                wrong = finite                          ? !(fabs(got - expected) <= allowed)
                        : error > 0 && error < INFINITY ? error > 100
                                                        : error > 0;
                if (fabs(expected) < 0x1p-120) continue;
            }
            if (error > table->worst[column][f] && error < INFINITY) table->worst[column][f] = error;
            if (wrong && reported++ < 3)
                failed("%s%s of %s: (%a, %a, %a) gives %a, expected %a: %g ULP, allowed %g", form,
                       function->name, type_name(dtype), x, y, z, got, expected, error, bar);
        }
    }
}

/* Element i of two arrays is the same, any NaN being a NaN. */
static bool same(const void *a, int64_t i, const void *b, int64_t j) {
    double x = number(dtype, a, i), y = number(dtype, b, j);
    return (isnan(x) && isnan(y)) || (x == y && signbit(x) == signbit(y));
}

#define VECTOR_POINTS 1020 /* divisible by 2, 3 and 4 */

static void check_vectors(const struct table *table, const char *form, const void *const *inputs,
                          int64_t count, smelt_array *scalars) {
    for (int width = 2; scalars && width <= 4; width++) {
        struct body body = {0};
        make_vector_body(&body, table, form, VECTOR_POINTS, width);
        smelt_array *out = run_body(&(struct run){.header = header,
                                                  .body = body.text,
                                                  .dtype = dtype,
                                                  .x = inputs[0],
                                                  .y = table->inputs > 1 ? inputs[1] : NULL,
                                                  .z = table->inputs > 2 ? inputs[2] : NULL,
                                                  .count = VECTOR_POINTS,
                                                  .threads = VECTOR_POINTS / width,
                                                  .outputs = table->count * VECTOR_POINTS});
        body_free(&body);
        for (int f = 0; out && f < table->count; f++)
            for (int64_t i = 0; i < VECTOR_POINTS; i++)
                if (!same(smelt_array_data(out), f * VECTOR_POINTS + i, smelt_array_data(scalars),
                          f * count + i)) {
                    failed("%s%s of %s%d: component %lld differs from the scalar function", form,
                           table->functions[f].name, type_name(dtype), width, (long long)(i % width));
                    break;
                }
        smelt_array_release(out);
    }
}

/* metal::name is the precise form in safe and relaxed mode and the fast form in fast mode. */
static void check_default(const struct table *table, const void *const *inputs, int64_t count,
                          smelt_array *expected, smelt_math_mode math) {
    smelt_array *out = run_table(table, "metal::", inputs, count, math);
    for (int f = 0; out && expected && f < table->count; f++)
        for (int64_t i = 0; i < count; i++) {
            double x = number(dtype, inputs[0], i),
                   e = number(dtype, smelt_array_data(expected), f * count + i);
            if (math == SMELT_MATH_FAST && (!isfinite(x) || !isfinite(e) ||
                                            (table->inputs > 1 && !isfinite(number(dtype, inputs[1], i))) ||
                                            (table->inputs > 2 && !isfinite(number(dtype, inputs[2], i)))))
                continue; /* such mode assumes there are none */
            if (math == SMELT_MATH_FAST && e == 0 && number(dtype, smelt_array_data(out), f * count + i) == 0)
                continue; /* nor signed zeros */
            if (!same(smelt_array_data(out), f * count + i, smelt_array_data(expected), f * count + i)) {
                failed("metal::%s in math mode %d: (%a …) gives %a, its form gives %a",
                       table->functions[f].name, (int)math, x,
                       number(dtype, smelt_array_data(out), f * count + i), e);
                break;
            }
        }
    smelt_array_release(out);
}

/* ---- Inputs. */
static const double special[] = {0.0,
                                 -0.0,
                                 1,
                                 -1,
                                 2,
                                 -2,
                                 0.5,
                                 -0.5,
                                 1.5,
                                 -1.5,
                                 2.5,
                                 3,
                                 -3,
                                 0x1p-149,
                                 -0x1p-149,
                                 0x1p-126,
                                 -0x1p-126,
                                 0x1.fffffep127,
                                 -0x1.fffffep127,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 0x1p24,
                                 -0x1.fffffep23,
                                 0x1p17,
                                 100.5,
                                 -7};
#define SPECIAL COUNT(special)

/* Floats: special values; a random one in each stretch of 2^16 bit patterns; then ranges where functions have
 * shape. */
#define FLOATS (1 << 17)
static void fill_floats(float *x) {
    int64_t i = 0;
    for (; i < SPECIAL; i++) x[i] = (float)special[i];
    for (uint32_t high = 0; high < 65536; high++, i++) {
        uint32_t bits = high << 16 | (uint32_t)(random_bits() >> 48);
        memcpy(&x[i], &bits, 4);
    }
    static const double ranges[][2] = {{-1, 1},     {0.5, 2},      {-110, 110}, {-10, 10},
                                       {-0.1, 0.1}, {-4000, 4000}, {0.9, 1.1}};
    for (; i < FLOATS; i++) {
        const double *range = ranges[i % COUNT(ranges)];
        x[i] = (float)random_between(range[0], range[1]);
    }
    /* The vectors' points are the first ones: mix the ranges in behind the special values. */
    for (int64_t k = SPECIAL; k < VECTOR_POINTS; k++) {
        int64_t other = SPECIAL + (int64_t)(random_bits() % (FLOATS - SPECIAL));
        float keep = x[k];
        x[k] = x[other];
        x[other] = keep;
    }
}

/* Pairs and triples: all pairs of special values; random bit patterns; ordinary numbers; near each other. */
#define TUPLES (1 << 16)
static void fill_tuples(void *const *inputs) {
    for (int64_t i = 0; i < TUPLES; i++)
        for (int input = 0; input < 3; input++) {
            int64_t kind = i < SPECIAL * SPECIAL ? 0 : 1 + i % 4;
            double value = 0, first = input ? number(dtype, inputs[0], i) : 0;
            if (kind == 0)
                value = input == 0   ? special[i % SPECIAL]
                        : input == 1 ? special[i / SPECIAL]
                                     : special[random_bits() % SPECIAL];
            else if (kind == 1) {
                uint64_t bits = random_bits() >> 20;
                memcpy((char *)inputs[input] + (size_t)i * type_size(dtype), &bits, type_size(dtype));
                continue;
            } else if (kind == 2)
                value = random_between(-8, 8);
            else if (kind == 3)
                value = input == 1 ? random_between(-40, 40) : fabs(random_between(0, 4));
            else
                value = input == 0 ? random_between(-2, 2) : first * (1 + random_between(-0.01, 0.01));
            store(dtype, inputs[input], i, value);
        }
}

static void test_type(smelt_dtype type) {
    dtype = type;
    for (int t = 0; t < 3; t++) {
        struct table *table = &tables[t];
        int64_t count = t ? TUPLES : type == SMELT_FLOAT32 ? FLOATS : 65536;
        void *inputs[3];
        for (int i = 0; i < 3; i++) inputs[i] = calloc((size_t)count, 4);
        if (t)
            fill_tuples(inputs);
        else if (type == SMELT_FLOAT32)
            fill_floats(inputs[0]);
        else /* every number; an odd factor spreads them, so that the vectors' points are spread too */
            for (int64_t i = 0; i < count; i++) ((uint16_t *)inputs[0])[i] = (uint16_t)(i * 40503);
        const void *const *in = (const void *const *)inputs;
        smelt_array *precise = run_table(table, "metal::precise::", in, count, SMELT_MATH_SAFE);
        check_table(table, "metal::precise::", in, count, precise, false);
        check_vectors(table, "metal::precise::", in, count, precise);
        check_default(table, in, count, precise, SMELT_MATH_SAFE);
        if (type == SMELT_FLOAT32) {
            smelt_array *fast = run_table(table, "metal::fast::", in, count, SMELT_MATH_SAFE);
            check_table(table, "metal::fast::", in, count, fast, true);
            check_vectors(table, "metal::fast::", in, count, fast);
            check_default(table, in, count, precise, SMELT_MATH_RELAXED);
            check_default(table, in, count, fast, SMELT_MATH_FAST);
            smelt_array_release(fast);
        }
        smelt_array_release(precise);
        for (int i = 0; i < 3; i++) free(inputs[i]);
    }
}

int main(void) {
    test_type(SMELT_FLOAT32);
    test_type(SMELT_FLOAT16);
    test_type(SMELT_BFLOAT16);
    printf("| function | float, precise | float, fast | half | bfloat |\n|---|---|---|---|---|\n");
    for (int t = 0; t < 3; t++)
        for (int f = 0; f < tables[t].count; f++) {
            printf("| %s |", tables[t].functions[f].name);
            for (int c = 0; c < 4; c++)
                printf(tables[t].worst[c][f] < 1000 ? " %.2f |" : " > 1000 |", tables[t].worst[c][f]);
            printf("\n");
        }
    if (failures) fprintf(stderr, "%d checks failed\n", failures);
    return failures != 0;
}
