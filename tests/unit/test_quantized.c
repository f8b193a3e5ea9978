/* Products with a packed matrix against sums in double precision: every number of bits, rows on each side of
 * a simdgroup's four and eight, columns that no simdgroup divides, few and many of a GPU's chunks of 128,
 * 256 and 512 terms. Memory that a result is allocated in holds large numbers before. */
#include "graph.h"

#include <malloc.h>

#define SHAPE(...) ((smelt_shape){.ndim = sizeof((int64_t[]){__VA_ARGS__}) / 8, .size = {__VA_ARGS__}})

static smelt_array *array_of(smelt_dtype dtype, smelt_shape shape, double low, double high) {
    smelt_array *array;
    OK(smelt_array_create(dtype, shape, &array));
    fill_random(array, low, high);
    return array;
}

/* Element `at` of a row of words. */
static unsigned code_at(const smelt_array *words, int64_t row, int64_t at, int bits) {
    const uint32_t *line = (const uint32_t *)words->data + row * words->shape.size[1];
    return line[at * bits / 32] >> (at * bits % 32) & ((1u << bits) - 1);
}

static void multiply(smelt_dtype dtype, int bits, int group, int64_t rows, int64_t columns, int64_t terms) {
    smelt_array *x = array_of(dtype, SHAPE(rows, terms), -1, 1),
                *w = array_of(SMELT_UINT32, SHAPE(columns, terms * bits / 32), 0, 0x1p32),
                *scales = array_of(SMELT_FLOAT32, SHAPE(columns, terms / group), -1, 1),
                *biases = array_of(SMELT_FLOAT32, SHAPE(columns, terms / group), -1, 1), *out = NULL;
    OK(smelt_quantized_matmul(&(smelt_quantized_matmul_desc){.x = x,
                                                             .w = w,
                                                             .scales = scales,
                                                             .biases = biases,
                                                             .bits = bits,
                                                             .group_size = group,
                                                             .device = test_device()},
                              &out));
    OK(test_to_host(&out));
    if (out->dtype != dtype || out->shape.ndim != 2 || out->shape.size[0] != rows ||
        out->shape.size[1] != columns)
        FAIL_TEST("the result's shape or dtype is wrong");
    double rounding = dtype == SMELT_FLOAT16 ? 0x1p-11 : dtype == SMELT_BFLOAT16 ? 0x1p-8 : 0x1p-24;
    double *line = malloc((size_t)terms * 2 * sizeof *line), *sizes = line + terms; /* of a column */
    double *x_values = malloc((size_t)(rows * terms) * sizeof *x_values);
    for (int64_t i = 0; i < rows * terms; i++) x_values[i] = element_at(x, i);
    for (int64_t column = 0; column < columns; column++) {
        for (int64_t k = 0; k < terms; k++) {
            int64_t at = column * (terms / group) + k / group;
            double code = code_at(w, column, k, bits);
            double scale = element_at(scales, at), bias = element_at(biases, at);
            line[k] = code * scale + bias;
            sizes[k] = code * fabs(scale) + fabs(bias);
        }
        for (int64_t row = 0; row < rows; row++) {
            const double *terms_of_row = x_values + row * terms;
            double sum = 0, size = 0;
            for (int64_t k = 0; k < terms; k++) {
                sum += terms_of_row[k] * line[k];
                size += fabs(terms_of_row[k]) * sizes[k];
            }
            double allowed = (double)(terms + 4) * 0x1p-24 * size + rounding * fabs(sum);
            double made = element_at(out, row * columns + column);
            if (!(fabs(made - sum) <= allowed))
                FAIL_TEST("%d bits, group %d, (%lld, %lld): %g, expected %g", bits, group, (long long)row,
                          (long long)column, made, sum);
        }
    }
    free(line);
    free(x_values);
    smelt_array_release(x), smelt_array_release(w), smelt_array_release(scales), smelt_array_release(biases);
    smelt_array_release(out);
}

static void products(void **state) {
    (void)state;
    multiply(SMELT_FLOAT32, 4, 64, 1, 9, 64);
    multiply(SMELT_BFLOAT16, 4, 32, 2, 33, 2080);
    multiply(SMELT_FLOAT16, 2, 128, 3, 40, 256);
    multiply(SMELT_FLOAT32, 8, 32, 9, 3, 1056);
    multiply(SMELT_BFLOAT16, 4, 64, 1, 70, 1280);
    multiply(SMELT_BFLOAT16, 8, 128, 9, 17, 384);
    multiply(SMELT_FLOAT16, 4, 32, 17, 65, 128);
    multiply(SMELT_BFLOAT16, 2, 32, 8, 33, 1152);
    multiply(SMELT_FLOAT16, 8, 64, 3, 20, 256);
    /* More columns, for which GPUs have a kernel of few rows. */
    multiply(SMELT_BFLOAT16, 4, 64, 1, 5710, 512);
    multiply(SMELT_FLOAT16, 4, 128, 2, 5761, 256);
    multiply(SMELT_BFLOAT16, 2, 32, 3, 5700, 512);
    multiply(SMELT_FLOAT16, 8, 64, 4, 5800, 256);
    multiply(SMELT_FLOAT16, 4, 64, 1, 5710, 1792);  /* its sums end at a multiple of 128 bytes */
    multiply(SMELT_BFLOAT16, 4, 64, 3, 5697, 5632); /* a thread copies more of x than it loads at once */
    /* More rows and columns, for which threadgroups read x less often. */
    multiply(SMELT_BFLOAT16, 4, 64, 16, 5890, 1152);
    multiply(SMELT_FLOAT16, 4, 128, 9, 7689, 384);
}

#define REFUSES(status, text, ...)                                                \
    do {                                                                          \
        smelt_quantized_matmul_desc desc = good;                                  \
        smelt_array *out = NULL;                                                  \
        __VA_ARGS__;                                                              \
        assert_int_equal(smelt_quantized_matmul(&desc, &out), status);            \
        if (!strstr(smelt_error(), text))                                         \
            FAIL_TEST("the message is '%s'; expected '%s'", smelt_error(), text); \
        assert_null(out);                                                         \
    } while (0)

static void refusals(void **state) {
    (void)state;
    smelt_array *x = array_of(SMELT_FLOAT32, SHAPE(2, 64), -1, 1),
                *w = array_of(SMELT_UINT32, SHAPE(5, 8), 0, 9),
                *scales = array_of(SMELT_FLOAT32, SHAPE(5, 2), -1, 1),
                *narrow = array_of(SMELT_FLOAT32, SHAPE(5, 1), -1, 1);
    const smelt_quantized_matmul_desc good = {
        .x = x, .w = w, .scales = scales, .biases = scales, .bits = 4, .group_size = 32};
    REFUSES(SMELT_ERROR_INVALID_ARGUMENT, "x is NULL", desc.x = NULL);
    REFUSES(SMELT_ERROR_INVALID_ARGUMENT, "bits is 3; expected 2, 4 or 8", desc.bits = 3);
    REFUSES(SMELT_ERROR_INVALID_ARGUMENT, "group_size is 16; expected 32, 64 or 128", desc.group_size = 16);
    REFUSES(SMELT_ERROR_INVALID_ARGUMENT, "mode is 3; expected 0 (affine)",
            memcpy(&desc.mode, &(int){3}, sizeof(int)));
    REFUSES(SMELT_ERROR_INVALID_ARGUMENT, "biases is an array; expected NULL",
            desc.mode = SMELT_QUANTIZED_MXFP4);
    REFUSES(SMELT_ERROR_INVALID_ARGUMENT, "biases is NULL; expected an array", desc.biases = NULL);
    REFUSES(SMELT_ERROR_INVALID_ARGUMENT, "x has 64 columns and w 32 elements in a row", desc.bits = 8);
    REFUSES(SMELT_ERROR_INVALID_ARGUMENT, "biases has shape 5x1; expected 5x2", desc.biases = narrow);
    REFUSES(SMELT_ERROR_INVALID_ARGUMENT, "scales has dtype float32; expected uint8",
            desc.mode = SMELT_QUANTIZED_MXFP4, desc.biases = NULL);
    REFUSES(SMELT_ERROR_INVALID_ARGUMENT, "w has shape 2x64 and dtype float32; expected uint32", desc.w = x);
    smelt_array_release(x), smelt_array_release(w), smelt_array_release(scales), smelt_array_release(narrow);
}

int main(void) {
    test_quick_code();
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_PERTURB, 1); /* allocated memory holds bytes 0xfe */
    const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
