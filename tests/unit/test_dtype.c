/* Conversions between element types against slow references: tables searched for the nearest value, and long
 * double, which holds every 64-bit integer exactly. */
#include "unit.h"

#include "array/array.h"
#include "array/dtype.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define give_up(...) (print_error(__VA_ARGS__), assert_true(!"see above"))

/* ---- References. */

struct small_format {
    smelt_dtype dtype;
    int exponent_bits, fraction_bits;
};

static const struct small_format half = {SMELT_FLOAT16, 5, 10}, brain = {SMELT_BFLOAT16, 8, 7};

/* The textbook interpretation of sign, exponent and fraction. */
static double decode(struct small_format f, uint16_t bits) {
    int exponent = (bits & 0x7fff) >> f.fraction_bits, top = (1 << f.exponent_bits) - 1, bias = top / 2;
    int fraction = bits & ((1 << f.fraction_bits) - 1);
    double sign = bits >> 15 ? -1 : 1;
    if (exponent == top) return fraction ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0) return sign * ldexp(fraction, 1 - bias - f.fraction_bits);
    return sign * ldexp(1 + ldexp(fraction, -f.fraction_bits), exponent - bias);
}

/* The nearest of all values, found by bisection; of two equally near ones, the even one. */
static uint16_t encode(struct small_format f, long double value) {
    uint16_t sign = signbit(value) ? 0x8000 : 0,
             infinity = (uint16_t)(((1 << f.exponent_bits) - 1) << f.fraction_bits);
    if (isnan(value)) return (uint16_t)(sign | infinity | 1 << (f.fraction_bits - 1));
    value = fabsl(value);
    int low = 0, high = infinity; /* value(low) <= value < value(high), infinity standing for one step more */
    long double last = decode(f, (uint16_t)(infinity - 1)), step = last - decode(f, (uint16_t)(infinity - 2));
    if (value >= last + step / 2) return (uint16_t)(sign | infinity);
    if (value >= last) return (uint16_t)(sign | (infinity - 1));
    while (high - low > 1) {
        int middle = (low + high) / 2;
        *(value >= decode(f, (uint16_t)middle) ? &low : &high) = middle;
    }
    long double down = value - decode(f, (uint16_t)low), up = decode(f, (uint16_t)high) - value;
    int nearest = down < up || (down == up && low % 2 == 0) ? low : high;
    return (uint16_t)(sign | nearest);
}

static uint64_t random_bits(void) {
    static uint64_t state = 0x9e3779b97f4a7c15;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Converts `count` elements, densely and with a stride of two; both results must agree. */
static void *convert(smelt_dtype from, smelt_dtype to, const void *values, int64_t count) {
    smelt_array *source, *view, *dense, *spread;
    size_t width = smelt_dtype_bytes(from), result_bytes = (size_t)count * smelt_dtype_bytes(to);
    assert_int_equal(smelt_array_from_values(from, (smelt_shape){1, {count}}, values, &source), SMELT_OK);
    assert_int_equal(smelt_array_convert(source, to, &dense), SMELT_OK);
    char *doubled = calloc((size_t)count, 2 * width);
    for (int64_t i = 0; i < count; i++)
        memcpy(doubled + 2 * (size_t)i * width, (const char *)values + (size_t)i * width, width);
    int64_t stride = 2;
    assert_int_equal(
        smelt_array_from_memory(from, (smelt_shape){1, {count}}, &stride, doubled, NULL, NULL, &view),
        SMELT_OK);
    assert_int_equal(smelt_array_convert(view, to, &spread), SMELT_OK);
    assert_memory_equal(smelt_array_data(dense), smelt_array_data(spread), result_bytes);
    void *result = malloc(result_bytes);
    memcpy(result, smelt_array_data(dense), result_bytes);
    smelt_array_release(source);
    smelt_array_release(view);
    smelt_array_release(dense);
    smelt_array_release(spread);
    free(doubled);
    return result;
}

/* ---- Small floats. */

static void every_small_pattern_reads_as_its_fields_say(void **state) {
    (void)state;
    const struct small_format formats[] = {half, brain};
    uint16_t *all = malloc(65536 * sizeof *all);
    for (int i = 0; i < 65536; i++) all[i] = (uint16_t)i;
    for (int k = 0; k < 2; k++) {
        float *floats = convert(formats[k].dtype, SMELT_FLOAT32, all, 65536);
        double *doubles = convert(formats[k].dtype, SMELT_FLOAT64, all, 65536);
        for (int i = 0; i < 65536; i++) {
            double wanted = decode(formats[k], (uint16_t)i);
            if (isnan(wanted)) {
                assert_true(isnan(floats[i]) && isnan(doubles[i]));
            } else {
                assert_true(doubles[i] == wanted && signbit(doubles[i]) == i >> 15);
                assert_true((double)floats[i] == wanted);
            }
        }
        /* And back: every number to its own pattern, from both. */
        uint16_t *back = convert(SMELT_FLOAT32, formats[k].dtype, floats, 65536);
        uint16_t *back_too = convert(SMELT_FLOAT64, formats[k].dtype, doubles, 65536);
        for (int i = 0; i < 65536; i++) {
            if (isnan(doubles[i]))
                assert_true(isnan(decode(formats[k], back[i])));
            else
                assert_int_equal(back[i], i);
            assert_int_equal(back[i], back_too[i]);
        }
        free(floats);
        free(doubles);
        free(back);
        free(back_too);
    }
    free(all);
}

/* Values at, just below and just above every midpoint, and random ones over the whole range. */
static void doubles_round_to_the_nearest_even_small_float(void **state) {
    (void)state;
    const struct small_format formats[] = {half, brain};
    for (int k = 0; k < 2; k++) {
        int infinity = ((1 << formats[k].exponent_bits) - 1) << formats[k].fraction_bits, count = 0;
        double *values = malloc((size_t)(3 * infinity + 100000) * sizeof *values);
        for (int i = 0; i + 1 < infinity; i++) {
            double middle = (decode(formats[k], (uint16_t)i) + decode(formats[k], (uint16_t)(i + 1))) / 2;
            values[count++] = middle;
            values[count++] = -nextafter(middle, 0);
            values[count++] = nextafter(middle, INFINITY);
        }
        for (int i = 0; i < 50000; i++) {
            uint64_t bits = random_bits();
            memcpy(&values[count++], &bits, sizeof bits);
            values[count++] = ldexp((double)(int64_t)random_bits(), (int)(random_bits() % 120) - 150);
        }
        uint16_t *found = convert(SMELT_FLOAT64, formats[k].dtype, values, count);
        for (int i = 0; i < count; i++)
            if (found[i] != encode(formats[k], values[i]))
                give_up("%a became %#x, expected %#x", values[i], found[i], encode(formats[k], values[i]));
        free(found);
        free(values);
    }
}

static void floats_round_to_the_nearest_even_small_float(void **state) {
    (void)state;
    enum { COUNT = 200000 };
    const struct small_format formats[] = {half, brain};
    static float values[COUNT];
    for (int i = 0; i < COUNT; i++) {
        uint32_t bits = (uint32_t)random_bits();
        if (i % 3 == 0) bits &= 0xffff0000;                  /* bfloat16 itself */
        if (i % 3 == 1) bits = (bits & 0xffff0000) | 0x8000; /* its midpoints */
        memcpy(&values[i], &bits, sizeof bits);
    }
    for (int k = 0; k < 2; k++) {
        uint16_t *found = convert(SMELT_FLOAT32, formats[k].dtype, values, COUNT);
        for (int i = 0; i < COUNT; i++)
            assert_int_equal(found[i], encode(formats[k], (long double)values[i]));
        free(found);
    }
}

static void large_numbers_become_infinite_only_past_the_midpoint(void **state) {
    (void)state;
    assert_int_equal(float16_from_double(65519.999), 0x7bff);
    assert_int_equal(float16_from_double(65520), 0x7c00);
    assert_int_equal(float16_from_double(-1e300), 0xfc00);
    assert_int_equal(float16_from_double(0x1p-25), 0);
    assert_int_equal(float16_from_double(-0x1.000001p-25), 0x8001);
    assert_int_equal(bfloat16_from_double(0x1.fefp127), 0x7f7f);
    assert_int_equal(bfloat16_from_double(0x1.ffp127), 0x7f80);
    assert_int_equal(float16_from_double((double)NAN), 0x7e00);
    assert_int_equal(bfloat16_from_double((double)NAN), 0x7fc0);
}

/* ---- Integers. */

/* 64-bit integers near ties of every width, for which rounding in two steps would be wrong. */
static void wide_integers_round_once(void **state) {
    (void)state;
    enum { COUNT = 100000 };
    static uint64_t values[COUNT];
    for (int i = 0; i < COUNT; i++) {
        uint64_t lead = random_bits() >> (random_bits() % 64);
        int kept = (int[]){8, 11, 24}[i % 3], length = 64 - __builtin_clzll(lead | 1);
        if (length > kept) {
            /* kept bits, then a one, then zeros; the last bit perhaps one more or one less. */
            uint64_t unit = UINT64_C(1) << (length - kept);
            lead = (lead & ~(unit - 1)) + unit / 2 + (uint64_t)(random_bits() % 3) - 1;
        }
        values[i] = i % 2 ? lead : 0 - lead;
    }
    const struct small_format formats[] = {half, brain};
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        smelt_dtype from = is_signed ? SMELT_INT64 : SMELT_UINT64;
        float *floats = convert(from, SMELT_FLOAT32, values, COUNT);
        for (int i = 0; i < COUNT; i++) {
            long double exact = is_signed ? (long double)(int64_t)values[i] : (long double)values[i];
            assert_true(floats[i] == (float)exact);
        }
        free(floats);
        for (int k = 0; k < 2; k++) {
            uint16_t *found = convert(from, formats[k].dtype, values, COUNT);
            for (int i = 0; i < COUNT; i++) {
                long double exact = is_signed ? (long double)(int64_t)values[i] : (long double)values[i];
                if (found[i] != encode(formats[k], exact))
                    give_up("%s %lld became %#x, expected %#x", smelt_dtype_name(from), (long long)values[i],
                            found[i], encode(formats[k], exact));
            }
            free(found);
        }
    }
}

static long double clamp(long double value, long double low, long double high) {
    if (isnan(value)) return 0;
    value = truncl(value);
    return value < low ? low : value > high ? high : value;
}

static void floats_saturate_to_integers(void **state) {
    (void)state;
    static const struct {
        smelt_dtype dtype;
        long double low, high;
    } ranges[] = {{SMELT_UINT8, 0, UINT8_MAX},         {SMELT_UINT16, 0, UINT16_MAX},
                  {SMELT_UINT32, 0, UINT32_MAX},       {SMELT_UINT64, 0, UINT64_MAX},
                  {SMELT_INT8, INT8_MIN, INT8_MAX},    {SMELT_INT16, INT16_MIN, INT16_MAX},
                  {SMELT_INT32, INT32_MIN, INT32_MAX}, {SMELT_INT64, INT64_MIN, INT64_MAX}};
    enum { COUNT = 20000 };
    static double values[COUNT] = {
        0.0,    -0.0,   0.999,  -0.999, 1e300,   -1e300,  (double)INFINITY, -(double)INFINITY, (double)NAN,
        127.5,  128,    -128.9, -129,   255.9,   256,     32767.9,          65535.9,           65536,
        0x1p31, 0x1p32, 0x1p63, 0x1p64, -0x1p31, -0x1p63, -0x1.1p63,        2147483647.9};
    for (int i = 26; i < COUNT; i++)
        values[i] = ldexp((double)(int64_t)random_bits(), -(int)(random_bits() % 70));
    for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++) {
        void *found = convert(SMELT_FLOAT64, ranges[k].dtype, values, COUNT);
        for (int i = 0; i < COUNT; i++) {
            struct element e =
                element_load(ranges[k].dtype, (char *)found + (size_t)i * smelt_dtype_bytes(ranges[k].dtype));
            long double value =
                e.kind == ELEMENT_SIGNED ? (long double)e.integer : (long double)(uint64_t)e.integer;
            if (value != clamp((long double)values[i], ranges[k].low, ranges[k].high))
                give_up("%a became %s %Lg", values[i], smelt_dtype_name(ranges[k].dtype), value);
        }
        free(found);
    }
}

static void integers_wrap(void **state) {
    (void)state;
    int64_t values[] = {-1, 256, 0x123456789abcdef0, INT64_MIN};
    uint8_t *bytes = convert(SMELT_INT64, SMELT_UINT8, values, 4);
    int16_t *shorts = convert(SMELT_INT64, SMELT_INT16, values, 4);
    uint32_t *words = convert(SMELT_INT64, SMELT_UINT32, values, 4);
    assert_memory_equal(bytes, ((uint8_t[]){255, 0, 0xf0, 0}), 4);
    assert_memory_equal(shorts, ((int16_t[]){-1, 256, (int16_t)0xdef0, 0}), 8);
    assert_memory_equal(words, ((uint32_t[]){UINT32_MAX, 256, 0x9abcdef0, 0}), 16);
    free(bytes);
    free(shorts);
    free(words);
}

/* ---- bool and complex64. */

static void bool_is_whether_a_value_is_not_zero(void **state) {
    (void)state;
    double values[] = {0.0, -0.0, 0x1p-1074, -3, (double)NAN, (double)INFINITY};
    uint8_t *truths = convert(SMELT_FLOAT64, SMELT_BOOL, values, 6);
    assert_memory_equal(truths, ((uint8_t[]){0, 0, 1, 1, 1, 1}), 6);
    free(truths);
    float numbers[] = {0, 0, 0, 2, 3, 0};
    truths = convert(SMELT_COMPLEX64, SMELT_BOOL, numbers, 3);
    assert_memory_equal(truths, ((uint8_t[]){0, 1, 1}), 3);
    free(truths);
    /* A byte that is neither 0 nor 1 still reads as true. */
    uint8_t odd[] = {0, 1, 7};
    float *floats = convert(SMELT_BOOL, SMELT_FLOAT32, odd, 3);
    assert_memory_equal(floats, ((float[]){0, 1, 1}), 12);
    free(floats);
}

static void complex_to_real_drops_the_imaginary_part(void **state) {
    (void)state;
    float numbers[] = {1.5f, 9, -2.75f, (float)NAN};
    float *reals = convert(SMELT_COMPLEX64, SMELT_FLOAT32, numbers, 2);
    assert_memory_equal(reals, ((float[]){1.5f, -2.75f}), 8);
    free(reals);
    int32_t *integers = convert(SMELT_COMPLEX64, SMELT_INT32, numbers, 2);
    assert_memory_equal(integers, ((int32_t[]){1, -2}), 8);
    free(integers);
    int64_t wide[] = {-3, (INT64_C(1) << 40) + 1};
    float *pairs = convert(SMELT_INT64, SMELT_COMPLEX64, wide, 2);
    assert_memory_equal(pairs, ((float[]){-3, 0, 0x1p40f, 0}), 16);
    free(pairs);
}

/* ---- Every pair: array copies, with their loops for floats, against one element at a time. */

static void copies_agree_with_single_elements_for_every_pair(void **state) {
    (void)state;
    enum { COUNT = 513 };
    static uint64_t bits[COUNT];
    for (int i = 0; i < COUNT; i++) bits[i] = random_bits();
    for (int from = SMELT_BOOL; from <= SMELT_FLOAT64; from++)
        for (int to = SMELT_BOOL; to <= SMELT_FLOAT64; to++) {
            size_t source = smelt_dtype_bytes((smelt_dtype)from), target = smelt_dtype_bytes((smelt_dtype)to);
            char *found = convert((smelt_dtype)from, (smelt_dtype)to, bits, COUNT);
            for (int i = 0; i < COUNT && from != to; i++) {
                char wanted[16];
                element_store((smelt_dtype)to, wanted,
                              element_load((smelt_dtype)from, (char *)bits + (size_t)i * source));
                if (memcmp(wanted, found + (size_t)i * target, target) != 0)
                    give_up("%s to %s differs", smelt_dtype_name((smelt_dtype)from),
                            smelt_dtype_name((smelt_dtype)to));
            }
            if (from == to) assert_memory_equal(found, bits, COUNT * target);
            free(found);
        }
}

/* ---- Names. */

static void names_and_sizes(void **state) {
    (void)state;
    smelt_dtype dtype = SMELT_INT8;
    assert_int_equal(smelt_dtype_from_name("bfloat16", &dtype), SMELT_OK);
    assert_int_equal(dtype, SMELT_BFLOAT16);
    assert_int_equal(smelt_dtype_from_name("float33", &dtype), SMELT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(dtype, SMELT_BFLOAT16);
    assert_string_equal(smelt_error(), "dtype 'float33' is unknown; expected one of bool, uint8, uint16, "
                                       "uint32, uint64, int8, int16, int32, "
                                       "int64, float16, bfloat16, float32, complex64, float64");
    assert_int_equal(smelt_dtype_from_name(NULL, &dtype), SMELT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(smelt_dtype_from_name("int8", NULL), SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(smelt_dtype_name((smelt_dtype)99), "none");
    assert_string_equal(smelt_dtype_name((smelt_dtype)-1), "none");
    assert_int_equal(smelt_dtype_bytes(SMELT_COMPLEX64), 8);
    assert_int_equal(smelt_dtype_bytes((smelt_dtype)15), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_small_pattern_reads_as_its_fields_say),
        cmocka_unit_test(doubles_round_to_the_nearest_even_small_float),
        cmocka_unit_test(floats_round_to_the_nearest_even_small_float),
        cmocka_unit_test(large_numbers_become_infinite_only_past_the_midpoint),
        cmocka_unit_test(wide_integers_round_once),
        cmocka_unit_test(floats_saturate_to_integers),
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(bool_is_whether_a_value_is_not_zero),
        cmocka_unit_test(complex_to_real_drops_the_imaginary_part),
        cmocka_unit_test(copies_agree_with_single_elements_for_every_pair),
        cmocka_unit_test(names_and_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
