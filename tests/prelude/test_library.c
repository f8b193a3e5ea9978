/* The other math, common and geometric functions: products and lengths of vectors, functions of integers,
 * overload resolution, the constants, and calls that must not compile. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Geometric functions, against double. */
#define POINTS 3000
static double X[POINTS], Y[POINTS], Z[POINTS];

static double dot(const double *a, const double *b, int n) {
    double sum = 0;
    for (int c = 0; c < n; c++) sum += a[c] * b[c];
    return sum;
}
static double magnitude(const double *a, const double *b, int n) {
    double sum = 0;
    for (int c = 0; c < n; c++) sum += fabs(a[c] * b[c]);
    return sum;
}

/* One kind of result for n components, and the size of the terms that were summed. */
struct geometric {
    const char *name, *text; /* a vector expression, or a scalar one, which is splatted to all components */
    void (*reference)(const double *x, const double *y, const double *z, int n, double *out, double *scale);
};
static void spread(double value, double size, int n, double *out, double *scale) {
    for (int c = 0; c < n; c++) out[c] = value, scale[c] = size;
}
#define REFERENCE(name)                                                                           \
    static void ref_##name(const double *x, const double *y, const double *z, int n, double *out, \
                           double *scale)
REFERENCE(dot) {
    (void)z, spread(dot(x, y, n), magnitude(x, y, n), n, out, scale);
}
REFERENCE(length) {
    (void)y, (void)z, spread(sqrt(dot(x, x, n)), sqrt(dot(x, x, n)), n, out, scale);
}
REFERENCE(length_squared) {
    (void)y, (void)z, spread(dot(x, x, n), dot(x, x, n), n, out, scale);
}
REFERENCE(distance_squared) {
    double d[4];
    (void)z;
    for (int c = 0; c < n; c++) d[c] = x[c] - y[c];
    spread(dot(d, d, n), dot(d, d, n), n, out, scale);
}
REFERENCE(distance) {
    ref_distance_squared(x, y, z, n, out, scale);
    for (int c = 0; c < n; c++) out[c] = scale[c] = sqrt(out[c]);
}
REFERENCE(normalize) {
    (void)y, (void)z;
    for (int c = 0; c < n; c++) out[c] = scale[c] = x[c] / sqrt(dot(x, x, n));
}
REFERENCE(cross) {
    (void)z;
    for (int c = 0; c < n; c++) {
        int p = (c + 1) % 3, q = (c + 2) % 3;
        out[c] = n == 3 ? x[p] * y[q] - x[q] * y[p] : 0;
        scale[c] = n == 3 ? fabs(x[p] * y[q]) + fabs(x[q] * y[p]) : 0;
    }
}
REFERENCE(faceforward) {
    for (int c = 0; c < n; c++) out[c] = scale[c] = dot(y, z, n) < 0 ? x[c] : -x[c];
}
REFERENCE(reflect) {
    (void)z;
    for (int c = 0; c < n; c++) {
        out[c] = x[c] - 2 * dot(y, x, n) * y[c];
        scale[c] = fabs(x[c]) + 2 * magnitude(y, x, n) * fabs(y[c]);
    }
}
/* eta is z's first component. */
REFERENCE(refract) {
    double d = dot(y, x, n), k = 1 - z[0] * z[0] * (1 - d * d), f = z[0] * d + sqrt(fmax(k, 0)),
           size = magnitude(y, x, n);
    bool total = k < 0;
    for (int c = 0; c < n; c++) {
        out[c] = total ? 0 : z[0] * x[c] - f * y[c];
        /* Near total reflection the root is steep: what it amplifies counts. */
        double steep = z[0] * z[0] * (1 + size * size) / fmax(sqrt(fabs(k)), 1e-4);
        scale[c] = fabs(z[0] * x[c]) + (fabs(z[0]) * size + steep + 1) * fabs(y[c]);
    }
}
static const struct geometric geometric[] = {
    {"dot", "V(dot(x, y))", ref_dot},
    {"length", "V(length(x))", ref_length},
    {"length_squared", "V(length_squared(x))", ref_length_squared},
    {"distance", "V(distance(x, y))", ref_distance},
    {"distance_squared", "V(distance_squared(x, y))", ref_distance_squared},
    {"normalize", "normalize(x)", ref_normalize},
    {"faceforward", "faceforward(x, y, z)", ref_faceforward},
    {"reflect", "reflect(x, y)", ref_reflect},
    {"refract", "refract(x, y, z.x)", ref_refract},
    {"cross", "cross(x, y)", ref_cross},
};
#define GEOMETRIC (int)(sizeof geometric / sizeof *geometric)

static void test_geometric(smelt_dtype dtype, int n, bool packed, const char *form) {
    int functions = n == 3 ? GEOMETRIC : GEOMETRIC - 1; /* cross has three components */
    int64_t count = POINTS / n * n;
    void *inputs[3];
    double *values[3] = {X, Y, Z};
    for (int i = 0; i < 3; i++) {
        inputs[i] = calloc((size_t)count, 4);
        for (int64_t k = 0; k < count; k++) {
            store(dtype, inputs[i], k, random_between(-2, 2));
            values[i][k] = number(dtype, inputs[i], k);
        }
    }
    struct body body = {0};
    body_add(&body, "uint i = thread_position_in_grid.x * %d; typedef vec<T, %d> V; %svec<T, %d> x, y, z;\n",
             n, n, packed ? "packed_" : "", n);
    body_add(&body,
             "for (int c = 0; c < %d; c++) { x[c] = x_values[i + c]; y[c] = y_values[i + c]; z[c] = "
             "z_values[i + c]; }\n",
             n);
    for (int f = 0; f < functions; f++)
        body_add(&body,
                 "{ using namespace metal::%s; V r = %s; for (int c = 0; c < %d; c++) out[%lldul + i + c] = "
                 "r[c]; }\n",
                 form, geometric[f].text, n, (long long)(f * count));
    smelt_array *out = run_body(&(struct run){.body = body.text,
                                              .dtype = dtype,
                                              .x = inputs[0],
                                              .y = inputs[1],
                                              .z = inputs[2],
                                              .count = count,
                                              .threads = count / n,
                                              .outputs = functions * count});
    for (int f = 0; out && f < functions; f++) {
        int reported = 0;
        for (int64_t i = 0; i < count; i += n) {
            double expected[4], scale[4];
            geometric[f].reference(X + i, Y + i, Z + i, n, expected, scale);
            for (int c = 0; c < n; c++) {
                double got = number(dtype, smelt_array_data(out), f * count + i + c);
                /* A rounding to the type, and a few in float of the terms that were summed. */
                double allowed = 0.501 * ulp_of(dtype, expected[c]) + 4 * ulp_of(SMELT_FLOAT32, scale[c]);
                if (!(fabs(got - expected[c]) <= allowed) && reported++ < 3)
                    failed("%s of %s%s%d: component %d is %g, expected %g", geometric[f].name,
                           packed ? "packed_" : "", type_name(dtype), n, c, got, expected[c]);
            }
        }
    }
    smelt_array_release(out);
    body_free(&body);
    for (int i = 0; i < 3; i++) free(inputs[i]);
}

/* ---- Integers: every type, scalars and vectors. */
static const struct {
    smelt_dtype dtype;
    int bytes;
    bool is_signed;
} integers[] = {{SMELT_INT8, 1, true},    {SMELT_UINT8, 1, false}, {SMELT_INT16, 2, true},
                {SMELT_UINT16, 2, false}, {SMELT_INT32, 4, true},  {SMELT_UINT32, 4, false},
                {SMELT_INT64, 8, true},   {SMELT_UINT64, 8, false}};

static uint64_t load(int type, const void *data, int64_t i) {
    uint64_t value = 0;
    memcpy(&value, (const char *)data + i * integers[type].bytes, (size_t)integers[type].bytes);
    int shift = 64 - 8 * integers[type].bytes;
    return integers[type].is_signed ? (uint64_t)((int64_t)(value << shift) >> shift) : value;
}
static bool less(int type, uint64_t a, uint64_t b) {
    return integers[type].is_signed ? (int64_t)a < (int64_t)b : a < b;
}

static const char *const integer_texts[] = {"abs(x)",         "max(x, y)",     "min(x, y)",
                                            "max3(x, y, z)",  "min3(x, y, z)", "median3(x, y, z)",
                                            "clamp(x, y, z)", "max(x, T(5))"};
#define INTEGER_FUNCTIONS (int)(sizeof integer_texts / sizeof *integer_texts)
#define INTEGER_POINTS 1200

static uint64_t integer_reference(int type, int f, uint64_t x, uint64_t y, uint64_t z) {
#define MAX(a, b) (less(type, a, b) ? (b) : (a))
#define MIN(a, b) (less(type, a, b) ? (a) : (b))
    uint64_t low = MIN(x, y), high = MAX(x, y), result = 0;
    switch (f) {
    case 0:
        result = integers[type].is_signed && (int64_t)x < 0 ? 0 - x : x;
        break;
    case 1:
        result = high;
        break;
    case 2:
        result = low;
        break;
    case 3:
        result = MAX(high, z);
        break;
    case 4:
        result = MIN(low, z);
        break;
    case 5: {
        uint64_t m = MIN(high, z);
        result = MAX(low, m);
        break;
    }
    case 6: {
        uint64_t m = MAX(x, y);
        result = MIN(m, z);
        break;
    }
    default:
        result = MAX(x, 5);
        break;
    }
    uint64_t place = result; /* abs of the smallest number wraps to itself */
    return load(type, &place, 0);
}

static void test_integers(int type, int width) {
    uint64_t inputs[3][INTEGER_POINTS];
    int bytes = integers[type].bytes;
    for (int i = 0; i < 3; i++)
        for (int64_t k = 0; k < INTEGER_POINTS; k++) {
            static const uint64_t special[] = {0,
                                               1,
                                               ~0ull,
                                               0x8080808080808080,
                                               0x7f7f7f7f7f7f7f7f,
                                               0x8000800080008000,
                                               1ull << 63,
                                               ~(1ull << 63)};
            uint64_t value = k < 64 ? special[random_bits() % 8] : random_bits() >> 8;
            if (k < 64 && bytes < 8) value = value >> (64 - 8 * bytes);
            memcpy((char *)inputs[i] + k * bytes, &value, (size_t)bytes);
        }
    struct body body = {0};
    if (width == 1)
        body_add(&body, "uint i = thread_position_in_grid.x; typedef T V; V x = x_values[i], y = "
                        "y_values[i], z = z_values[i];\n");
    else
        body_add(&body,
                 "uint i = thread_position_in_grid.x * %d; typedef vec<T, %d> V; V x, y, z;\n"
                 "for (int c = 0; c < %d; c++) { x[c] = x_values[i + c]; y[c] = y_values[i + c]; z[c] = "
                 "z_values[i + c]; }\n",
                 width, width, width);
    for (int f = 0; f < INTEGER_FUNCTIONS; f++) {
        body_add(&body, "{ V r = %s; ", integer_texts[f]);
        if (width == 1)
            body_add(&body, "out[%du + i] = r; }\n", f * INTEGER_POINTS);
        else
            body_add(&body, "for (int c = 0; c < %d; c++) out[%du + i + c] = r[c]; }\n", width,
                     f * INTEGER_POINTS);
    }
    smelt_array *out = run_body(&(struct run){.body = body.text,
                                              .dtype = integers[type].dtype,
                                              .x = inputs[0],
                                              .y = inputs[1],
                                              .z = inputs[2],
                                              .count = INTEGER_POINTS,
                                              .threads = INTEGER_POINTS / width,
                                              .outputs = INTEGER_FUNCTIONS * INTEGER_POINTS});
    for (int f = 0; out && f < INTEGER_FUNCTIONS; f++)
        for (int64_t i = 0; i < INTEGER_POINTS; i++) {
            uint64_t x = load(type, inputs[0], i), y = load(type, inputs[1], i), z = load(type, inputs[2], i);
            uint64_t got = load(type, smelt_array_data(out), f * INTEGER_POINTS + i),
                     expected = integer_reference(type, f, x, y, z);
            if (got != expected) {
                failed("%s of %d-byte %s integers, width %d: (%llx, %llx, %llx) gives %llx, expected %llx",
                       integer_texts[f], bytes, integers[type].is_signed ? "signed" : "unsigned", width,
                       (unsigned long long)x, (unsigned long long)y, (unsigned long long)z,
                       (unsigned long long)got, (unsigned long long)expected);
                break;
            }
        }
    smelt_array_release(out);
    body_free(&body);
}

/* ---- Overload resolution: the type at compile time, the value at run time. */
static const struct {
    const char *call, *type;
    double value;
} calls[] = {
    {"max(h, 0.0f)", "float", 2.5},
    {"max(h, 0.0h)", "half", 2.5},
    {"max(h, half(0))", "half", 2.5},
    {"max(b, bfloat(0))", "bfloat", 2.5},
    {"max(b, 0.0f)", "float", 2.5},
    {"max(b, h)", "float", 2.5},
    {"max(x, 0)", "float", 2.5},
    {"max(3, x)", "float", 3},
    {"metal::max(float(1), T(2))", "float", 2},
    {"metal::max<float>(x, h)", "float", 2.5},
    {"min(u, 32u)", "uint", 7},
    {"max(i, -4)", "int", -3},
    {"max(s, short(1))", "short", 1},
    {"max(true, false)", "int", 1},
    {"abs(i)", "int", 3},
    {"abs(-x)", "float", 2.5},
    {"abs(-h)", "half", 2.5},
    {"abs(-b)", "bfloat", 2.5},
    {"pow(x, 2)", "float", 6.25},
    {"pow(h, 2)", "half", 6.25},
    {"pow(b, 2)", "bfloat", 6.25},
    {"pow(2, 3)", "float", 8},
    {"pow(x, u)", "float", 610.3515625},
    {"fma(h, h, h)", "half", 8.75},
    {"fma(h, h, 0.0f)", "float", 6.25},
    {"fma(b, b, b)", "bfloat", 8.75},
    {"exp(0)", "float", 1},
    {"sqrt(u + 2u)", "float", 3},
    {"floor(i)", "float", -3},
    {"clamp(x, 0, 1)", "float", 1},
    {"clamp(h, 0.0f, 1.0f)", "float", 1},
    {"clamp(h, half(0), half(1))", "half", 1},
    {"clamp(i, 0, 1)", "int", 0},
    {"clamp(b, bfloat(0), bfloat(1))", "bfloat", 1},
    {"metal::precise::exp(b - b)", "bfloat", 1},
    {"metal::fast::exp(h - h)", "half", 1},
    {"fast::max(x, x)", "float", 2.5},
    {"mix(x, x, 0.5f)", "float", 2.5},
    {"max(v, 1.0f).y", "float", 3},
    {"max(0.0f, v).x", "float", 2.5},
    {"max(hv, 0.0f).x", "half", 2.5},
    {"max(hv, 0).y", "half", 3},
    {"pow(v, 2.0f).y", "float", 9},
    {"clamp(v, 0.0f, 1.0f).x", "float", 1},
    {"clamp(v, float2(0), float2(1)).y", "float", 1},
    {"mix(v, v, x).y", "float", 3},
    {"smoothstep(0.0f, 6.0f, v).y", "float", 0.5},
    {"step(2.75f, v).x", "float", 0},
    {"fma(v, 2.0f, v).x", "float", 7.5},
    {"max(int2(-1, 4), 2).x", "int", 2},
    {"clamp(int2(-1, 4), 0, 3).y", "int", 3},
    {"min(uint2(1, 4), uint2(2, 3)).y", "uint", 3},
    {"exp(v - v).x", "float", 1},
    {"sqrt(packed_float2(v * v)).x", "float", 2.5},
    {"max(packed_float2(v), v).y", "float", 3},
    {"dot(v, v)", "float", 15.25},
    {"dot(hv, hv)", "half", 15.25},
    {"ldexp(x, 2)", "float", 10},
    {"ldexp(h, int(u) - 6)", "half", 5},
    {"ldexp(v, 1).y", "float", 6},
    {"ldexp(v, int2(1, 2)).y", "float", 12},
    {"ilogb(h)", "int", 1},
    {"ilogb(v).x", "int", 1},
    {"max(x_values[0], x)", "float", 2.5},
    {"exp(x_values[1])", "float", 1},
    {"sign(-h)", "half", -1},
    {"saturate(b)", "bfloat", 1},
    {"M_PI_2_F", "float", 1.57079637050628662109375},
    {"M_PI_H", "half", 3.140625},
    {"M_SQRT2_BF", "bfloat", 1.4140625},
    {"M_LN2_F + 0", "float", 0.693147182464599609375},
    {"FP_ILOGB0", "int", -2147483648.0},
    {"ilogb(0.0f)", "int", -2147483648.0},
};
#define CALLS (int)(sizeof calls / sizeof *calls)

static void test_calls(void) {
    struct body body = {0};
    body_add(&body, "float x = x_values[0]; half h = x; bfloat b = x; uint u = 7; int i = -3; short s = -2; "
                    "float2 v(x, 3); half2 hv(v);\n");
    for (int c = 0; c < CALLS; c++)
        body_add(
            &body,
            "{ auto r = %s; static_assert(is_same_v<decltype(r), %s>, \"type\"); out[%d] = (float)r; }\n",
            calls[c].call, calls[c].type, c);
    float values[2] = {2.5f, 0};
    smelt_array *out = run_body(&(struct run){
        .body = body.text, .dtype = SMELT_FLOAT32, .x = values, .count = 2, .threads = 1, .outputs = CALLS});
    for (int c = 0; out && c < CALLS; c++) {
        double got = number(SMELT_FLOAT32, smelt_array_data(out), c);
        if (got != calls[c].value) failed("%s is %g, expected %g", calls[c].call, got, calls[c].value);
    }
    smelt_array_release(out);
    body_free(&body);
}

/* ---- Calls that Metal's library lacks. */
static const struct {
    const char *body, *message;
} absent[] = {
    {"out[0] = erf(x_values[0]);", "use of undeclared identifier 'erf'"},
    {"out[0] = metal::erf(x_values[0]);", "no member named 'erf' in namespace 'metal'"},
    {"out[0] = expm1(x_values[0]);", "use of undeclared identifier 'expm1'"},
    {"int i = 1; uint u = 2; out[0] = max(i, u);", "call to 'max' is ambiguous"},
    {"uint u = 2; out[0] = min(u, 3);", "call to 'min' is ambiguous"},
    {"out[0] = exp(int2(1, 2)).x;", "no matching function for call to 'exp'"},
    {"out[0] = max(float2(1), float3(2)).x;", "no matching function for call to 'max'"},
    {"out[0] = max(half2(1), float2(2)).x;", "no matching function for call to 'max'"},
    {"out[0] = dot(int2(1), int2(2));", "no matching function for call to 'dot'"},
    {"out[0] = length(x_values[0]);", "no matching function for call to 'length'"},
    {"out[0] = cross(float2(1), float2(2)).x;", "no matching function for call to 'cross'"},
};

static void test_absent(void) {
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        const char *message = compile_error(absent[i].body);
        if (!strstr(message, absent[i].message))
            failed("'%s': expected '%s' in: %s", absent[i].body, absent[i].message, message);
    }
}

int main(void) {
    static const smelt_dtype types[] = {SMELT_FLOAT32, SMELT_FLOAT16, SMELT_BFLOAT16};
    /* In make check each type has one width. */
    bool all = getenv("SMELT_TEST_FULL");
    for (int t = 0; t < 3; t++)
        for (int n = 2; n <= 4; n++)
            if (all || n == 2 + t) test_geometric(types[t], n, false, n == 3 ? "fast" : "precise");
    test_geometric(SMELT_FLOAT32, 3, true, "precise");
    for (int type = 0; type < 8; type++) {
        int step = type % 2 + 1, chosen = 1 + type / 2 * step % 4;
        for (int width = 1; width <= 4; width += step)
            if (all || width == chosen) test_integers(type, width);
    }
    test_calls();
    test_absent();
    if (failures) fprintf(stderr, "%d checks failed\n", failures);
    return failures != 0;
}
