#include "conversions.h"

#include "job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Metal's types, integers first. */
static const struct type {
    const char *name;
    smelt_dtype dtype;
    int bits;
    bool is_signed;
} types[] = {
    {"char", SMELT_INT8, 8, true},        {"uchar", SMELT_UINT8, 8, false},
    {"short", SMELT_INT16, 16, true},     {"ushort", SMELT_UINT16, 16, false},
    {"int", SMELT_INT32, 32, true},       {"uint", SMELT_UINT32, 32, false},
    {"long", SMELT_INT64, 64, true},      {"ulong", SMELT_UINT64, 64, false},
    {"float", SMELT_FLOAT32, 32, true},   {"half", SMELT_FLOAT16, 16, true},
    {"bfloat", SMELT_BFLOAT16, 16, true},
};
#define INTEGERS 8
#define TYPES 11
const char *const conversion_rows[] = {"char", "uchar", "short", "ushort", "int",    "uint",
                                       "long", "ulong", "float", "half",   "bfloat", NULL};
const char *const truncation_rows[] = {"float", "half", "bfloat", NULL};

/* ---- The reference: long double holds all of these numbers. */
static long double value_of(const struct type *type, const void *data, int64_t i) {
    uint64_t bits = 0;
    int size = type->bits / 8;
    if (type >= types + INTEGERS) return number(type->dtype, data, i);
    memcpy(&bits, (const char *)data + i * size, (size_t)size);
    if (!type->is_signed) return bits;
    return (int64_t)(bits << (64 - type->bits)) >> (64 - type->bits);
}
static long double rounded(const struct type *type, long double value) {
    int digits = type->dtype == SMELT_FLOAT32 ? 24 : type->dtype == SMELT_FLOAT16 ? 11 : 8;
    int smallest = type->dtype == SMELT_FLOAT16 ? -14 : -126;
    if (value == 0 || !isfinite(value)) return value;
    int exponent = ilogbl(value) < smallest ? smallest : ilogbl(value);
    long double y =
        ldexpl(rintl(ldexpl(value, digits - 1 - exponent)), exponent - digits + 1); /* ties to even */
    return fabsl(y) > largest(type->dtype) ? copysignl(INFINITY, y) : y;
}
/* Towards zero; numbers outside the type's range become its nearest number; NaN becomes 0. */
static long double truncated(const struct type *type, long double value) {
    long double high = ldexpl(1, type->bits - type->is_signed) - 1, low = type->is_signed ? -high - 1 : 0;
    if (isnan(value)) return 0;
    return truncl(value) > high ? high : truncl(value) < low ? low : truncl(value) + 0.0L;
}

/* ---- Arguments: every number of 8 and 16 bits; for other types, each power of two with its neighbours,
 * numbers half way between two of a shorter type with their neighbours, and random ones of every size. */
static uint64_t argument(const struct type *type, int64_t i) {
    if (type->bits <= 16) return (uint64_t)i;
    uint64_t random = random_bits();
    int width = (int)(i % type->bits) + 1, kind = (int)(i / type->bits % 4);
    uint64_t bits = random >> (64 - width);
    if (type >= types + INTEGERS) {
        if (kind == 0) return random >> 32;
        /* Half way between two numbers of half or bfloat, or next to it. */
        int low = kind == 1 ? 13 : 16;
        return (random >> 32 & ~((1ull << low) - 1)) + (1ull << (low - 1)) + random % 3 - 1;
    }
    if (kind == 1) return (1ull << (width - 1)) + random % 5 - 2;
    static const int digits[2] = {24, 8};
    int low = width - digits[kind & 1];
    if (kind > 1 && low > 0)
        bits = (((bits | 1ull << (width - 1)) >> low) << low) + (1ull << (low - 1)) + random % 3 - 1;
    return type->is_signed && random >> 63 ? 0 - bits : bits;
}
static void *arguments_of(const struct type *type, int64_t count) {
    int size = type->bits / 8;
    char *data = malloc((size_t)(count * size));
    if (!data) abort();
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = argument(type, i);
        memcpy(data + i * size, &bits, (size_t)size);
    }
    return data;
}

/* ---- */
static void add_array(struct job_array *array, const char *prefix, int from, int to, int64_t count) {
    const struct type *type = &types[to < 0 ? from : to];
    snprintf(array->name, sizeof array->name, to < 0 ? "%s_%d" : "%s_%d_%d", prefix, from, to);
    array->dtype = type->dtype;
    array->count = count;
}

/* Converts types [first, last) to types [to_first, to_last) in one kernel; fills wrong[from][to]. */
static void convert(int first, int last, int to_first, int to_last, int64_t count, smelt_math_mode math,
                    const char *device, int64_t wrong[TYPES][TYPES]) {
    struct job job = {.math = math, .device = device, .threads = count};
    struct body body = {0};
    body_add(&body, "uint i = thread_position_in_grid.x;\n");
    void *data[TYPES];
    for (int from = first; from < last; from++) {
        data[from] = arguments_of(&types[from], count);
        add_array(&job.inputs[job.input_count], "x", from, -1, count);
        job.inputs[job.input_count++].data = data[from];
        for (int to = to_first; to < to_last; to++) {
            add_array(&job.outputs[job.output_count++], "y", from, to, count);
            body_add(&body, "y_%d_%d[i] = (%s)x_%d[i];\n", from, to, types[to].name, from);
        }
    }
    job.body = body.text;
    smelt_array *results[40] = {NULL};
    bool ran = job_run(&job, results);
    for (int from = first, k = 0; from < last; from++) {
        for (int to = to_first; to < to_last; to++, k++)
            for (int64_t i = 0; ran && i < count; i++) {
                long double x = value_of(&types[from], data[from], i);
                if (math == SMELT_MATH_FAST && !isfinite(x)) continue;
                long double got = value_of(&types[to], smelt_array_data(results[k]), i);
                long double expected = to < INTEGERS ? truncated(&types[to], x) : rounded(&types[to], x);
                bool zeros = to >= INTEGERS && math == SMELT_MATH_SAFE && expected == 0 &&
                             signbit(expected) != signbit(got);
                if ((got == expected && !zeros) || (isnan(got) && isnan(expected))) continue;
                if (wrong[from][to]++ == 0)
                    failed("%s to %s on %s: %La gives %La, expected %La", types[from].name, types[to].name,
                           device, x, got, expected);
            }
        free(data[from]);
    }
    for (int k = 0; k < job.output_count; k++) smelt_array_release(results[k]);
    body_free(&body);
}

static void add_table(struct body *text, int first, int last, int to_first, int to_last,
                      int64_t wrong[TYPES][TYPES], int64_t count) {
    body_add(text, "| from | arguments |");
    for (int to = to_first; to < to_last; to++) body_add(text, " to %s |", types[to].name);
    body_add(text, "\n|---|---|");
    for (int to = to_first; to < to_last; to++) body_add(text, "---|");
    body_add(text, "\n");
    for (int from = first; from < last; from++) {
        body_add(text, "| %s | %lld |", types[from].name,
                 (long long)(types[from].bits < 16    ? 256
                             : types[from].bits == 16 ? 65536
                                                      : count));
        for (int to = to_first; to < to_last; to++)
            body_add(text,
                     from == to        ? "  |"
                     : wrong[from][to] ? " %lld wrong |"
                                       : " right |",
                     (long long)wrong[from][to]);
        body_add(text, "\n");
    }
}

void measure_conversions(const struct engines *engines, enum density density, struct body *to_real,
                         struct body *to_integer) {
    static int64_t wrong[TYPES][TYPES];
    int64_t count = density ? 1 << 20 : 1 << 16;
    for (int math = 0; math < (density ? 3 : 1); math++)
        for (int engine = 0; engine < 2; engine++) {
            const char *device = engines->name[engine];
            convert(0, INTEGERS, INTEGERS, TYPES, count, (smelt_math_mode)math, device, wrong);
            convert(INTEGERS, TYPES, 0, TYPES, count, (smelt_math_mode)math, device, wrong);
        }
    add_table(to_real, 0, TYPES, INTEGERS, TYPES, wrong, count);
    add_table(to_integer, INTEGERS, TYPES, 0, INTEGERS, wrong, count);
}
