/* Elementwise exp: the shipped kernels and the seeds' own, row-contiguous and strided, in each float dtype.
 */
#include "seeds.h"
#include "kernels/elementwise/exp.h"

#include <stdlib.h>

static const smelt_dtype dtypes[] = {SMELT_FLOAT16, SMELT_BFLOAT16, SMELT_FLOAT32};

/* exp itself may be off by a few units of float32; the result is then rounded to its dtype. */
static double tolerance(smelt_dtype dtype) {
    return 1.01 * rounding(dtype) + 4e-7;
}

static void assert_is_exp(const char *what, smelt_array *x, const smelt_array *y) {
    double *expected = values_of(x);
    smelt_reference_exp(expected, smelt_array_size(x), expected);
    assert_int_equal(smelt_array_dtype(y), smelt_array_dtype(x));
    assert_true(smelt_array_is_contiguous(y));
    /* Below the smallest normal half the steps are absolute. */
    assert_close(what, y, expected, tolerance(smelt_array_dtype(y)),
                 smelt_array_dtype(y) == SMELT_FLOAT16 ? 0x1p-25 : 0);
    free(expected);
}

static void run_shipped(const char *what, smelt_array *x) {
    smelt_array *y;
    CHECK(smelt_exp(x, &y, &(smelt_call){.poison = true, .device = test_device()}));
    assert_is_exp(what, x, y);
    smelt_array_release(y);
}

static void exp_of_contiguous_arrays(void **state) {
    (void)state;
    static const smelt_shape shapes[] = {{0, {0}},     {1, {1}},        {1, {7}},
                                         {2, {4, 16}}, {3, {5, 1, 67}}, {1, {1021}}};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            smelt_array *x = random_array(dtypes[d], shapes[s], 100 * d + s);
            run_shipped("exp", x);
            smelt_array_release(x);
        }
}

static void exp_of_an_empty_array_is_empty(void **state) {
    (void)state;
    smelt_array *x, *y;
    CHECK(smelt_array_create(SMELT_FLOAT32, SHAPE(3, 0), &x));
    CHECK(smelt_exp(x, &y, ON_DEVICE));
    assert_int_equal(smelt_array_size(y), 0);
    smelt_array_release(x);
    smelt_array_release(y);
}

struct strided_case {
    const char *what;
    smelt_shape shape;
    int64_t strides[3], offset;
};

/* Views on an array of 11 x 13 x 9. */
#define BASE SHAPE(11, 13, 9)
static const struct strided_case strided_cases[] = {
    {"every other row", {3, {6, 13, 9}}, {234, 9, 1}, 0},
    {"transposed", {3, {9, 13, 11}}, {1, 9, 117}, 0},
    {"broadcast", {3, {5, 13, 9}}, {0, 9, 1}, 117},
    {"one element everywhere", {2, {3, 40}}, {0, 0}, 58},
    {"reversed rows", {3, {11, 13, 9}}, {-117, 9, 1}, 10 * 117},
    {"all reversed", {3, {11, 13, 9}}, {-117, -9, -1}, 11 * 117 - 1},
    {"reversed diagonal steps", {2, {10, 3}}, {-127, 1}, 9 * 127},
};

static void exp_of_strided_arrays(void **state) {
    (void)state;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        smelt_array *base = random_array(dtypes[d], BASE, 7 + d);
        for (size_t c = 0; c < sizeof strided_cases / sizeof *strided_cases; c++) {
            const struct strided_case *strided = &strided_cases[c];
            smelt_array *x;
            CHECK(smelt_array_view(base, strided->shape, strided->strides, strided->offset, &x));
            run_shipped(strided->what, x);
            smelt_array_release(x);
        }
        smelt_array_release(base);
    }
}

static void exp_refuses_other_dtypes(void **state) {
    (void)state;
    smelt_array *x, *y = NULL;
    CHECK(smelt_array_arange(SMELT_INT32, SHAPE(4), &x));
    assert_int_equal(smelt_exp(x, &y, ON_DEVICE), SMELT_ERROR_INVALID_ARGUMENT);
    assert_null(y);
    smelt_array_release(x);
}

/* ---- The seeds' own text. */

static void run_seed(const char *document, int block, bool strided, smelt_array *x, const char *what) {
    char *source = seed_block(document, "source = \"\"\"", "\"\"\"", block);
    smelt_kernel *kernel;
    smelt_array *y;
    CHECK(smelt_kernel_create(&(smelt_kernel_desc){.name = strided ? "myexp_strided" : "myexp",
                                                   .source = source,
                                                   .inputs = {"inp"},
                                                   .outputs = {"out"},
                                                   .strided = strided},
                              &kernel));
    CHECK(smelt_kernel_run(
        kernel,
        &(smelt_run_desc){
            .device = test_device(),
            .inputs = {x},
            .grid = {smelt_array_size(x)},
            .threadgroup = {256},
            .templates = {{.name = "T", .kind = SMELT_TEMPLATE_DTYPE, .dtype = smelt_array_dtype(x)}},
            .output_shapes = {smelt_array_shape(x)},
            .output_dtypes = {smelt_array_dtype(x)},
            .initialise = true,
            .init_value = __builtin_nan("")},
        &y));
    assert_is_exp(what, x, y);
    smelt_array_release(y);
    smelt_kernel_release(kernel);
    free(source);
}

static void seed_exp(void **state) {
    (void)state;
    char *document = seed_document("003_58571cf5fbbbae47.txt");
    if (!document) skip();
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        smelt_array *x = random_array(dtypes[d], SHAPE(4, 16), d);
        run_seed(document, 0, false, x, "the seed's exp");
        smelt_array_release(x);
    }
    free(document);
}

/* Its index is a uint, so it does not support negative strides. */
static void seed_strided_exp(void **state) {
    (void)state;
    char *document = seed_document("003_58571cf5fbbbae47.txt");
    if (!document) skip();
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        smelt_array *base = random_array(dtypes[d], BASE, 70 + d), *x;
        for (size_t c = 0; c < 3; c++) {
            const struct strided_case *strided = &strided_cases[c];
            CHECK(smelt_array_view(base, strided->shape, strided->strides, strided->offset, &x));
            run_seed(document, 2, true, x, strided->what);
            smelt_array_release(x);
        }
        smelt_array_release(base);
    }
    free(document);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_of_contiguous_arrays),
        cmocka_unit_test(exp_of_an_empty_array_is_empty),
        cmocka_unit_test(exp_of_strided_arrays),
        cmocka_unit_test(exp_refuses_other_dtypes),
        cmocka_unit_test(seed_exp),
        cmocka_unit_test(seed_strided_exp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
