/* Generated arrays: the generator's known answers, ranges and moments, and independence of the shape. */
#include "unit.h"

#include "array/array.h"
#include "array/dtype.h"
#include "array/philox.h"

#include <math.h>
#include <string.h>

/* The vectors published with the Random123 library (kat_vectors, philox4x32 10). */
static void philox_gives_the_published_answers(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], answer[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct philox counter;
        memcpy(counter.word, known[i].counter, sizeof counter.word);
        struct philox found = philox4x32(counter, known[i].key[0], known[i].key[1]);
        assert_memory_equal(found.word, known[i].answer, sizeof found.word);
    }
}

static smelt_array *uniform(smelt_dtype dtype, smelt_shape shape, uint64_t seed) {
    smelt_array *array;
    assert_int_equal(smelt_array_uniform(dtype, shape, seed, &array), SMELT_OK);
    return array;
}

#define LINE(count) ((smelt_shape){1, {count}})

/* Seed 0, counter 0: the words of the first known answer. */
static void elements_are_the_documented_words(void **state) {
    (void)state;
    static const uint32_t words[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    smelt_array *integers = uniform(SMELT_UINT32, LINE(4), 0), *floats = uniform(SMELT_FLOAT32, LINE(4), 0);
    smelt_array *bytes = uniform(SMELT_INT8, LINE(4), 0), *truths = uniform(SMELT_BOOL, LINE(4), 0);
    smelt_array *wide = uniform(SMELT_UINT64, LINE(4), 0), *halves = uniform(SMELT_FLOAT16, LINE(4), 0);
    struct philox high = philox4x32((struct philox){{0, 0, 1, 0}}, 0, 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(((uint32_t *)integers->data)[i], words[i]);
        assert_true((double)((float *)floats->data)[i] == (words[i] >> 8) / 16777216.0);
        assert_int_equal(((int8_t *)bytes->data)[i], (int8_t)words[i]);
        assert_int_equal(((uint8_t *)truths->data)[i], words[i] & 1);
        assert_true(((uint64_t *)wide->data)[i] == ((uint64_t)high.word[i] << 32 | words[i]));
        /* Rounded down: at most the float, and the next half is larger. */
        uint16_t bits = ((uint16_t *)halves->data)[i];
        assert_true(float16_to_double(bits) <= (double)((float *)floats->data)[i]);
        assert_true(float16_to_double((uint16_t)(bits + 1)) > (double)((float *)floats->data)[i]);
    }
    smelt_array *all[] = {integers, floats, bytes, truths, wide, halves};
    for (int i = 0; i < 6; i++) smelt_array_release(all[i]);
}

static void an_element_depends_on_seed_and_index_only(void **state) {
    (void)state;
    for (int dtype = SMELT_BOOL; dtype <= SMELT_FLOAT64; dtype++) {
        size_t width = smelt_dtype_bytes((smelt_dtype)dtype);
        smelt_array *longer = uniform((smelt_dtype)dtype, LINE(5000), 7);
        smelt_array *shaped = uniform((smelt_dtype)dtype, (smelt_shape){3, {7, 11, 23}}, 7);
        smelt_array *other = uniform((smelt_dtype)dtype, LINE(5000), 8);
        assert_memory_equal(shaped->data, longer->data, 7 * 11 * 23 * width);
        assert_memory_not_equal(other->data, longer->data, 5000 * width);
        smelt_array_release(longer);
        smelt_array_release(shaped);
        smelt_array_release(other);
    }
}

/* Mean, variance and fourth moment within five standard errors. */
static void check_moments(const double *values, int count, double mean, double variance, double fourth,
                          double eighth) {
    double sum[3] = {0};
    for (int i = 0; i < count; i++) {
        double centred = values[i] - mean;
        sum[0] += centred;
        sum[1] += centred * centred;
        sum[2] += pow(centred, 4);
    }
    assert_true(fabs(sum[0] / count) < 5 * sqrt(variance / count));
    assert_true(fabs(sum[1] / count - variance) < 5 * sqrt((fourth - variance * variance) / count));
    assert_true(fabs(sum[2] / count - fourth) < 5 * sqrt((eighth - fourth * fourth) / count));
}

enum { MANY = 200000 };

static void uniform_floats_fill_the_half_open_interval(void **state) {
    (void)state;
    static const smelt_dtype dtypes[] = {SMELT_FLOAT16, SMELT_BFLOAT16, SMELT_FLOAT32, SMELT_FLOAT64};
    for (int k = 0; k < 4; k++) {
        smelt_array *array = uniform(dtypes[k], LINE(MANY), 1), *doubles;
        assert_int_equal(smelt_array_convert(array, SMELT_FLOAT64, &doubles), SMELT_OK);
        const double *values = smelt_array_data(doubles);
        double least = 1, greatest = 0;
        for (int i = 0; i < MANY; i++) {
            assert_true(values[i] >= 0 && values[i] < 1);
            least = fmin(least, values[i]);
            greatest = fmax(greatest, values[i]);
        }
        assert_true(least < 1e-4 && greatest > 1 - 0x1p-7);
        /* Rounding down bfloat16 lowers the mean significantly: only the finer types are checked. */
        if (k >= 2) check_moments(values, MANY, 0.5, 1 / 12.0, 1 / 80.0, 1 / 2304.0);
        smelt_array_release(array);
        smelt_array_release(doubles);
    }
}

static void uniform_integers_use_every_bit(void **state) {
    (void)state;
    for (int dtype = SMELT_UINT8; dtype <= SMELT_INT64; dtype++) {
        smelt_array *array = uniform((smelt_dtype)dtype, LINE(20000), 3);
        size_t width = smelt_dtype_bytes((smelt_dtype)dtype);
        int ones[64] = {0};
        for (int i = 0; i < 20000; i++)
            for (size_t b = 0; b < 8 * width; b++)
                ones[b] += array->data[(size_t)i * width + b / 8] >> (b % 8) & 1;
        for (size_t b = 0; b < 8 * width; b++) assert_in_range(ones[b], 10000 - 400, 10000 + 400);
        smelt_array_release(array);
    }
}

static void normal_has_the_moments_of_a_normal_distribution(void **state) {
    (void)state;
    smelt_array *array, *pairs, *small, *again;
    assert_int_equal(smelt_array_normal(SMELT_FLOAT64, LINE(MANY), 5, &array), SMELT_OK);
    check_moments(smelt_array_data(array), MANY, 0, 1, 3, 105);
    double tail = 0;
    for (int i = 0; i < MANY; i++) tail += fabs(((double *)array->data)[i]) > 1.959963984540054;
    assert_true(fabs(tail / MANY - 0.05) < 5 * sqrt(0.05 * 0.95 / MANY));
    /* complex64: the real part is the same, the imaginary part is normal too and uncorrelated. */
    assert_int_equal(smelt_array_normal(SMELT_COMPLEX64, LINE(MANY), 5, &pairs), SMELT_OK);
    static double imaginary[MANY];
    double product = 0;
    for (int i = 0; i < MANY; i++) {
        float real = ((float *)pairs->data)[2 * i];
        assert_true(real == (float)((double *)array->data)[i]);
        imaginary[i] = (double)((float *)pairs->data)[2 * i + 1];
        product += (double)real * imaginary[i];
    }
    check_moments(imaginary, MANY, 0, 1, 3, 105);
    assert_true(fabs(product / MANY) < 5 / sqrt(MANY));
    /* float16 is the same, rounded. */
    assert_int_equal(smelt_array_normal(SMELT_FLOAT16, LINE(MANY), 5, &small), SMELT_OK);
    assert_int_equal(smelt_array_convert(array, SMELT_FLOAT16, &again), SMELT_OK);
    assert_memory_equal(small->data, again->data, MANY * 2);
    smelt_array *all[] = {array, pairs, small, again};
    for (int i = 0; i < 4; i++) smelt_array_release(all[i]);
}

static void normal_integers_are_refused(void **state) {
    (void)state;
    smelt_array *array = NULL;
    assert_int_equal(smelt_array_normal(SMELT_INT32, LINE(4), 0, &array), SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(smelt_error(),
                        "normal: dtype int32 has no normal distribution; expected a float dtype");
    assert_null(array);
}

static void arange_counts_in_row_major_order(void **state) {
    (void)state;
    for (int dtype = SMELT_BOOL; dtype <= SMELT_FLOAT64; dtype++) {
        smelt_array *array;
        assert_int_equal(smelt_array_arange((smelt_dtype)dtype, (smelt_shape){2, {50, 61}}, &array),
                         SMELT_OK);
        for (int64_t i = 0; i < 50 * 61; i++) {
            char wanted[16];
            size_t width = smelt_dtype_bytes((smelt_dtype)dtype);
            element_store((smelt_dtype)dtype, wanted, (struct element){.kind = ELEMENT_SIGNED, .integer = i});
            assert_memory_equal(array->data + (size_t)i * width, wanted, width);
        }
        smelt_array_release(array);
    }
}

static void empty_and_scalar_shapes(void **state) {
    (void)state;
    smelt_array *array = uniform(SMELT_FLOAT32, (smelt_shape){2, {0, 5}}, 0);
    assert_int_equal(smelt_array_size(array), 0);
    smelt_array_release(array);
    array = uniform(SMELT_UINT32, (smelt_shape){.ndim = 0}, 0);
    assert_int_equal(*(uint32_t *)array->data, 0x6627e8d5);
    smelt_array_release(array);
    assert_int_equal(smelt_array_uniform(SMELT_FLOAT32, LINE(1), 0, NULL), SMELT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(smelt_array_arange(SMELT_FLOAT32, LINE(1), NULL), SMELT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(smelt_array_normal(SMELT_FLOAT32, LINE(1), 0, NULL), SMELT_ERROR_INVALID_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_published_answers),
        cmocka_unit_test(elements_are_the_documented_words),
        cmocka_unit_test(an_element_depends_on_seed_and_index_only),
        cmocka_unit_test(uniform_floats_fill_the_half_open_interval),
        cmocka_unit_test(uniform_integers_use_every_bit),
        cmocka_unit_test(normal_has_the_moments_of_a_normal_distribution),
        cmocka_unit_test(normal_integers_are_refused),
        cmocka_unit_test(arange_counts_in_row_major_order),
        cmocka_unit_test(empty_and_scalar_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
